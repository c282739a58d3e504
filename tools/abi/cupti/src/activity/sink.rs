//! The program's buffers: requested when a record has no room, filled from front to back, and given back when they are full
//! or flushed.

use super::record::ActivityRecord;
use crate::clock;
use crate::layout::layout;
use crate::load::callee;
use crate::objects::CUcontext;
use crate::result::{Answer, CUptiResult};
use core::ffi::c_void;
use gputrail_abi::lock;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// `CUpti_BuffersCallbackRequestFunc`
pub type Request = unsafe extern "C-unwind" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`
pub type Complete = unsafe extern "C-unwind" fn(CUcontext, u32, *mut u8, usize, usize);

/// `CUpti_BuffersCallbackRequestFunc_v2`
pub type RequestInformed =
    unsafe extern "C-unwind" fn(*mut *mut u8, *mut usize, *mut usize, *mut RequestInfo);
/// `CUpti_BuffersCallbackCompleteFunc_v2`
pub type CompleteInformed = unsafe extern "C-unwind" fn(*mut u8, usize, usize, *mut CompleteInfo);

/// `CUpti_BufferCallbackRequestInfo`
#[repr(C)]
pub struct RequestInfo {
    size: usize,
}

/// `CUpti_BufferCallbackCompleteInfo`
#[repr(C)]
pub struct CompleteInfo {
    size: usize,
    /// 0: buffers are not those of threads.
    thread: u64,
    /// None: records are CUPTI's.
    layouts: *mut c_void,
    layout_count: usize,
}

/// Records begin at multiples of this.
pub const ALIGNMENT: usize = 8;

/// The functions of the program, with what they are told of a buffer.
#[derive(Copy, Clone)]
pub enum Functions {
    /// Of `cuptiActivityRegisterCallbacks`.
    Plain(Request, Complete),
    /// Of `cuptiActivityRegisterCallbacks_v2`.
    Informed(RequestInformed, CompleteInformed),
}

impl Functions {
    /// Requests a buffer: its memory, its size, and the most records.
    fn request(self) -> (*mut u8, usize, usize) {
        let (mut memory, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
        match self {
            Functions::Plain(request, _) => calling(request as *const (), || {
                // SAFETY: the program's function for this, with places for its answers.
                unsafe { request(&raw mut memory, &raw mut size, &raw mut most) }
            }),
            Functions::Informed(request, _) => calling(request as *const (), || {
                let mut info = RequestInfo {
                    size: size_of::<RequestInfo>(),
                };
                // SAFETY: the program's function for this, with places for its answers.
                unsafe { request(&raw mut memory, &raw mut size, &raw mut most, &raw mut info) }
            }),
        }
        (memory, size, most)
    }

    /// Gives memory back, which the program has given.
    fn complete(self, memory: *mut u8, size: usize, used: usize) {
        match self {
            Functions::Plain(_, complete) => calling(complete as *const (), || {
                // SAFETY: the program's function for this, with its memory.
                unsafe { complete(std::ptr::null_mut(), 0, memory, size, used) }
            }),
            Functions::Informed(_, complete) => calling(complete as *const (), || {
                let mut info = CompleteInfo {
                    size: size_of::<CompleteInfo>(),
                    thread: 0,
                    layouts: std::ptr::null_mut(),
                    layout_count: 0,
                };
                // SAFETY: as above.
                unsafe { complete(memory, size, used, &raw mut info) }
            }),
        }
    }
}

/// A buffer of the program's, and how much of it is filled.
struct Buffer {
    memory: *mut u8,
    size: usize,
    used: usize,
    /// The records that still may be put into it.
    room: usize,
}

// SAFETY: the program has given the memory to the library until it gets it back.
unsafe impl Send for Buffer {}

struct State {
    functions: Option<Functions>,
    buffer: Option<Buffer>,
}

/// Held while a record is written and while the program's functions are called, so that they are called one at a time.
static STATE: Mutex<State> = Mutex::new(State {
    functions: None,
    buffer: None,
});
static DROPPED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether the thread is in one of the functions.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Sets the functions from the next buffer on. Within them, `INVALID_OPERATION`, and nothing is changed.
pub fn register(functions: Functions) -> Answer {
    if is_within() {
        return Err(CUptiResult::INVALID_OPERATION);
    }
    lock(&STATE).functions = Some(functions);
    Ok(())
}

/// Whether functions are registered.
pub fn is_registered() -> bool {
    is_within() || lock(&STATE).functions.is_some()
}

/// Whether the thread is in a function of the program's that handles buffers.
pub fn is_within() -> bool {
    WITHIN.try_with(Cell::get).unwrap_or(false)
}

/// Puts a record into the program's buffer, in the library's layout and its clock. A record for which there is no room is counted. Called from any thread, but not
/// from within the program's functions, where it is dropped.
pub fn put<R: ActivityRecord>(record: &R) {
    let mut record = *record;
    let words = (&raw mut record).cast::<u64>();
    for place in R::TIMES {
        // SAFETY: a word of the structure, whose words are aligned.
        unsafe { *words.add(*place) = clock::told(*words.add(*place)) };
    }
    // No structure is shorter than what is written of it.
    let size = R::BYTES[layout() as usize].min(size_of::<R>());
    // SAFETY: a structure without padding bytes.
    let bytes = unsafe { core::slice::from_raw_parts(words.cast::<u8>(), size) };
    if is_within() || !lock(&STATE).put(bytes) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Gives the buffer back, if there are records in it.
pub fn flush() {
    if is_within() {
        return;
    }
    let mut state = lock(&STATE);
    if state.buffer.as_ref().is_some_and(|buffer| buffer.used > 0) {
        state.complete();
    }
}

/// Gives the buffer back, and forgets the functions.
pub fn reset() {
    if is_within() {
        return;
    }
    let mut state = lock(&STATE);
    state.complete();
    state.functions = None;
}

/// The records that were dropped since the last call.
pub fn take_dropped() -> u64 {
    DROPPED.swap(0, Ordering::Relaxed)
}

/// Calls a function of the program's.
fn calling(function: *const (), work: impl FnOnce()) {
    WITHIN.set(true);
    callee("cuptiActivityRegisterCallbacks", function).call(work);
    WITHIN.set(false);
}

impl State {
    /// `false` if there is no room.
    fn put(&mut self, record: &[u8]) -> bool {
        let fits = |buffer: &Buffer| buffer.room > 0 && buffer.size - buffer.used >= record.len();
        if !self.buffer.as_ref().is_some_and(fits) {
            self.complete();
            self.request();
        }
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| fits(buffer)) else {
            // A buffer that is too small for a record is given back as it came.
            self.complete();
            return false;
        };
        // SAFETY: the program's memory, in which there is room behind what is used.
        unsafe {
            let to = buffer.memory.add(buffer.used);
            to.copy_from_nonoverlapping(record.as_ptr(), record.len());
        }
        buffer.used += record.len();
        buffer.room -= 1;
        true
    }

    /// Requests a buffer, where there is none. The program may decline.
    fn request(&mut self) {
        let Some(functions) = self.functions else {
            return;
        };
        let (memory, size, most) = functions.request();
        if memory.is_null() {
            return;
        }
        let is_aligned = memory.addr().is_multiple_of(ALIGNMENT);
        self.buffer = Some(Buffer {
            memory,
            size,
            used: 0,
            room: match most {
                _ if !is_aligned => 0,
                0 => usize::MAX,
                most => most,
            },
        });
    }

    /// Gives the buffer back.
    fn complete(&mut self) {
        let (Some(buffer), Some(functions)) = (self.buffer.take(), self.functions) else {
            return;
        };
        functions.complete(buffer.memory, buffer.size, buffer.used);
    }
}
