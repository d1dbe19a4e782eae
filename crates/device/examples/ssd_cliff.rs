//! Prints throughput and latency of random writes over written volume, as CSV.
//!
//! `cargo run --release -p tierwise-device --example ssd_cliff -- PROFILE.toml fresh|full WINDOW_MB WINDOWS`
//!
//! `full` starts after every sector was written once, in order.

#[path = "../tests/models/support.rs"]
mod support;

use std::error::Error;

use support::overwrite_history;
use tierwise_device::{Device, Precondition, Profile};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, state, window_mb, windows] = &arguments[..] else {
        return Err("usage: ssd_cliff PROFILE.toml fresh|full WINDOW_MB WINDOWS".into());
    };
    let profile = Profile::parse(&std::fs::read_to_string(file)?, file)?;
    let mut device = profile.build(1);
    if state == "full" {
        device.precondition(Precondition::Sequential);
    }
    let window_bytes = window_mb.parse::<u64>()? * 1_000_000;
    println!("written_gb,mb_per_s,p50_us,p99_us,write_amplification");
    for window in overwrite_history(&mut *device, 32, window_bytes, windows.parse()?, 1) {
        println!(
            "{:.1},{:.1},{:.1},{:.1},{:.3}",
            window.written_bytes as f64 / 1e9,
            window.mb_per_s,
            window.p50_ns as f64 / 1e3,
            window.p99_ns as f64 / 1e3,
            window.write_amplification
        );
    }
    Ok(())
}
