//! Processor time that goes with a read: what a transaction is spared if a buffer in memory answers it.
//!
//! Part of it is in the call. The rest is in the engine, which looks for a free page in its buffer, and in caches
//! of the processor that are cold after a wait. Transactions of the same kind that differ in their reads tell the
//! whole: the slope of a linear regression of their processor time on their reads.

use tierwise_recording::ThreadClass;

use crate::{ReadCpu, Session, Step};

/// Fewest transactions for a regression.
const LEAST_TRANSACTIONS: usize = 200;
/// A slope that is fewer standard errors above 0 than this is not believed.
const LEAST_ERRORS: f64 = 3.0;
/// Largest share of a transaction's processor time that goes with its reads.
const MOST_SHARE: f64 = 0.8;

/// Processor time in read calls of sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadCallCpu {
    /// Calls and their time on a core: those that did not wait, and those that did.
    calls: [(u64, u64); 2],
    /// The last call: its end, and whether it waited.
    last: (u64, bool),
}

impl ReadCallCpu {
    pub(crate) fn begin(&mut self, end_ns: u64, waited: bool) {
        self.calls[usize::from(waited)].0 += 1;
        self.last = (end_ns, waited);
    }

    /// A turn begins: no call is under way.
    pub(crate) fn begin_turn(&mut self) {
        self.last = (0, false);
    }

    /// A stretch on a core.
    pub(crate) fn ran(&mut self, start_ns: u64, end_ns: u64) {
        let inside_ns = self.last.0.min(end_ns).saturating_sub(start_ns);
        self.calls[usize::from(self.last.1)].1 += inside_ns;
    }

    fn mean_ns(&self, waited: bool) -> f64 {
        let (calls, cpu_ns) = self.calls[usize::from(waited)];
        cpu_ns as f64 / calls.max(1) as f64
    }
}

/// A transaction: its reads that the page cache answered, those that waited for a device, its processor time.
type TransactionReads = [f64; 3];

impl ReadCpu {
    /// By regression where transactions differ enough; at least the time in the calls.
    pub(crate) fn new(sessions: &[Session], calls: &ReadCallCpu) -> Self {
        let within = Self {
            cached_ns: calls.mean_ns(false),
            device_ns: calls.mean_ns(true),
        };
        let rows: Vec<TransactionReads> = sessions
            .iter()
            .filter(|session| session.class == ThreadClass::Session)
            .flat_map(transaction_reads)
            .collect();
        let slopes = read_cpu_slopes(&rows);
        let found = Self {
            cached_ns: slopes[0].unwrap_or(0.0).max(within.cached_ns),
            device_ns: slopes[1].unwrap_or(0.0).max(within.device_ns),
        };
        found.limited(&rows)
    }

    /// No more than a part of the processor time of a transaction.
    fn limited(self, rows: &[TransactionReads]) -> Self {
        let [cached, device, cpu_ns] = mean_transaction_reads(rows);
        let all_ns = cached * self.cached_ns + device * self.device_ns;
        let scale = (MOST_SHARE * cpu_ns / all_ns.max(1.0)).min(1.0);
        Self {
            cached_ns: self.cached_ns * scale,
            device_ns: self.device_ns * scale,
        }
    }
}

fn transaction_reads(session: &Session) -> Vec<TransactionReads> {
    let mut rows = Vec::new();
    let mut row = [0.0; 3];
    for turn in &session.turns {
        let first = turn.first_step as usize;
        for step in &session.steps[first..first + turn.steps as usize] {
            match *step {
                Step::CachedRead { .. } => row[0] += 1.0,
                Step::Read { .. } => row[1] += 1.0,
                Step::Cpu {
                    time_ns,
                    client: false,
                } => row[2] += f64::from(time_ns),
                _ => {}
            }
        }
        if turn.ends {
            rows.push(std::mem::take(&mut row));
        }
    }
    rows
}

fn mean_transaction_reads(rows: &[TransactionReads]) -> TransactionReads {
    let count = rows.len().max(1) as f64;
    let mut sums = [0.0; 3];
    for row in rows {
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, value)| *sum += value);
    }
    sums.map(|sum| sum / count)
}

/// Slopes of processor time on each kind of read, by least squares; none where it cannot be told from 0.
fn read_cpu_slopes(rows: &[TransactionReads]) -> [Option<f64>; 2] {
    if rows.len() < LEAST_TRANSACTIONS {
        return [None; 2];
    }
    let means = mean_transaction_reads(rows);
    let mut squares = [[0.0; 3]; 3];
    for row in rows {
        for (i, squares) in squares.iter_mut().enumerate() {
            for (j, square) in squares.iter_mut().enumerate() {
                *square += (row[i] - means[i]) * (row[j] - means[j]);
            }
        }
    }
    let [[aa, ab, ay], [_, bb, by], [_, _, yy]] = squares;
    let freedom = rows.len() as f64 - 3.0;
    let determinant = aa * bb - ab * ab;
    let believed = |slope: f64, left: f64, scale: f64| {
        let error = (left.max(0.0) / freedom * scale).sqrt();
        (slope.is_finite() && slope > LEAST_ERRORS * error).then_some(slope)
    };
    if determinant > 1e-6 * aa * bb && aa > 0.0 && bb > 0.0 {
        let a = (ay * bb - by * ab) / determinant;
        let b = (by * aa - ay * ab) / determinant;
        let left = yy - a * ay - b * by;
        return [
            believed(a, left, bb / determinant),
            believed(b, left, aa / determinant),
        ];
    }
    let alone = |xx: f64, xy: f64| believed(xy / xx, yy - xy * xy / xx, 1.0 / xx);
    [alone(aa, ay), alone(bb, by)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Turn, TurnPace};
    use tierwise_recording::Role;

    /// Transactions of 30 µs and of what their reads take; the numbers of reads vary with these periods.
    fn session(transactions: u32, periods: [u32; 2], read_us: [u32; 2]) -> Session {
        let mut session = crate::emit::empty_session("s".to_owned(), ThreadClass::Session, None);
        session.pace = TurnPace::Loop;
        for number in 0..transactions {
            let (role, sector, sectors) = (Role::Data, 0, 16);
            let counts = periods.map(|period| number % period);
            let first_step = session.steps.len() as u32;
            let cached = (0..counts[0]).map(|_| Step::CachedRead {
                role,
                sector,
                sectors,
            });
            session.steps.extend(cached);
            let waited = (0..counts[1]).map(|_| Step::Read {
                role,
                sector,
                sectors,
            });
            session.steps.extend(waited);
            // Chance of up to 4 µs, which does not depend on the reads.
            let chance = number.wrapping_mul(2_654_435_761) >> 20;
            let time_ns =
                30_000 + 1000 * (counts[0] * read_us[0] + counts[1] * read_us[1]) + chance;
            session.steps.push(Step::Cpu {
                time_ns,
                client: false,
            });
            session.turns.push(Turn {
                first_step,
                steps: session.steps.len() as u32 - first_step,
                tail_steps: 0,
                ends: true,
                recorded_ns: 0,
            });
        }
        session
    }

    #[test]
    fn transactions_that_differ_in_their_reads_tell_what_a_read_takes() {
        let cpu = ReadCpu::new(&[session(2000, [3, 4], [2, 20])], &ReadCallCpu::default());
        assert!((cpu.cached_ns - 2000.0).abs() < 200.0, "{cpu:?}");
        assert!((cpu.device_ns - 20_000.0).abs() < 500.0, "{cpu:?}");
    }

    #[test]
    fn without_differences_it_is_the_time_in_the_calls() {
        let mut calls = ReadCallCpu::default();
        calls.begin(100, true);
        calls.ran(0, 60);
        calls.ran(90, 200);
        for sessions in [session(2000, [1, 1], [2, 20]), session(10, [3, 4], [2, 20])] {
            let cpu = ReadCpu::new(&[sessions], &calls);
            assert_eq!((cpu.cached_ns, cpu.device_ns), (0.0, 70.0));
        }
    }
}
