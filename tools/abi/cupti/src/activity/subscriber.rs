//! The functions of CUDA 13 that name a subscriber: there is one, so that they do what those without `_v2` do.

use super::attributes::{cuptiActivityGetAttribute, cuptiActivitySetAttribute};
use super::kind::ActivityKind;
use super::selected::{
    cuptiActivityEnableDriverApi, cuptiActivityEnableRuntimeApi, domain_of, select,
};
use super::sink::{self, CompleteInformed, Functions, RequestInformed};
use super::{
    cuptiActivityGetNextRecord, cuptiActivityGetNumDroppedRecords,
    cuptiActivityPopExternalCorrelationId, cuptiActivityPushExternalCorrelationId, service,
};
use crate::callback::{self, SubscriberHandle};
use crate::domain;
use crate::objects::CUcontext;
use crate::result::{Answer, CUptiResult, api};
use crate::{cuptiGetTimestamp, with_gputrail};
use core::ffi::c_int;

/// `CUpti_ActivityConfig`
#[repr(C)]
pub struct Config {
    size: usize,
    fields: FieldSelection,
    options: *const ApiOptions,
}

/// `CUpti_ActivityFieldSelection`
#[repr(C)]
struct FieldSelection {
    size: usize,
    count: usize,
    ids: *const c_int,
}

/// `CUpti_ActivityApiOptions`
#[repr(C)]
struct ApiOptions {
    size: usize,
    functions: *const ApiFunctions,
}

/// `CUpti_ActivityApiCbidOptions`
#[repr(C)]
struct ApiFunctions {
    size: usize,
    ids: *const u32,
    count: usize,
    /// Whether these functions alone are recorded, or all others.
    enable: u8,
}

/// The functions that the configuration of a kind of calls names, and whether they alone are recorded; fields of records are refused.
///
/// # Safety
///
/// `config` is null or leads to as many bytes as its first field says, and so do the structures that it leads to.
unsafe fn functions_of<'a>(
    kind: ActivityKind,
    config: *const Config,
) -> Answer<Option<(&'a [u32], bool)>> {
    if config.is_null() {
        return Ok(None);
    }
    let is_whole = |place: *const usize, bytes: usize| {
        // SAFETY: each of the structures begins with its size.
        place.is_aligned() && unsafe { *place } >= bytes
    };
    let without_options = core::mem::offset_of!(Config, options);
    if !is_whole(config.cast(), without_options) {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    // SAFETY: the structure has the field, as its size says.
    if unsafe { (*config).fields.count } != 0 {
        return Err(CUptiResult::NOT_SUPPORTED);
    }
    if domain_of(kind).is_none() || !is_whole(config.cast(), size_of::<Config>()) {
        return Ok(None);
    }
    // SAFETY: the structure has the field, as its size says.
    let options = unsafe { (*config).options };
    if options.is_null() {
        return Ok(None);
    }
    if !is_whole(options.cast(), size_of::<ApiOptions>()) {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    // SAFETY: as above.
    let functions = unsafe { (*options).functions };
    if functions.is_null() {
        return Ok(None);
    }
    if !is_whole(functions.cast(), size_of::<ApiFunctions>()) {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    // SAFETY: as above.
    let functions = unsafe { &*functions };
    if functions.count == 0 {
        return Ok(Some((&[], functions.enable != 0)));
    }
    if functions.ids.is_null() || !functions.ids.is_aligned() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    // SAFETY: there are as many ids, as the structure says.
    let ids = unsafe { core::slice::from_raw_parts(functions.ids, functions.count) };
    Ok(Some((ids, functions.enable != 0)))
}

/// Enables a kind of records, of calls those of some functions.
///
/// # Safety
///
/// `config` is null or leads to as many bytes as its first field says, and so do the structures that it leads to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityEnable_v2(
    subscriber: SubscriberHandle,
    kind: ActivityKind,
    config: *const Config,
) -> CUptiResult {
    with_gputrail(|| {
        callback::check(subscriber)?;
        let kind = kind.checked()?;
        // SAFETY: the promise of this function's caller.
        let Some((ids, are_alone)) = unsafe { functions_of(kind, config) }? else {
            return service::enable(kind, None, true);
        };
        if let Some(domain) = domain_of(kind) {
            ids.iter().try_for_each(|id| domain::check(domain, *id))?;
        }
        // Forgets what was chosen before.
        service::enable(kind, None, !are_alone)?;
        for id in ids {
            select(kind, *id, are_alone)?;
        }
        Ok(())
    })
}

/// As [`cuptiActivityEnable_v2`].
///
/// # Safety
///
/// As for [`cuptiActivityEnable_v2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityEnableAndDump_v2(
    subscriber: SubscriberHandle,
    kind: ActivityKind,
    config: *const Config,
) -> CUptiResult {
    // SAFETY: the promise of this function's caller.
    unsafe { cuptiActivityEnable_v2(subscriber, kind, config) }
}

/// Disables a kind of records. The configuration is not used.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable_v2(
    subscriber: SubscriberHandle,
    kind: ActivityKind,
    _: *const Config,
) -> CUptiResult {
    with_gputrail(|| {
        callback::check(subscriber)?;
        service::enable(kind.checked()?, None, false)
    })
}

/// Has the program asked for buffers, and given them back.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks_v2(
    subscriber: SubscriberHandle,
    request: Option<RequestInformed>,
    complete: Option<CompleteInformed>,
) -> CUptiResult {
    with_gputrail(|| {
        callback::check(subscriber)?;
        let (Some(request), Some(complete)) = (request, complete) else {
            return Err(CUptiResult::INVALID_PARAMETER);
        };
        sink::register(Functions::Informed(request, complete))
    })
}

/// Functions that do what another one does, after the subscriber has been checked.
macro_rules! of_subscriber {
    ($($name:ident = $of:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("As [`", stringify!($of), "`].")]
            ///
            /// # Safety
            ///
            #[doc = concat!("As for [`", stringify!($of), "`].")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(subscriber: SubscriberHandle, $($argument: $type),*) -> CUptiResult {
                match api(|| with_subscriber(subscriber)) {
                    #[allow(unused_unsafe, reason = "some are safe")]
                    // SAFETY: the promise of this function's caller.
                    CUptiResult::SUCCESS => unsafe { $of($($argument),*) },
                    refused => refused,
                }
            }
        )*
    };
}

fn with_subscriber(subscriber: SubscriberHandle) -> Answer {
    crate::load::prepared()?;
    callback::check(subscriber)
}

of_subscriber! {
    cuptiActivityEnableDriverApi_v2 = cuptiActivityEnableDriverApi(id: u32, enable: u8);
    cuptiActivityEnableRuntimeApi_v2 = cuptiActivityEnableRuntimeApi(id: u32, enable: u8);
    cuptiActivityGetAttribute_v2 = cuptiActivityGetAttribute(attribute: u32, size: *mut usize, value: *mut u8);
    cuptiActivitySetAttribute_v2 = cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut u8);
    cuptiActivityGetNextRecord_v2 = cuptiActivityGetNextRecord(buffer: *mut u8, size: usize, record: *mut *mut u32);
    cuptiActivityGetNumDroppedRecords_v2 =
        cuptiActivityGetNumDroppedRecords(context: CUcontext, stream: u32, dropped: *mut usize);
    cuptiActivityPushExternalCorrelationId_v2 = cuptiActivityPushExternalCorrelationId(kind: u32, id: u64);
    cuptiActivityPopExternalCorrelationId_v2 = cuptiActivityPopExternalCorrelationId(kind: u32, last: *mut u64);
    cuptiGetTimestamp_v2 = cuptiGetTimestamp(timestamp: *mut u64);
}
