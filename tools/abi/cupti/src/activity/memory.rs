//! Records of memory: one for each allocation, from its beginning to its end.

use super::record::{ActivityRecord, Memory};
use super::sink;
use crate::objects;
use gputrail_abi::activity::agent_of;
use gputrail_record::{Allocation, AllocationOperation, ContextId};
use std::collections::HashMap;

/// An allocation in the units of records: gputrail may have ended when its record is put.
struct Live {
    allocation: Allocation,
    start: u64,
    device: u32,
}

/// The allocations that have not ended, by context and address.
#[derive(Default)]
pub struct Allocations(HashMap<(ContextId, u64), Live>);

impl Allocations {
    /// Takes an allocation, or puts the record of one that ends.
    pub fn add(&mut self, one: &Allocation) {
        let place = (one.context, one.address);
        match one.operation {
            AllocationOperation::ALLOCATE => {
                // The allocation before at this address has been freed without a record.
                if let Some(before) = self.0.insert(place, Live::new(one)) {
                    before.put(0);
                }
            }
            AllocationOperation::FREE => {
                if let Some(begun) = self.0.remove(&place) {
                    begun.put(one.end.0);
                }
            }
            _ => {}
        }
    }

    /// Puts the records of allocations that have not ended; their end is 0.
    pub fn finish(&mut self) {
        for (_, begun) in self.0.drain() {
            begun.put(0);
        }
    }
}

impl Live {
    fn new(one: &Allocation) -> Live {
        Live {
            allocation: *one,
            start: one.start.0,
            device: objects::device_of(agent_of(one)).unwrap_or(u32::MAX),
        }
    }

    fn put(&self, end: u64) {
        let one = &self.allocation;
        let mut record = Memory::blank();
        record.memory_kind = one.memory.0.into();
        (record.address, record.bytes) = (one.address, one.bytes);
        (record.start, record.end) = (self.start, end);
        record.process_id = std::process::id();
        record.device_id = self.device;
        record.context_id = one.context.0;
        sink::put(&record);
    }
}
