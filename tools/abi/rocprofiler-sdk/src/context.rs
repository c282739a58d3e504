//! Contexts: the services that clients configure, and start and stop together.
//!
//! A context of a client is one of gputrail's, which gets its services ([`Live`]) when it is first started. While clients are initialized,
//! nothing happens that a context could see: those that are started then begin when all clients have been initialized, with all
//! that has been configured until then.

use crate::buffer::Buffer;
use crate::external::RequestService;
use crate::live::Live;
use crate::load;
use crate::place::place_of;
use crate::result::{Answer, api, failed};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use gputrail_abi::lock;
use gputrail_rocprofiler::{
    BufferTracingKind, CallbackTracingKind, ContextId, Status, TracingCallback, TracingOperation,
};
use gputrail_tool as tool;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The handle of the first context.
const FIRST: u64 = 0x200;

/// The operations of a kind that a service is for; all of them if none is named.
#[derive(Clone, Debug, Default)]
pub struct Operations(Vec<TracingOperation>);

impl Operations {
    /// All of them, if `named` is empty.
    pub fn new(named: &[TracingOperation]) -> Operations {
        Operations(named.to_vec())
    }

    /// Whether `operation` is among them.
    pub fn has(&self, operation: TracingOperation) -> bool {
        self.0.is_empty() || self.0.contains(&operation)
    }
}

/// A callback on a kind.
#[derive(Clone, Debug)]
pub struct CallbackService {
    /// The client's function.
    pub function: TracingCallback,
    /// Its data.
    pub data: *mut c_void,
    /// Its subjects.
    pub operations: Operations,
}

// SAFETY: the pointer is passed on to the client's function alone.
unsafe impl Send for CallbackService {}
// SAFETY: as above.
unsafe impl Sync for CallbackService {}

/// Records of a kind.
#[derive(Clone)]
pub struct BufferService {
    /// Where they go.
    pub buffer: Arc<Buffer>,
    /// The subjects of its records.
    pub operations: Operations,
}

/// A service that concerns agents: sampling, and the two of counters. Their part of gputrail is their own.
pub trait AgentService: Send + Sync {
    /// The context is started. Also while clients are initialized.
    ///
    /// # Errors
    ///
    /// Then the context is not started.
    fn start(&self) -> Answer;
    /// The context is stopped.
    fn stop(&self);
    /// Puts what has been recorded into the buffers of the service. `false` within a callback of gputrail's, where that is not
    /// possible.
    fn collect(&self) -> bool;
}

/// The configuration.
#[derive(Clone, Default)]
pub struct Services {
    /// Callbacks, by kind.
    pub callbacks: HashMap<CallbackTracingKind, CallbackService>,
    /// Buffers, by kind.
    pub buffers: HashMap<BufferTracingKind, BufferService>,
    /// The service that supplies external ids.
    pub requests: Option<RequestService>,
    /// The services of agents.
    pub agents: Vec<Arc<dyn AgentService>>,
}

/// A context.
pub struct Context {
    /// Its handle.
    pub id: ContextId,
    /// The client that has made it.
    pub client: u32,
    /// gputrail's context.
    pub gputrail: tool::Context,
    /// The configuration. Not changed any more once clients have been initialized.
    pub services: Mutex<Services>,
    is_started: AtomicBool,
    /// Held while it is started or stopped.
    live: Mutex<Option<Arc<Live>>>,
}

/// All contexts; those of clients that have refused to be configured are none.
static CONTEXTS: Mutex<Vec<Option<Arc<Context>>>> = Mutex::new(Vec::new());

/// The context with a handle.
pub fn found(id: ContextId) -> Answer<Arc<Context>> {
    let place = id.handle.checked_sub(FIRST);
    let place = place.and_then(|place| usize::try_from(place).ok());
    let found = place.and_then(|place| lock(&CONTEXTS).get(place).cloned().flatten());
    found.ok_or(Status::ERROR_CONTEXT_NOT_FOUND)
}

/// All contexts.
pub fn all() -> Vec<Arc<Context>> {
    lock(&CONTEXTS).iter().flatten().cloned().collect()
}

/// Puts what gputrail has recorded for a context into its buffers. `false` within a callback of gputrail's, where that is not
/// possible.
pub fn collect(id: ContextId) -> bool {
    thread_local! {
        static COLLECTS: Cell<bool> = const { Cell::new(false) };
    }
    // gputrail itself may be a client, which flushes its buffers here whenever one of gputrail's is flushed.
    if COLLECTS.replace(true) {
        return true;
    }
    let is_possible = found(id).map_or(true, |context| context.collect());
    COLLECTS.set(false);
    is_possible
}

impl Context {
    /// Whether the client has started it.
    pub fn is_started(&self) -> bool {
        self.is_started.load(Ordering::Acquire)
    }

    /// Its services in gputrail, once it has been started.
    pub fn live(&self) -> Option<Arc<Live>> {
        lock(&self.live).clone()
    }

    /// Starts it. Nothing happens if it is started.
    pub fn start(self: &Arc<Self>) -> Answer {
        let mut live = lock(&self.live);
        if self.is_started() {
            return Ok(());
        }
        let agents = lock(&self.services).agents.clone();
        for (number, agent) in agents.iter().enumerate() {
            if let Err(status) = agent.start() {
                agents[..number].iter().for_each(|agent| agent.stop());
                return Err(status);
            }
        }
        let begun = match load::is_initialised() {
            true => self.begin_locked(&mut live),
            false => Ok(()),
        };
        match begun {
            Ok(()) => self.is_started.store(true, Ordering::Release),
            Err(_) => agents.iter().for_each(|agent| agent.stop()),
        }
        begun
    }

    /// Begins it, if it was started while clients were initialized.
    pub fn begin(self: &Arc<Self>) {
        let mut live = lock(&self.live);
        if self.is_started() && live.is_none() && self.begin_locked(&mut live).is_err() {
            self.is_started.store(false, Ordering::Release);
            eprintln!(
                "librocprofiler-sdk: context {} of {} is not started: gputrail has no place for more contexts, buffers or callbacks",
                self.id.handle,
                load::name_of_client(self.client)
            );
        }
    }

    fn begin_locked(self: &Arc<Self>, live: &mut Option<Arc<Live>>) -> Answer {
        if live.is_none() {
            *live = Some(Arc::new(Live::new(self)?));
        }
        self.gputrail.start().map_err(failed)
    }

    /// Stops it. `CONTEXT_NOT_FOUND` if it is not started.
    pub fn stop(&self) -> Answer {
        let live = lock(&self.live);
        if !self.is_started.swap(false, Ordering::AcqRel) {
            return Err(Status::ERROR_CONTEXT_NOT_FOUND);
        }
        let agents = lock(&self.services).agents.clone();
        agents.iter().for_each(|agent| agent.stop());
        match &*live {
            Some(_) => self.gputrail.stop().map_err(failed),
            // Nothing has begun yet.
            None => Ok(()),
        }
    }

    /// Puts what gputrail has recorded into the buffers.
    fn collect(&self) -> bool {
        let agents = lock(&self.services).agents.clone();
        // Each of them, also if one could not.
        let missed = agents.iter().filter(|agent| !agent.collect()).count();
        let of_live = self.live().is_none_or(|live| live.collect());
        missed == 0 && of_live
    }
}

/// Stops the contexts of a client.
pub fn stop_all(client: u32) {
    for context in all().iter().filter(|context| context.client == client) {
        // Contexts that are not started stay so.
        let _ = context.stop();
    }
}

/// Forgets the contexts of a client that has refused to be configured.
pub fn forget(client: u32) {
    for context in lock(&CONTEXTS).iter_mut() {
        context.take_if(|context| context.client == client);
    }
}

/// Makes a context.
///
/// # Safety
///
/// `context` is null or a place with a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_context(context: *mut ContextId) -> Status {
    api(|| {
        // SAFETY: `context` is null or a place with a handle.
        let place = unsafe { place_of(context) }?;
        if place.get().handle != 0 {
            return Err(Status::ERROR_CONTEXT_ID_NOT_ZERO);
        }
        let client = load::configurable()?;
        let gputrail = tool::Context::new().map_err(|_| Status::ERROR_CONTEXT_ERROR)?;
        let mut contexts = lock(&CONTEXTS);
        let id = ContextId {
            handle: FIRST + contexts.len() as u64,
        };
        contexts.push(Some(Arc::new(Context {
            id,
            client,
            gputrail,
            services: Mutex::default(),
            is_started: AtomicBool::new(false),
            live: Mutex::default(),
        })));
        place.put(id);
        Ok(())
    })
}

/// Starts a context.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_start_context(context: ContextId) -> Status {
    api(|| {
        let context = found(context)?;
        if load::is_ending() {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        context.start()
    })
}

/// Stops a context.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_stop_context(context: ContextId) -> Status {
    api(|| {
        let context = found(context)?;
        if load::is_finalised() {
            return Ok(());
        }
        context.stop()
    })
}

/// Whether a context is started.
///
/// # Safety
///
/// `status` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_context_is_active(
    context: ContextId,
    status: *mut c_int,
) -> Status {
    api(|| {
        // SAFETY: `status` is null or a place for a number.
        let place = unsafe { place_of(status) }?;
        place.put(0);
        place.put(found(context)?.is_started().into());
        Ok(())
    })
}

/// Whether a context can be started.
///
/// # Safety
///
/// `status` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_context_is_valid(
    context: ContextId,
    status: *mut c_int,
) -> Status {
    api(|| {
        // SAFETY: `status` is null or a place for a number.
        let place = unsafe { place_of(status) }?;
        place.put(0);
        found(context)?;
        place.put(1);
        Ok(())
    })
}
