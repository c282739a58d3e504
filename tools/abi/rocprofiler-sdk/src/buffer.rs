//! Buffers of records, as clients make them.
//!
//! Records lie one after the other in memory of the size that the client has asked for. When the watermark is reached, when a record
//! has no room, and at a flush, the memory goes to the buffer's thread, which calls the client, and other memory is filled meanwhile:
//! there are two. If both stay in use, records are dropped and counted under the policy `DISCARD`; under `LOSSLESS` there is a third
//! one, and so on. No thread of the program waits for a client.
//!
//! The callback gets all drops since the buffer was made. A record that is larger than the buffer is dropped under both policies.

use crate::context;
use crate::load;
use crate::place::place_of;
use crate::result::{Answer, api};
use crate::threads::{self, Worker};
use core::ffi::c_void;
use gputrail_abi::{WithData, lock};
use gputrail_rocprofiler::{
    BufferCallback, BufferCategory, BufferId, BufferPolicy, ContextId, RecordHeader, Status,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The handle of the first buffer.
const FIRST: u64 = 0x100;
/// How long a record waits for memory under the policy `DISCARD`: it comes from threads of gputrail's, which have read it out of
/// memory of their own.
const PATIENCE: Duration = Duration::from_millis(10);

/// Memory with records.
struct Batch {
    words: Box<[u64]>,
    used: usize,
    headers: Vec<RecordHeader>,
}

// SAFETY: the headers lead into `words`.
unsafe impl Send for Batch {}

impl Batch {
    fn new(words: usize) -> Batch {
        Batch {
            words: vec![0; words].into_boxed_slice(),
            used: 0,
            headers: Vec::new(),
        }
    }

    /// Puts a record. `false` if it has no room.
    fn put<R: Copy>(&mut self, category: BufferCategory, kind: u32, record: &R) -> bool {
        const { assert!(align_of::<R>() <= 8) };
        let words = size_of::<R>().div_ceil(8);
        let Some(room) = self.words.get_mut(self.used..self.used + words) else {
            return false;
        };
        let payload = room.as_mut_ptr();
        // SAFETY: there is room for the record, which is aligned to 8 bytes at most.
        unsafe { payload.cast::<R>().write(*record) };
        self.used += words;
        self.headers.push(RecordHeader {
            category: category.0 as u32,
            kind,
            payload: payload.cast(),
        });
        true
    }
}

/// The memory that is filled, and other memory that is empty.
struct Filling {
    batch: Batch,
    spare: Option<Batch>,
    /// Nobody waits for memory until some has come back.
    has_given_up: bool,
}

/// A buffer.
pub struct Buffer {
    /// Its handle.
    pub id: BufferId,
    /// The context whose records it gets.
    pub context: ContextId,
    /// Its records are never dropped for want of room.
    pub is_lossless: bool,
    /// Words of its memory, and those from which on it is delivered.
    words: usize,
    watermark: usize,
    callback: WithData<Option<BufferCallback>>,
    /// None once it is destroyed.
    filling: Mutex<Option<Filling>>,
    /// Memory has come back.
    returned: Condvar,
    dropped: AtomicU64,
    worker: Mutex<Arc<Worker>>,
    /// The client is being called.
    is_called: AtomicBool,
}

static BUFFERS: Mutex<Vec<Arc<Buffer>>> = Mutex::new(Vec::new());

/// The buffer with a handle.
pub fn found(id: BufferId) -> Answer<Arc<Buffer>> {
    let place = id.handle.checked_sub(FIRST);
    let place = place.and_then(|place| usize::try_from(place).ok());
    let found = place.and_then(|place| lock(&BUFFERS).get(place).cloned());
    let there = found.filter(|buffer| lock(&buffer.filling).is_some());
    there.ok_or(Status::ERROR_BUFFER_NOT_FOUND)
}

impl Buffer {
    /// Puts a record, `kind` in its category.
    pub fn put<R: Copy>(self: &Arc<Self>, category: BufferCategory, kind: i32, record: &R) {
        self.put_within(PATIENCE, category, kind, record);
    }

    /// Puts a record from a thread of the program, which does not wait for memory.
    pub fn put_without_waiting<R: Copy>(
        self: &Arc<Self>,
        category: BufferCategory,
        kind: i32,
        record: &R,
    ) {
        self.put_within(Duration::ZERO, category, kind, record);
    }

    fn put_within<R: Copy>(
        self: &Arc<Self>,
        patience: Duration,
        category: BufferCategory,
        kind: i32,
        record: &R,
    ) {
        let kind = kind as u32;
        let mut place = lock(&self.filling);
        while let Some(filling) = place.as_mut() {
            let is_put = filling.batch.put(category, kind, record)
                || self.hand_over(filling) && filling.batch.put(category, kind, record);
            if is_put {
                if filling.batch.used >= self.watermark {
                    self.hand_over(filling);
                }
                return;
            }
            let is_too_large = filling.batch.headers.is_empty();
            let cannot_wait = filling.has_given_up || patience.is_zero();
            if is_too_large || cannot_wait || lock(&self.worker).is_current() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let waited = self.returned.wait_timeout(place, patience);
            let (again, ended) = waited.unwrap_or_else(PoisonError::into_inner);
            place = again;
            if ended.timed_out()
                && let Some(filling) = place.as_mut()
            {
                filling.has_given_up = true;
            }
        }
    }

    /// Counts records that were dropped before they came here.
    pub fn count_dropped(&self, records: u64) {
        self.dropped.fetch_add(records, Ordering::Relaxed);
    }

    /// Gives what is there to the thread, and goes on with other memory. `false` if there is none.
    fn hand_over(self: &Arc<Self>, filling: &mut Filling) -> bool {
        if filling.batch.headers.is_empty() {
            return true;
        }
        let empty = match filling.spare.take() {
            Some(spare) => spare,
            None if self.is_lossless => Batch::new(self.words),
            None => return false,
        };
        let full = std::mem::replace(&mut filling.batch, empty);
        let buffer = self.clone();
        lock(&self.worker).give(move || buffer.deliver(full));
        true
    }

    /// Calls the client with records, on the buffer's thread.
    fn deliver(&self, mut batch: Batch) {
        let mut headers: Vec<*mut RecordHeader> =
            batch.headers.iter_mut().map(core::ptr::from_mut).collect();
        if let Some(function) = self.callback.function
            && !headers.is_empty()
        {
            self.is_called.store(true, Ordering::Release);
            let dropped = self.dropped.load(Ordering::Relaxed);
            // SAFETY: the client's function for this, with as many records as are said.
            unsafe {
                function(
                    self.context,
                    self.id,
                    headers.as_mut_ptr(),
                    headers.len(),
                    self.callback.data,
                    dropped,
                );
            }
            self.is_called.store(false, Ordering::Release);
        }
        batch.headers.clear();
        batch.used = 0;
        if let Some(filling) = lock(&self.filling).as_mut() {
            filling.spare.get_or_insert(batch);
            filling.has_given_up = false;
        }
        self.returned.notify_all();
    }

    /// Delivers what has been recorded so far, and returns when the client has had it.
    ///
    /// # Errors
    ///
    /// `BUFFER_BUSY` in a callback of a buffer on the same thread.
    pub fn flush(self: &Arc<Self>) -> Answer {
        let worker = lock(&self.worker).clone();
        if worker.is_current() {
            return Err(Status::ERROR_BUFFER_BUSY);
        }
        if !context::collect(self.context) {
            // The thread is in a callback of gputrail's, the other one is not.
            let context = self.context;
            worker.do_now(move || context::collect(context));
        }
        // Behind what has been handed over before.
        let buffer = self.clone();
        worker.do_now(move || {
            let rest = lock(&buffer.filling).as_mut().map(|filling| {
                let empty = filling.spare.take();
                let empty = empty.unwrap_or_else(|| Batch::new(buffer.words));
                std::mem::replace(&mut filling.batch, empty)
            });
            if let Some(rest) = rest {
                buffer.deliver(rest);
            }
        });
        Ok(())
    }

    /// Has its callback called on another thread.
    pub fn assign(&self, worker: Arc<Worker>) {
        *lock(&self.worker) = worker;
    }
}

/// Makes a buffer.
///
/// # Safety
///
/// `callback` takes records with `data`; `buffer` is null or a place with a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_buffer(
    context: ContextId,
    size: usize,
    watermark: usize,
    policy: BufferPolicy,
    callback: Option<BufferCallback>,
    data: *mut c_void,
    buffer: *mut BufferId,
) -> Status {
    api(|| {
        load::configurable()?;
        // SAFETY: `buffer` is null or a place with a handle.
        let place = unsafe { place_of(buffer) }?;
        if found(place.get()).is_ok() {
            return Err(Status::ERROR_SERVICE_ALREADY_CONFIGURED);
        }
        let words = size / 8;
        let worker = threads::first()?;
        let mut buffers = lock(&BUFFERS);
        let id = BufferId {
            handle: FIRST + buffers.len() as u64,
        };
        buffers.push(Arc::new(Buffer {
            id,
            context,
            is_lossless: policy == BufferPolicy::LOSSLESS,
            words,
            watermark: (watermark / 8).max(1),
            callback: WithData {
                function: callback,
                data,
            },
            filling: Mutex::new(Some(Filling {
                batch: Batch::new(words),
                spare: Some(Batch::new(words)),
                has_given_up: false,
            })),
            returned: Condvar::new(),
            dropped: AtomicU64::new(0),
            worker: Mutex::new(worker),
            is_called: AtomicBool::new(false),
        }));
        place.put(id);
        Ok(())
    })
}

/// Delivers what a buffer has.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_flush_buffer(buffer: BufferId) -> Status {
    api(|| {
        if load::is_finalised() {
            return Err(Status::ERROR_FINALIZED);
        }
        found(buffer)?.flush()
    })
}

/// Destroys a buffer. What it has is not delivered.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_destroy_buffer(buffer: BufferId) -> Status {
    api(|| {
        let buffer = found(buffer)?;
        if buffer.is_called.load(Ordering::Acquire) {
            return Err(Status::ERROR_BUFFER_BUSY);
        }
        let gone = lock(&buffer.filling).take();
        drop(gone);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_lie_one_after_the_other_until_there_is_no_room() {
        let mut batch = Batch::new(5);
        let category = BufferCategory::TRACING;
        assert!(batch.put(category, 7, &[1u64, 2]));
        assert!(batch.put(category, 8, &3u32));
        assert!(!batch.put(category, 9, &[4u64; 3]));
        assert!(batch.put(category, 9, &[4u64; 2]));
        assert!(!batch.put(category, 9, &5u8));
        let kinds: Vec<u32> = batch.headers.iter().map(|header| header.kind).collect();
        assert_eq!((kinds, batch.used), (vec![7, 8, 9], 5));
        assert_eq!(batch.words[..2], [1, 2]);
        assert_eq!(batch.words[3..], [4, 4]);
    }
}
