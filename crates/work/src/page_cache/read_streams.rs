//! Sequential reads of a file, which the kernel's read-ahead joins up to its device's limit.
//!
//! The read-ahead size belongs to the device, not to the work: 128 KiB, but 2 MiB on a disk with moving parts
//! since Linux 6.17 (twice the largest request; measured on 6.18). So a replay elsewhere must know the length
//! of a stream.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tierwise_recording::{Block, BlockOp, CallKind, Role, StateKind};

use crate::constants::READ_AHEAD_LEAST_SHARE;
use crate::rows::{Rows, SECTOR_BYTES};

/// Read-ahead size of the kernel, in sectors: without moving parts, and with them.
const WINDOWS: (u32, u32) = (256, 4096);
/// The first kernel with the second size.
const SINCE: (u32, u32) = (6, 17);
/// Number of earlier reads searched for the previous one of a stream.
const RECENT: usize = 64;

/// By instant and sector of a request: sectors of its stream that were read later, if any were.
pub(crate) fn rests(rows: &Rows<'_>) -> BTreeMap<(u64, u64), u32> {
    let blocks = rows.recording.blocks.iter();
    let reads: Vec<&Block> = blocks
        .filter(|block| block.op == BlockOp::Read && rows.role(block.file).is_some())
        .collect();
    let mut rests = vec![0_u32; reads.len()];
    for (at, next) in followers(&reads).into_iter().enumerate().rev() {
        if let Some(next) = next {
            rests[at] = rests[next].saturating_add(reads[next].sectors);
        }
    }
    let rests = reads.iter().zip(rests).filter(|(_, rest)| *rest > 0);
    rests
        .map(|(block, rest)| ((block.issued_ns, block.sector), rest))
        .collect()
}

/// Of each read: the next of its stream.
fn followers(reads: &[&Block]) -> Vec<Option<usize>> {
    let mut followers = vec![None; reads.len()];
    let mut recent: VecDeque<usize> = VecDeque::new();
    for (at, read) in reads.iter().enumerate() {
        let before = recent.iter().rposition(|&index| {
            let before = reads[index];
            before.file == read.file
                && before.sector.saturating_add(before.sectors.into()) == read.sector
        });
        if let Some(place) = before
            && let Some(index) = recent.remove(place)
        {
            followers[index] = Some(at);
        }
        recent.push_back(at);
        if recent.len() > RECENT {
            recent.pop_front();
        }
    }
    followers
}

/// Read-ahead size of each role, in sectors; roles without read-ahead are left out.
pub(crate) fn windows(rows: &Rows<'_>) -> Vec<(Role, u32)> {
    let longest = longest_ahead(rows);
    let window = |role| match longest.get(&role) {
        Some(sectors) if *sectors > WINDOWS.0 => WINDOWS.1,
        _ => WINDOWS.0,
    };
    let through_cache = reads(rows).into_iter().filter(|(_, (all, at_once))| {
        *at_once as f64 >= *all as f64 * READ_AHEAD_LEAST_SHARE.get()
    });
    through_cache
        .map(|(role, _)| (role, window(role)))
        .collect()
}

/// Calls that read files of each role, and those in which the caller did not wait.
fn reads(rows: &Rows<'_>) -> BTreeMap<Role, (u64, u64)> {
    let states = rows.recording.states.iter();
    let blocked = states.filter(|state| state.kind == StateKind::Blocked);
    let waited: BTreeSet<u32> = blocked.map(|state| state.call).collect();
    let mut reads: BTreeMap<Role, (u64, u64)> = BTreeMap::new();
    for (index, call) in rows.recording.calls.iter().enumerate() {
        let moves = call.kind == CallKind::Read && !call.asynchronous && call.size_bytes > 0;
        if let Some(role) = rows.role(call.file).filter(|_| moves) {
            let (all, at_once) = reads.entry(role).or_default();
            *all += 1;
            *at_once += u64::from(!waited.contains(&(index as u32)));
        }
    }
    reads
}

/// The longest request of each role that exceeded its call's length.
fn longest_ahead(rows: &Rows<'_>) -> BTreeMap<Role, u32> {
    let mut longest: BTreeMap<Role, u32> = BTreeMap::new();
    for block in &rows.recording.blocks {
        let role = rows.role(block.file).filter(|_| block.op == BlockOp::Read);
        let call = rows.call_at(block.thread, block.issued_ns);
        if let (Some(role), Some(call)) = (role, call)
            && call.kind == CallKind::Read
            && u64::from(block.sectors) * SECTOR_BYTES > call.size_bytes
        {
            let most = longest.entry(role).or_default();
            *most = (*most).max(block.sectors);
        }
    }
    longest
}

/// Read-ahead size of the recorded kernel on devices without moving parts, and with them.
pub(crate) fn of_kernel(release: &str) -> (u32, u32) {
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < SINCE => (WINDOWS.0, WINDOWS.0),
        _ => WINDOWS,
    }
}
