//! Records of a core, in order and in a file.

use crate::tracer::kernel_record::KernelRecord;
use crate::tracer::raw_burst::{CoreRecordStream, StreamSpool};

fn at(time_ns: u64) -> KernelRecord {
    KernelRecord {
        time_ns,
        ..KernelRecord::default()
    }
}

fn pushed(times: impl IntoIterator<Item = u64>, memory_bytes: usize) -> Vec<u64> {
    let mut spool = StreamSpool::new(memory_bytes, &std::env::temp_dir()).expect("room for a file");
    let mut streams = [CoreRecordStream::new(0), CoreRecordStream::new(1)];
    for time_ns in times {
        for stream in &mut streams {
            stream.push(at(time_ns), &mut spool).expect("room");
        }
    }
    spool.finish(&mut streams).expect("it can be mapped");
    let [first, second] = streams.map(|stream| {
        assert_eq!(
            stream.bytes() as usize,
            size_of::<KernelRecord>() * stream.records().count()
        );
        stream
            .records()
            .map(|record| record.time_ns)
            .collect::<Vec<_>>()
    });
    assert_eq!(first, second);
    first
}

#[test]
fn a_record_made_in_an_interrupt_takes_its_place() {
    assert_eq!(pushed([1, 5, 3, 4, 6, 5], 1 << 20), [1, 3, 4, 5, 5, 6]);
}

#[test]
fn what_does_not_fit_in_memory_comes_back_from_the_file() {
    let times = pushed(0..100_000, 1 << 20);
    assert_eq!(times.len(), 100_000);
    assert!(times.is_sorted());
}
