//! Rules for every device. One suite tests all models and the live disk's core.
//!
//! A case is a list of arrivals; [`check_device_rules`] drives a fresh device through it and says which rule broke.

use std::collections::BTreeMap;

use crate::random::{GOLDEN_GAMMA, Xorshift};
use crate::{Completion, Device, Nanos, Op, Request, RequestId};

/// A request and the time since the one before it.
#[derive(Clone, Copy, Debug)]
pub struct SpacedRequest {
    /// Nanoseconds since the arrival before.
    pub gap_ns: Nanos,
    /// What arrives.
    pub request: Request,
}

/// Drives devices made by `build` through `arrivals` and checks every rule.
///
/// # Errors
/// The first broken rule, with the request or time at which it broke.
pub fn check_device_rules<D: Device>(
    build: impl Fn() -> D,
    arrivals: &[SpacedRequest],
) -> Result<(), String> {
    let exact = ConformancePass::run(build(), arrivals, None)?;
    exact.check(arrivals)?;
    let again = ConformancePass::run(build(), arrivals, None)?;
    if exact.completions != again.completions {
        return Err("the same seed and requests gave other times".into());
    }
    let polled = ConformancePass::run(build(), arrivals, Some(50_000))?;
    if exact.sorted() != polled.sorted() {
        return Err("a caller that comes late gets other times".into());
    }
    Ok(())
}

/// Drives one device through `arrivals`; when each request completed, by its index.
///
/// # Errors
/// A broken rule of the interface.
pub fn completion_times<D: Device>(
    device: D,
    arrivals: &[SpacedRequest],
) -> Result<Vec<Nanos>, String> {
    let trace = ConformancePass::run(device, arrivals, None)?;
    Ok(trace.sorted().into_iter().map(|(_, at)| at).collect())
}

/// What happened in one pass.
struct ConformancePass {
    submitted: BTreeMap<RequestId, Nanos>,
    completions: Vec<Completion>,
}

impl ConformancePass {
    /// `poll_ns`: be late, by advancing only at multiples of this time.
    fn run<D: Device>(
        mut device: D,
        arrivals: &[SpacedRequest],
        poll_ns: Option<Nanos>,
    ) -> Result<Self, String> {
        let mut trace = Self {
            submitted: BTreeMap::new(),
            completions: Vec::new(),
        };
        let mut now = 0;
        for (id, arrival) in (0..).zip(arrivals) {
            let arrives = now + arrival.gap_ns;
            trace.run_until(&mut device, Some(arrives), poll_ns)?;
            now = arrives;
            let before = trace.completions.len();
            device.advance(now, &mut trace.completions);
            trace.submitted.insert(id, now);
            device.submit(now, id, arrival.request);
            trace.not_in_the_past(&device, now, before)?;
        }
        trace.run_until(&mut device, None, poll_ns)?;
        Ok(trace)
    }

    fn run_until<D: Device>(
        &mut self,
        device: &mut D,
        until: Option<Nanos>,
        poll_ns: Option<Nanos>,
    ) -> Result<(), String> {
        while let Some(event) = device.next_event() {
            let now = poll_ns.map_or(event, |poll| event.next_multiple_of(poll));
            if until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            let before = self.completions.len();
            device.advance(now, &mut self.completions);
            self.not_in_the_past(device, now + 1, before)?;
            if let Some(late) = self.completions[before..].iter().find(|done| done.at > now) {
                return Err(format!(
                    "request {} completed at {}, reported at {now}",
                    late.id, late.at
                ));
            }
        }
        let open = self.submitted.len().saturating_sub(self.completions.len());
        if open > 0 {
            Err(format!("idle with {open} requests outstanding"))
        } else {
            Ok(())
        }
    }

    fn not_in_the_past<D: Device>(
        &self,
        device: &D,
        earliest: Nanos,
        before: usize,
    ) -> Result<(), String> {
        if self.completions[before..]
            .windows(2)
            .any(|pair| pair[0].at > pair[1].at)
        {
            return Err("completions of one call are not in order of time".into());
        }
        match device.next_event() {
            Some(event) if event < earliest => {
                Err(format!("next event {event} lies before {earliest}"))
            }
            _ => Ok(()),
        }
    }

    fn check(&self, arrivals: &[SpacedRequest]) -> Result<(), String> {
        let mut seen = BTreeMap::new();
        for done in &self.completions {
            let submitted = self
                .submitted
                .get(&done.id)
                .ok_or(format!("request {} was never submitted", done.id))?;
            if done.at < *submitted {
                return Err(format!(
                    "request {} completed {} before its submit",
                    done.id,
                    submitted - done.at
                ));
            }
            if seen.insert(done.id, done.at).is_some() {
                return Err(format!("request {} completed twice", done.id));
            }
        }
        let bytes = |ids: &mut dyn Iterator<Item = RequestId>| -> u64 {
            ids.map(|id| u64::from(arrivals[id as usize].request.sectors))
                .sum()
        };
        let (sent, done) = (
            bytes(&mut self.submitted.keys().copied()),
            bytes(&mut seen.keys().copied()),
        );
        if sent == done {
            Ok(())
        } else {
            Err(format!("{sent} sectors went in, {done} came out"))
        }
    }

    fn sorted(&self) -> Vec<(RequestId, Nanos)> {
        let mut all: Vec<_> = self
            .completions
            .iter()
            .map(|done| (done.id, done.at))
            .collect();
        all.sort_unstable();
        all
    }
}

/// Pseudo-random arrivals over a device of `capacity_sectors`, the same for the same seed: all operations,
/// runs and random places, bursts and pauses.
pub fn conformance_requests(seed: u64, count: usize, capacity_sectors: u64) -> Vec<SpacedRequest> {
    let mut random = Xorshift(seed.wrapping_add(GOLDEN_GAMMA));
    let mut next = move |below: u64| random.draw() % below;
    let mut sector = 0;
    let mut arrival = || {
        let longest = if next(16) == 0 { 2048 } else { 64 };
        let sectors = 1 + next(longest) as u32;
        if next(3) > 0 || sector + 4096 > capacity_sectors {
            sector = next(capacity_sectors.saturating_sub(4096).max(1));
        }
        let op = [
            Op::Read,
            Op::Write,
            Op::Read,
            Op::Write,
            Op::Read,
            Op::Write,
            Op::Flush,
            Op::Discard,
        ][next(8) as usize];
        let request = Request {
            op,
            sector,
            sectors,
            fua: op == Op::Write && next(8) == 0,
        };
        sector += u64::from(sectors);
        SpacedRequest {
            gap_ns: [0, 1_000, 300_000, 20_000_000][next(4) as usize],
            request,
        }
    };
    (0..count).map(|_| arrival()).collect()
}
