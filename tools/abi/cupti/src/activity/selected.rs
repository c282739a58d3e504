//! Functions whose calls are recorded or left out one by one (`cuptiActivityEnableDriverApi`, `cuptiActivityEnableRuntimeApi`).
//!
//! A function that is enabled is recorded though its kind is not; one that is disabled is not recorded though its kind is. Enabling or
//! disabling the kind forgets these choices.

use super::kind::ActivityKind;
use super::service;
use super::wanted::is_anywhere;
use crate::domain::{self, CallbackDomain};
use crate::result::CUptiResult;
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

fn select(kind: ActivityKind, domain: CallbackDomain, id: u32, enable: u8) -> CUptiResult {
    with_gputrail(|| {
        domain::check(domain, id)?;
        service::update(|| {
            let mut selected = SELECTED.write().unwrap_or_else(PoisonError::into_inner);
            selected
                .get_or_insert_default()
                .insert((kind, id), enable != 0);
        })
    })
}

/// Has calls of one function of the driver recorded, or not.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableDriverApi(id: u32, enable: u8) -> CUptiResult {
    select(ActivityKind::DRIVER, CallbackDomain::DRIVER_API, id, enable)
}

/// Has calls of one function of the runtime recorded, or not.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableRuntimeApi(id: u32, enable: u8) -> CUptiResult {
    select(
        ActivityKind::RUNTIME,
        CallbackDomain::RUNTIME_API,
        id,
        enable,
    )
}
