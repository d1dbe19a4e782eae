//! Prints what a host sees that sends random 8 KiB writes at a fixed rate, second by second, as CSV.
//!
//! `cargo run --release -p tierwise-device --example array_knee -- PROFILE WRITES_PER_S SECONDS`

#[path = "../tests/models/support.rs"]
mod support;

use std::error::Error;

use tierwise_device::{Device, Nanos, Op, Profile, Request};

const SECTORS: u32 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, rate, seconds] = &arguments[..] else {
        return Err("usage: array_knee PROFILE WRITES_PER_S SECONDS".into());
    };
    let profile = support::shipped(name);
    let gap_ns = (1e9 / rate.parse::<f64>()?) as Nanos;
    println!("offered_per_s,seconds,done_per_s,mean_ms");
    let seconds: usize = seconds.parse()?;
    for (second, (done, total_ns)) in (0..).zip(by_second(&profile, gap_ns, seconds)) {
        let mean_ms = total_ns as f64 / 1e6 / done.max(1) as f64;
        println!("{rate},{second},{done},{mean_ms:.4}");
    }
    Ok(())
}

/// For each second: how many writes completed, and the sum of their times.
fn by_second(profile: &Profile, gap_ns: Nanos, seconds: usize) -> Vec<(u64, Nanos)> {
    let mut device = profile.build(1);
    let mut windows = vec![(0, 0); seconds];
    let (mut done, mut state) = (Vec::new(), 1);
    for id in 0..seconds as u64 * 1_000_000_000 / gap_ns {
        let now = id * gap_ns;
        device.advance(now, &mut done);
        device.submit(now, id, random_write(&mut state, device.capacity_sectors()));
        for completion in done.drain(..) {
            let window = &mut windows[(completion.at / 1_000_000_000) as usize];
            window.0 += 1;
            window.1 += completion.at - completion.id * gap_ns;
        }
    }
    windows
}

fn random_write(state: &mut u64, capacity: u64) -> Request {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    Request::new(
        Op::Write,
        (*state >> 11) % (capacity / u64::from(SECTORS)) * u64::from(SECTORS),
        SECTORS,
    )
}
