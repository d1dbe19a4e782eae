//! Completed requests to block devices, of the whole machine, read on demand.

use std::path::Path;

use super::decode::Decoder;
use super::instance::Instance;
use super::page::Records;
use super::reader::{drain, page_bytes};
use super::tracepoints::{COMPLETION, Meaning};
use super::{TracerError, tracers};
use crate::Event;

/// Buffer for each core: some 70,000 requests, between two reads.
const BUFFER_BYTES: u64 = 4 << 20;

/// A private instance of the tracer with one tracepoint.
pub struct Completions {
    instance: Instance,
    decoder: Decoder,
}

impl Completions {
    /// Makes the instance of this name; nothing is recorded yet.
    pub fn attach(tracefs: &Path, name: &str) -> Result<Self, TracerError> {
        let mut decoder = Decoder::default();
        let mut instance = Instance::create(tracefs, name, BUFFER_BYTES)?;
        if !instance.add(COMPLETION, Meaning::Complete, &mut decoder) {
            return Err(tracers::lacks(COMPLETION));
        }
        instance.enable()?;
        Ok(Self { instance, decoder })
    }

    /// Starts or stops recording; recorded events stay until they are drained.
    pub fn record(&self, on: bool) -> Result<(), TracerError> {
        self.instance.record(on)
    }

    /// Returns the events recorded since the last time, core by core.
    pub fn drain(&self, mut sink: impl FnMut(&Event)) -> Result<(), TracerError> {
        let mut page = vec![0; page_bytes()];
        for pipe in self.instance.pipes()? {
            drain(&pipe.file, &mut page, |page| {
                let events = Records::of(page)
                    .filter_map(|(time_ns, record)| self.decoder.decode(pipe.cpu, time_ns, record));
                events.for_each(|event| sink(&event));
                Ok(())
            })
            .map_err(|error| TracerError::unreadable(&error))?;
        }
        Ok(())
    }
}
