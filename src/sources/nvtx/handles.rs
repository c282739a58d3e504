//! The handles and ids that programs have of domains, texts and ranges: ours, or those of another tool.

use super::other_tool::{CORE, CORE2, take_none};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::marker::{KeptText, MarkerDomain, Registry};
use std::collections::HashMap;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether another tool gets the calls, so that the program has its handles.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Our domains, by the handles that the other tool gave to the program.
pub(super) static DOMAINS: OurObjects<MarkerDomain> = OurObjects::taken_by(&[CORE2]);
/// Our strings, likewise.
pub(super) static STRINGS: OurObjects<KeptText> = OurObjects::taken_by(&[CORE, CORE2]);
/// Our ranges, with [`OURS`], by those of the other tool.
static RANGES: PerProcess<HashMap<u64, u64>> = PerProcess::new();

/// Marks ids of ranges that are ours, where another tool has ids of its own.
const OURS: u64 = 1 << 63;
/// No range.
const UNKNOWN_RANGE: u64 = u64::MAX;

/// The program has the other tool's handles and ids from now on.
pub(super) fn begin() {
    IS_ON.store(true, Ordering::Release);
}

/// Our objects of one type, which live for ever, by the handles that the other tool gave to the program.
pub(super) struct OurObjects<T: 'static> {
    ours: Registry<usize, &'static T>,
    /// The modules of NVTX whose functions take these handles.
    taken_by: &'static [usize],
}

impl<T: Sync> OurObjects<T> {
    const fn taken_by(taken_by: &'static [usize]) -> OurObjects<T> {
        OurObjects {
            ours: Registry::new(),
            taken_by,
        }
    }

    /// Our object for a handle that the program has.
    #[inline]
    pub fn ours(&self, handle: *const T) -> *const T {
        if IS_ON.load(Ordering::Relaxed) {
            self.ours.get(&handle.addr()).map_or(null(), |ours| *ours)
        } else {
            handle
        }
    }

    /// The handle that the program gets: the other tool's, or ours if that tool has no function that could take it.
    pub fn give(&self, theirs: Option<*const T>, ours: *const T) -> *const T {
        let handle = theirs.unwrap_or(if take_none(self.taken_by) {
            ours
        } else {
            null()
        });
        let known = self.ours.get(&handle.addr());
        let is_known = known.is_some_and(|known| std::ptr::eq(*known, ours));
        // SAFETY: null, or an object that lives for ever.
        if let (Some(ours), false) = (unsafe { ours.as_ref() }, handle.is_null() || is_known) {
            self.ours.put(handle.addr(), ours);
        }
        handle
    }
}

/// The id that the program gets for our range, unless it gets that of the other tool.
#[inline]
pub(super) fn own_range(ours: u64) -> u64 {
    if IS_ON.load(Ordering::Relaxed) {
        ours | OURS
    } else {
        ours
    }
}

/// Our range for an id that the program has. The range ends.
#[inline]
pub(super) fn ended_range(id: u64) -> u64 {
    if id == 0 || !IS_ON.load(Ordering::Relaxed) {
        return id;
    }
    match RANGES.lock().remove(&id).unwrap_or(id) {
        ours if ours & OURS != 0 && ours != UNKNOWN_RANGE => ours & !OURS,
        _ => UNKNOWN_RANGE,
    }
}

/// The other tool's range for an id that the program has; 0 if it has none.
pub(super) fn their_range(id: u64) -> u64 {
    if id & OURS != 0 && !RANGES.lock().contains_key(&id) {
        0
    } else {
        id
    }
}

/// The id that the program gets for our range, where the other tool's is `theirs`, or 0.
pub(super) fn given_range(theirs: u64, ours: u64) -> u64 {
    if theirs == 0 {
        return ours;
    }
    RANGES.lock().insert(theirs, ours);
    theirs
}
