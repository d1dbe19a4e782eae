//! A session of the recording, as a coroutine: its turns, step by step.

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::{ReadReuse, Session, Step, TimeCategory, Turn, TurnPace};

use crate::kernel::task::TaskHandle;
use crate::stations::cores::CoreClaimant;

/// Pause of a session whose whole program took no time.
const EMPTY_CYCLE_PAUSE_NS: Nanos = 1_000_000;

impl<'a> TaskHandle<'a> {
    /// Serves a looping session, from a turn on.
    pub(crate) async fn serve(self, session: u32, first_turn: u32, endless: bool) {
        let routine = &self.program.sessions[session as usize];
        let work: &'a Session = &self.program.work.sessions[routine.index];
        let mut first = first_turn as usize;
        if routine.client && self.machine().must_await_arrival(self.id) {
            self.block(TimeCategory::Client).await;
        }
        loop {
            let cycle_began = self.machine().clock.now();
            for (at, turn) in work.turns.iter().enumerate().skip(first) {
                if at == first || work.turns[at - 1].ends {
                    self.begin_transaction(work, at);
                }
                self.turn(work, turn).await;
            }
            first = 0;
            self.change(|task| task.cycle += 1);
            if !endless {
                return self.finish();
            }
            if self.machine().clock.now() == cycle_began {
                self.sleep(EMPTY_CYCLE_PAUSE_NS, TimeCategory::Other).await;
            }
        }
    }

    /// Does the turns of a background session when they are due, again and again if the run is `steady`.
    pub(crate) async fn serve_paced(self, session: u32, steady: bool) {
        let index = self.program.sessions[session as usize].index;
        let work: &'a Session = &self.program.work.sessions[index];
        for round in 0.. {
            if round > 0 && !steady {
                return;
            }
            for (turn, start) in work.turns.iter().zip(&work.starts) {
                self.await_turn(work.pace, *start, round).await;
                self.turn(work, turn).await;
            }
            self.change(|task| task.cycle += 1);
        }
    }

    /// The session ends its recorded work, which is not repeated.
    fn finish(&self) {
        let mut machine = self.machine();
        machine.task(self.id).finished = true;
        machine.release_locks(self.id);
        if machine.task(self.id).counts {
            machine.unfinished -= 1;
            machine.over = machine.unfinished == 0;
        }
        machine.set_activity(self.id, TimeCategory::Other);
        machine.leave_core(self.id);
    }

    fn begin_transaction(&self, work: &Session, at: usize) {
        if !self.machine().leader_waits() {
            return;
        }
        let turns = work.turns[at..].iter();
        let last = turns.clone().position(|turn| turn.ends);
        let turns = turns.take(last.map_or(usize::MAX, |last| last + 1));
        let steps = turns.flat_map(|turn| steps_of_turn(work, turn));
        let commits = steps.filter(|step| **step == Step::Commit).count() as u32;
        self.change(|task| (task.commits_ahead, task.commits_done) = (commits, 0));
    }

    async fn turn(&self, work: &'a Session, turn: &Turn) {
        let steps = steps_of_turn(work, turn);
        let reply = steps.len().saturating_sub(turn.tail_steps as usize);
        let spares = self.spares_page_writes();
        for (at, step) in steps.iter().enumerate() {
            if at == reply {
                self.reply(turn.ends);
            }
            if spares && may_write_pages(step) {
                continue;
            }
            match *step {
                Step::Cpu {
                    time_ns,
                    client: false,
                } => {
                    let time_ns = self.change(|task| {
                        task.between_transactions = false;
                        task.spend(time_ns.into())
                    });
                    self.run(CoreClaimant::Server, time_ns).await;
                }
                _ if self.act(step) => {}
                _ => self.wait(step).await,
            }
        }
        if reply == steps.len() {
            self.reply(turn.ends);
        }
        if self.end_turn(turn.ends) {
            self.block(TimeCategory::Client).await;
        }
        if work.pace != TurnPace::Loop {
            self.machine().leave_core(self.id);
        }
    }

    fn spares_page_writes(&self) -> bool {
        let mut machine = self.machine();
        machine.without_page_writes && !machine.task(self.id).counts
    }

    /// Does a step that takes no time; whether it is one.
    fn act(&self, step: &Step) -> bool {
        let mut machine = self.machine();
        match *step {
            Step::Reuse(reuse) => machine.task(self.id).reuse = reuse,
            Step::CachedRead { role, sector, .. } => {
                let spared_ns = self.program.work.read_cpu.cached_ns;
                return machine.is_buffered(self.id, role, sector, spared_ns)
                    || machine.is_plain_hit(self.id, role, sector);
            }
            Step::Read { role, sector, .. } => {
                let spared_ns = self.program.work.read_cpu.device_ns;
                return machine.is_buffered(self.id, role, sector, spared_ns);
            }
            Step::Submit {
                role,
                sector,
                sectors,
                write,
            } => machine.submit(self.id, role, sector, sectors, write),
            Step::Forget {
                role,
                sector,
                sectors,
            } => machine.pages.dirty.clean(role, sector, sectors),
            Step::Append { size_bytes } => machine.append(self.id, size_bytes),
            Step::Acknowledge => machine.acknowledge_log(),
            Step::Signal { number } => machine.signal(self.id, number),
            _ => return false,
        }
        true
    }

    /// Does a step that may wait.
    async fn wait(&self, step: &Step) {
        match *step {
            Step::Cpu { time_ns, .. } => self.run_client(time_ns.into()).await,
            Step::Delay(delay) if delay.timer => {
                self.sleep(delay.time_ns, TimeCategory::Sleep).await;
            }
            Step::Delay(delay) => self.think(delay.time_ns).await,
            Step::CachedRead {
                role,
                sector,
                sectors,
            } => self.read_cached(role, sector, sectors).await,
            Step::Read {
                role,
                sector,
                sectors,
            } => self.read(role, sector, sectors).await,
            Step::WriteThrough {
                role,
                sector,
                sectors,
            } => self.write_through(role, sector, sectors).await,
            Step::Write {
                role,
                sector,
                sectors,
            } => self.write(role, sector, sectors).await,
            Step::WriteBack {
                role,
                sector,
                sectors,
            } => self.write_back(role, sector, sectors).await,
            Step::Sync { role, script } => self.sync(role, script).await,
            Step::Drain => self.drain().await,
            Step::Commit => self.commit().await,
            Step::AwaitLog => self.await_log().await,
            Step::Lock { lock } => self.lock(lock).await,
            Step::Await { number } => self.await_signal(number).await,
            // The steps that take no time.
            _ => {}
        }
    }

    /// The client's time: in an open loop, arrivals take its place between transactions.
    async fn think(&self, time_ns: Nanos) {
        if self.machine().skips_think_time(self.id) {
            return;
        }
        let now = self.machine().clock.now();
        self.change(|task| {
            // A transaction begins with its first request.
            if task.transaction_began == now {
                task.transaction_began += time_ns;
            }
        });
        self.sleep(time_ns, TimeCategory::Client).await;
    }

    /// Replies to the client; what follows is the client's time.
    fn reply(&self, ends: bool) {
        let mut machine = self.machine();
        let now = machine.clock.now();
        let task = machine.task(self.id);
        task.replied = true;
        task.between_transactions = ends;
        let latency_ns = now - task.transaction_began;
        if ends && task.counts {
            machine.metrics.add_transaction(latency_ns);
        }
        machine.set_activity(self.id, TimeCategory::Client);
    }

    /// Ends a turn; whether the session must wait for the arrival of its next transaction.
    fn end_turn(&self, ends: bool) -> bool {
        let mut machine = self.machine();
        machine.task(self.id).reuse = ReadReuse::default();
        if ends {
            machine.release_locks(self.id);
        }
        if !machine.task(self.id).counts {
            return false;
        }
        machine.metrics.turns += 1;
        if ends {
            machine.count_transaction();
            machine.begin_due_by_work();
        }
        machine.set_activity(self.id, TimeCategory::Runnable);
        machine.task(self.id).replied = false;
        if ends {
            machine.task(self.id).transaction_began = machine.clock.now();
        }
        ends && machine.must_await_arrival(self.id)
    }
}

/// Whether a step may be part of writing pages of tables: also processor time, which is not told apart.
fn may_write_pages(step: &Step) -> bool {
    match *step {
        Step::Cpu { .. } => true,
        Step::Write { role, .. }
        | Step::WriteThrough { role, .. }
        | Step::WriteBack { role, .. }
        | Step::Sync { role, .. }
        | Step::Submit {
            role, write: true, ..
        } => !matches!(role, Role::Log | Role::Archive | Role::Temp),
        _ => false,
    }
}

/// Steps of a turn; `Program` checked that they are there.
fn steps_of_turn<'s>(session: &'s Session, turn: &Turn) -> &'s [Step] {
    let first = turn.first_step as usize;
    &session.steps[first..first + turn.steps as usize]
}
