//! PC sampling of AMD's GPUs: the hardware, or a thread of the driver, samples waves, and the SDK delivers each sample.
//!
//! The SDK takes services only while it initialises us, and one context of a process samples: it is made when the first agent is
//! configured, and each agent has a buffer of its own in it. The context is started while an agent is started. What an agent was configured
//! with stays for the life of the process (`configured`).
//!
//! `dispatch` notes the kernels that are enqueued meanwhile, and those that have completed. The SDK calls [`deliver`] with samples on a thread
//! of its own, when a buffer is full or flushed: in each [`round`], when an agent is stopped, and at the end. After two flushes all samples of
//! the dispatches that completed before them have come: their totals follow. `records` makes our records of samples, `output` writes
//! them, `service` has the SDK's functions, and `refusals` says what it refuses.
//!
//! The SDK is called without the lock: it calls back meanwhile.

mod dispatch;
mod output;
mod records;
mod refusals;
mod service;

pub(super) use dispatch::dispatched;

use super::agents::name_of;
use super::code;
use super::dispatches;
use super::objects::OBJECTS;
use super::requests;
use super::sdk::Sdk;
use super::session::{SESSION, SdkAgent, Session, current_session};
use core::ffi::c_void;
use gputrail_buffer::platform::inside::contain;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::process;
use gputrail_collect::sampling::SampleDelivery;
use gputrail_interface::sampling::{Configuration, Request};
use gputrail_record::{AgentId, NoteKind, count};
use gputrail_rocprofiler::{BufferCategory, BufferId, ContextId, DispatchId, RecordHeader, Status};
use output::SampleOutput;
use records::{SdkSample, read_sample};
use refusals::{report, why};
use std::sync::Arc;

/// The bytes of a buffer of samples: some ten thousand of them. It is delivered when half of it is full.
const BUFFER_BYTES: usize = 2 << 20;

static STATE: PerProcess<SamplingState> = PerProcess::new();

/// The sampling of this process.
#[derive(Default)]
struct SamplingState {
    context: Option<ContextId>,
    agents: Vec<ConfiguredAgent>,
    /// Dispatches that had completed before the latest flush.
    completed: Vec<(DispatchId, gputrail_rocprofiler::AgentId)>,
    output: SampleOutput,
}

/// An agent that the SDK is configured to sample.
#[derive(Copy, Clone)]
struct ConfiguredAgent {
    agent: AgentId,
    buffer: BufferId,
    /// The configuration that the SDK carries out.
    configured: Request,
    /// Where its samples go while it is started.
    started: Option<SampleDelivery>,
}

/// An agent, as the sampling service knows it.
struct SampledDevice {
    agent: AgentId,
    sdk_agent: gputrail_rocprofiler::AgentId,
}

/// Offers a GPU to the sampling service, and samples it if the recording asks for that.
pub(super) fn offer(agent: AgentId, device: &SdkAgent) {
    let Some(board) = process::board() else {
        return;
    };
    let (name, sdk_agent) = (name_of(device), device.info.id);
    let offered = Arc::new(SampledDevice { agent, sdk_agent });
    board.sampling().offer(agent, name, offered);
    if let Some(recorder) = process::recorder()
        && let Err(error) = recorder.sample(agent, name)
    {
        report(&error.to_string());
    }
}

/// The ways in which a GPU can be sampled now, at least one; or why it cannot be, and what to do.
pub(super) fn possible(
    sdk: &Sdk,
    agent: gputrail_rocprofiler::AgentId,
) -> Result<Vec<Configuration>, String> {
    match sdk.sampling_configurations(agent) {
        Ok(all) if all.is_empty() => Err(why(sdk, Status::ERROR_AGENT_ARCH_NOT_SUPPORTED)),
        Ok(all) => Ok(all),
        Err(refused) => Err(why(sdk, refused)),
    }
}

impl SamplingState {
    fn find(&mut self, agent: AgentId) -> Option<&mut ConfiguredAgent> {
        self.agents.iter_mut().find(|one| one.agent == agent)
    }
}

/// Takes samples from a buffer of the SDK.
///
/// # Safety
///
/// The SDK calls it, with records of a buffer of ours.
unsafe extern "C" fn deliver(
    _: ContextId,
    buffer: BufferId,
    headers: *mut *mut RecordHeader,
    number: usize,
    _: *mut c_void,
    dropped: u64,
) {
    contain(|| {
        // The SDK delivers the last samples while it ends, so that the session may have ended.
        let Some(session) = SESSION.get().filter(|session| session.is_of_this_process()) else {
            return;
        };
        let headers = match headers.is_null() {
            true => &[],
            // SAFETY: the SDK gives this many pointers to records, which stay during the call.
            false => unsafe { core::slice::from_raw_parts(headers, number) },
        };
        let is_before_1_0 = session.sdk.is_before_1_0();
        let mut foreign = 0;
        let samples: Vec<SdkSample> = headers
            .iter()
            .filter(|header| !header.is_null())
            .filter_map(|header| {
                // SAFETY: a pointer to a record.
                let header = unsafe { &**header };
                let is_sample = header.category == BufferCategory::PC_SAMPLING.0 as u32;
                // SAFETY: a record of samples, in the callback that delivers it.
                let sample = is_sample.then(|| unsafe { read_sample(header, is_before_1_0) });
                let sample = sample.flatten();
                foreign += u64::from(sample.is_none());
                sample
            })
            .collect();
        let mut state = STATE.lock();
        let state = &mut *state;
        state.output.losses.foreign += foreign;
        state.output.losses.dropped += dropped;
        let of_buffer = state.agents.iter().find(|one| one.buffer == buffer);
        if let Some(agent) = of_buffer
            && let Some(delivery) = agent.started
        {
            let (agent, request) = (agent.agent, agent.configured);
            state.output.take(agent, request, delivery, &samples);
        }
    });
}

/// Has the SDK deliver the samples of all agents, and writes the totals of the dispatches that had completed before the round before
/// this one.
pub(super) fn round(session: &Session) {
    let started: Vec<BufferId> = {
        let state = STATE.lock();
        let started = state.agents.iter().filter(|one| one.started.is_some());
        started.map(|one| one.buffer).collect()
    };
    if started.is_empty() {
        return;
    }
    let new = dispatch::take_completed();
    for buffer in started {
        // BUFFER_BUSY: another thread flushes it.
        let _ = session.sdk.flush(buffer);
    }
    let mut state = STATE.lock();
    let state = &mut *state;
    let completed = std::mem::replace(&mut state.completed, new);
    for (dispatch, of_sdk) in completed {
        let agent = OBJECTS.lock().agent(of_sdk);
        let configured = state.agents.iter().find(|one| one.agent == agent);
        if let Some((configured, delivery)) =
            configured.and_then(|one| Some((one.configured, one.started?)))
        {
            state.output.end(dispatch, agent, configured, delivery);
        }
    }
}

/// Writes the totals of all dispatches that have completed by now.
fn last_rounds(session: &Session) {
    round(session);
    round(session);
}

/// The process ends: takes the last samples, and notes what is missing.
pub(super) fn end(session: &Session) {
    let context = {
        let state = STATE.lock();
        let is_started = state.agents.iter().any(|one| one.started.is_some());
        state.context.filter(|_| is_started)
    };
    if let Some(context) = context {
        let _ = session.sdk.switch(context, false);
        last_rounds(session);
    }
    let mut state = STATE.lock();
    let state = &mut *state;
    for one in &state.agents {
        if let Some(delivery) = one.started {
            state.output.end_all(one.agent, one.configured, delivery);
        }
    }
    let Some(names) = process::names() else {
        return;
    };
    let mut said = state.output.losses.describe();
    let missing = code::missing();
    if missing.left_out > 0 {
        let number = count(missing.left_out, "code object");
        said.push((
            format!(
                "ROCm: PC sampling: {number} too large to be kept: samples there have no lines"
            ),
            false,
        ));
    }
    if missing.unread > 0 {
        let number = count(missing.unread, "code object");
        said.push((
            format!("ROCm: PC sampling: {number} could not be read: samples there have no lines"),
            false,
        ));
    }
    for (text, is_loss) in said {
        let kind = match is_loss {
            true => NoteKind::MISSING,
            false => NoteKind::OTHER,
        };
        names.note(kind, &text);
    }
}

/// Makes the context of sampling, which notes the dispatches, too.
fn create_context(session: &Session) -> Result<ContextId, Status> {
    let context = session.sdk.create_context()?;
    dispatch::trace(session, context)?;
    // Without it a sample has the call that its dispatch was noted with.
    let _ = session.sdk.request_external_ids(context, requests::answer);
    dispatches::open();
    code::keep();
    Ok(context)
}

impl SampledDevice {
    /// Configures the agent in the SDK.
    fn configure_in(&self, session: &Session, request: Request) -> Result<(), Status> {
        if !session.is_configuring() {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        let context = STATE.lock().context;
        let context = match context {
            Some(context) => context,
            None => create_context(session)?,
        };
        let buffer =
            session
                .sdk
                .create_buffer(context, (BUFFER_BYTES, BUFFER_BYTES / 2), deliver)?;
        let configured = service::carried_out(request);
        let mut state = STATE.lock();
        state.context = Some(context);
        drop(state);
        session
            .sdk
            .configure_sampling(context, self.sdk_agent, &configured, buffer)?;
        let mut state = STATE.lock();
        state.output.learn_words(session.sdk.sample_words());
        state.agents.push(ConfiguredAgent {
            agent: self.agent,
            buffer,
            configured,
            started: None,
        });
        Ok(())
    }
}

impl Provider<Request> for SampledDevice {
    fn configurations(&self) -> Vec<Configuration> {
        let Some(session) = current_session() else {
            return Vec::new();
        };
        let possible = session.sdk.sampling_configurations(self.sdk_agent);
        let configured = STATE.lock().find(self.agent).map(|one| one.configured);
        match configured {
            Some(request) => vec![Configuration::active(
                request,
                &possible.unwrap_or_default(),
            )],
            None => possible.unwrap_or_default(),
        }
    }

    fn unavailable(&self) -> Option<String> {
        let session = current_session()?;
        possible(&session.sdk, self.sdk_agent).err()
    }

    fn configure(&self, request: &Request) -> Result<(), ConfigureError> {
        let Some(session) = current_session() else {
            let text = "rocprofiler-sdk is not in use in this process".to_owned();
            return Err(ConfigureError::System(text));
        };
        let configured = STATE.lock().find(self.agent).map(|one| one.configured);
        if let Some(configured) = configured {
            // The SDK keeps it; the service has checked that this is the same.
            return match configured == service::carried_out(*request) {
                true => Ok(()),
                false => Err(ConfigureError::Taken),
            };
        }
        self.configure_in(session, *request).map_err(|refused| {
            let now = session.sdk.sampling_configurations(self.sdk_agent);
            let is_taken = refused == Status::ERROR_NOT_AVAILABLE
                && now
                    .is_ok_and(|now| !now.is_empty() && !now.iter().any(|one| one.allows(request)));
            match (is_taken, refused) {
                // Another process has configured the GPU since.
                (true, _) => ConfigureError::Taken,
                (false, Status::ERROR) => ConfigureError::Failed(why(&session.sdk, refused)),
                (false, _) => ConfigureError::System(why(&session.sdk, refused)),
            }
        })
    }

    fn release(&self) {}

    fn start(&self, to: SampleDelivery) {
        let Some(session) = current_session() else {
            return;
        };
        let starts = {
            let mut state = STATE.lock();
            let state = &mut *state;
            let is_started = state.agents.iter().any(|one| one.started.is_some());
            let found = state.agents.iter_mut().find(|one| one.agent == self.agent);
            let Some(one) = found else {
                return;
            };
            one.started = Some(to);
            state.output.begin(self.agent, one.configured, to);
            state.context.filter(|_| !is_started)
        };
        if let Some(context) = starts {
            // Of an earlier start.
            drop(dispatch::take_completed());
            if let Err(refused) = session.sdk.switch(context, true) {
                report(&format!(
                    "ROCm: PC sampling cannot be started: {}",
                    why(&session.sdk, refused)
                ));
            }
        }
    }

    fn stop(&self) {
        let session = current_session();
        let context = {
            let state = STATE.lock();
            let others = |one: &ConfiguredAgent| one.agent != self.agent && one.started.is_some();
            let is_last = !state.agents.iter().any(others);
            state.context.filter(|_| is_last)
        };
        if let Some(session) = session {
            if let Some(context) = context {
                // CONTEXT_NOT_FOUND: the SDK has stopped it.
                let _ = session.sdk.switch(context, false);
            }
            last_rounds(session);
        }
        let mut state = STATE.lock();
        let state = &mut *state;
        if let Some(one) = state.agents.iter_mut().find(|one| one.agent == self.agent)
            && let Some(delivery) = one.started.take()
        {
            state.output.end_all(one.agent, one.configured, delivery);
        }
    }

    fn flush(&self) {
        if let Some(session) = current_session() {
            round(session);
        }
    }
}
