//! Removes the recorded data that drives a mechanism. Mechanisms without such data check
//! [`crate::Disabled::has`] where they act.

use crate::model::mechanism::Mechanism;
use crate::{Grouping, Pace, ReadReuse, Reuse, Session, Step, Work};

const NOTHING: Step = Step::Reuse(ReadReuse {
    cache: Reuse::UNKNOWN,
    buffer: Reuse::UNKNOWN,
});

pub(crate) fn strip(work: &mut Work) {
    let disabled = work.disabled;
    let all = Mechanism::ALL.iter();
    all.filter(|one| disabled.has(**one))
        .for_each(|one| take_out(work, *one));
}

fn take_out(work: &mut Work, mechanism: Mechanism) {
    match mechanism {
        Mechanism::ColdCores => work.cold_factor = None,
        Mechanism::BackgroundLoad => work.foreign_cpu_share = 0.0,
        Mechanism::ClientThreads => work.sessions.iter_mut().for_each(|one| one.client = None),
        Mechanism::BackgroundSessions => work.sessions.retain(|one| one.pace == Pace::Loop),
        Mechanism::FlushSharing => work
            .log
            .iter_mut()
            .filter(|log| log.grouping != Grouping::Exclusive)
            .for_each(|log| log.grouping = Grouping::Alone),
        Mechanism::SecondLog => work.scripts.iter_mut().for_each(|one| one.shared = false),
        Mechanism::LeaderCpu => work
            .log
            .iter_mut()
            .for_each(|log| (log.leader_cpu_ns, log.release_cpu_ns) = (0, 0)),
        Mechanism::HotLocks => replace(work, |step| matches!(step, Step::Lock { .. })),
        Mechanism::EmpiricalClasses => {
            for device in &mut work.devices {
                let either = device.reads.iter_mut().chain(&mut device.writes);
                let requests = either.chain(&mut device.flushes);
                requests.for_each(|one| (one.depth, one.log) = (0, false));
            }
        }
        _ => {}
    }
}

fn replace(work: &mut Work, is_such: fn(&Step) -> bool) {
    let sessions = work.sessions.iter_mut();
    let steps = sessions.flat_map(|session: &mut Session| &mut session.steps);
    let such = steps.filter(|step| is_such(step));
    such.for_each(|step| *step = NOTHING);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disabled;

    #[test]
    fn what_drives_a_mechanism_is_taken_out() {
        let names = ["background_load", "cold_cores"].map(str::to_owned);
        let mut work = Work {
            foreign_cpu_share: 0.3,
            cold_factor: Some(1.5),
            disabled: Disabled::named(&names).expect("their names"),
            ..Work::default()
        };
        strip(&mut work);
        assert_eq!((work.foreign_cpu_share, work.cold_factor), (0.0, None));
    }
}
