//! Parts of the live disk that need no FUSE.

mod volatile;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tierwise_device::{Completion, Device, Nanos, Op, Request, RequestId};
use tierwise_disk::{ArrivedRequest, DueAnswer, Pacer, ServerConfig, WriteCacheMode};

// What a server refuses to be told.

fn config(partitions: &str) -> Result<ServerConfig, String> {
    let text = format!(
        r#"{{"name": "d", "mount": "/m", "socket": "/s", "profile": "", "profile_file": "p.toml", "seed": 1,
            "path_us": 12, "spin_us": 60, "library": {{}}, "precondition": "fresh", "lies_about_flush": false,
            "write_back_s": 2, "partitions": [{partitions}]}}"#
    );
    ServerConfig::parse(&text).map_err(|error| error.to_string())
}

#[test]
fn sizes_are_positive_multiples_of_a_block() {
    assert!(config(r#"{"name": "log", "size_bytes": 8192}"#).is_ok());
    for size in [0, 1, 512, 4097] {
        let error = config(&format!(r#"{{"name": "log", "size_bytes": {size}}}"#))
            .expect_err("a wrong size");
        assert!(
            error.contains("\"log\"") && error.contains(&size.to_string()),
            "{error}"
        );
    }
}

#[test]
fn unknown_fields_are_named() {
    let error =
        config(r#"{"name": "log", "size_bytes": 8192, "size": 1}"#).expect_err("an unknown field");
    assert!(error.contains("`size`"), "{error}");
}

#[test]
fn partitions_must_fit_the_device() {
    let config = config(r#"{"name": "a", "size_bytes": 8192}, {"name": "b", "size_bytes": 4096}"#)
        .expect("valid");
    assert!(config.require_fit(24).is_ok());
    let error = config
        .require_fit(23)
        .expect_err("one sector too few")
        .to_string();
    assert!(
        error.contains("12288") && error.contains("11776"),
        "{error}"
    );
}

#[test]
fn a_device_without_a_volatile_cache_cannot_lie() {
    let mut config = config(r#"{"name": "log", "size_bytes": 8192}"#).expect("valid");
    let profile = |cache: &str| {
        let text = include_str!("../../../../python/tierwise/data/devices/hdd-7k2.toml");
        let text = text.replace("write_cache = false", cache);
        tierwise_device::Profile::parse(&text, "disk.toml").expect("a valid profile")
    };
    let (safe, volatile) = (
        profile("write_cache = false"),
        profile("write_cache = true"),
    );
    assert_eq!(
        config.write_cache(&safe).expect("valid"),
        WriteCacheMode::Safe
    );
    assert_eq!(
        config.write_cache(&volatile).expect("valid"),
        WriteCacheMode::Volatile
    );
    config.lies_about_flush = true;
    assert_eq!(
        config.write_cache(&volatile).expect("valid"),
        WriteCacheMode::Lying
    );
    let error = config.write_cache(&safe).expect_err("no cache").to_string();
    assert!(
        error.contains("disk has no volatile write cache"),
        "{error}"
    );
}

// The relation of the model's clock to the real one.

const SERVICE: Nanos = 1_000_000;
const PATH: Nanos = 12_000;

/// Serves one request at a time, each in the same time.
#[derive(Default)]
struct Serial {
    queue: VecDeque<RequestId>,
    head_done: Nanos,
    submits: Vec<Nanos>,
    preloads: Arc<AtomicU64>,
}

impl Device for Serial {
    fn submit(&mut self, now: Nanos, id: RequestId, _: Request) {
        assert!(
            self.submits.last().is_none_or(|&last| last <= now),
            "time runs backwards"
        );
        self.submits.push(now);
        if self.queue.is_empty() {
            self.head_done = now + SERVICE;
        }
        self.queue.push_back(id);
    }

    fn next_event(&self) -> Option<Nanos> {
        (!self.queue.is_empty()).then_some(self.head_done)
    }

    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while self.next_event().is_some_and(|at| at <= now) {
            let id = self
                .queue
                .pop_front()
                .expect("a device with an event has a request");
            completions.push(Completion {
                id,
                at: self.head_done,
            });
            self.head_done += SERVICE;
        }
    }

    fn preload(&mut self, _: &Request) {
        self.preloads.fetch_add(1, Ordering::Relaxed);
    }

    fn capacity_sectors(&self) -> u64 {
        1 << 20
    }
}

fn pacer(path: Nanos) -> Pacer<u32> {
    Pacer::new(Box::new(Serial::default()), path)
}

fn read(reply: u32) -> ArrivedRequest<u32> {
    let request = Request::new(Op::Read, 0, 8);
    ArrivedRequest {
        partition: 0,
        request,
        reply,
    }
}

fn replies(done: &mut Vec<DueAnswer<u32>>) -> Vec<(u32, Option<Nanos>)> {
    done.drain(..)
        .map(|DueAnswer { served, reply }| (reply, served.due))
        .collect()
}

#[test]
fn an_answer_is_due_earlier_by_the_path() {
    let (mut pacer, mut done) = (pacer(PATH), Vec::new());
    pacer.submit(5_000, read(1), &mut done);
    let due = 5_000 + SERVICE - PATH;
    assert_eq!(pacer.next_due(), Some(due));
    pacer.advance(due - 1, &mut done);
    assert!(done.is_empty());
    pacer.advance(due, &mut done);
    assert_eq!(replies(&mut done), [(1, Some(due))]);
}

#[test]
fn a_user_who_waits_for_each_answer_sees_the_models_time_exactly() {
    let (mut pacer, mut done) = (pacer(PATH), Vec::new());
    let mut now = 0;
    for request in 0..100 {
        pacer.submit(now, read(request), &mut done);
        let due = pacer.next_due().expect("a request is inside");
        pacer.advance(due, &mut done);
        // The path takes its time for the answer and the next request together.
        now = due + PATH;
    }
    assert_eq!(done.len(), 100);
    assert_eq!(now, 100 * SERVICE);
}

#[test]
fn a_device_that_is_faster_than_the_path_answers_at_once_but_keeps_its_rate() {
    let (mut pacer, mut done) = (pacer(10 * SERVICE), Vec::new());
    for request in 0..30 {
        pacer.submit(7, read(request), &mut done);
    }
    let answered = replies(&mut done);
    assert_eq!(answered.len(), 10, "ten services fit in the path");
    assert!(
        answered.iter().all(|&(_, due)| due == Some(7)),
        "none is due before it arrived"
    );
    pacer.advance(7 + 20 * SERVICE, &mut done);
    assert_eq!(done.len(), 20);
}

#[test]
fn an_arrival_while_the_model_is_ahead_takes_the_models_time() {
    let (mut pacer, mut done) = (pacer(PATH), Vec::new());
    pacer.submit(0, read(1), &mut done);
    pacer.advance(SERVICE - PATH, &mut done);
    pacer.submit(SERVICE - PATH + 1, read(2), &mut done);
    assert_eq!(pacer.next_due(), Some(2 * SERVICE - PATH));
}

#[test]
fn without_timing_requests_are_answered_at_once_and_those_inside_too() {
    let (mut pacer, mut done) = (pacer(PATH), Vec::new());
    pacer.submit(0, read(1), &mut done);
    pacer.set_timing(false, 10, &mut done);
    pacer.submit(20, read(2), &mut done);
    assert_eq!(replies(&mut done), [(1, None), (2, None)]);
    pacer.set_timing(true, 30, &mut done);
    pacer.advance(SERVICE, &mut done);
    assert!(done.is_empty(), "an answer is given once");
    pacer.submit(2 * SERVICE, read(3), &mut done);
    pacer.advance(3 * SERVICE, &mut done);
    assert_eq!(replies(&mut done), [(3, Some(3 * SERVICE - PATH))]);
}

#[test]
fn without_timing_the_model_still_learns_of_each_request() {
    let device = Serial::default();
    let preloads = Arc::clone(&device.preloads);
    let (mut pacer, mut done) = (Pacer::new(Box::new(device), PATH), Vec::new());
    pacer.set_timing(false, 0, &mut done);
    (0..3).for_each(|number| pacer.submit(number.into(), read(number), &mut done));
    assert_eq!(preloads.load(Ordering::Relaxed), 3);
    pacer.set_timing(true, 10, &mut done);
    pacer.submit(20, read(4), &mut done);
    assert_eq!(preloads.load(Ordering::Relaxed), 3);
}

#[test]
fn a_slow_phase_stretches_what_is_inside_and_what_comes_until_it_ends() {
    let (mut pacer, mut done) = (pacer(0), Vec::new());
    pacer.submit(0, read(1), &mut done);
    // Half of the first service is done; the other half takes ten times as long.
    pacer.slow(SERVICE / 2, 10.0, 10 * SERVICE);
    assert_eq!(pacer.next_due(), Some(SERVICE / 2 + 5 * SERVICE));
    pacer.advance(SERVICE / 2 + 5 * SERVICE, &mut done);
    assert_eq!(replies(&mut done), [(1, Some(SERVICE / 2 + 5 * SERVICE))]);
    // The slow phase ends half way through the second.
    pacer.submit(SERVICE / 2 + 5 * SERVICE, read(2), &mut done);
    assert_eq!(
        pacer.next_due(),
        Some(SERVICE / 2 + 10 * SERVICE + SERVICE / 2)
    );
    pacer.advance(11 * SERVICE, &mut done);
    pacer.submit(20 * SERVICE, read(3), &mut done);
    assert_eq!(pacer.next_due(), Some(21 * SERVICE));
}

#[test]
fn an_abort_gives_up_what_waits_and_nothing_is_answered_twice() {
    let (mut pacer, mut done) = (pacer(PATH), Vec::new());
    pacer.submit(0, read(1), &mut done);
    pacer.submit(0, read(2), &mut done);
    pacer.abort(&mut done);
    assert_eq!(done.len(), 2);
    pacer.advance(10 * SERVICE, &mut done);
    assert_eq!(done.len(), 2);
}
