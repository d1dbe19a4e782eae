//! Requests that cannot be answered.

use tierwise_device::ProfileLibrary;
use tierwise_network::{Program, ReplayMode, Scenario, replay};
use tierwise_recording::Role;
use tierwise_work::{CommitGrouping, Delay, Step, Work};

use crate::support::{SECOND, all_on, cpu, memory, update, work};

fn refusal(work: &Work, change: impl Fn(&mut Scenario)) -> String {
    let mut scenario = all_on(memory(1.0), SECOND, 1);
    change(&mut scenario);
    let error = replay(work, &scenario).expect_err("a scenario that cannot be");
    assert!(!error.fix.is_empty());
    error.message
}

#[test]
fn scenarios_that_cannot_be_say_why() {
    let work = work(1, &update(100), CommitGrouping::Alone);
    let said = |change: &dyn Fn(&mut Scenario)| refusal(&work, change);
    assert!(said(&|scenario| scenario.cores = 0).contains("cores"));
    assert!(said(&|scenario| scenario.cpu_speed = f64::NAN).contains("speed"));
    assert!(said(&|scenario| scenario.clients = Some(0)).contains("clients"));
    assert!(said(&|scenario| scenario.background_share = Some(2.0)).contains("other programs"));
    assert!(said(&|scenario| scenario.placement.push((Role::Log, 9))).contains("not listed"));
    assert!(said(&|scenario| scenario.devices.clear()).contains("not listed"));
}

#[test]
fn another_memory_is_refused_where_reads_went_unseen_or_none_is_left() {
    let steps = [
        cpu(10),
        Step::CachedRead {
            role: Role::Data,
            sector: 0,
            sectors: 8,
        },
    ];
    let mut work = work(1, &steps, CommitGrouping::Alone);
    work.page_cache.engine_bytes = 1 << 30;
    let small = |scenario: &mut Scenario| scenario.memory_bytes = Some(1 << 30);
    assert!(refusal(&work, small).contains("own buffer"));
    work.page_cache.reason = Some("reads went unseen".to_owned());
    assert!(refusal(&work, small).contains("unseen"));
}

#[test]
fn work_that_points_nowhere_is_refused() {
    let of = |step| {
        Program::new(
            work(1, &[step], CommitGrouping::Alone),
            &ProfileLibrary::default(),
        )
    };
    assert!(of(Step::Lock { lock: 3 }).is_err());
    assert!(
        of(Step::Sync {
            role: Role::Data,
            script: 3
        })
        .is_err()
    );
    assert!(
        Program::new(
            work(0, &[], CommitGrouping::Alone),
            &ProfileLibrary::default()
        )
        .is_err()
    );
}

#[test]
fn a_replay_that_stands_still_is_given_up() {
    let for_ever = Work {
        log: None,
        ..work(1, &[cpu(10), Step::AwaitLog], CommitGrouping::Alone)
    };
    let once = |scenario: &mut Scenario| scenario.mode = ReplayMode::Once;
    assert!(refusal(&for_ever, once).contains("stands still"));
    let long = Step::Delay(Delay {
        time_ns: 20 * 3_600 * SECOND,
        timer: false,
    });
    let away = replay(&work(1, &[long], CommitGrouping::Alone), &{
        let mut scenario = all_on(memory(1.0), SECOND, 1);
        once(&mut scenario);
        scenario
    });
    assert!(away.is_ok(), "who is away for long comes back");
}

#[test]
fn work_that_takes_no_time_is_given_up() {
    let races = work(2, &[cpu(0)], CommitGrouping::Alone);
    let long = |scenario: &mut Scenario| {
        scenario.mode = ReplayMode::Steady {
            span_ns: 3_600 * SECOND,
        }
    };
    assert!(refusal(&races, long).contains("next to no time"));
}
