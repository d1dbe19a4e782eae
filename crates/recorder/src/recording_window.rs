//! A window of a recording: takes bursts by a schedule, fewer of them where the recording would exceed its limit.

use std::time::{Duration, Instant};

use crate::UserError;
use crate::schedule::{BurstGaps, BurstSchedule, megabytes_text};

/// Longer bursts are cut: memory holds a burst while it is decoded, some hundred bytes an event.
const MOST_BURST_EVENTS: u64 = 2_000_000;
/// Interval of the looks at how much was taken.
const COUNTS_EACH: Duration = Duration::from_secs(1);
/// Interval of the checks whether the recording is over.
const LOOKS_EACH: Duration = Duration::from_millis(200);
/// Length of the burst that is not kept, in which clients show themselves.
const TRIAL: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(7 * 86_400);
/// The size of a recording is foreseen from this much of it, and from a tenth of one with a duty of 1.
const LEAST_SEEN: Duration = Duration::from_secs(1);
/// Largest duty of a recording that cannot have all events. More leaves too little unrecorded time to compare with.
const MOST_SAMPLED_DUTY: f64 = 0.5;
const LEAST_DUTY: f64 = 1e-4;
/// Share of the limit from which on a further window would have hardly any burst.
const FULL: f64 = 0.9;

/// Who controls a recording: says when it ends, and what belongs to the database now if the caller knows better.
pub trait RecordingControl {
    /// Waits at most this long; gives whether the recording has to end.
    fn wait(&self, longest: Duration) -> bool;

    /// Gets a sentence on what happens.
    fn say(&self, sentence: &str);

    /// Current processes of the database; by default its first process and all that it started.
    fn processes(&self) -> Option<Vec<i32>> {
        None
    }

    /// Client threads to follow in the next burst; by default those found by the threads that they wake.
    fn clients(&self) -> Option<Vec<i32>> {
        None
    }

    /// The time begins to count; with a duty of 1, events are recorded from here on.
    fn begun(&self) {}

    /// The clock of [`Self::wait`].
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// What takes bursts.
pub(crate) trait BurstTaker {
    /// Finds the clients in a burst that is not kept. Refuses a recording of this length if its file system has too
    /// little room.
    fn try_out(&mut self, trial: Duration, length: Option<Duration>) -> Result<String, UserError>;
    /// Time without recording begins.
    fn begin_unrecorded(&mut self);
    fn end_unrecorded(&mut self);
    fn begin(&mut self, control: &dyn RecordingControl) -> Result<(), UserError>;
    /// Ends a burst; gives the number of its events.
    fn end(&mut self, control: &dyn RecordingControl) -> Result<u64, UserError>;
    fn look_for_clients(&mut self);
    fn taken(&self) -> Result<RecordedAmount, UserError>;
    fn alive(&self) -> bool;
}

/// What was taken until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedAmount {
    /// Events of the burst under way, which memory holds until it is decoded.
    pub burst_events: u64,
    /// Estimated size of the recording.
    pub bytes: u64,
    /// Length of all bursts.
    pub recorded: Duration,
}

/// The course of a recording over its windows.
#[derive(Clone, Debug, Default)]
pub struct RecordingCourse {
    gaps: BurstGaps,
    /// Length of all windows.
    pub elapsed: Duration,
    /// When it reached its limit.
    pub full_after: Option<Duration>,
    /// Whether fewer events were taken than the schedule says, for the limit.
    pub is_sampled: bool,
}

impl RecordingCourse {
    /// Takes bursts for this time, by default that of the schedule, or until the recording is over. No burst is under way
    /// afterwards.
    pub fn run<B: BurstTaker>(
        &mut self,
        bursts: &mut B,
        schedule: &BurstSchedule,
        length: Option<Duration>,
        control: &dyn RecordingControl,
    ) -> Result<(), UserError> {
        let began = control.now();
        let length = length.or(schedule.length);
        let used = bursts.taken()?.bytes as f64 / schedule.limit_bytes as f64;
        if used >= FULL {
            self.full_after.get_or_insert(self.elapsed);
            return Ok(());
        }
        let mut window = RecordingWindow {
            course: self,
            bursts,
            schedule,
            control,
            began,
            ends: length.map(|length| began + length),
            counted: began,
            over: false,
        };
        let ended = window.take_bursts(length);
        let elapsed = control.now() - began;
        if bursts.alive() {
            bursts.end_unrecorded();
        }
        self.elapsed += elapsed;
        ended
    }
}

struct RecordingWindow<'a, B> {
    course: &'a mut RecordingCourse,
    bursts: &'a mut B,
    schedule: &'a BurstSchedule,
    control: &'a dyn RecordingControl,
    began: Instant,
    /// None if it lasts until it is stopped.
    ends: Option<Instant>,
    /// Last look at how much was taken.
    counted: Instant,
    over: bool,
}

impl<B: BurstTaker> RecordingWindow<'_, B> {
    fn take_bursts(&mut self, length: Option<Duration>) -> Result<(), UserError> {
        let whole = self.schedule.is_whole();
        if !whole {
            self.control.begun();
            if self.control.clients().is_none() && self.bursts.alive() {
                let sentence = self.bursts.try_out(TRIAL, length)?;
                self.control.say(&sentence);
            }
        }
        self.bursts.begin_unrecorded();
        let mut first = true;
        loop {
            let duty = self.affordable_duty(self.bursts.taken()?);
            self.course.is_sampled |= duty < self.schedule.duty;
            let mut burst = LONGEST;
            if duty < 1.0 {
                burst = self.schedule.burst;
                let gap = self.course.gaps.before(burst, duty);
                self.wait(gap, |window| {
                    window.bursts.look_for_clients();
                    Ok(false)
                })?;
            }
            if self.is_over() {
                return Ok(());
            }
            if let Err(error) = self.bursts.begin(self.control) {
                return match self.bursts.alive() {
                    true => Err(error),
                    false => Ok(()), // It ended just now.
                };
            }
            if whole && first {
                self.control.begun();
            }
            first = false;
            let waited = self.wait(burst, |window| {
                if duty >= 1.0 {
                    window.bursts.look_for_clients();
                }
                window.is_long(duty)
            });
            let events = self.bursts.end(self.control)?;
            waited?;
            let counted = if events == 1 { "event" } else { "events" };
            let sentence = format!("recording: {events} {counted} in the last burst");
            self.control.say(&sentence);
        }
    }

    fn is_over(&self) -> bool {
        self.over || self.course.full_after.is_some() || !self.bursts.alive()
    }

    /// Waits, at most until the window is over, or `meanwhile` says that it is enough.
    fn wait(
        &mut self,
        time: Duration,
        meanwhile: impl Fn(&mut Self) -> Result<bool, UserError>,
    ) -> Result<(), UserError> {
        let until = self.control.now() + time;
        let until = self.ends.map_or(until, |ends| until.min(ends));
        while !self.over && self.bursts.alive() {
            let left = until.saturating_duration_since(self.control.now());
            if left.is_zero() {
                self.over = self.ends.is_some_and(|ends| until >= ends);
                break;
            }
            if meanwhile(self)? {
                break;
            }
            self.over = self.control.wait(left.min(LOOKS_EACH));
        }
        Ok(())
    }

    /// Whether memory or the limit of the recording ends the burst under way, of bursts with this duty.
    fn is_long(&mut self, duty: f64) -> Result<bool, UserError> {
        let now = self.control.now();
        if now < self.counted + COUNTS_EACH {
            return Ok(false);
        }
        self.counted = now;
        let taken = self.bursts.taken()?;
        let limit_bytes = self.schedule.limit_bytes;
        if taken.bytes >= limit_bytes {
            self.course.full_after = Some(self.course.elapsed + (now - self.began));
            let limit = megabytes_text(limit_bytes);
            self.control
                .say(&format!("the recording has reached its limit of {limit}"));
            return Ok(true);
        }
        let sampled = duty >= 1.0 && self.affordable_duty(taken) < 1.0;
        Ok(sampled || taken.burst_events >= MOST_BURST_EVENTS)
    }

    /// The duty of the schedule, or what of it the limit leaves for the time until the window ends.
    fn affordable_duty(&self, taken: RecordedAmount) -> f64 {
        let duty = self.schedule.duty;
        let Some(ends) = self.ends else {
            return duty; // How long it lasts is not known.
        };
        let now = self.control.now();
        let least = match self.schedule.is_whole() {
            true => LEAST_SEEN.max((ends - self.began) / 10),
            false => LEAST_SEEN,
        };
        if taken.recorded < least {
            return duty;
        }
        let bytes_per_s = taken.bytes as f64 / taken.recorded.as_secs_f64();
        let left_bytes = self.schedule.limit_bytes.saturating_sub(taken.bytes) as f64;
        let left_s = ends.saturating_duration_since(now).as_secs_f64();
        let affordable = left_bytes / (bytes_per_s * left_s).max(1.0);
        let sampled = self.course.is_sampled && self.schedule.is_whole();
        match affordable < duty || sampled {
            true => affordable.clamp(LEAST_DUTY, MOST_SAMPLED_DUTY.min(duty)),
            false => duty,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::schedule::recording_bytes;

    /// A clock, moved by waiting.
    struct Clock {
        began: Instant,
        passed: Cell<Duration>,
        stops_after: Duration,
        said: RefCell<Vec<String>>,
    }

    impl Clock {
        fn stopping_after(seconds: u64) -> Self {
            Self {
                began: Instant::now(),
                passed: Cell::default(),
                stops_after: Duration::from_secs(seconds),
                said: RefCell::default(),
            }
        }
    }

    impl RecordingControl for Clock {
        fn wait(&self, longest: Duration) -> bool {
            self.passed.set(self.passed.get() + longest);
            self.passed.get() >= self.stops_after
        }

        fn say(&self, sentence: &str) {
            self.said.borrow_mut().push(sentence.to_owned());
        }

        fn now(&self) -> Instant {
            self.began + self.passed.get()
        }
    }

    /// A database with this many events a second, which ends at a time.
    struct Pretence<'a> {
        clock: &'a Clock,
        events_per_s: f64,
        ends_after: Duration,
        burst_began: Option<Duration>,
        /// Begin and end of each burst.
        bursts: Vec<[Duration; 2]>,
    }

    impl<'a> Pretence<'a> {
        fn new(clock: &'a Clock, events_per_s: f64) -> Self {
            Self {
                clock,
                events_per_s,
                ends_after: Duration::MAX,
                burst_began: None,
                bursts: Vec::new(),
            }
        }

        fn recorded_s(&self) -> f64 {
            let bursts = self.bursts.iter();
            bursts.map(|[from, to]| (*to - *from).as_secs_f64()).sum()
        }

        fn run(&mut self, schedule: &BurstSchedule) -> RecordingCourse {
            let (mut course, clock) = (RecordingCourse::default(), self.clock);
            course.run(self, schedule, None, clock).unwrap();
            assert!(self.burst_began.is_none(), "a burst is under way");
            course
        }
    }

    impl BurstTaker for Pretence<'_> {
        fn try_out(&mut self, _: Duration, _: Option<Duration>) -> Result<String, UserError> {
            Ok("tried".into())
        }

        fn begin_unrecorded(&mut self) {}

        fn end_unrecorded(&mut self) {}

        fn begin(&mut self, _: &dyn RecordingControl) -> Result<(), UserError> {
            let before = self.burst_began.replace(self.clock.passed.get());
            assert!(before.is_none(), "a burst is under way");
            Ok(())
        }

        fn end(&mut self, _: &dyn RecordingControl) -> Result<u64, UserError> {
            let began = self.burst_began.take().expect("a burst was begun");
            self.bursts.push([began, self.clock.passed.get()]);
            Ok(1)
        }

        fn look_for_clients(&mut self) {}

        fn taken(&self) -> Result<RecordedAmount, UserError> {
            let now = self.clock.passed.get();
            let under_way = now - self.burst_began.unwrap_or(now);
            let events = |seconds: f64| (self.events_per_s * seconds) as u64;
            let recorded_s = self.recorded_s() + under_way.as_secs_f64();
            Ok(RecordedAmount {
                burst_events: events(under_way.as_secs_f64()),
                bytes: recording_bytes(events(recorded_s)),
                recorded: Duration::from_secs_f64(recorded_s),
            })
        }

        fn alive(&self) -> bool {
            self.clock.passed.get() < self.ends_after
        }
    }

    fn schedule(seconds: Option<f64>, duty: f64, limit_mb: u64) -> BurstSchedule {
        BurstSchedule::new(seconds, duty, 0.5, limit_mb * 1_000_000).unwrap()
    }

    #[test]
    fn an_hour_of_all_events_stays_below_its_limit_and_spans_the_hour() {
        let clock = Clock::stopping_after(10_000);
        let mut database = Pretence::new(&clock, 260_000.0);
        let course = database.run(&schedule(Some(3600.0), 1.0, 1000));
        assert!(course.is_sampled && course.full_after.is_none());
        let bytes = database.taken().unwrap().bytes;
        assert!((800_000_000..=1_000_000_000).contains(&bytes), "{bytes}");
        let last = database.bursts.last().unwrap()[1];
        assert!(last > Duration::from_secs(3500), "{last:?}");
        assert!((course.elapsed.as_secs_f64() - 3600.0).abs() < 1.0);
    }

    #[test]
    fn a_recording_that_is_nearly_full_has_no_further_window() {
        let clock = Clock::stopping_after(10_000);
        let mut database = Pretence::new(&clock, 100_000.0);
        let schedule = schedule(Some(60.0), 0.5, 10);
        let mut course = database.run(&schedule);
        assert!(course.full_after.is_none() && course.is_sampled);
        let bursts = database.bursts.len();
        course.run(&mut database, &schedule, None, &clock).unwrap();
        assert_eq!(
            (course.full_after, database.bursts.len()),
            (Some(course.elapsed), bursts)
        );
        assert!(course.elapsed < Duration::from_secs(61));
    }

    #[test]
    fn bursts_take_a_smaller_share_where_the_limit_is_near() {
        let clock = Clock::stopping_after(10_000);
        let mut database = Pretence::new(&clock, 100_000.0);
        let schedule = schedule(Some(600.0), 0.5, 100);
        database.run(&schedule);
        let share = database.recorded_s() / 600.0;
        assert!((0.2..0.32).contains(&share), "{share}");
    }

    #[test]
    fn bursts_take_their_share_where_the_limit_is_far() {
        for duty in [0.1, 0.5] {
            let clock = Clock::stopping_after(10_000);
            let mut database = Pretence::new(&clock, 10_000.0);
            let course = database.run(&schedule(Some(100.0), duty, 1000));
            assert!(!course.is_sampled && course.full_after.is_none());
            assert!((database.recorded_s() / 100.0 - duty).abs() < 0.02);
        }
    }

    #[test]
    fn a_recording_of_unknown_length_ends_at_its_limit() {
        let clock = Clock::stopping_after(10_000);
        let mut database = Pretence::new(&clock, 100_000.0);
        let course = database.run(&schedule(None, 1.0, 100));
        let after_s = course.full_after.unwrap().as_secs_f64();
        assert!((after_s - 100e6 / 550e3).abs() < 2.0, "{after_s}");
        assert!(
            clock
                .said
                .borrow()
                .iter()
                .any(|line| line.contains("its limit of 100.0 MB"))
        );
    }

    #[test]
    fn a_long_burst_is_cut_before_memory_holds_too_much() {
        let clock = Clock::stopping_after(60);
        let mut database = Pretence::new(&clock, 200_000.0);
        let course = database.run(&schedule(None, 1.0, 1000));
        assert!(!course.is_sampled && course.full_after.is_none());
        assert_eq!(database.bursts.len(), 6);
        assert!(database.recorded_s() > 59.0, "no time is left out");
    }

    #[test]
    fn a_stop_ends_the_burst_under_way() {
        let clock = Clock::stopping_after(3);
        let mut database = Pretence::new(&clock, 1_000.0);
        let course = database.run(&schedule(None, 1.0, 1000));
        assert_eq!(database.bursts, [[Duration::ZERO, Duration::from_secs(3)]]);
        assert_eq!(course.elapsed, Duration::from_secs(3));
    }

    #[test]
    fn a_database_that_ends_ends_the_recording() {
        let clock = Clock::stopping_after(100);
        let mut database = Pretence::new(&clock, 1_000.0);
        database.ends_after = Duration::from_secs(2);
        let course = database.run(&schedule(Some(60.0), 0.5, 1000));
        assert!(course.elapsed < Duration::from_secs(3));
    }
}
