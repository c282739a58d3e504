//! Functions whose calls are recorded or left out one by one (`cuptiActivityEnableDriverApi`, `cuptiActivityEnableRuntimeApi`).
//!
//! A function that is enabled is recorded though its kind is not; one that is disabled is not recorded though its kind is. Enabling or
//! disabling the kind forgets these choices.

use super::kind::ActivityKind;
use super::service;
use super::wanted::is_anywhere;
use crate::domain::{self, CallbackDomain};
use crate::result::{Answer, CUptiResult};
use crate::with_gputrail;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// The functions that differ from their kind, by kind and callback id.
static SELECTED: RwLock<Option<HashMap<(ActivityKind, u32), bool>>> = RwLock::new(None);

/// The setting of a function, if it has one of its own.
pub fn choice(kind: ActivityKind, id: u32) -> Option<bool> {
    let selected = SELECTED.read().unwrap_or_else(PoisonError::into_inner);
    let of_function = selected.as_ref().and_then(|all| all.get(&(kind, id)));
    of_function.copied()
}

/// Whether calls of a function are recorded.
pub fn is_wanted(kind: ActivityKind, id: u32) -> bool {
    choice(kind, id).unwrap_or(is_anywhere(kind))
}

/// Whether any calls of the driver or of the runtime are recorded.
pub fn has_calls() -> bool {
    is_anywhere(ActivityKind::DRIVER) || is_anywhere(ActivityKind::RUNTIME) || has_functions()
}

/// Whether a function is enabled by itself.
pub fn has_functions() -> bool {
    let selected = SELECTED.read().unwrap_or_else(PoisonError::into_inner);
    let mut all = selected.iter().flat_map(HashMap::values);
    all.any(|on| *on)
}

/// Forgets the choices of a kind, whose setting holds for all its functions then.
pub fn forget(kind: ActivityKind) {
    let mut selected = SELECTED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(selected) = &mut *selected {
        selected.retain(|(of, _), _| *of != kind);
    }
}

/// The domain of a kind of calls.
pub fn domain_of(kind: ActivityKind) -> Option<CallbackDomain> {
    match kind {
        ActivityKind::DRIVER => Some(CallbackDomain::DRIVER_API),
        ActivityKind::RUNTIME => Some(CallbackDomain::RUNTIME_API),
        _ => None,
    }
}

/// Has calls of one function recorded, or not.
pub fn select(kind: ActivityKind, id: u32, on: bool) -> Answer {
    domain::check(domain_of(kind).ok_or(CUptiResult::INVALID_KIND)?, id)?;
    service::update(|| {
        let mut selected = SELECTED.write().unwrap_or_else(PoisonError::into_inner);
        selected.get_or_insert_default().insert((kind, id), on);
    })
}

/// Has calls of one function of the driver recorded, or not.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableDriverApi(id: u32, enable: u8) -> CUptiResult {
    with_gputrail(|| select(ActivityKind::DRIVER, id, enable != 0))
}

/// Has calls of one function of the runtime recorded, or not.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableRuntimeApi(id: u32, enable: u8) -> CUptiResult {
    with_gputrail(|| select(ActivityKind::RUNTIME, id, enable != 0))
}
