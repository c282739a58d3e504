//! The command queues that are tracked.

use super::below::below;
use super::contexts;
use super::devices;
use super::ffi::*;
use super::functions::ask;
use super::handles::ObjectTable;
use bytemuck::{Pod, Zeroable};
use core::ptr;
use gputrail_buffer::QueuePlace;
use gputrail_collect::process;
use gputrail_record::{AgentId, ContextId, Queue, QueueId, StreamId, queue_properties};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The fields of records that describe a queue.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct QueueIds {
    pub id: QueueId,
    unused: u32,
    // In the order of the fields in records.
    pub agent: AgentId,
    pub context: ContextId,
}

/// The tracked state of a queue.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct QueueInfo {
    pub ids: QueueIds,
    /// The properties that the program requested.
    pub asked: u64,
    /// The properties with which it was created, including those forced on.
    pub actual: u64,
    /// The program's references.
    pub references: u32,
    unused: [u32; 5],
}

/// The tracked queues. A queue that the program has released may exist as long as its events, which the layer still
/// queries: it stays tracked until its handle belongs to another queue.
pub(super) static QUEUES: ObjectTable<QueueInfo> = ObjectTable::new();

/// Whether any queue has hidden profiling: most programs that query times have created their queues with profiling.
static ANY_HIDES: AtomicBool = AtomicBool::new(false);

/// Whether any queue may hide profiling.
#[inline(always)]
pub(super) fn any_hides_profiling() -> bool {
    ANY_HIDES.load(Ordering::Relaxed)
}

impl QueueInfo {
    /// Sets the properties that the program requested, and those of the queue.
    pub fn set_properties(&mut self, asked: u64, actual: u64) {
        (self.asked, self.actual) = (asked, actual);
        if self.hides_profiling() {
            // The program does not have the queue yet, or is in a call that changes it.
            ANY_HIDES.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the program holds the queue and puts work into it.
    pub fn may_have_work(&self) -> bool {
        self.references > 0 && self.actual & CL_QUEUE_ON_DEVICE == 0
    }

    /// Whether the program created the queue without profiling.
    pub fn hides_profiling(&self) -> bool {
        self.actual & !self.asked & CL_QUEUE_PROFILING_ENABLE != 0
    }
}

/// The fields of records that describe `queue`. On the path of every enqueue: small enough for registers.
#[inline(always)]
pub(super) fn ids(queue: cl_command_queue) -> QueueIds {
    let ids: QueueIds = bytemuck::cast(QUEUES.first_two(queue));
    if ids.id.is_some() {
        ids
    } else {
        ids_of_unknown(queue)
    }
}

/// The queue that one thread used last, with its fields. Accessed by that thread only, with plain loads and stores.
pub(super) struct LastQueue {
    handle: AtomicU64,
    /// The version of [`QUEUES`] at the lookup; while it is the same, the fields are valid.
    version: AtomicU32,
    ids: [AtomicU64; 2],
}

impl LastQueue {
    pub const fn new() -> LastQueue {
        LastQueue {
            handle: AtomicU64::new(0),
            version: AtomicU32::new(0),
            ids: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// The fields of records that describe `queue`.
    #[inline(always)]
    pub fn ids(&self, queue: cl_command_queue) -> QueueIds {
        match self.handle.load(Ordering::Relaxed) == u64::from(queue)
            && self.version.load(Ordering::Relaxed) == QUEUES.version()
        {
            true => {
                bytemuck::cast([0, 1].map(|word: usize| self.ids[word].load(Ordering::Relaxed)))
            }
            false => self.look_up(queue),
        }
    }

    #[inline(never)]
    fn look_up(&self, queue: cl_command_queue) -> QueueIds {
        // Read before the lookup: later changes change the version.
        let version = QUEUES.version();
        let ids = ids(queue);
        let words: [u64; 2] = bytemuck::cast(ids);
        for (kept, word) in self.ids.iter().zip(words) {
            kept.store(word, Ordering::Relaxed);
        }
        self.version.store(version, Ordering::Relaxed);
        self.handle.store(queue.into(), Ordering::Relaxed);
        ids
    }
}

#[cold]
fn ids_of_unknown(queue: cl_command_queue) -> QueueIds {
    name_unknown(queue).ids
}

/// The tracked state of `queue`.
pub(super) fn lookup(queue: cl_command_queue) -> QueueInfo {
    QUEUES.get(queue).unwrap_or_else(|| name_unknown(queue))
}

/// Waits for the work of the queues that `selected` has and that the program holds, by the runtime's own `clFinish`, which
/// nobody sees.
pub(super) fn finish_selected(selected: QueuePlace) {
    let (retain, finish, release) = (
        below().clRetainCommandQueue,
        below().clFinish,
        below().clReleaseCommandQueue,
    );
    let (Some(retain), Some(finish), Some(release)) = (retain, finish, release) else {
        return;
    };
    let mut held = Vec::new();
    QUEUES.each(|handle, info| {
        let place = QueuePlace {
            context: info.ids.context,
            queue: info.ids.id,
            stream: StreamId::NONE,
        };
        let queue = cl_command_queue(ptr::without_provenance_mut(handle as usize));
        if info.may_have_work()
            && selected.selects(place)
            // SAFETY: the program holds a reference. It counts its release in the table, which is locked, before it
            // releases the queue.
            && unsafe { retain(queue) } == CL_SUCCESS
        {
            held.push(queue);
        }
    });
    for queue in held {
        // SAFETY: a queue of which we hold the reference that is released here.
        unsafe {
            finish(queue);
            release(queue);
        }
    }
}

/// Tracks a queue whose creation was not observed.
#[cold]
fn name_unknown(queue: cl_command_queue) -> QueueInfo {
    if queue.is_null() {
        return QueueInfo::zeroed();
    }
    let flags =
        ask!(below(), clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES) -> u64).unwrap_or(0);
    name(queue, flags, flags)
}

/// Tracks a queue, with the properties that the program requested and those with which it was created.
pub(super) fn name(queue: cl_command_queue, asked: u64, actual: u64) -> QueueInfo {
    let mut info = QueueInfo::zeroed();
    info.set_properties(asked, actual);
    info.references = 1;
    if let Some(names) = process::names() {
        let context = ask!(below(), clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT) -> cl_context);
        let device = ask!(below(), clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE) -> cl_device_id);
        info.ids.agent = device.map(devices::agent).unwrap_or_default();
        info.ids.context = context
            .map(|context| contexts::context(context).id)
            .unwrap_or_default();
        let mut record = Queue::blank();
        (record.agent, record.context, record.handle) =
            (info.ids.agent, info.ids.context, queue.into());
        record.number = devices::next_queue_number(device.unwrap_or(cl_device_id::NULL));
        for (flag, property) in [
            (
                CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                queue_properties::OUT_OF_ORDER,
            ),
            (CL_QUEUE_PROFILING_ENABLE, queue_properties::PROFILING),
            (CL_QUEUE_ON_DEVICE, queue_properties::ON_DEVICE),
        ] {
            record.properties |= if asked & flag != 0 { property } else { 0 };
        }
        info.ids.id = names.queue(record);
    }
    QUEUES.insert(queue, info);
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_finds_what_its_last_queue_has_become() {
        let (one, other) = (
            cl_command_queue(0x10 as *mut c_void),
            cl_command_queue(0x20 as *mut c_void),
        );
        let insert = |queue: cl_command_queue, id: u32| {
            let mut info = QueueInfo::zeroed();
            info.ids.id = QueueId(id);
            QUEUES.insert(queue, info);
        };
        let last = LastQueue::new();
        insert(one, 1);
        insert(other, 2);
        for (queue, id) in [(one, 1), (one, 1), (other, 2), (one, 1)] {
            assert_eq!(last.ids(queue).id, QueueId(id));
        }
        // Its handle belongs to another queue now.
        insert(one, 3);
        assert_eq!(last.ids(one).id, QueueId(3));
        // As in a forked child.
        let version = QUEUES.version();
        QUEUES.clear();
        assert_ne!(QUEUES.version(), version);
        insert(one, 4);
        assert_eq!(last.ids(one).id, QueueId(4));
    }
}
