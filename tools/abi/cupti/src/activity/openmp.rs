//! OpenMP: records of what its runtime tells through OMPT, the interface for tools of OpenMP 5 (chapter 4).
//!
//! The `initialize` of a tool of OMPT passes what the runtime gives it to [`cuptiOpenMpInitialize`]. Parallel regions, threads, and
//! waits at barriers and for tasks have records; tasks and idle threads have none.

use super::directives::{Thread, put_range, time};
use super::kind::ActivityKind;
use super::record::{ActivityRecord, OpenMp};
use crate::result::CUptiResult;
use crate::with_gputrail;
use core::ffi::{c_char, c_int, c_uint, c_void};
use gputrail_abi::contained;
use std::sync::atomic::{AtomicU32, Ordering};

/// The runtime's function that finds others by their names.
type Lookup = unsafe extern "C" fn(*const c_char) -> Option<unsafe extern "C" fn()>;
type SetCallback = unsafe extern "C" fn(c_int, *const c_void) -> c_int;

/// `CUpti_OpenMpEventKind`
const PARALLEL: u32 = 1;
const THREAD: u32 = 3;
const WAIT_BARRIER: u32 = 5;
const WAIT_TASKWAIT: u32 = 6;

/// The version of OMPT that the runtime has.
static VERSION: AtomicU32 = AtomicU32::new(0);

/// Begins to take events of OpenMP. Returns what a tool's `initialize` does: 1, or 0 if it is not to be used.
///
/// # Safety
///
/// `lookup` is none or the first argument of `initialize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiOpenMpInitialize(
    lookup: Option<Lookup>,
    _runtime_version: *const c_char,
    version: c_uint,
) -> c_int {
    let result = with_gputrail(|| {
        let lookup = lookup.ok_or(CUptiResult::INVALID_PARAMETER)?;
        // SAFETY: the runtime's function, which takes a name.
        let set = unsafe { lookup(c"ompt_set_callback".as_ptr()) };
        let set = set.ok_or(CUptiResult::NOT_COMPATIBLE)?;
        // SAFETY: a function of this name has this type.
        let set = unsafe { core::mem::transmute::<unsafe extern "C" fn(), SetCallback>(set) };
        VERSION.store(version, Ordering::Relaxed);
        // The numbers of the specification.
        for (event, callback) in [
            (1, thread_begin as ThreadBegin as *const c_void),
            (2, thread_end as ThreadEnd as *const c_void),
            (3, parallel_begin as ParallelBegin as *const c_void),
            (4, parallel_end as ParallelEnd as *const c_void),
            (16, sync_region_wait as SyncRegion as *const c_void),
        ] {
            // SAFETY: the runtime's function; the callback has the type that the specification gives to this event's.
            unsafe { set(event, callback) };
        }
        Ok(())
    });
    c_int::from(result == CUptiResult::SUCCESS)
}

/// As [`cuptiOpenMpInitialize`]: the version of the runtime is not told.
///
/// # Safety
///
/// `lookup` is null or OMPT's function for looking up functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiOpenMpInitialize_v2(
    lookup: Option<Lookup>,
    _initial_device: c_int,
    _tool_data: *mut c_void,
) -> c_int {
    // SAFETY: the promise of this function's caller.
    unsafe { cuptiOpenMpInitialize(lookup, core::ptr::null(), 0) }
}

/// Puts the record of a range that began at `start`.
fn put(kind: u32, start: u64) {
    let mut record = OpenMp::blank();
    record.event_kind = kind;
    record.version = VERSION.load(Ordering::Relaxed);
    (record.start, record.end) = (start, time());
    [record.cu_process_id, record.cu_thread_id] = Thread::ids();
    record.thread_id = record.cu_thread_id;
    put_range(&record);
}

type Word = *mut u64;
type ThreadBegin = unsafe extern "C" fn(c_int, Word);
type ThreadEnd = unsafe extern "C" fn(Word);
type ParallelBegin = unsafe extern "C" fn(Word, *const c_void, Word, c_uint, c_int, *const c_void);
type ParallelEnd = unsafe extern "C" fn(Word, Word, c_int, *const c_void);
type SyncRegion = unsafe extern "C" fn(c_int, c_int, Word, Word, *const c_void);

/// Keeps the time in the word that the runtime keeps for tools.
unsafe fn begin(word: Word) {
    contained(|| {
        if !word.is_null() {
            // SAFETY: not null, so that it is the word of a thread or region, which the runtime gives to this callback alone.
            unsafe { word.write(time()) };
        }
    });
}

/// Ends what `begin` began.
unsafe fn end(word: Word, kind: u32) {
    contained(|| {
        // SAFETY: null or the word of a thread or region.
        let start = unsafe { word.as_ref() }.copied().unwrap_or(0);
        if start != 0 {
            put(kind, start);
        }
    });
}

unsafe extern "C" fn thread_begin(_type: c_int, thread: Word) {
    // SAFETY: the runtime's word.
    unsafe { begin(thread) };
}

unsafe extern "C" fn thread_end(thread: Word) {
    // SAFETY: the runtime's word.
    unsafe { end(thread, THREAD) };
}

unsafe extern "C" fn parallel_begin(
    _task: Word,
    _frame: *const c_void,
    region: Word,
    _threads: c_uint,
    _flags: c_int,
    _code: *const c_void,
) {
    // SAFETY: the runtime's word.
    unsafe { begin(region) };
}

unsafe extern "C" fn parallel_end(region: Word, _task: Word, _flags: c_int, _code: *const c_void) {
    // SAFETY: the runtime's word.
    unsafe { end(region, PARALLEL) };
}

unsafe extern "C" fn sync_region_wait(
    kind: c_int,
    endpoint: c_int,
    _region: Word,
    _task: Word,
    _code: *const c_void,
) {
    const BEGIN: c_int = 1;
    const TASKWAIT: c_int = 5;
    const TASKGROUP: c_int = 6;
    const REDUCTION: c_int = 7;
    let kind = match kind {
        TASKWAIT | TASKGROUP => WAIT_TASKWAIT,
        REDUCTION => return,
        _ => WAIT_BARRIER,
    };
    contained(|| {
        if endpoint == BEGIN {
            Thread::begin(ActivityKind::OPENMP);
        } else if let Some((start, _)) = Thread::end(ActivityKind::OPENMP) {
            put(kind, start);
        }
    });
}
