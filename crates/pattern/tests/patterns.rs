//! Patterns: names read and written, requests within the span and in the promised proportions.

use proptest::prelude::*;
use tierwise_device::{Op, SECTOR_BYTES};
use tierwise_pattern::{CRYSTALDISKMARK, Pattern};

const SPAN_SECTORS: u64 = 1 << 20;

fn parse(name: &str) -> Pattern {
    Pattern::parse(name).expect("a known name")
}

#[test]
fn names_say_what_is_asked() {
    let pattern = parse("randwrite-8k-qd32");
    assert!(pattern.random && pattern.read_share == 0.0);
    assert_eq!((pattern.block_bytes, pattern.depth), (8192, 32));
    assert_eq!(parse("mixed70-4k").read_share, 0.7);
    assert_eq!(parse("log-append-8k").flush_every, 1);
    assert_eq!(parse("RND4K-Q32T1-read"), parse("randread-4k-qd32"));
}

#[test]
fn every_line_of_the_benchmark_has_a_name_and_its_pattern_another() {
    for line in CRYSTALDISKMARK {
        assert_eq!(parse(line.name), line.pattern);
        assert_eq!(parse(&line.pattern.to_string()), line.pattern);
        assert_eq!(line.name.ends_with("read"), line.pattern.read_share == 1.0);
    }
}

#[test]
fn other_names_are_refused_with_what_is_allowed() {
    let bad = [
        "",
        "randread",
        "randread-",
        "randread-4",
        "randread-0k",
        "randread-100b",
        "randread-128m",
        "mixed101-4k",
        "mixed-4k",
        "read-4k",
        "randread-4k-qd0",
        "randread-4k-qdx",
        "randread--4k",
        "randread-4k-qd99999999999",
    ];
    for name in bad {
        let error = Pattern::parse(name).expect_err(name);
        assert!(error.message.contains(&format!("{name:?}")), "{error}");
        assert!(
            error
                .fix
                .contains("randread, randwrite, seqread, seqwrite, log-append or mixedNN")
        );
    }
}

#[test]
fn a_log_append_flushes_after_each_write_and_goes_on_in_sequence() {
    let requests: Vec<_> = parse("log-append-8k")
        .requests(SPAN_SECTORS, 0)
        .take(4)
        .collect();
    let ops: Vec<Op> = requests.iter().map(|request| request.op).collect();
    assert_eq!(ops, [Op::Write, Op::Flush, Op::Write, Op::Flush]);
    assert_eq!((requests[0].sector, requests[2].sector), (0, 16));
}

#[test]
fn a_sequence_begins_again_at_the_end_of_the_span() {
    // A span of two blocks and a half: the half is never touched.
    let sectors: Vec<u64> = parse("seqread-4k")
        .requests(20, 0)
        .take(4)
        .map(|request| request.sector)
        .collect();
    assert_eq!(sectors, [0, 8, 0, 8]);
}

#[test]
fn random_requests_reach_all_of_the_span_alike() {
    let half = SPAN_SECTORS / 2;
    let below = parse("randread-4k")
        .requests(SPAN_SECTORS, 1)
        .take(10_000)
        .filter(|r| r.sector < half)
        .count();
    // Binomial, standard deviation 50: six of them.
    assert!(below.abs_diff(5_000) < 300, "{below}");
}

#[test]
fn a_mix_has_its_share_of_reads() {
    let reads = parse("mixed70-4k")
        .requests(SPAN_SECTORS, 1)
        .take(10_000)
        .filter(|r| r.op == Op::Read)
        .count();
    // Binomial, standard deviation 46: six of them.
    assert!(reads.abs_diff(7_000) < 275, "{reads}");
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    let kind = prop::sample::select(vec![
        "randread",
        "randwrite",
        "seqread",
        "seqwrite",
        "log-append",
        "mixed33",
    ]);
    let size = prop::sample::select(vec!["512b", "4k", "12k", "1m"]);
    (kind, size, 1u32..100)
        .prop_map(|(kind, size, depth)| parse(&format!("{kind}-{size}-qd{depth}")))
}

proptest! {
    #[test]
    fn requests_are_aligned_within_the_span_and_the_same_for_a_seed(
        pattern in any_pattern(), span in 2_048u64..1 << 40, seed: u64,
    ) {
        let block = u64::from(pattern.block_bytes) / SECTOR_BYTES;
        let requests: Vec<_> = pattern.requests(span, seed).take(100).collect();
        for request in requests.iter().filter(|request| request.op != Op::Flush) {
            prop_assert_eq!(u64::from(request.sectors), block);
            prop_assert_eq!(request.sector % block, 0);
            prop_assert!(request.sector + block <= span);
        }
        prop_assert!(pattern.requests(span, seed).take(100).eq(requests));
    }

    #[test]
    fn a_name_written_is_read_again(pattern in any_pattern()) {
        prop_assert_eq!(parse(&pattern.to_string()), pattern);
    }
}
