//! What programs register and then name by an id.
//!
//! # Safety
//!
//! As in `functions`: the arguments are those of a program that keeps to NVTX's documentation.

use super::domain::{DomainHandle, domain};
use super::tables::answer;
use std::sync::atomic::{AtomicU64, Ordering};

/// A new id, unless one was chosen.
pub(super) fn id(chosen: u64) -> u64 {
    /// Ids up to this are the program's.
    const DYNAMIC: u64 = 1 << 32;
    static LAST_ID: AtomicU64 = AtomicU64::new(DYNAMIC);
    match chosen {
        0 => LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
        chosen => chosen,
    }
}

/// Attributes by which the program registers what it then names by an id: layouts, enumerations, scopes, time domains and
/// counters.
pub(super) trait Registered {
    /// The id that the program has chosen, or 0; `None` if the attributes are incomplete.
    fn chosen(&self) -> Option<u64>;

    /// Registers it in a domain, by its number; `None` if there are too many.
    ///
    /// # Safety
    ///
    /// The attributes are those of a program that keeps to NVTX's documentation.
    unsafe fn put(&self, domain: u32, id: u64) -> Option<()>;
}

/// Every function of NVTX that registers something.
pub(super) unsafe extern "C" fn register<R: Registered>(
    handle: DomainHandle,
    given: *const R,
) -> u64 {
    // SAFETY: see the module's page.
    unsafe { register_as(handle, given, 0) }
}

/// [`register`] by the id that another tool has given, unless that is 0.
pub(super) unsafe fn register_as<R: Registered>(
    handle: DomainHandle,
    given: *const R,
    theirs: u64,
) -> u64 {
    let registered = || {
        // SAFETY: see the module's page.
        let given = unsafe { given.as_ref() }?;
        let chosen = given.chosen()?;
        let id = id(if theirs == 0 { chosen } else { theirs });
        // SAFETY: as above.
        unsafe { given.put(domain(handle).number(), id) }.map(|()| id)
    };
    answer(0, || registered().unwrap_or(0))
}
