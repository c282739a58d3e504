//! Records of memory: one for each allocation, from its beginning to its end.

use super::record::{ActivityRecord, Memory};
use super::sink;
use super::translate::nanos;
use crate::objects;
use gputrail::record::{Allocation, AllocationOperation, Context, ContextId, Ticks};
use gputrail::tool::describe;
use std::collections::HashMap;

/// The allocations that have not ended, by context and address.
#[derive(Default)]
pub struct Allocations(HashMap<(ContextId, u64), Allocation>);

impl Allocations {
    /// Takes an allocation, or puts the record of one that ends.
    pub fn add(&mut self, one: &Allocation) {
        let place = (one.context, one.address);
        match one.operation {
            AllocationOperation::ALLOCATE => {
                // One whose end was not recorded is over.
                if let Some(before) = self.0.insert(place, *one) {
                    sink::put(&life(&before, Ticks::NONE));
                }
            }
            AllocationOperation::FREE => {
                if let Some(begun) = self.0.remove(&place) {
                    sink::put(&life(&begun, one.end));
                }
            }
            _ => {}
        }
    }

    /// Puts the records of allocations that have not ended; their end is 0.
    pub fn finish(&mut self) {
        for (_, begun) in self.0.drain() {
            sink::put(&life(&begun, Ticks::NONE));
        }
    }
}

/// The record of an allocation that was freed at `end`.
fn life(one: &Allocation, end: Ticks) -> Memory {
    let of_context = || describe::<Context>(one.context).map(|context| context.agent);
    let agent = match one.agent.is_some() {
        true => one.agent,
        false => of_context().unwrap_or_default(),
    };
    let mut record = Memory::blank();
    record.memory_kind = one.memory.0.into();
    (record.address, record.bytes) = (one.address, one.bytes);
    (record.start, record.end) = (nanos(one.start), nanos(end));
    record.process_id = std::process::id();
    record.device_id = objects::device_of(agent).unwrap_or(u32::MAX);
    record.context_id = one.context.0;
    record
}
