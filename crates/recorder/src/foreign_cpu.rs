//! Processor time of others than the recorded threads, and the programs that used it.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{About, BurstRows, ForeignProgram, StateKind};

use crate::tracer::RawBurst;

const MOST_PROGRAMS: usize = 5;
const MOST_PIDS: usize = 8;
/// Share of all cores below which a program is not named.
const LEAST_SHARE: f64 = 0.005;

/// Sums over bursts, of all cores together.
#[derive(Default)]
pub struct OtherProgramsCpu {
    all_ns: f64,
    foreign_ns: f64,
    stolen_ns: f64,
    /// By name and pid.
    programs: BTreeMap<String, BTreeMap<i32, f64>>,
}

impl OtherProgramsCpu {
    /// Adds a burst: the machine's use, without that of the recorded threads and the recorder.
    pub fn add(&mut self, raw: &RawBurst, rows: &BurstRows) {
        let states = rows.states.iter();
        let on_core = states.filter(|state| state.kind == StateKind::Cpu);
        let times_ns = on_core.map(|state| state.end_ns.saturating_sub(state.start_ns));
        let own_ns: u64 = times_ns.sum();
        self.all_ns += raw.cpu.all_ns;
        self.stolen_ns += raw.cpu.stolen_ns;
        self.foreign_ns += (raw.cpu.others_ns - own_ns as f64).max(0.0);
        let threads = raw.threads.iter().chain(&raw.new_threads);
        let recorded: BTreeSet<i32> = threads.map(|thread| thread.pid).collect();
        let own = std::process::id().cast_signed();
        for (pid, name, time_ns) in &raw.cpu.programs {
            if !recorded.contains(pid) && *pid != own {
                let pids = self.programs.entry(name.clone()).or_default();
                *pids.entry(*pid).or_default() += time_ns;
            }
        }
    }

    pub fn describe(&self, about: &mut About) {
        let share = |time_ns: f64| (time_ns / self.all_ns.max(1.0)).clamp(0.0, 1.0);
        about.foreign_cpu_share = share(self.foreign_ns);
        about.stolen_cpu_share = share(self.stolen_ns);
        let programs = self.programs.iter().map(|(program, pids)| {
            let mut busiest: Vec<_> = pids.iter().collect();
            busiest.sort_by(|one, other| other.1.total_cmp(one.1));
            let pids = busiest.iter().take(MOST_PIDS).map(|(pid, _)| **pid);
            ForeignProgram {
                program: program.clone(),
                pids: pids.collect(),
                cpu_share: share(busiest.iter().map(|(_, time_ns)| **time_ns).sum()),
            }
        });
        let programs = programs.filter(|program| program.cpu_share >= LEAST_SHARE);
        let mut programs: Vec<_> = programs.collect();
        programs.sort_by(|one, other| other.cpu_share.total_cmp(&one.cpu_share));
        programs.truncate(MOST_PROGRAMS);
        about.foreign_programs = programs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::BurstCpuTime;
    use crate::host::processes::LiveThread;

    #[test]
    fn programs_are_named_by_their_time_without_the_recorded_ones() {
        let thread = LiveThread {
            pid: 7,
            tid: 7,
            name: "postgres".into(),
            process: "postgres".into(),
            command_line: String::new(),
        };
        let ran = |pid, name: &str, time_ns| (pid, name.to_owned(), time_ns);
        let mut raw = RawBurst::default();
        raw.threads.push(thread);
        raw.cpu = BurstCpuTime {
            all_ns: 1_000.0,
            others_ns: 900.0,
            programs: vec![
                ran(7, "postgres", 400.0),
                ran(8, "cc1", 100.0),
                ran(9, "cc1", 200.0),
                ran(10, "cron", 1.0),
            ],
            ..BurstCpuTime::default()
        };
        let mut cpu = OtherProgramsCpu::default();
        cpu.add(&raw, &BurstRows::default());
        let mut about = About::default();
        cpu.describe(&mut about);
        let expected = ForeignProgram {
            program: "cc1".into(),
            pids: vec![9, 8],
            cpu_share: 0.3,
        };
        assert_eq!(about.foreign_programs, [expected]);
        assert_eq!(about.foreign_cpu_share, 0.9);
    }
}
