//! Objects that come and go, and waits that have ended, as CUPTI's domains `resource` and `synchronize` report them, for
//! subscribers of ours. CUPTI is asked for what somebody has subscribed to.
//!
//! A module's record has CUPTI's number of it as its handle. Functions are the kernels that run; for a tool that subscribes to `kernel
//! symbol registered`, CUPTI reports all functions of each module that is loaded, and the tool is told of them, with their module, when
//! their records come. Callbacks of calls have CUPTI's correlation id, the context (whose number in CUPTI is the handle in its record)
//! and the whole value that the call returned.

use super::ffi;
use super::graphs;
use super::inside::InsideCupti;
use super::objects::OBJECTS;
use super::sampling::ffi::{Module, Resource};
use super::session::{CuptiSession, current_session};
use core::ffi::c_void;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::notify::Notifier;
use gputrail_collect::process::{self, Current};
use gputrail_collect::switchboard::{Payload, Switchboard};
use gputrail_interface::operations::{resource, synchronization};
use gputrail_record::{
    self as record, Context, CorrelationId, KernelSymbol, Operation, RecordRef, Stream,
    Synchronization, SynchronizationType, WorkHeader,
};

/// The operations of ours, each with the domain and the number that it has in CUPTI.
pub(super) const TOLD: [(Operation, u32, u32); 10] = [
    (
        resource::RUNTIME_INITIALIZED,
        ffi::RESOURCE,
        ffi::INITIALIZED,
    ),
    (
        resource::CONTEXT_CREATED,
        ffi::RESOURCE,
        ffi::CONTEXT_CREATED,
    ),
    (
        resource::CONTEXT_DESTROYED,
        ffi::RESOURCE,
        ffi::CONTEXT_DESTROYED,
    ),
    (resource::MODULE_LOADED, ffi::RESOURCE, ffi::MODULE_LOADED),
    (
        resource::MODULE_UNLOADED,
        ffi::RESOURCE,
        ffi::MODULE_UNLOADED,
    ),
    (
        resource::MODULE_PROFILED,
        ffi::RESOURCE,
        ffi::MODULE_PROFILED,
    ),
    (resource::STREAM_CREATED, ffi::RESOURCE, ffi::STREAM_CREATED),
    (
        resource::STREAM_DESTROYED,
        ffi::RESOURCE,
        ffi::STREAM_DESTROYED,
    ),
    (
        synchronization::STREAM_SYNCHRONIZE,
        ffi::SYNCHRONIZE,
        ffi::STREAM_SYNCHRONIZED,
    ),
    (
        synchronization::CONTEXT_SYNCHRONIZE,
        ffi::SYNCHRONIZE,
        ffi::CONTEXT_SYNCHRONIZED,
    ),
];

/// What is wanted: a flag for each of [`TOLD`] and of [`graphs::REPORTED`].
pub(super) type WantedResources = ([bool; TOLD.len()], [bool; graphs::REPORTED.len()]);

/// Has CUPTI report what `board` wants and `enabled` lacks, and no longer what nobody wants.
pub(super) fn enable(session: &CuptiSession, board: &Switchboard, enabled: &mut WantedResources) {
    for ((operation, domain, number), enabled) in TOLD.into_iter().zip(&mut enabled.0) {
        let wanted = board.interest(operation).has_subscribers();
        if wanted != std::mem::replace(enabled, wanted) {
            session.enable_callback(wanted || is_needed(domain, number), domain, number);
        }
    }
    for ((what, number), enabled) in graphs::REPORTED.into_iter().zip(&mut enabled.1) {
        let wanted = graphs::is_wanted(board, what) || graphs::is_needed(board, what);
        if wanted != std::mem::replace(enabled, wanted) {
            session.enable_callback(wanted, ffi::RESOURCE, number);
        }
    }
}

/// Whether the session itself needs the callback.
fn is_needed(domain: u32, number: u32) -> bool {
    domain == ffi::RESOURCE && ffi::NEEDED.contains(&number)
}

/// A callback of CUPTI about an object or a wait.
///
/// # Safety
///
/// `data` is what CUPTI passes with this domain and number, valid during the call; it is not null, but for changes of graphs
/// and the end of the driver's initialization.
pub(super) unsafe fn notify(domain: u32, number: u32, data: *const c_void) {
    let thread = process::current().filter(|thread| !thread.state().is_in_callback());
    let (Some(session), Some(thread)) = (current_session(), thread) else {
        return;
    };
    let mut reported = graphs::REPORTED.iter();
    let of_graph = reported.find(|one| domain == ffi::RESOURCE && one.1 == number);
    if let Some((what, _)) = of_graph {
        // SAFETY: `data` is CUPTI's description of the change of a graph, by its domain and number.
        return unsafe { graphs::changed(session, thread, *what, data) };
    }
    let mut told = TOLD.iter();
    let Some((operation, ..)) = told.find(|one| (one.1, one.2) == (domain, number)) else {
        return;
    };
    let Some(board) = thread.board() else {
        return;
    };
    // A module's record is made in any case.
    let is_made = matches!(
        *operation,
        resource::MODULE_LOADED | resource::MODULE_UNLOADED
    );
    let is_module = is_made || *operation == resource::MODULE_PROFILED;
    if !is_made && !board.interest(*operation).has_subscribers() {
        return;
    }
    // SAFETY: `data` leads to CUPTI's description, which is valid during the call: of all operations here but the end of the
    // driver's initialization, which has none. Waits have the structure of objects without the last field, which is read of
    // modules only. Contexts have no handle of a stream.
    let object = (*operation != resource::RUNTIME_INITIALIZED).then(|| unsafe {
        let described = data.cast::<Resource>();
        let stream = is_of_stream(*operation).then(|| (*described).handle);
        let module = if is_module {
            (*described).descriptor.cast::<Module>().as_ref()
        } else {
            None
        };
        ResourceNumbers {
            module: module.map(|module| module.id),
            ..ResourceNumbers::of(session, (*described).context, stream)
        }
    });
    let Some((correlation, depth)) = thread.with(|host: &mut HostThread| host.innermost()) else {
        return;
    };
    let notifier = Notifier {
        board,
        state: thread.state(),
        correlation,
        depth,
    };
    tell(*operation, thread, &notifier, object.as_ref());
}

/// Tells subscribers of functions of modules that CUPTI has reported: on CUPTI's thread, in no call.
pub(super) fn tell_registered(thread: Current) {
    if thread.state().is_in_callback() {
        return;
    }
    let registered = OBJECTS.lock().take_registered();
    let Some(board) = thread.board() else {
        return;
    };
    let notifier = Notifier {
        board,
        state: thread.state(),
        correlation: CorrelationId::NONE,
        depth: 0,
    };
    for kernel in registered {
        notifier.object::<KernelSymbol>(resource::KERNEL_SYMBOL_REGISTERED, kernel.0);
    }
}

/// Whether an operation is about a stream of a context.
fn is_of_stream(operation: Operation) -> bool {
    matches!(
        operation,
        resource::STREAM_CREATED | resource::STREAM_DESTROYED | synchronization::STREAM_SYNCHRONIZE
    )
}

/// The numbers of a context and of one of its streams or modules, if it is about one, and the context's device.
struct ResourceNumbers {
    device: u32,
    context: u32,
    stream: Option<u32>,
    module: Option<u32>,
}

impl ResourceNumbers {
    /// # Safety
    ///
    /// `context` and `stream` are those that CUPTI describes in a callback which has not returned.
    unsafe fn of(
        session: &CuptiSession,
        context: *mut c_void,
        stream: Option<*mut c_void>,
    ) -> ResourceNumbers {
        let _inside = InsideCupti::begin();
        let cupti = &session.cupti;
        let any = core::ptr::null_mut();
        // SAFETY: the context and the stream exist during the callback (`# Safety`): CUPTI tells of their end before it
        // comes.
        let (device, number, stream) = unsafe {
            (
                cupti.device_of(context),
                cupti.context_number(context),
                stream.map(|stream| cupti.stream_number(any, stream).unwrap_or(0)),
            )
        };
        ResourceNumbers {
            device: device.unwrap_or(0),
            context: number.unwrap_or(0),
            stream,
            module: None,
        }
    }
}

fn tell(
    operation: Operation,
    thread: Current,
    notifier: &Notifier<'_>,
    object: Option<&ResourceNumbers>,
) {
    let names = notifier.board.names();
    let Some(object) = object else {
        return notifier.instant(operation, Payload::None);
    };
    let mut objects = OBJECTS.lock();
    let agent = objects.agent(names, object.device);
    let context = objects.context(names, object.context, agent);
    let stream = object.stream.map(|number| {
        let key = (object.context, number);
        objects.stream_of(names, agent, key)
    });
    let module = object.module.map(|number| {
        let key = (object.context, number);
        match operation {
            resource::MODULE_UNLOADED => objects.unloaded(key),
            _ => objects.module(names, context, key),
        }
    });
    // Subscribers may make calls of their own.
    drop(objects);
    match (operation, stream) {
        (resource::CONTEXT_CREATED | resource::CONTEXT_DESTROYED, _) => {
            notifier.object::<Context>(operation, context.0);
        }
        (resource::MODULE_LOADED | resource::MODULE_UNLOADED | resource::MODULE_PROFILED, _) => {
            if let Some(module) = module {
                notifier.object::<record::Module>(operation, module.0);
            }
        }
        (resource::STREAM_CREATED | resource::STREAM_DESTROYED, Some(stream)) => {
            notifier.object::<Stream>(operation, stream.0);
        }
        _ => {
            let mut wait = Synchronization::blank();
            wait.work = WorkHeader {
                correlation: notifier.correlation,
                agent,
                context,
                stream: stream.unwrap_or_default(),
                thread: thread.state().thread(),
                ..WorkHeader::default()
            };
            wait.what = SynchronizationType(operation.number as u8);
            let record = RecordRef::of(&wait);
            notifier.instant(operation, Payload::Record(record));
        }
    }
}
