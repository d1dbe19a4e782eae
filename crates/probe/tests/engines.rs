//! Both engines serve the same requests from a real file, and refuse alike.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tierwise_device::{Op, Request};
use tierwise_probe::{
    CompletionSink, CountedRequests, MeasuredTarget, ProbeEngine, ProbeError, ProbeLimit,
    RequestTimes, fill_target, run_requests,
};

const ENGINES: [ProbeEngine; 2] = [ProbeEngine::IoUring, ProbeEngine::Threads];
const SIZE_BYTES: u64 = 4 << 20;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("probe-{name}-{}", std::process::id());
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn request(op: Op, sector: u64, sectors: u32) -> Request {
    Request::new(op, sector, sectors)
}

fn serve(
    target: &MeasuredTarget,
    engine: ProbeEngine,
    requests: Vec<Request>,
    depth: u32,
    sink: &mut (impl CompletionSink + Send),
) -> Result<u64, ProbeError> {
    let limit = ProbeLimit {
        depth,
        time: Duration::from_secs(60),
    };
    let stop = AtomicBool::new(false);
    run_requests(
        target,
        engine,
        requests.into_iter(),
        1 << 20,
        limit,
        &stop,
        sink,
    )
}

fn each(name: &str, test: impl Fn(ProbeEngine, &MeasuredTarget, &Scratch)) {
    for engine in ENGINES {
        if engine == ProbeEngine::IoUring && ProbeEngine::best() != ProbeEngine::IoUring {
            eprintln!("this kernel gives no ring: io_uring not tested");
            continue;
        }
        let file = Scratch::new(&format!("{name}-{}", engine.name()));
        let target = MeasuredTarget::create(&file.0, SIZE_BYTES).expect("a new file");
        fill_target(&target, engine, &AtomicBool::new(false)).expect("room for 4 MiB");
        test(engine, &target, &file);
    }
}

#[test]
fn a_filled_file_holds_no_two_equal_blocks() {
    each("fill", |_, _, file| {
        let content = fs::read(&file.0).expect("readable");
        let blocks: std::collections::HashSet<&[u8]> = content.chunks(4096).collect();
        assert_eq!(content.len() as u64, SIZE_BYTES);
        assert_eq!(blocks.len(), 1024);
    });
}

#[test]
fn every_request_is_served_once_and_takes_time() {
    each("serve", |engine, target, _| {
        let requests: Vec<_> = (0..500)
            .map(|number| match number % 5 {
                0 => request(Op::Flush, 0, 0),
                1 | 2 => request(Op::Write, number * 8, 8),
                _ => request(Op::Read, number * 8, 16),
            })
            .collect();
        for depth in [1, 7, 64] {
            let mut trace = RequestTimes::default();
            let elapsed_ns =
                serve(target, engine, requests.clone(), depth, &mut trace).expect("served");
            let mut numbers: Vec<_> = trace.0.iter().map(|done| done.number).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..500).collect::<Vec<_>>());
            assert!(
                trace
                    .0
                    .iter()
                    .all(|done| done.start_ns < done.end_ns && done.end_ns <= elapsed_ns)
            );
            assert!(
                trace
                    .0
                    .iter()
                    .all(|done| done.op == requests[done.number as usize].op)
            );
        }
    });
}

#[test]
fn no_more_are_in_flight_than_the_depth() {
    each("depth", |engine, target, _| {
        let requests: Vec<_> = (0..400)
            .map(|number| request(Op::Read, number * 8, 8))
            .collect();
        let mut trace = RequestTimes::default();
        serve(target, engine, requests, 5, &mut trace).expect("served");
        let most = trace.0.iter().map(|request| {
            let during = |other: &&tierwise_probe::DoneRequest| {
                other.start_ns <= request.start_ns && other.end_ns > request.start_ns
            };
            trace.0.iter().filter(during).count()
        });
        assert!(most.max().expect("400 requests") <= 5);
    });
}

#[test]
fn counts_add_up_by_operation() {
    each("count", |engine, target, _| {
        let requests = vec![
            request(Op::Write, 0, 8),
            request(Op::Flush, 0, 0),
            request(Op::Read, 0, 2048),
        ];
        let mut counted = CountedRequests::new();
        let elapsed_ns = serve(target, engine, requests, 1, &mut counted).expect("served");
        let measured = counted.measured(elapsed_ns);
        assert_eq!((measured.requests, measured.bytes), (2, 4096 + (1 << 20)));
        let counts = [measured.read, measured.write, measured.flush]
            .map(|count| count.expect("one each").count);
        assert_eq!(counts, [1, 1, 1]);
    });
}

#[test]
fn requests_outside_the_file_and_discards_are_refused() {
    each("outside", |engine, target, _| {
        for bad in [
            request(Op::Read, SIZE_BYTES / 512, 8),
            request(Op::Write, 0, 0),
            request(Op::Discard, 0, 8),
        ] {
            let refused = serve(
                target,
                engine,
                vec![request(Op::Read, 0, 8), bad],
                4,
                &mut (),
            );
            assert!(
                matches!(refused, Err(ProbeError::BadRequest(_))),
                "{refused:?}"
            );
        }
    });
}

#[test]
fn time_ends_an_endless_run_and_stopping_is_an_error() {
    each("end", |engine, target, _| {
        let endless = || std::iter::repeat(request(Op::Read, 0, 8));
        let limit = ProbeLimit {
            depth: 3,
            time: Duration::from_millis(30),
        };
        let stop = AtomicBool::new(false);
        let elapsed_ns =
            run_requests(target, engine, endless(), 4096, limit, &stop, &mut ()).expect("served");
        assert!(elapsed_ns >= 30_000_000);
        stop.store(true, Ordering::Relaxed);
        let stopped = run_requests(target, engine, endless(), 4096, limit, &stop, &mut ());
        assert!(matches!(stopped, Err(ProbeError::Stopped)));
    });
}

#[test]
fn a_file_that_is_there_is_not_touched() {
    let file = Scratch::new("there");
    fs::write(&file.0, "precious").expect("a new file");
    let refused = MeasuredTarget::create(&file.0, SIZE_BYTES);
    assert!(matches!(refused, Err(ProbeError::Open { .. })));
    assert_eq!(fs::read(&file.0).expect("readable"), b"precious");
}

#[test]
fn a_file_system_without_direct_io_is_named() {
    let refused = MeasuredTarget::open_device(std::path::Path::new("/proc/self/comm"));
    assert!(
        matches!(refused, Err(ProbeError::NoDirectIo(_))),
        "procfs serves no direct I/O: {refused:?}"
    );
}
