//! PC sampling of CUDA's devices: the hardware samples waves, CUPTI counts the samples by address and stall reason, and
//! the thread of [`rounds`](super::rounds) fetches the counts.
//!
//! CUPTI samples contexts. Sampling of a context is enabled when it is created, in the callback, or when sampling of its
//! device starts; it is disabled before the context is destroyed, or when sampling stops. Samples are fetched in each
//! round, and before a module is unloaded, since another one may get its addresses.
//!
//! In continuous mode, samples do not know their dispatch. With [`SERIALIZE_VARIABLE`] kernels run one after the other,
//! and from CUDA 12.4 on samples have the call of theirs.
//!
//! CUPTI is called with the state locked. Callbacks of CUPTI run inside of calls of the program, in which the driver may
//! hold locks that CUPTI waits for: they wait for the state no longer than [`PATIENCE`].

mod buffer;
mod code;
mod context;
#[cfg(test)]
mod cubins;
pub(super) mod ffi;
mod losses;
mod output;
mod reasons;

use super::devices::CudaDevice;
use super::ffi::{CONTEXT_CREATED, CONTEXT_DESTROYED, Cupti, MODULE_LOADED, MODULE_UNLOADED};
use super::inside::InsideCupti;
use super::notes::note;
use super::objects::OBJECTS;
use super::session::{CuptiSession, current_session};
use context::{CudaContext, How, SampledContext};
use core::ffi::c_void;
use ffi::{Module, Resource, StructureSizes};
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::sync::{PerProcess, QuietGuard};
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::loading::cuda::SERIALIZE_VARIABLE;
use gputrail_collect::process;
use gputrail_collect::sampling::SampleDelivery;
use gputrail_interface::sampling::{Configuration, Request};
use gputrail_record::AgentId;
use losses::report;
use output::{SampleBatch, SampleOutput};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time that a callback waits for the state.
const PATIENCE: Duration = Duration::from_secs(1);

static STATE: PerProcess<SamplingState> = PerProcess::new();

/// The sampling of this process.
#[derive(Default)]
struct SamplingState {
    agents: HashMap<AgentId, OfAgent>,
    contexts: Vec<ExistingContext>,
    output: SampleOutput,
}

/// The sampling of a device.
#[derive(Default)]
struct OfAgent {
    request: Option<Request>,
    started: Option<SampleDelivery>,
}

/// Whether a device is configured to be sampled: modules are kept for their source lines then.
static KEEPS_MODULES: AtomicBool = AtomicBool::new(false);

/// A context that exists.
struct ExistingContext {
    handle: CudaContext,
    device: u32,
    sampled: Option<SampledContext>,
}

/// A device, as the sampling service knows it.
struct SampledDevice {
    agent: AgentId,
    possible: Vec<Configuration>,
}

/// Offers a device to the sampling service, and samples it if the recording asks for that.
pub(super) fn offer(agent: AgentId, device: &CudaDevice) {
    let Some(board) = process::board() else {
        return;
    };
    let (name, possible) = (&device.name, device.sampling());
    if !possible.is_empty() {
        let offered = Arc::new(SampledDevice { agent, possible });
        board.sampling().offer(agent, name, offered);
    }
    if let Some(recorder) = process::recorder()
        && let Err(error) = recorder.sample(agent, name)
    {
        report(&format!("{error}"));
    }
}

/// Locks the state in a callback of CUPTI.
fn lock_in_callback() -> Option<QuietGuard<'static, SamplingState>> {
    let begin = Instant::now();
    loop {
        if let Some(state) = STATE.try_lock() {
            return Some(state);
        }
        if begin.elapsed() > PATIENCE {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A callback of CUPTI about a context or a module.
///
/// # Safety
///
/// `data` is null or what CUPTI passes with this number, valid during the call.
pub(super) unsafe fn resource(number: u32, data: *const c_void) {
    if !matches!(
        number,
        CONTEXT_CREATED | CONTEXT_DESTROYED | MODULE_LOADED | MODULE_UNLOADED
    ) {
        return;
    }
    // SAFETY: `data` is null or a `CUpti_ResourceData`, as CUPTI passes with these numbers; it is valid during the call.
    let Some(resource) = (unsafe { data.cast::<Resource>().as_ref() }) else {
        return;
    };
    let Some(session) = current_session() else {
        return;
    };
    let context = CudaContext(resource.context);
    match number {
        CONTEXT_CREATED => created(session, context),
        CONTEXT_DESTROYED => destroyed(session, context),
        MODULE_LOADED if KEEPS_MODULES.load(Ordering::Relaxed) => {
            // SAFETY: CUPTI's description of the module and its bytes, which are valid during the callback.
            let cubin = unsafe {
                let module = resource.descriptor.cast::<Module>().as_ref();
                let module = module.filter(|module| !module.cubin.is_null());
                module.map(|module| core::slice::from_raw_parts(module.cubin, module.cubin_size))
            };
            cubin.into_iter().for_each(code::loaded);
        }
        MODULE_UNLOADED if KEEPS_MODULES.load(Ordering::Relaxed) => unloading(session, context),
        _ => {}
    }
}

fn created(session: &CuptiSession, handle: CudaContext) {
    // SAFETY: CUPTI says in this callback that the context has been created.
    let device = unsafe { session.cupti.device_of(handle.0) }.unwrap_or(0);
    let Some(mut state) = lock_in_callback() else {
        return report("a context of CUDA is not sampled: samples were being fetched for too long");
    };
    let state = &mut *state;
    let context = ExistingContext {
        handle,
        device,
        sampled: None,
    };
    state.contexts.push(context);
    state.enable(session);
}

fn destroyed(session: &CuptiSession, handle: CudaContext) {
    let Some(mut state) = lock_in_callback() else {
        return report("samples of a context that is destroyed may be missing");
    };
    let state = &mut *state;
    let place = state.contexts.iter().position(|of| of.handle == handle);
    if let Some(place) = place {
        let context = state.contexts.swap_remove(place);
        state.disable(session, context.sampled);
    }
}

/// Fetches the samples of a context before a module is unloaded.
fn unloading(session: &CuptiSession, handle: CudaContext) {
    match lock_in_callback() {
        Some(mut state) => state.fetch(session, |context| context.handle == handle),
        None => report("samples of a module that is unloaded may be missing"),
    }
}

impl SamplingState {
    /// Enables sampling of all contexts whose device is started and that are not sampled.
    fn enable(&mut self, session: &CuptiSession) {
        if self.agents.is_empty() {
            return;
        }
        let sizes = StructureSizes::of(session.cupti.version());
        let serialized = variable(SERIALIZE_VARIABLE).is_some_and(|value| value == "1");
        for context in &mut self.contexts {
            let Some(names) = process::names() else {
                return;
            };
            let agent = OBJECTS.lock().agent(names, context.device);
            let of_agent = self.agents.get(&agent);
            let wanted = of_agent.and_then(|of| of.started.zip(of.request));
            let Some((delivery, request)) = wanted.filter(|_| context.sampled.is_none()) else {
                continue;
            };
            let how = How {
                exponent: request.interval.ilog2(),
                serialized,
                sizes,
            };
            match SampledContext::enable(&session.cupti, context.handle, agent, how) {
                Ok(sampled) => {
                    self.output.begin(&sampled, request, delivery);
                    context.sampled = Some(sampled);
                }
                Err(refused) => self.output.losses.refused(refused),
            }
        }
    }

    /// Fetches the samples of some contexts.
    fn fetch(&mut self, session: &CuptiSession, which: impl Fn(&ExistingContext) -> bool) {
        let SamplingState {
            agents,
            contexts,
            output,
            ..
        } = self;
        output.learn(&session.cupti);
        for context in contexts.iter().filter(|context| which(context)) {
            let Some(sampled) = &context.sampled else {
                continue;
            };
            let mut batch = batch(agents, sampled);
            let fetched = sampled.fetch(&session.cupti, |fetched| {
                output.take(&session.cupti, &mut batch, fetched);
            });
            output.end(batch, fetched);
        }
    }

    /// Disables sampling of a context, and writes its last samples.
    fn disable(&mut self, session: &CuptiSession, sampled: Option<SampledContext>) {
        let Some(sampled) = sampled else {
            return;
        };
        let output = &mut self.output;
        output.learn(&session.cupti);
        let mut batch = batch(&self.agents, &sampled);
        let disabled = sampled.disable(&session.cupti, |fetched| {
            output.take(&session.cupti, &mut batch, fetched);
        });
        output.end(batch, disabled);
    }

    /// Disables sampling of the contexts of an agent.
    fn disable_agent(&mut self, session: &CuptiSession, agent: AgentId) {
        for place in 0..self.contexts.len() {
            let context = &mut self.contexts[place];
            let sampled = context.sampled.take_if(|sampled| sampled.agent == agent);
            self.disable(session, sampled);
        }
    }
}

fn batch(agents: &HashMap<AgentId, OfAgent>, sampled: &SampledContext) -> SampleBatch {
    let of_agent = agents.get(&sampled.agent);
    let wanted = of_agent.and_then(|of| of.started.zip(of.request));
    SampleBatch::of(sampled.agent, wanted)
}

/// Fetches the samples of all contexts.
pub(super) fn fetch(session: &CuptiSession) {
    let mut state = STATE.lock();
    if !state.agents.is_empty() {
        state.fetch(session, |_| true);
    }
}

/// The process ends: takes the last samples, and notes what is missing.
pub(super) fn end(session: &CuptiSession) {
    let _inside = InsideCupti::begin();
    let Some(mut state) = lock_in_callback() else {
        return report("the last samples are missing: samples were being fetched for too long");
    };
    let agents: Vec<AgentId> = state.agents.keys().copied().collect();
    for agent in agents {
        state.disable_agent(session, agent);
    }
    let Some(names) = process::names() else {
        return;
    };
    for (text, is_loss) in state.output.losses.describe() {
        note(names, &text, is_loss);
    }
}

/// Whether the library has the functions for PC sampling.
fn has_functions(cupti: &Cupti) -> bool {
    cupti.cuptiPCSamplingEnable.is_some()
        && cupti.cuptiPCSamplingDisable.is_some()
        && cupti.cuptiPCSamplingGetData.is_some()
        && cupti.cuptiPCSamplingGetNumStallReasons.is_some()
        && cupti.cuptiPCSamplingGetStallReasons.is_some()
        && cupti.cuptiPCSamplingSetConfigurationAttribute.is_some()
}

impl Provider<Request> for SampledDevice {
    fn configurations(&self) -> Vec<Configuration> {
        let state = STATE.lock();
        let request = state.agents.get(&self.agent).and_then(|of| of.request);
        match request {
            Some(request) => vec![Configuration::active(request, &self.possible)],
            None => self.possible.clone(),
        }
    }

    fn configure(&self, request: &Request) -> Result<(), ConfigureError> {
        let Some(session) = current_session() else {
            let text = "CUPTI is not in use in this process".to_owned();
            return Err(ConfigureError::System(text));
        };
        if !has_functions(&session.cupti) {
            return Err(ConfigureError::System(format!(
                "libcupti (API version {}) lacks the functions for PC sampling (cuptiPCSampling...), which CUDA 11.3 and \
                 later have",
                session.cupti.version()
            )));
        }
        let mut state = STATE.lock();
        state.agents.entry(self.agent).or_default().request = Some(*request);
        drop(state);
        KEEPS_MODULES.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self) {
        let mut state = STATE.lock();
        state.agents.remove(&self.agent);
        KEEPS_MODULES.store(!state.agents.is_empty(), Ordering::Relaxed);
    }

    fn start(&self, to: SampleDelivery) {
        let Some(session) = current_session() else {
            return;
        };
        let _inside = InsideCupti::begin();
        let mut state = STATE.lock();
        state.agents.entry(self.agent).or_default().started = Some(to);
        state.enable(session);
    }

    fn stop(&self) {
        let _inside = InsideCupti::begin();
        let mut state = STATE.lock();
        if let Some(session) = current_session() {
            state.disable_agent(session, self.agent);
        }
        if let Some(of_agent) = state.agents.get_mut(&self.agent) {
            of_agent.started = None;
        }
    }

    fn flush(&self) {
        // Not in a call of CUPTI's, which may wait for a lock that the caller holds.
        if let Some(session) = current_session().filter(|_| !InsideCupti::is_set()) {
            let _inside = InsideCupti::begin();
            let is_ours = |context: &ExistingContext| {
                let sampled = context.sampled.as_ref();
                sampled.is_some_and(|sampled| sampled.agent == self.agent)
            };
            STATE.lock().fetch(session, is_ours);
        }
    }
}
