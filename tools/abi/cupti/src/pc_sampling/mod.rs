//! PC sampling by its newer API (`cupti_pcsampling.h`, CUDA 11.3 and later): samples of a context's device, counted by address and stall
//! reason, without activity records.
//!
//! The devices are those that the kind `PC_SAMPLING` samples, and its records and these samples may be had at once.
//!
//! | function | here | statuses |
//! |---|---|---|
//! | `cuptiPCSamplingEnable`, `cuptiPCSamplingDisable` | of a context; the first without start and stop control begins to sample | `NOT_SUPPORTED`: the device cannot be sampled; `INVALID_OPERATION`: it is enabled, or is not |
//! | `cuptiPCSamplingSetConfigurationAttribute`, `cuptiPCSamplingGetConfigurationAttribute` | each attribute has its own status, too; sizes of buffers and the sleep of a thread that is not there are kept and have no effect | `INVALID_OPERATION`; `INVALID_PARAMETER` |
//! | `cuptiPCSamplingStart`, `cuptiPCSamplingStop` | with start and stop control; each span is a range | `INVALID_OPERATION` |
//! | `cuptiPCSamplingGetData` | as many addresses as the place has; the rest with the next call. The last time for it is `CONTEXT_DESTROY_STARTING`: functions of `atexit` find no context of the simulated GPU any more | `INVALID_OPERATION` |
//! | `cuptiPCSamplingGetNumStallReasons`, `cuptiPCSamplingGetStallReasons` | NVIDIA's names where it has one; `_not_issued` are the samples in which no instruction was issued | |
//! | `cuptiGetCubinCrc`, `cuptiRegisterComputeCrcCallback` | the number of the bytes that `MODULE_LOADED` gives; of code whose bytes are not known, as of processors, a number of its own | |
//! | `cuptiGetSassToSourceCorrelation` | of code that was loaded after the first function of this table was called | `INVALID_MODULE`: unknown code; `NOT_SUPPORTED`: it has no line |
//!
//! All return `INVALID_PARAMETER` of null, an unknown context, and a structure that is shorter than its first version.
//!
//! `pcOffset` counts from the begin of the code object, as in activity records. Kernels are not serialized: `KERNEL_SERIALIZED` gives
//! each sample its kernel's correlation id. The period is 2 to the given number of cycles; of devices that are sampled by time (processors)
//! one of five levels: up to 9, 13, 17 and 21, and above. What has been counted when sampling stops or is disabled is put into the
//! buffer of the configuration, if it has one.

mod cubins;
mod layout;
mod reasons;
mod session;

#[cfg(test)]
pub use layout::fields;

use crate::objects::{self, CUcontext};
use crate::place::Place;
use crate::result::{Answer, CUptiResult};
use crate::{sampling, with_gputrail};
use core::ffi::c_void;
use gputrail_abi::lock;
use gputrail_record::{AgentId, ContextId, SampleAggregate, SamplingTotals};
use gputrail_tool::sampling::SamplingPeriod;
use layout::{
    PCSamplingConfigurationInfo, PCSamplingConfigurationInfoParams, PCSamplingEnableParams,
    PCSamplingGetDataParams, PCSamplingGetNumStallReasonsParams, PCSamplingGetStallReasonsParams,
};
use session::Session;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The contexts for which sampling is enabled. Not held while records are waited for.
static SESSIONS: Mutex<BTreeMap<ContextId, Session>> = Mutex::new(BTreeMap::new());

/// The structure of a parameter, whose first field is its size.
///
/// # Safety
///
/// `parameters` is null or leads to a `T`, or to as many bytes as the number in front says.
unsafe fn checked<T>(parameters: *mut T) -> Answer<*mut T> {
    if parameters.is_null() || !parameters.is_aligned() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    // SAFETY: `parameters` is not null; each structure begins with its size.
    let size = unsafe { parameters.cast::<usize>().read() };
    if size < size_of::<T>() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    Ok(parameters)
}

/// The context that a parameter names.
fn context(handle: *mut c_void) -> Answer<gputrail_record::Context> {
    objects::context(handle as CUcontext).map_err(|_| CUptiResult::INVALID_PARAMETER)
}

/// Does something with the session of a context.
fn with_session<T>(of: ContextId, work: impl FnOnce(&mut Session) -> Answer<T>) -> Answer<T> {
    let mut sessions = lock(&SESSIONS);
    let session = sessions.get_mut(&of);
    work(session.ok_or(CUptiResult::INVALID_OPERATION)?)
}

/// The devices that are sampled, each with its period if it has one.
pub fn agents() -> Vec<(AgentId, Option<SamplingPeriod>)> {
    let sessions = lock(&SESSIONS);
    let active = sessions.values().filter(|session| session.is_active());
    active
        .map(|session| (session.agent, session.period()))
        .collect()
}

/// Whether anything is sampled.
pub fn is_active() -> bool {
    lock(&SESSIONS).values().any(Session::is_active)
}

/// Counts samples of a kernel of a context, or of none that is known.
pub fn add(sample: &SampleAggregate, context: ContextId) {
    let mut sessions = lock(&SESSIONS);
    for (of, session) in sessions.iter_mut() {
        if *of == context || !context.is_some() && session.agent == sample.agent {
            session.add(sample);
        }
    }
}

/// Counts the samples of a kernel that were dropped.
pub fn add_totals(totals: &SamplingTotals, context: ContextId) {
    let mut sessions = lock(&SESSIONS);
    for (of, session) in sessions.iter_mut() {
        if *of == context || !context.is_some() && session.agent == totals.agent {
            session.add_dropped(totals.dropped);
        }
    }
}

/// Ends all.
pub fn finish() {
    lock(&SESSIONS).clear();
    cubins::finish();
}

macro_rules! of_contexts {
    ($($(#[$meta:meta])* $name:ident = $function:ident;)*) => {
        $(
            $(#[$meta])*
            ///
            /// # Safety
            ///
            /// `parameters` is null or leads to the structure.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(parameters: *mut PCSamplingEnableParams) -> CUptiResult {
                with_gputrail(|| {
                    // SAFETY: `parameters` is null or leads to the structure.
                    let parameters = unsafe { checked(parameters) }?;
                    // SAFETY: `parameters` is checked.
                    $function(context(unsafe { (*parameters).context })?)
                })
            }
        )*
    };
}

of_contexts! {
    /// Enables sampling of a context.
    cuptiPCSamplingEnable = enable;
    /// Disables sampling of a context.
    cuptiPCSamplingDisable = disable;
    /// Begins to sample, with start and stop control.
    cuptiPCSamplingStart = start;
    /// Stops sampling, with start and stop control.
    cuptiPCSamplingStop = stop;
}

fn enable(context: gputrail_record::Context) -> Answer {
    sampling::check(context.agent, 0)?;
    cubins::watch()?;
    {
        let mut sessions = lock(&SESSIONS);
        if sessions.contains_key(&context.id) {
            return Err(CUptiResult::INVALID_OPERATION);
        }
        sessions.insert(context.id, Session::new(context.agent));
    }
    let updated = sampling::update();
    if updated.is_err() {
        lock(&SESSIONS).remove(&context.id);
        let _ = sampling::update();
    }
    updated
}

fn disable(context: gputrail_record::Context) -> Answer {
    with_session(context.id, |_| Ok(()))?;
    sampling::flush();
    let session = lock(&SESSIONS).remove(&context.id);
    let session = session.ok_or(CUptiResult::INVALID_OPERATION)?;
    sampling::update()?;
    put_into_own(session)
}

/// Puts the samples into the buffer of the configuration.
fn put_into_own(mut session: Session) -> Answer {
    match session.buffer() {
        // SAFETY: the program has given the buffer for this, and has it until sampling is disabled.
        Some(buffer) => unsafe { session.put(buffer) },
        None => Ok(()),
    }
}

fn start(context: gputrail_record::Context) -> Answer {
    with_session(context.id, |session| session.start())?;
    sampling::update()
}

fn stop(context: gputrail_record::Context) -> Answer {
    with_session(context.id, |session| session.check_started())?;
    sampling::flush();
    with_session(context.id, |session| {
        session.stop();
        match session.buffer() {
            // SAFETY: the program has given the buffer for this, and has it until sampling is disabled.
            Some(buffer) => unsafe { session.put(buffer) },
            None => Ok(()),
        }
    })?;
    sampling::update()
}

/// Gives the program samples.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, with a place for samples.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetData(
    parameters: *mut PCSamplingGetDataParams,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `parameters` is null or leads to the structure.
        let parameters = unsafe { checked(parameters) }?;
        // SAFETY: `parameters` is checked.
        let given = unsafe { *parameters };
        let context = context(given.context)?;
        with_session(context.id, |_| Ok(()))?;
        sampling::flush();
        // SAFETY: `data` is null or leads to a place for samples.
        with_session(context.id, |session| unsafe { session.put(given.data) })
    })
}

/// The number of stall reasons.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, with null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetNumStallReasons(
    parameters: *mut PCSamplingGetNumStallReasonsParams,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `parameters` is null or leads to the structure.
        let parameters = unsafe { checked(parameters) }?;
        // SAFETY: `parameters` is checked.
        let given = unsafe { *parameters };
        context(given.context)?;
        // SAFETY: `count` is null or a place for a number.
        unsafe { Place::new(given.count) }?.put(reasons::count());
        Ok(())
    })
}

/// The numbers and names of stall reasons.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, with places for `count` numbers and names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetStallReasons(
    parameters: *mut PCSamplingGetStallReasonsParams,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `parameters` is null or leads to the structure.
        let parameters = unsafe { checked(parameters) }?;
        // SAFETY: `parameters` is checked.
        let given = unsafe { *parameters };
        context(given.context)?;
        if given.numbers.is_null() || given.names.is_null() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        for (place, number) in (0..reasons::count() as u32).enumerate().take(given.count) {
            let name = reasons::name(number).unwrap_or_default();
            let length = name.len().min(reasons::NAME_BYTES - 1);
            // SAFETY: there are `count` places for numbers and for pointers, each to as many bytes.
            unsafe {
                given.numbers.add(place).write(number);
                let to = given.names.add(place).read();
                if to.is_null() {
                    return Err(CUptiResult::INVALID_PARAMETER);
                }
                to.copy_from_nonoverlapping(name.as_ptr().cast(), length);
                to.add(length).write(0);
            }
        }
        Ok(())
    })
}

/// Does something with each attribute of a configuration, which gets its status.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, with `count` attributes.
unsafe fn configuration(
    parameters: *mut PCSamplingConfigurationInfoParams,
    mut each: impl FnMut(&mut Session, &mut PCSamplingConfigurationInfo) -> Answer,
) -> Answer {
    // SAFETY: `parameters` is null or leads to the structure.
    let parameters = unsafe { checked(parameters) }?;
    // SAFETY: `parameters` is checked.
    let given = unsafe { *parameters };
    let context = context(given.context)?;
    if given.attributes.is_null() || !given.attributes.is_aligned() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    let mut all = Ok(());
    for place in 0..given.count {
        // SAFETY: there are `count` attributes.
        let attribute = unsafe { &mut *given.attributes.add(place) };
        let done = with_session(context.id, |session| each(session, attribute));
        let status = done.err().unwrap_or(CUptiResult::SUCCESS);
        attribute.status = status.0 as u32;
        if done.is_err() {
            all = done;
        }
    }
    all
}

/// Sets attributes of the configuration.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, with as many attributes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingSetConfigurationAttribute(
    parameters: *mut PCSamplingConfigurationInfoParams,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `parameters` is null or leads to the structure; lists of reasons are as long as they say.
        unsafe { configuration(parameters, |session, attribute| session.set(attribute)) }?;
        sampling::update()
    })
}

/// Reads attributes of the configuration.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, with as many attributes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPCSamplingGetConfigurationAttribute(
    parameters: *mut PCSamplingConfigurationInfoParams,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `parameters` is null or leads to the structure; lists of reasons are as long as they say.
        unsafe { configuration(parameters, |session, attribute| session.get(attribute)) }
    })
}
