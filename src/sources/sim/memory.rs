//! The address space of the simulated machine. It knows the owner of each address, so that the direction of a copy
//! follows from its pointers.

use gputrail_record::MemoryKind;
use std::collections::BTreeMap;

/// An address in the simulated machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pointer(pub(super) u64);

impl Pointer {
    /// Pageable host memory, which the runtime does not track.
    pub(super) const fn pageable(offset: u64) -> Pointer {
        Pointer(0x5581_2000_0000 + offset)
    }

    /// The address `bytes` further on.
    pub(super) const fn offset(self, bytes: u64) -> Pointer {
        Pointer(self.0 + bytes)
    }
}

/// The memory of a pointer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct PointerMemory {
    /// The number of the device, or `None` for the host.
    pub(super) device: Option<usize>,
    pub(super) kind: MemoryKind,
}

impl PointerMemory {
    /// Page-locked memory of the host.
    pub(super) const PINNED: PointerMemory = PointerMemory {
        device: None,
        kind: MemoryKind::PINNED,
    };
    const PAGEABLE: PointerMemory = PointerMemory {
        device: None,
        kind: MemoryKind::PAGEABLE,
    };

    /// Memory that moves to whoever accesses it.
    pub(super) const MANAGED: PointerMemory = PointerMemory {
        device: None,
        kind: MemoryKind::MANAGED,
    };

    /// Memory of a device.
    pub(super) const fn device(number: usize) -> PointerMemory {
        PointerMemory {
            device: Some(number),
            kind: MemoryKind::DEVICE,
        }
    }
}

/// An allocation.
#[derive(Copy, Clone, Debug)]
pub(super) struct Allocated {
    pub(super) location: PointerMemory,
    pub(super) bytes: u64,
}

/// All allocations.
#[derive(Debug, Default)]
pub(super) struct SimMemory {
    allocated: BTreeMap<Pointer, Allocated>,
    /// Bytes of addresses used per device; addresses are not reused.
    handed_out: BTreeMap<Option<usize>, u64>,
}

/// The alignment of allocations.
const GRANULARITY: u64 = 2 << 20;

impl SimMemory {
    /// Allocates `bytes`, or returns `None` if they exceed the free part of `capacity`.
    pub(super) fn allocate(
        &mut self,
        location: PointerMemory,
        bytes: u64,
        capacity: u64,
    ) -> Option<Pointer> {
        if bytes == 0 || bytes > self.free_bytes(location, capacity) {
            return None;
        }
        let offset = self.handed_out.entry(location.device).or_default();
        let base = match location.device {
            None => 0x7f30_0000_0000,
            Some(device) => 0x7e00_0000_0000 + 0x20_0000_0000 * device as u64,
        };
        let pointer = Pointer(base + *offset);
        *offset += bytes.next_multiple_of(GRANULARITY);
        self.allocated
            .insert(pointer, Allocated { location, bytes });
        Some(pointer)
    }

    /// Frees the allocation at `pointer`.
    pub(super) fn free(&mut self, pointer: Pointer) -> Option<Allocated> {
        self.allocated.remove(&pointer)
    }

    /// The memory at `pointer`. Unknown addresses are pageable host memory.
    pub(super) fn location(&self, pointer: Pointer) -> PointerMemory {
        match self.allocated.range(..=pointer).next_back() {
            Some((start, found)) if pointer.0 < start.0 + found.bytes => found.location,
            _ => PointerMemory::PAGEABLE,
        }
    }

    /// The free bytes of `capacity`.
    pub(super) fn free_bytes(&self, location: PointerMemory, capacity: u64) -> u64 {
        let there = |one: &&Allocated| one.location.device == location.device;
        let allocated = self.allocated.values().filter(there);
        let in_use: u64 = allocated.map(|one| one.bytes).sum();
        capacity.saturating_sub(in_use)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_into_an_allocation_leads_to_its_location() {
        let mut memory = SimMemory::default();
        let pinned = memory.allocate(PointerMemory::PINNED, 100, 1_000).unwrap();
        let device = memory
            .allocate(PointerMemory::device(1), 100, 1_000)
            .unwrap();
        assert_eq!(memory.location(pinned.offset(99)), PointerMemory::PINNED);
        assert_eq!(memory.location(device), PointerMemory::device(1));
        assert_eq!(memory.location(device.offset(100)), PointerMemory::PAGEABLE);
        assert_eq!(
            memory.location(Pointer::pageable(64)),
            PointerMemory::PAGEABLE
        );
    }

    #[test]
    fn memory_runs_out_and_comes_back() {
        let mut memory = SimMemory::default();
        let location = PointerMemory::device(0);
        let first = memory.allocate(location, 600, 1_000).unwrap();
        assert_eq!(memory.allocate(location, 600, 1_000), None);
        assert!(
            memory
                .allocate(PointerMemory::device(1), 600, 1_000)
                .is_some()
        );
        assert_eq!(memory.free(first).unwrap().bytes, 600);
        assert!(memory.free(first).is_none());
        let second = memory.allocate(location, 600, 1_000).unwrap();
        assert_ne!(first, second);
    }
}
