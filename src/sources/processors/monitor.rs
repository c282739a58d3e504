//! The thread that reads the environment of the processors at a period.
//!
//! It exists while a buffer wants records of that kind, a period is set, and an agent runs on the processors. It blocks
//! all signals, and a forked child does not have it.

use super::readings::ProcessorReadings;
use gputrail_buffer::clock;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::internal_thread;
use gputrail_buffer::platform::sync::{QuietGuard, Signal, lock_std};
use gputrail_buffer::platform::sysfs;
use gputrail_collect::attributes;
use gputrail_collect::process;
use gputrail_record::{AgentId, Environment, Kind, Nanos, NoteKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The shortest period. A reading opens some files for each processor; energy counters change once in a millisecond.
const SHORTEST_PERIOD: Nanos = Nanos(1_000_000);

/// The monitor of a process.
#[derive(Default)]
pub struct ProcessorMonitor {
    state: Mutex<MonitorState>,
    wake: Signal,
}

#[derive(Default)]
struct MonitorState {
    /// The agents that run on the processors.
    agents: Vec<AgentId>,
    is_running: bool,
    has_ended: bool,
    /// Whether it has been said what this machine does not report.
    has_told: bool,
}

impl ProcessorMonitor {
    /// Adds an agent whose kernels run on the processors.
    pub fn add(self: &Arc<Self>, agent: AgentId) {
        self.state().agents.push(agent);
        self.update();
    }

    /// Starts or stops reading, as it is wanted now.
    pub fn update(self: &Arc<Self>) {
        let mut state = self.state();
        if state.is_running || state.agents.is_empty() || wanted_period().is_none() {
            // The thread stops by itself.
            drop(state);
            self.wake.raise();
            return;
        }
        state.is_running = !state.has_ended;
        let starts = state.is_running;
        drop(state);
        let monitor = self.clone();
        if starts && internal_thread::spawn(move || monitor.run()).is_err() {
            self.state().is_running = false;
        }
    }

    /// Ends reading for good, when the process exits.
    pub fn finish(&self) {
        self.state().has_ended = true;
        self.wake.raise();
    }

    fn state(&self) -> QuietGuard<'_, MonitorState> {
        lock_std(&self.state)
    }

    fn run(&self) {
        let work = AssertUnwindSafe(|| self.read_at_period());
        if let Err(panic) = catch_unwind(work) {
            // The payload may panic when it is dropped.
            std::mem::forget(panic);
            self.state().has_ended = true;
        }
    }

    fn read_at_period(&self) {
        let mut readings = ProcessorReadings::find(&sysfs::root());
        let begin = Instant::now();
        let mut next = Duration::ZERO;
        loop {
            let seen = self.wake.value();
            let mut state = self.state();
            let period = wanted_period().filter(|_| !state.has_ended);
            let Some(period) = period.filter(|_| !readings.is_empty() || !state.has_told) else {
                state.is_running = false;
                return;
            };
            let tells = !std::mem::replace(&mut state.has_told, true);
            let agents = state.agents.clone();
            drop(state);
            if tells {
                tell(&readings);
            }
            let now = begin.elapsed();
            if now >= next {
                record(&mut readings, &agents, now);
                // Readings that are late are not made up for.
                next = (next + Duration::from_nanos(period.0)).max(now);
            }
            self.wake
                .wait(seen, next.saturating_sub(now).max(Duration::from_nanos(1)));
        }
    }
}

impl std::fmt::Debug for ProcessorMonitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessorMonitor").finish_non_exhaustive()
    }
}

/// The period at which the environment is to be read; `None` if nobody wants it now.
fn wanted_period() -> Option<Nanos> {
    let board = process::board()?;
    let scope = process::recorder().map(|recorder| recorder.gate().scope());
    let period = attributes::environment_period(scope)?;
    let buffers = board.buffers_for(Kind::ENVIRONMENT);
    (!buffers.is_none()).then(|| period.max(SHORTEST_PERIOD))
}

/// Says what this machine does not report: in the recording, and on standard error if it is everything.
fn tell(readings: &ProcessorReadings) {
    if readings.missing().is_empty() {
        return;
    }
    let missing = readings.missing().join(", ");
    if readings.is_empty() {
        message(format_args!(
            "the environment of the processors is not recorded: this machine does not report it, as most virtual machines \
             do not: {missing}"
        ));
    }
    if let Some(names) = process::names() {
        let text = format!("not read of the processors: {missing}");
        names.note(NoteKind::OTHER, &text);
    }
}

/// Writes a reading for each of `agents`.
fn record(readings: &mut ProcessorReadings, agents: &[AgentId], now: Duration) {
    let values = readings.read(now.as_nanos() as u64);
    let mut record = Environment::blank();
    record.time = clock::now();
    let Some(thread) = process::current() else {
        return;
    };
    thread.with(|host| {
        for agent in agents {
            for (what, value) in &values {
                (record.agent, record.what, record.value) = (*agent, *what, *value);
                host.write(record);
            }
        }
    });
}
