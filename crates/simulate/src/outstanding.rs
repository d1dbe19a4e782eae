//! Requests that the device has not completed yet.

use tierwise_device::{Nanos, RequestId};

use crate::Asked;

/// A request in the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) asked: Asked,
    pub(crate) submitted_ns: Nanos,
    /// Its place in the order of the source, from 0.
    pub(crate) number: u64,
}

/// A table of them, whose index is the request's id; it grows to the largest number outstanding at a time.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    table: Vec<InFlight>,
    free: Vec<usize>,
}

impl Outstanding {
    pub(crate) fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }

    pub(crate) fn add(&mut self, request: InFlight) -> RequestId {
        match self.free.pop() {
            Some(index) => {
                self.table[index] = request;
                index as RequestId
            }
            None => {
                self.table.push(request);
                (self.table.len() - 1) as RequestId
            }
        }
    }

    pub(crate) fn take(&mut self, id: RequestId) -> InFlight {
        self.free.push(id as usize);
        self.table[id as usize]
    }
}
