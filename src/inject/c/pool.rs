//! A pool of entries that count one kernel each, and the memory of its entries for the tool.

use super::Answer;
use super::status::FailedCall;
use core::ffi::c_void;
use gputrail_collect::context::{CounterPool, PoolEntry};
use gputrail_interface::c::{CounterPoolEntry, CounterPoolHandle, CounterSetHandle, Status};
use std::cell::UnsafeCell;
use std::sync::Arc;

/// The most bytes of the payloads of a pool together.
const MAX_PAYLOADS: usize = 1 << 30;

/// A pool, and the memory of its entries for the tool.
pub(super) struct ToolPool {
    pub pool: Arc<CounterPool>,
    pub handle: CounterPoolHandle,
    pub payloads: Payloads,
}

/// A part of the payload of an entry, with its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct PayloadUnit([u8; 16]);

/// The payloads of all entries.
pub(super) struct Payloads {
    memory: Box<[UnsafeCell<PayloadUnit>]>,
    /// The units of an entry.
    units: usize,
}

// SAFETY: the memory of an entry is written when it is fetched, while nobody else has it; otherwise by the tool alone.
unsafe impl Sync for Payloads {}

impl Payloads {
    pub fn new(entries: u32, bytes: u32) -> Answer<Payloads> {
        let units = (bytes as usize).div_ceil(size_of::<PayloadUnit>());
        let all = units.saturating_mul(entries as usize);
        if all > MAX_PAYLOADS / size_of::<PayloadUnit>() {
            let text = format!(
                "{entries} entries with payloads of {bytes} bytes are more than {MAX_PAYLOADS} bytes"
            );
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
        let mut memory = Vec::new();
        memory
            .try_reserve_exact(all)
            .map_err(|_| Status::OUT_OF_MEMORY)?;
        memory.resize_with(all, || UnsafeCell::new(PayloadUnit([0; 16])));
        Ok(Payloads {
            memory: memory.into_boxed_slice(),
            units,
        })
    }

    fn of(&self, entry: PoolEntry) -> *mut c_void {
        let from = entry.index() as usize * self.units;
        match self.memory.get(from..from + self.units) {
            // A pointer to all of the entry's units.
            Some(units) if !units.is_empty() => units.as_ptr().cast_mut().cast(),
            _ => std::ptr::null_mut(),
        }
    }

    /// Clears the memory of an entry that nobody else has.
    pub fn clear(&self, entry: PoolEntry) {
        let payload = self.of(entry);
        if !payload.is_null() {
            // SAFETY: as many units lie there; the entry has just been fetched, so that the tool does not have it yet.
            unsafe { payload.cast::<PayloadUnit>().write_bytes(0, self.units) };
        }
    }
}

impl ToolPool {
    pub fn entry(&self, entry: PoolEntry, set: CounterSetHandle) -> CounterPoolEntry {
        CounterPoolEntry {
            pool: self.handle,
            set,
            payload: self.payloads.of(entry),
        }
    }
}
