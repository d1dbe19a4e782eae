//! Streams of records, each in order, become one in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Gives `(stream, time, record)` of all streams by time; of equal times, the earlier stream first.
pub struct Merge<I, R> {
    streams: Vec<I>,
    heads: Vec<Option<R>>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<R, I: Iterator<Item = (u64, R)>> Merge<I, R> {
    /// Of these streams.
    pub fn new(streams: Vec<I>) -> Self {
        let mut merge = Self {
            heads: streams.iter().map(|_| None).collect(),
            next: BinaryHeap::with_capacity(streams.len()),
            streams,
        };
        (0..merge.streams.len()).for_each(|stream| merge.advance(stream));
        merge
    }

    fn advance(&mut self, stream: usize) {
        if let Some((time, record)) = self.streams[stream].next() {
            self.heads[stream] = Some(record);
            self.next.push(Reverse((time, stream)));
        }
    }
}

impl<R, I: Iterator<Item = (u64, R)>> Iterator for Merge<I, R> {
    type Item = (usize, u64, R);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((time, stream)) = self.next.pop()?;
        let record = self.heads[stream].take().expect("it has a time");
        self.advance(stream);
        Some((stream, time, record))
    }
}
