//! Which state a thread is in.

use tierwise_recording::StateKind::{Blocked, Cpu, Runnable};
use tierwise_recording::{CallKind, NONE, ThreadClass};

use super::{Script, states_of};
use crate::trace_event::{SwitchedOutState, TraceEventKind};

#[test]
fn a_wait_for_another_thread_names_who_woke_it_and_the_call() {
    let mut script = Script::new();
    script.enter(100, 10, libc::SYS_futex, &[]);
    script.switch(150, 0, 10, SwitchedOutState::Sleeping, 20);
    script.wake(400, 20, 10, 0);
    script.switch(450, 0, 20, SwitchedOutState::Sleeping, 10);
    script.exit(460, 10, libc::SYS_futex, 0);
    let rows = script.end(1000);
    let expected = [
        (0, 150, Cpu),
        (150, 400, Blocked),
        (400, 450, Runnable),
        (450, 1000, Cpu),
    ];
    assert_eq!(states_of(&rows, 0), expected);
    assert_eq!(rows.states[1].waker, 1);
    let expected = CallKind::Lock;
    assert_eq!(rows.calls[rows.states[1].call as usize].kind, expected);
    assert_eq!(rows.states[3].call, NONE, "the core outlasts the call");
    let other = [(0, 150, Runnable), (150, 450, Cpu), (450, 1000, Blocked)];
    assert_eq!(states_of(&rows, 1), other);
}

#[test]
fn a_switch_from_idle_that_is_not_told_is_put_at_the_waking() {
    let mut script = Script::new();
    script.enter(100, 10, libc::SYS_futex, &[]);
    script.switch(150, 0, 10, SwitchedOutState::Sleeping, 0);
    script.wake(400, 20, 10, 0);
    script.exit(430, 10, libc::SYS_futex, 0);
    let rows = script.end(1000);
    let expected = [(0, 150, Cpu), (150, 400, Blocked), (400, 1000, Cpu)];
    assert_eq!(states_of(&rows, 0), expected);
}

#[test]
fn a_thread_that_becomes_ready_on_a_busy_silent_core_runs_when_that_is_idle() {
    let mut script = Script::new();
    script.switch(100, 0, 10, SwitchedOutState::Sleeping, 20);
    script.wake(200, 99, 10, 0);
    script.switch(300, 0, 20, SwitchedOutState::Sleeping, 0);
    script.enter(350, 10, libc::SYS_futex, &[]);
    let rows = script.end(1000);
    let expected = [
        (0, 100, Cpu),
        (100, 200, Blocked),
        (200, 300, Runnable),
        (300, 1000, Cpu),
    ];
    assert_eq!(states_of(&rows, 0), expected);
}

#[test]
fn a_waking_before_the_switch_it_answers_is_not_lost() {
    let mut script = Script::new();
    script.enter(100, 10, libc::SYS_futex, &[]);
    script.wake(140, 20, 10, 0);
    script.switch(150, 0, 10, SwitchedOutState::Sleeping, 0);
    script.switch(160, 0, 0, SwitchedOutState::Runnable, 10);
    let rows = script.end(1000);
    let expected = [(0, 150, Cpu), (150, 160, Runnable), (160, 1000, Cpu)];
    assert_eq!(states_of(&rows, 0), expected);
}

#[test]
fn a_waking_that_was_answered_does_not_cut_a_later_wait() {
    let mut script = Script::new();
    script.enter(100, 10, libc::SYS_futex, &[]);
    script.wake(140, 20, 10, 0);
    script.exit(145, 10, libc::SYS_futex, 0);
    script.enter(150, 10, libc::SYS_futex, &[]);
    script.switch(160, 0, 10, SwitchedOutState::Sleeping, 0);
    script.wake(500, 20, 10, 0);
    script.switch(510, 0, 0, SwitchedOutState::Runnable, 10);
    let rows = script.end(1000);
    let expected = [
        (0, 160, Cpu),
        (160, 500, Blocked),
        (500, 510, Runnable),
        (510, 1000, Cpu),
    ];
    assert_eq!(states_of(&rows, 0), expected);
}

#[test]
fn a_call_from_before_the_burst_is_that_of_the_wait_before_its_end() {
    let mut script = Script::new();
    script.wake(300, 0, 10, 0);
    script.switch(310, 0, 0, SwitchedOutState::Runnable, 10);
    script.exit(320, 10, libc::SYS_recvfrom, 77);
    script.enter(400, 10, libc::SYS_futex, &[]);
    let rows = script.end(1000);
    assert_eq!(rows.calls.len(), 2);
    let expected = (CallKind::Receive, 77);
    assert_eq!((rows.calls[0].kind, rows.calls[0].size_bytes), expected);
    assert_eq!((rows.calls[0].start_ns, rows.calls[0].end_ns), (0, 320));
    assert_eq!(rows.states[0].call, 0);
    assert_eq!(rows.calls[1].end_ns, 1000, "under way when the burst ended");
}

/// A wait from 150 to 400, after which the thread's next traced event is the exit of a call.
fn waits_before(
    state: SwitchedOutState,
    between: Option<libc::c_long>,
    number: libc::c_long,
) -> (Option<CallKind>, u64) {
    let mut script = Script::new();
    script.call(100..120, 10, libc::SYS_fdatasync, &[3], 0);
    script.switch(150, 0, 10, state, 20);
    script.wake(400, 20, 10, 0);
    script.switch(450, 0, 20, SwitchedOutState::Sleeping, 10);
    if let Some(number) = between {
        script.call(452..454, 10, number, &[3], 8);
    }
    script.exit(460, 10, number, 77);
    let rows = script.end(1000);
    let mut states = rows.states.iter();
    let wait = states.find(|state| (state.thread, state.start_ns, state.kind) == (0, 150, Blocked));
    let wait = wait.expect("it waited");
    let mut calls = rows.calls.iter().filter(|call| call.thread == 0);
    let last = calls.next_back().expect("the last exit");
    let of_wait = rows.calls.get(wait.call as usize).map(|call| call.kind);
    (of_wait, last.start_ns)
}

#[test]
fn a_wait_before_the_exit_of_a_message_or_of_a_poll_that_timed_out_was_for_it() {
    let sleeping = SwitchedOutState::Sleeping;
    let receive = waits_before(sleeping, None, libc::SYS_recvfrom);
    assert_eq!(receive, (Some(CallKind::Receive), 150));
    let poll = waits_before(sleeping, None, libc::SYS_epoll_pwait);
    assert_eq!(poll, (Some(CallKind::Poll), 150));
    let send = waits_before(sleeping, None, libc::SYS_sendto);
    assert_eq!(send, (Some(CallKind::Send), 150));
}

#[test]
fn a_wait_for_a_device_or_before_another_call_was_not_for_a_message() {
    let fault = waits_before(SwitchedOutState::Disk, None, libc::SYS_sendto);
    assert_eq!(fault, (None, 460));
    let latch = waits_before(
        SwitchedOutState::Sleeping,
        Some(libc::SYS_read),
        libc::SYS_sendto,
    );
    assert_eq!(latch, (None, 460));
}

#[test]
fn a_call_told_at_the_start_is_no_sign_that_the_thread_ran() {
    let mut script = Script::new();
    script.enter(0, 10, libc::SYS_futex, &[]);
    script.wake(300, 20, 10, 0);
    let rows = script.end(1000);
    let expected = [(0, 300, Blocked), (300, 1000, Runnable)];
    assert_eq!(states_of(&rows, 0), expected);
    assert_eq!(rows.states[0].call, 0);
}

#[test]
fn a_child_lives_from_its_fork_to_its_end() {
    let mut script = Script::new();
    let name = "child".to_owned();
    let fork = TraceEventKind::Fork {
        child: 30,
        name,
        thread: true,
    };
    script.at(200, 0, 10, fork);
    script.switch(250, 1, 0, SwitchedOutState::Runnable, 30);
    script.at(700, 1, 30, TraceEventKind::Ended);
    script.switch(710, 1, 30, SwitchedOutState::Dead, 0);
    let rows = script.end(1000);
    assert_eq!(states_of(&rows, 2), [(200, 250, Runnable), (250, 700, Cpu)]);
    assert_eq!(script.timeline.threads()[2].pid, 10);
    assert!(script.timeline.checks().iter().all(|check| check.passed));
}

#[test]
fn a_silent_thread_counts_in_a_later_burst_only_if_it_is_seen_again() {
    let mut script = Script::new();
    assert_eq!(states_of(&script.end(1000), 1), [(0, 1000, Blocked)]);
    script.at(5000, 0, 0, TraceEventKind::BurstStart);
    script.enter(5100, 10, libc::SYS_futex, &[]);
    let rows = script.end(6000);
    assert_eq!(states_of(&rows, 0), [(5000, 6000, Cpu)]);
    assert_eq!(states_of(&rows, 1), []);
}

#[test]
fn a_thread_that_no_rule_knows_is_a_session_once_it_talks() {
    let mut script = Script::new();
    let other = ThreadClass::Other;
    let thread = script.timeline.see_thread(10, 40, "mariadbd", other);
    script.end(1000);
    let expected = ThreadClass::Background;
    assert_eq!(script.timeline.threads()[thread].class, expected);
    script.timeline.see_thread(10, 40, "mariadbd", other);
    script.at(5000, 0, 0, TraceEventKind::BurstStart);
    for (time_ns, number) in [(5100, libc::SYS_recvfrom), (5200, libc::SYS_sendto)] {
        script.exit(time_ns, 40, number, 5);
    }
    script.end(6000);
    let expected = ThreadClass::Session;
    assert_eq!(script.timeline.threads()[thread].class, expected);
}
