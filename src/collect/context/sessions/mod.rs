//! Sessions of counters: passes over the same work, and samples of parts of it (GPUPerfAPI).
//!
//! A tool opens the counters of an agent, or of one of its queues, enables some, and begins a session. It does its work
//! once for each pass, and brackets the parts whose values it wants: the samples, which have the same ids in each pass.
//! A sample has the kernels that are enqueued between its begin and its end, those of one call (a graph's) together; the
//! values of its counters are computed from what all of them counted.
//!
//! A session uses the [counter collection service](crate::counting): while it lasts, the agent's kernels run one
//! after the other, and no other tool of the process counts or samples.

mod error;
mod samples;

pub use error::SessionError;
pub use samples::KEPT_SESSIONS;

use super::{BufferOptions, Context, RecordBuffer, RecordSelection, ToolError};
use crate::counting::values::{Subject, ValueRecords};
use crate::counting::{CounterSet, DispatchCounting, DispatchReadings, Sum, is_choosing};
use crate::delivering::{is_delivering, is_notifying};
use crate::process;
use crate::switchboard::Switchboard;
use gputrail_buffer::platform::sync::{QuietMutex, Signal};
use gputrail_counters::{Architecture, Definition, Usage};

use gputrail_interface::counting::{CountingMode, Number, SampleNumber, SessionOptions};
use gputrail_record::{
    AgentId, CorrelationId, CounterInvalid, CounterValue, CounterValueType, KernelDispatch, Kind,
    QueueId, WorkId,
};
use samples::SessionLog;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// How long a thread waits for a kernel before it looks again.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A counter or metric that can be enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCounter {
    /// Its name.
    pub name: String,
    /// A description.
    pub description: String,
    /// The unit of its values.
    pub usage: Usage,
    /// The type of its values: whole numbers of counters, floating-point numbers of metrics.
    pub value_type: CounterValueType,
}

/// The tool of the service: it chooses the counters of the pass in progress, and notes what kernels counted.
#[derive(Default)]
struct SessionTool {
    log: QuietMutex<SessionLog>,
    ended: Signal,
    queue: Option<QueueId>,
}

impl DispatchCounting for SessionTool {
    fn choose(&self, dispatch: &KernelDispatch) -> Option<Arc<CounterSet>> {
        if self.queue.is_some_and(|queue| queue != dispatch.work.queue) {
            return None;
        }
        self.log.lock().choose(dispatch.work.correlation)
    }

    fn measured(&self, dispatch: &DispatchReadings) {
        self.log.lock().measured(dispatch);
        self.ended.raise();
    }

    fn abandoned(&self, call: CorrelationId, _: WorkId) {
        self.log.lock().abandoned(call);
        self.ended.raise();
    }
}

/// The counters of an agent, opened for sessions. Dropping it ends the session in progress.
///
/// All functions may be called on any thread, also in callbacks, except where they say that they wait.
///
/// A session holds the [service](crate::counting) from its begin until its kernels have ended and one of the
/// functions is called that tell whether, or read.
pub struct CounterSessions {
    board: Arc<Switchboard>,
    agent: AgentId,
    per_pass: Option<NonZeroU32>,
    architecture: Arc<Architecture>,
    counters: Vec<SessionCounter>,
    buffer: RecordBuffer,
    /// From the begin of a session until its kernels are known to have ended. Locked before `enabled`, which is locked
    /// before the log.
    context: QuietMutex<Option<Context>>,
    enabled: QuietMutex<Vec<u32>>,
    shared: Arc<SessionTool>,
}

impl CounterSessions {
    /// Opens the counters that the agent can count now, none of them enabled (GPUPerfAPI: `GPA_OpenContext`).
    ///
    /// # Errors
    ///
    /// [`ToolError::NotAvailable`]; as for [`Context::count`], of what does not depend on the counters; as for the creation
    /// of a [`RecordBuffer`].
    pub fn open(agent: AgentId, options: SessionOptions) -> Result<CounterSessions, SessionError> {
        let board = process::begin_for_tool().ok_or(ToolError::NotAvailable)?;
        Self::on(board, agent, options)
    }

    /// Opens the counters of an agent of `board`.
    ///
    /// # Errors
    ///
    /// As for [`CounterSessions::open`].
    pub fn on(
        board: &Arc<Switchboard>,
        agent: AgentId,
        options: SessionOptions,
    ) -> Result<CounterSessions, SessionError> {
        let counting = board.counting();
        let (possible, name) = counting
            .named_configurations(agent)
            .map_err(ToolError::from)?;
        let Some(possible) = possible.first().filter(|possible| possible.dispatches) else {
            let refused = if possible.is_empty() {
                crate::counting::CountingError::NotSupported { agent: name }
            } else {
                crate::counting::CountingError::Mode {
                    agent: name,
                    mode: CountingMode::Dispatch,
                }
            };
            return Err(ToolError::from(refused).into());
        };
        let architecture = possible.architecture.clone();
        let mut counters = Vec::new();
        for counter in architecture.counters() {
            // Counters that this machine does not have are not offered.
            if counting.set(agent, &[&counter.name], None).is_err() {
                continue;
            }
            counters.push(SessionCounter {
                name: counter.name.clone(),
                description: counter.description.clone(),
                usage: counter.usage,
                value_type: match counter.definition {
                    Definition::Basic { .. } => CounterValueType::UINT64,
                    Definition::Derived(..) => CounterValueType::DOUBLE,
                },
            });
        }
        let buffer = RecordBuffer::on(board, BufferOptions::default(), |_| {})?;
        Ok(CounterSessions {
            board: board.clone(),
            agent,
            per_pass: options.per_pass,
            architecture,
            counters,
            buffer,
            context: QuietMutex::default(),
            enabled: QuietMutex::default(),
            shared: Arc::new(SessionTool {
                queue: options.queue,
                ..SessionTool::default()
            }),
        })
    }

    /// The counters and metrics, by their index.
    pub fn counters(&self) -> &[SessionCounter] {
        &self.counters
    }

    /// The index of the counter with this name, upper and lower case alike.
    pub fn find(&self, name: &str) -> Option<u32> {
        let found = |counter: &SessionCounter| counter.name.eq_ignore_ascii_case(name);
        let exact = self.counters.iter().position(|known| known.name == name);
        let place = exact.or_else(|| self.counters.iter().position(found));
        place.map(|place| place as u32)
    }

    /// The names that are most like `name`, for messages.
    pub fn nearest(&self, name: &str) -> Vec<String> {
        self.architecture.nearest(name)
    }

    /// Enables a counter for the sessions that begin later.
    ///
    /// # Errors
    ///
    /// [`SessionError::OutOfRange`], [`SessionError::AlreadyEnabled`], [`SessionError::Sampling`].
    pub fn enable(&self, counter: u32) -> Result<(), SessionError> {
        let mut enabled = self.changeable(counter)?;
        match enabled.binary_search(&counter) {
            Ok(_) => Err(SessionError::AlreadyEnabled(self.name(counter))),
            Err(place) => {
                enabled.insert(place, counter);
                Ok(())
            }
        }
    }

    /// Disables a counter for the sessions that begin later.
    ///
    /// # Errors
    ///
    /// [`SessionError::OutOfRange`], [`SessionError::NotEnabled`], [`SessionError::Sampling`].
    pub fn disable(&self, counter: u32) -> Result<(), SessionError> {
        let mut enabled = self.changeable(counter)?;
        match enabled.binary_search(&counter) {
            Ok(place) => {
                enabled.remove(place);
                Ok(())
            }
            Err(_) => Err(SessionError::NotEnabled(self.name(counter))),
        }
    }

    /// Enables or disables all counters.
    ///
    /// # Errors
    ///
    /// [`SessionError::Sampling`].
    pub fn enable_all(&self, on: bool) -> Result<(), SessionError> {
        let mut enabled = self.enabled.lock();
        self.shared.log.lock().check_idle()?;
        *enabled = if on {
            (0..self.counters.len() as u32).collect()
        } else {
            Vec::new()
        };
        Ok(())
    }

    /// The indexes of the enabled counters, in ascending order.
    pub fn enabled(&self) -> Vec<u32> {
        self.enabled.lock().clone()
    }

    fn changeable(
        &self,
        counter: u32,
    ) -> Result<impl std::ops::DerefMut<Target = Vec<u32>> + use<'_>, SessionError> {
        self.check_index(counter)?;
        let enabled = self.enabled.lock();
        self.shared.log.lock().check_idle()?;
        Ok(enabled)
    }

    fn check_index(&self, counter: u32) -> Result<(), SessionError> {
        let counters = self.counters.len() as u32;
        if counter < counters {
            Ok(())
        } else {
            Err(SessionError::OutOfRange { counter, counters })
        }
    }

    fn name(&self, counter: u32) -> String {
        let counter = self.counters.get(counter as usize);
        counter.map_or_else(String::new, |counter| counter.name.clone())
    }

    /// The set of these counters.
    fn set(&self, enabled: &[u32]) -> Result<Arc<CounterSet>, SessionError> {
        let names: Vec<String> = enabled.iter().map(|at| self.name(*at)).collect();
        if names.is_empty() {
            return Err(SessionError::NoCounters);
        }
        let counting = self.board.counting();
        let set = counting.set(self.agent, &names, self.per_pass);
        Ok(set.map_err(ToolError::from)?)
    }

    /// The number of passes that the enabled counters need; 0 if none is enabled.
    ///
    /// # Errors
    ///
    /// [`SessionError::Tool`] if they cannot be counted.
    pub fn passes(&self) -> Result<u32, SessionError> {
        match self.set(&self.enabled()) {
            Ok(set) => Ok(set.passes().len().max(1) as u32),
            Err(SessionError::NoCounters) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Begins a session with the enabled counters. The first one has the number 1.
    ///
    /// # Errors
    ///
    /// [`SessionError::Sampling`] if one is in progress; [`SessionError::NoCounters`]; [`SessionError::Tool`] if another
    /// tool of the process counts or samples, the system does not allow it, or within a buffer's callback or one that
    /// chooses counters.
    pub fn begin(&self) -> Result<u32, SessionError> {
        refuse_inside()?;
        let mut context = self.context.lock();
        self.shared.log.lock().check_idle()?;
        let enabled = self.enabled.lock();
        let set = self.set(&enabled)?;
        let started = match context.take() {
            // Kernels of the session before have not ended.
            Some(kept) => kept,
            None => {
                let made = Context::on(&self.board)?;
                made.trace_to(
                    &self.buffer,
                    RecordSelection::kinds(&[Kind::KERNEL_DISPATCH]),
                )?;
                made.count_chosen(&self.buffer, self.agent, self.shared.clone())?;
                made
            }
        };
        let result = started.start();
        *context = Some(started);
        if let Err(error) = result {
            self.release(&mut context);
            return Err(error.into());
        }
        Ok(self.shared.log.lock().begin(set, enabled.clone()))
    }

    /// Ends the session. Its kernels may still run.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotSampling`]; [`SessionError::PassStarted`] if a pass has not been ended; [`ToolError::Busy`] within a
    /// buffer's callback or one that chooses counters.
    pub fn end(&self) -> Result<(), SessionError> {
        refuse_inside()?;
        let mut context = self.context.lock();
        self.shared.log.lock().end()?;
        if let Some(context) = &*context {
            context.stop()?;
        }
        self.release(&mut context);
        Ok(())
    }

    /// Gives the service back if no session is in progress and all kernels have ended.
    fn release(&self, context: &mut Option<Context>) {
        let is_done = {
            let log = self.shared.log.lock();
            log.check_idle().is_ok() && !log.is_busy()
        };
        if is_done {
            *context = None;
        }
    }

    /// [`CounterSessions::release`], where the calling thread may do that.
    fn settle(&self) {
        if !is_inside() && !self.shared.log.lock().is_busy() {
            self.release(&mut self.context.lock());
        }
    }

    /// Begins a pass.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotSampling`], [`SessionError::PassStarted`].
    pub fn begin_pass(&self) -> Result<(), SessionError> {
        self.shared.log.lock().begin_pass()
    }

    /// Ends the pass.
    ///
    /// # Errors
    ///
    /// [`SessionError::PassNotStarted`], [`SessionError::SampleStarted`]; [`SessionError::OtherSamples`] if it has not as
    /// many samples as the first one, and the pass has ended then.
    pub fn end_pass(&self) -> Result<(), SessionError> {
        self.shared.log.lock().end_pass()
    }

    /// Begins a sample: kernels that are enqueued from now on belong to it.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotSampling`], [`SessionError::PassNotStarted`], [`SessionError::SampleStarted`];
    /// [`SessionError::SampleExists`] if the pass has had a sample with this id.
    pub fn begin_sample(&self, sample: u32) -> Result<(), SessionError> {
        self.shared.log.lock().begin_sample(sample)
    }

    /// Ends the sample.
    ///
    /// # Errors
    ///
    /// [`SessionError::SampleNotStarted`].
    pub fn end_sample(&self) -> Result<(), SessionError> {
        self.shared.log.lock().end_sample()
    }

    /// The number of samples of a session.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSession`].
    pub fn samples(&self, session: u32) -> Result<u32, SessionError> {
        let log = self.shared.log.lock();
        Ok(log.any(session)?.samples().len() as u32)
    }

    /// Whether a pass of a session, from 0, has been ended and its kernels have. Does not wait.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSession`].
    pub fn is_pass_complete(&self, session: u32, pass: u32) -> Result<bool, SessionError> {
        self.settle();
        let log = self.shared.log.lock();
        Ok(log.any(session)?.is_pass_complete(pass as usize))
    }

    /// Whether all results of a session can be read at once. Does not wait.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSession`].
    pub fn is_ready(&self, session: u32) -> Result<bool, SessionError> {
        self.settle();
        let log = self.shared.log.lock();
        Ok(log.any(session)?.is_ready())
    }

    /// Whether the results of a sample can be read at once. Does not wait.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSession`]; [`SessionError::NotInAllPasses`] if the session has ended without it.
    pub fn is_sample_ready(&self, session: u32, sample: u32) -> Result<bool, SessionError> {
        self.settle();
        let log = self.shared.log.lock();
        log.any(session)?.is_sample_ready(sample)
    }

    /// The value of an enabled counter for a sample, of the type of the counter. Waits for the sample's kernels.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSession`] also before its end; [`SessionError::OutOfRange`], [`SessionError::NotEnabled`],
    /// [`SessionError::NotInAllPasses`]; [`SessionError::Invalid`] and
    /// [`SessionError::NoKernel`] if there is no value;
    /// [`ToolError::Busy`] in a callback if it would have to wait.
    pub fn value(&self, session: u32, sample: u32, counter: u32) -> Result<Number, SessionError> {
        self.check_index(counter)?;
        let (enabled, values, kernels) = self.evaluated(session, sample)?;
        let place = enabled.iter().position(|of| *of == counter);
        let value = place.and_then(|place| values.get(place));
        let value = value.ok_or_else(|| SessionError::NotEnabled(self.name(counter)))?;
        number(value).map_err(|reason| match kernels {
            0 => SessionError::NoKernel(self.name(counter)),
            _ => SessionError::Invalid {
                counter: self.name(counter),
                reason,
            },
        })
    }

    /// The values of all enabled counters for a sample, in ascending order of their indexes. Waits for the sample's kernels.
    ///
    /// # Errors
    ///
    /// As for [`CounterSessions::value`].
    pub fn values(
        &self,
        session: u32,
        sample: u32,
    ) -> Result<Vec<(u32, SampleNumber)>, SessionError> {
        let (enabled, values, _) = self.evaluated(session, sample)?;
        let each = enabled.into_iter().zip(values);
        Ok(each
            .map(|(counter, value)| (counter, number(&value)))
            .collect())
    }

    /// The records of the values of a sample, in the order of the enabled counters, and the number of its kernels.
    fn evaluated(
        &self,
        session: u32,
        sample: u32,
    ) -> Result<(Vec<u32>, Vec<CounterValue>, u32), SessionError> {
        loop {
            let seen = self.shared.ended.value();
            let ready = {
                let log = self.shared.log.lock();
                let session = log.ended(session)?;
                let is_ready = session.is_sample_ready(sample)?;
                let result = || {
                    (
                        session.enabled.clone(),
                        session.set.clone(),
                        session.sum(sample),
                    )
                };
                is_ready.then(result)
            };
            if let Some((enabled, set, sum)) = ready {
                self.settle();
                let kernels = sum.kernels;
                return Ok((enabled, self.evaluate(set, sum), kernels));
            }
            if is_inside() {
                return Err(ToolError::Busy.into());
            }
            self.shared.ended.wait(seen, LONGEST_WAIT);
        }
    }

    fn evaluate(&self, set: Arc<CounterSet>, sum: Sum) -> Vec<CounterValue> {
        let subject = Subject {
            duration: sum.duration.map(|duration| duration.0),
            ..Subject::default()
        };
        let names = self.board.names();
        let records = ValueRecords::new(set, self.agent, sum.properties, names);
        records.of(&subject, &sum.readings)
    }

    /// The results of a session as text, a line for each sample, as the example of GPUPerfAPI's guide writes them; before
    /// them a line of names if `headings`. A value that is invalid is empty. Waits for the session's kernels.
    ///
    /// # Errors
    ///
    /// As for [`CounterSessions::value`].
    pub fn csv(&self, session: u32, headings: bool) -> Result<String, SessionError> {
        let (samples, enabled) = {
            let log = self.shared.log.lock();
            let session = log.ended(session)?;
            (session.samples(), session.enabled.clone())
        };
        let mut text = String::new();
        if headings {
            text.push_str("Identifier, ");
            for counter in enabled {
                text.push_str(&self.name(counter));
                text.push_str(", ");
            }
            text.push('\n');
        }
        for sample in samples {
            // Writing to a string does not fail.
            let _ = write!(text, "session: {session}; sample: {sample}, ");
            for (_, value) in self.values(session, sample)? {
                let _ = match value {
                    Ok(Number::Uint(value)) => write!(text, "{value},"),
                    Ok(Number::Double(value)) => write!(text, "{value:.6},"),
                    Err(_) => write!(text, ","),
                };
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// Whether no session is in progress, so that nothing is lost but results when this is dropped.
    ///
    /// # Errors
    ///
    /// [`SessionError::Sampling`].
    pub fn check_idle(&self) -> Result<(), SessionError> {
        self.shared.log.lock().check_idle()
    }
}

/// Whether the calling thread is in a callback: a kernel that it waits for may wait for it.
fn is_inside() -> bool {
    is_delivering() || is_choosing() || is_notifying()
}

/// Refuses what waits for buffers and for tools that choose counters, within their callbacks.
fn refuse_inside() -> Result<(), ToolError> {
    if is_delivering() || is_choosing() {
        Err(ToolError::Busy)
    } else {
        Ok(())
    }
}

fn number(value: &CounterValue) -> SampleNumber {
    match value.value_type {
        _ if value.invalid != CounterInvalid::NO => Err(value.invalid),
        CounterValueType::DOUBLE => Ok(Number::Double(f64::from_bits(value.value))),
        _ => Ok(Number::Uint(value.value)),
    }
}

impl std::fmt::Debug for CounterSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CounterSessions")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
