//! Managed memory: pages that move to whoever accesses them, by page faults.
//!
//! The pages of an allocation move together. A kernel that finds them elsewhere stalls at its start until they have
//! come. When they have moved to and fro [`THRASHES`] times, the driver reports that, then delays the next access of a
//! device, and from then on maps the pages into devices instead of moving them there.

use super::memory::Pointer;
use gputrail_record::Nanos;
use std::collections::BTreeMap;

/// The time to handle a batch of faults.
pub(super) const FAULT: Nanos = Nanos(22_000);
/// The delay of a throttled access.
const THROTTLED: Nanos = Nanos(60_000);
/// Bandwidth of migrations, in bytes per nanosecond.
const BANDWIDTH: u64 = 18;
/// Moves of pages until they thrash.
const THRASHES: u32 = 4;

/// Where pages are, or who accesses them: the host, or a device by number.
pub(super) type PagePlace = Option<usize>;

/// All managed allocations.
#[derive(Debug, Default)]
pub(super) struct Managed(BTreeMap<Pointer, Pages>);

/// The pages of an allocation.
#[derive(Debug)]
struct Pages {
    bytes: u64,
    place: PagePlace,
    /// Devices that access them where they are.
    mapped: Vec<usize>,
    moves: u32,
}

/// An access that found pages elsewhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) address: Pointer,
    pub(super) bytes: u64,
    pub(super) by: PagePlace,
    /// Where the pages were.
    pub(super) at: PagePlace,
    pub(super) response: Response,
}

/// The driver's response to a fault.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Response {
    Move,
    /// Moves the pages, which did so before.
    Thrash,
    /// Delays the access, then moves the pages.
    Throttle,
    Map,
}

impl Managed {
    /// Adds an allocation, whose pages are the host's.
    pub(super) fn add(&mut self, address: Pointer, bytes: u64) {
        let pages = Pages {
            bytes,
            place: None,
            mapped: Vec::new(),
            moves: 0,
        };
        self.0.insert(address, pages);
    }

    pub(super) fn remove(&mut self, address: Pointer) {
        self.0.remove(&address);
    }

    /// An access to the pages of the allocation at `address`. `None` if they are there, or mapped.
    pub(super) fn access(&mut self, address: Pointer, by: PagePlace) -> Option<Fault> {
        let pages = self.0.get_mut(&address)?;
        let is_mapped = by.is_some_and(|device| pages.mapped.contains(&device));
        if pages.place == by || is_mapped {
            return None;
        }
        pages.moves += 1;
        let response = match by {
            Some(_) if pages.moves == THRASHES => Response::Thrash,
            Some(_) if pages.moves == THRASHES + 1 => Response::Throttle,
            Some(_) if pages.moves > THRASHES + 1 => Response::Map,
            _ => Response::Move,
        };
        let fault = Fault {
            address,
            bytes: pages.bytes,
            by,
            at: pages.place,
            response,
        };
        match (response, by) {
            (Response::Map, Some(device)) => pages.mapped.push(device),
            _ => {
                pages.place = by;
                pages.mapped.clear();
            }
        }
        Some(fault)
    }
}

impl Fault {
    /// The time that pages take to move.
    fn move_time(&self) -> Nanos {
        match self.response {
            Response::Map => Nanos(0),
            _ => Nanos(self.bytes / BANDWIDTH),
        }
    }

    /// The delay before the fault is handled.
    pub(super) fn delay(&self) -> Nanos {
        match self.response {
            Response::Throttle => THROTTLED,
            _ => Nanos(0),
        }
    }

    /// The time that the access waits.
    pub(super) fn stall(&self) -> Nanos {
        Nanos(self.delay().0 + FAULT.0 + self.move_time().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Pointer = Pointer(0x1000);

    fn managed() -> Managed {
        let mut managed = Managed::default();
        managed.add(ADDRESS, 1 << 20);
        managed
    }

    #[test]
    fn pages_move_to_who_accesses_them() {
        let mut managed = managed();
        assert_eq!(managed.access(ADDRESS, None), None);
        let moved = managed.access(ADDRESS, Some(1)).unwrap();
        assert_eq!(
            (moved.at, moved.by, moved.response),
            (None, Some(1), Response::Move)
        );
        assert_eq!(managed.access(ADDRESS, Some(1)), None);
        assert_eq!(managed.access(ADDRESS, None).unwrap().at, Some(1));
        managed.remove(ADDRESS);
        assert_eq!(managed.access(ADDRESS, Some(0)), None);
    }

    #[test]
    fn pages_that_thrash_are_throttled_and_then_mapped() {
        let mut managed = managed();
        let mut responses = Vec::new();
        for turn in 0..8 {
            let fault = managed.access(ADDRESS, Some(turn % 2));
            responses.push(fault.map(|fault| fault.response));
        }
        use Response::*;
        let expected = [Move, Move, Move, Thrash, Throttle, Map].map(Some);
        assert_eq!(responses[..6], expected);
        assert_eq!(responses[6..], [None, None]);
        // The host never maps, and takes the pages from those that do.
        assert_eq!(managed.access(ADDRESS, None).unwrap().response, Move);
        assert_eq!(managed.access(ADDRESS, Some(1)).unwrap().response, Map);
    }
}
