//! Our own declarations of the part of OMPT that is in use: the tools' interface of OpenMP 5.1, chapter 4.
//!
//! Names and numbers are those of the specification, without its prefix `ompt_`.

use core::ffi::{c_char, c_int, c_void};

/// A word that the runtime keeps for the tool.
pub(super) type ToolWord = u64;

/// A function of the runtime, or one that it calls.
pub(super) type OmpFunction = unsafe extern "C" fn();

/// Finds a function of the runtime by its name.
pub(super) type Lookup = unsafe extern "C" fn(*const c_char) -> Option<OmpFunction>;

/// Registers a callback; the answer is 5 if the event is always reported, and 0 to 2 if it never is.
pub(super) type SetCallback = unsafe extern "C" fn(c_int, *const c_void) -> c_int;

/// The smallest answer of [`SetCallback`] that says that the event is reported.
pub(super) const SET_SOMETIMES: c_int = 3;

/// What `ompt_start_tool` returns.
#[repr(C)]
pub struct StartTool {
    pub(super) initialize: unsafe extern "C" fn(Lookup, c_int, *mut ToolWord) -> c_int,
    pub(super) finalize: unsafe extern "C" fn(*mut ToolWord),
    pub(super) data: ToolWord,
}

// Events.
pub(super) const PARALLEL_BEGIN: c_int = 3;
pub(super) const PARALLEL_END: c_int = 4;
pub(super) const IMPLICIT_TASK: c_int = 7;
pub(super) const TARGET: c_int = 8;
pub(super) const TARGET_DATA_OP: c_int = 9;
pub(super) const TARGET_SUBMIT: c_int = 10;
pub(super) const WORK: c_int = 20;
pub(super) const SYNC_REGION: c_int = 23;
pub(super) const TARGET_EMI: c_int = 33;
pub(super) const TARGET_DATA_OP_EMI: c_int = 34;
pub(super) const TARGET_SUBMIT_EMI: c_int = 35;

/// The end points of something that takes time.
pub(super) const BEGIN: c_int = 1;
pub(super) const END: c_int = 2;

/// The flag of an implicit task that is the initial one, which no parallel region has made.
pub(super) const TASK_INITIAL: c_int = 1;

/// The work that one of several threads does, as it is for the others.
pub(super) const WORK_SINGLE_OTHER: c_int = 4;

// Callbacks. Pointers to data are never null where the specification names data.
pub(super) type ParallelBegin =
    unsafe extern "C" fn(*mut ToolWord, *const c_void, *mut ToolWord, u32, c_int, *const c_void);
pub(super) type ParallelEnd =
    unsafe extern "C" fn(*mut ToolWord, *mut ToolWord, c_int, *const c_void);
pub(super) type ImplicitTask =
    unsafe extern "C" fn(c_int, *mut ToolWord, *mut ToolWord, u32, u32, c_int);
pub(super) type WorkCallback =
    unsafe extern "C" fn(c_int, c_int, *mut ToolWord, *mut ToolWord, u64, *const c_void);
pub(super) type SyncRegion =
    unsafe extern "C" fn(c_int, c_int, *mut ToolWord, *mut ToolWord, *const c_void);
pub(super) type Target =
    unsafe extern "C" fn(c_int, c_int, c_int, *mut ToolWord, u64, *const c_void);
pub(super) type TargetEmi = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    *mut ToolWord,
    *mut ToolWord,
    *mut ToolWord,
    *const c_void,
);
pub(super) type TargetDataOp = unsafe extern "C" fn(
    u64,
    u64,
    c_int,
    *mut c_void,
    c_int,
    *mut c_void,
    c_int,
    usize,
    *const c_void,
);
pub(super) type TargetDataOpEmi = unsafe extern "C" fn(
    c_int,
    *mut ToolWord,
    *mut ToolWord,
    *mut u64,
    c_int,
    *mut c_void,
    c_int,
    *mut c_void,
    c_int,
    usize,
    *const c_void,
);
pub(super) type TargetSubmit = unsafe extern "C" fn(u64, u64, u32);
pub(super) type TargetSubmitEmi = unsafe extern "C" fn(c_int, *mut ToolWord, *mut u64, u32);
