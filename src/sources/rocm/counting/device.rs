//! Counting a device at a period: a thread of ours starts the counters, waits, reads them and stops them, so that each value is that of
//! its period, and metrics, which the SDK computes from the counts since the start, are too. What happens between two periods is
//! not counted.

use super::columns::Columns;
use super::dispatch::write_all;
use super::refusals::why;
use super::{CountedAgent, STATE};
use crate::rocm::session::{Session, current_session};
use core::ffi::c_void;
use gputrail_buffer::platform::inside::contain;
use gputrail_buffer::platform::internal_thread;
use gputrail_collect::counting::CountingDelivery;
use gputrail_collect::counting::values::{Subject, ValueRecords};
use gputrail_record::{AgentId, DeviceTime, Nanos};
use gputrail_rocprofiler::{
    AgentId as SdkAgentId, ContextId, CounterConfigId, DeviceCountingSetter, Status,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest sleep of the thread, after which it looks whether it is to end.
const STEP: Duration = Duration::from_millis(5);
/// How long the end of counting, or a flush, waits for the thread that reads.
const PATIENCE: Duration = Duration::from_secs(1);

/// The SDK asks what to count of an agent whose context is started.
///
/// # Safety
///
/// The SDK calls it, with a function that takes the answer.
pub(super) unsafe extern "C" fn choose(
    context: ContextId,
    agent: SdkAgentId,
    set: Option<DeviceCountingSetter>,
    _: *mut c_void,
) {
    contain(|| {
        if let (Some(config), Some(set)) = (config_of(agent), set) {
            // SAFETY: the SDK's function, with the context that it asks about.
            unsafe { set(context, config) };
        }
    });
}

fn config_of(agent: SdkAgentId) -> Option<CounterConfigId> {
    let state = STATE.lock();
    let one = state.agents.values().find(|one| one.sdk_agent == agent)?;
    Some(one.counted.as_ref()?.config)
}

/// The counters that a thread reads.
struct DeviceReader {
    agent: AgentId,
    start: u64,
    period: Duration,
    context: ContextId,
    delivery: CountingDelivery,
    columns: Arc<Columns>,
    records: Arc<ValueRecords>,
}

/// Starts to read an agent at a period.
pub(super) fn start(agent: AgentId, period: Nanos) {
    let reader = {
        let mut state = STATE.lock();
        let context = state.devices.get(&agent).copied();
        let Some((context, one)) = context.zip(state.agents.get_mut(&agent)) else {
            return;
        };
        let (Some(delivery), Some(counted)) = (one.started, &one.counted) else {
            return;
        };
        one.start += 1;
        one.reader = one.start;
        DeviceReader {
            agent,
            start: one.start,
            period: Duration::from_nanos(period.0),
            context,
            delivery,
            columns: counted.columns.clone(),
            records: counted.records.clone(),
        }
    };
    if let Err(error) = internal_thread::spawn(move || contain(|| reader.run())) {
        let mut state = STATE.lock();
        if let Some(one) = state.agents.get_mut(&agent) {
            one.reader = 0;
        }
        state.complain(&format!("ROCm: no counters at a period: {error}"));
    }
}

/// Ends to read an agent, if a thread does. When this returns its last values have been written.
pub(super) fn stop(agent: AgentId) {
    if let Some(one) = STATE.lock().agents.get_mut(&agent) {
        // The thread belongs to an earlier start from here on.
        one.start += 1;
    }
    wait(agent, |one| one.reader == 0);
}

/// Ends the period in progress early.
pub(super) fn flush(agent: AgentId) {
    let wanted = {
        let mut state = STATE.lock();
        let reads = state.agents.get_mut(&agent).filter(|one| one.reader != 0);
        let Some(one) = reads else {
            return;
        };
        one.flushes += 1;
        one.written + 1
    };
    wait(agent, |one| one.reader == 0 || one.written >= wanted);
}

fn wait(agent: AgentId, is_done: impl Fn(&CountedAgent) -> bool) {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if STATE.lock().agents.get(&agent).is_none_or(&is_done) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl DeviceReader {
    fn run(self) {
        while self.goes_on()
            && let Some(session) = current_session()
        {
            if let Err(refused) = self.read_period(session) {
                let why = why(&session.sdk, refused);
                let text = format!("ROCm: no counters at a period: {why}");
                STATE.lock().complain(&text);
                break;
            }
        }
        if let Some(one) = STATE.lock().agents.get_mut(&self.agent) {
            one.reader = 0;
        }
    }

    /// Whether counting has not been stopped.
    fn goes_on(&self) -> bool {
        let state = STATE.lock();
        let one = state.agents.get(&self.agent);
        one.is_some_and(|one| one.start == self.start)
    }

    fn flushes(&self) -> u64 {
        let state = STATE.lock();
        state.agents.get(&self.agent).map_or(0, |one| one.flushes)
    }

    /// Sleeps until the period ends, is ended early, or counting is stopped.
    fn sleep(&self) {
        let (begin, flushes) = (Instant::now(), self.flushes());
        while let Some(rest) = self.period.checked_sub(begin.elapsed())
            && !rest.is_zero()
            && self.goes_on()
            && self.flushes() == flushes
        {
            std::thread::sleep(rest.min(STEP));
        }
    }

    /// Counts for one period, and writes its values.
    fn read_period(&self, session: &Session) -> Result<(), Status> {
        let begin = session.sdk.timestamp();
        match session.sdk.switch(self.context, true) {
            Ok(()) => {}
            Err(Status::ERROR_HSA_NOT_LOADED) => {
                // The program has not used a GPU yet.
                let _ = session.sdk.switch(self.context, false);
                self.sleep();
                return Ok(());
            }
            Err(refused) => return Err(refused),
        }
        self.sleep();
        let read = session
            .sdk
            .read_device(self.context, self.columns.instances());
        let end = session.sdk.timestamp();
        let _ = session.sdk.switch(self.context, false);
        let values = match read {
            Ok(values) => values,
            // HSA begins just now, or ends.
            Err(
                Status::ERROR_HSA_NOT_LOADED
                | Status::ERROR_CONTEXT_NOT_STARTED
                | Status::ERROR_CONTEXT_ERROR,
            ) => return Ok(()),
            Err(refused) => return Err(refused),
        };
        if let (Some(begin), Some(end)) = (begin, end) {
            let subject = Subject {
                span: (DeviceTime(begin), DeviceTime(end)),
                duration: Some(end.saturating_sub(begin)),
                ..Subject::default()
            };
            let values = self.columns.values(&values);
            let records = self.records.of_instances(&subject, &values);
            let buffers = self.delivery.buffers;
            write_all(records.into_iter().map(|record| (buffers, record)));
        }
        if let Some(one) = STATE.lock().agents.get_mut(&self.agent) {
            one.written += 1;
        }
        Ok(())
    }
}
