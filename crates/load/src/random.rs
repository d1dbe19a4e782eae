//! Random numbers that are the same on every machine, and random texts.

use std::fmt::Write;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tierwise_device::random::{GOLDEN_GAMMA, mix};

/// The source of randomness: fast, and the same on every machine.
pub type Random = Xoshiro256PlusPlus;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BITS_PER_CHARACTER: usize = 6;
const CHARACTERS_PER_WORD: usize = 64 / BITS_PER_CHARACTER;

/// An independent stream for each `purpose`, such as a client and the number of its run.
pub fn random(seed: u64, purpose: &[u64]) -> Random {
    let step = |state: u64| mix(state.wrapping_add(GOLDEN_GAMMA));
    let mixed = purpose
        .iter()
        .fold(seed, |state, part| step(step(state) ^ part));
    Random::seed_from_u64(mixed)
}

/// Add this number of letters, digits, `-` and `_`.
pub(crate) fn write_text(random: &mut Random, length: usize, out: &mut String) {
    let mut left = length;
    while left > 0 {
        let mut word = random.next_u64();
        for _ in 0..left.min(CHARACTERS_PER_WORD) {
            out.push(ALPHABET[(word % ALPHABET.len() as u64) as usize] as char);
            word >>= BITS_PER_CHARACTER;
        }
        left = left.saturating_sub(CHARACTERS_PER_WORD);
    }
}

/// Add a random UUID, version 4.
pub(crate) fn write_uuid(random: &mut Random, out: &mut String) {
    let (high, low) = (random.next_u64(), random.next_u64());
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0x0fff);
    let (d, e) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    write!(out, "{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}").expect("a String takes any text");
}
