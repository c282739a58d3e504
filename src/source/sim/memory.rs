//! The address space of the simulated machine: who owns which addresses, so that a copy's direction
//! follows from its pointers alone.

use crate::record::MemoryKind;
use std::collections::BTreeMap;

/// An address in the simulated machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pointer(pub(super) u64);

impl Pointer {
    /// Pageable memory of the host, which the runtime knows nothing about.
    pub(super) const fn pageable(offset: u64) -> Pointer {
        Pointer(0x5581_2000_0000 + offset)
    }

    /// The address `bytes` further on.
    pub(super) const fn offset(self, bytes: u64) -> Pointer {
        Pointer(self.0 + bytes)
    }
}

/// Where memory lies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The device, by its number, or the host.
    pub(super) device: Option<usize>,
    pub(super) kind: MemoryKind,
}

impl Place {
    /// Page-locked memory of the host.
    pub(super) const PINNED: Place = Place {
        device: None,
        kind: MemoryKind::PINNED,
    };
    const PAGEABLE: Place = Place {
        device: None,
        kind: MemoryKind::PAGEABLE,
    };

    /// Memory of a device.
    pub(super) const fn device(number: usize) -> Place {
        Place {
            device: Some(number),
            kind: MemoryKind::DEVICE,
        }
    }
}

/// Memory that was allocated.
#[derive(Copy, Clone, Debug)]
pub(super) struct Allocated {
    pub(super) place: Place,
    pub(super) bytes: u64,
}

/// What is allocated.
#[derive(Debug, Default)]
pub(super) struct Memory {
    allocated: BTreeMap<Pointer, Allocated>,
    /// Bytes of addresses handed out per place; addresses are not used again.
    handed_out: BTreeMap<Option<usize>, u64>,
}

/// Allocations begin at multiples of this.
const GRANULARITY: u64 = 2 << 20;

impl Memory {
    /// Allocates `bytes`, or `None` where `capacity` does not allow it.
    pub(super) fn allocate(&mut self, place: Place, bytes: u64, capacity: u64) -> Option<Pointer> {
        if bytes == 0 || bytes > capacity.saturating_sub(self.in_use(place.device)) {
            return None;
        }
        let offset = self.handed_out.entry(place.device).or_default();
        let base = match place.device {
            None => 0x7f30_0000_0000,
            Some(device) => 0x7e00_0000_0000 + 0x20_0000_0000 * device as u64,
        };
        let pointer = Pointer(base + *offset);
        *offset += bytes.next_multiple_of(GRANULARITY);
        self.allocated.insert(pointer, Allocated { place, bytes });
        Some(pointer)
    }

    /// Takes back what was allocated at `pointer`.
    pub(super) fn free(&mut self, pointer: Pointer) -> Option<Allocated> {
        self.allocated.remove(&pointer)
    }

    /// Where `pointer` leads: whatever was not allocated here is pageable memory of the host.
    pub(super) fn place(&self, pointer: Pointer) -> Place {
        match self.allocated.range(..=pointer).next_back() {
            Some((start, found)) if pointer.0 < start.0 + found.bytes => found.place,
            _ => Place::PAGEABLE,
        }
    }

    fn in_use(&self, device: Option<usize>) -> u64 {
        let there = |one: &&Allocated| one.place.device == device;
        self.allocated
            .values()
            .filter(there)
            .map(|one| one.bytes)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_into_an_allocation_leads_to_its_place() {
        let mut memory = Memory::default();
        let pinned = memory.allocate(Place::PINNED, 100, 1_000).unwrap();
        let device = memory.allocate(Place::device(1), 100, 1_000).unwrap();
        assert_eq!(memory.place(pinned.offset(99)), Place::PINNED);
        assert_eq!(memory.place(device), Place::device(1));
        assert_eq!(memory.place(device.offset(100)), Place::PAGEABLE);
        assert_eq!(memory.place(Pointer::pageable(64)), Place::PAGEABLE);
    }

    #[test]
    fn memory_runs_out_and_comes_back() {
        let mut memory = Memory::default();
        let place = Place::device(0);
        let first = memory.allocate(place, 600, 1_000).unwrap();
        assert_eq!(memory.allocate(place, 600, 1_000), None);
        assert!(memory.allocate(Place::device(1), 600, 1_000).is_some());
        assert_eq!(memory.free(first).unwrap().bytes, 600);
        assert!(memory.free(first).is_none());
        let second = memory.allocate(place, 600, 1_000).unwrap();
        assert_ne!(first, second);
    }
}
