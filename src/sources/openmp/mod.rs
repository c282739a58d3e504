//! OpenMP, observed through OMPT, the interface for tools of OpenMP 5.1 (chapter 4): parallel and target regions, shared
//! work, waits and data operations as [markers](gputrail_collect::marker) of their threads.
//!
//! An OpenMP runtime calls [`start_tool`] of the library that `OMP_TOOL_LIBRARIES` names, and the callbacks registered
//! in `initialize` on the threads that they are about. Runtimes of LLVM and Intel have OMPT, that of GCC does not.
//!
//! Ranges are named after kind and function (file and offset if it is not exported). The payload is a region's threads, a loop's
//! iterations, a data operation's bytes. A thread that waits for the next region is in no range. A range whose end the runtime does
//! not report (LLVM's, of a `single` of GCC) ends at the next barrier or with its region.

mod ffi;
mod regions;

pub use ffi::StartTool;

use super::markers;
use core::ffi::{c_char, c_int, c_void};
use ffi::*;
use foldhash::HashMap;
use gputrail_buffer::clock;
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::function_names;
use gputrail_buffer::platform::inside::{Uncancelled, contain};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::loading::markers::OPENMP_VARIABLE;
use gputrail_collect::marker::{EventValue, KeptText, MarkerDomain, MarkerEvent, MarkerText};
use gputrail_record::{PayloadKind, Ticks};
use regions::Region;
use std::borrow::Cow;
use std::sync::atomic::{AtomicPtr, Ordering};

static DOMAIN: MarkerDomain = MarkerDomain::built_in("OpenMP", 3);

/// The word that the runtime keeps for us about a parallel region, and about a thread's part of it.
///
/// ```text
/// 0..48    the number of the region
/// 48..63   the level of the range that stands for it on this thread
/// 63       the range is that of a thread's part
/// ```
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
struct Word(u64);

impl Word {
    const PART: u64 = 1 << 63;

    fn new(region: Region, level: u32, is_part: bool) -> Word {
        let level = u64::from(level & 0x7fff) << 48;
        let part = if is_part { Word::PART } else { 0 };
        Word(region.0 & ((1 << 48) - 1) | level | part)
    }

    fn region(self) -> Region {
        Region(self.0 & ((1 << 48) - 1))
    }

    fn level(self) -> u32 {
        (self.0 >> 48) as u32 & 0x7fff
    }

    fn is_part(self) -> bool {
        self.0 & Word::PART != 0
    }

    /// Whether it is about a region.
    fn is_some(self) -> bool {
        self.0 != 0
    }

    /// # Safety
    ///
    /// `data` is null or the runtime's place for a word of ours, which this thread may read and nobody writes to meanwhile.
    unsafe fn read(data: *const ToolWord) -> Word {
        // SAFETY: `data` is null or the runtime's place for our word, which nobody writes to meanwhile.
        Word(unsafe { data.as_ref() }.copied().unwrap_or(0))
    }
}

/// The tool, for a runtime that asks for one: null if `OMP_TOOL_LIBRARIES` does not name this library, or nobody records
/// markers in this process.
pub fn start_tool() -> *const StartTool {
    // The runtime writes to it.
    static TOOL: SharedTool = SharedTool(StartTool {
        initialize,
        finalize,
        data: 0,
    });
    let mut tool = core::ptr::null();
    contain(|| {
        let _uncancelled = Uncancelled::begin();
        let libraries = variable(OPENMP_VARIABLE).unwrap_or_default();
        let is_named = libraries
            .as_encoded_bytes()
            .windows(9)
            .any(|part| part == b"gputrail.");
        if is_named && markers::attach() {
            function_names::find_demangler();
            tool = &raw const TOOL.0;
        }
    });
    tool
}

struct SharedTool(StartTool);

// SAFETY: functions, and a word that nobody uses.
unsafe impl Sync for SharedTool {}

/// Registers the callbacks. Where the runtime reports the begin and the end of work on devices, that is taken; older ones
/// report a moment.
unsafe extern "C" fn initialize(lookup: Lookup, _: c_int, _: *mut ToolWord) -> c_int {
    let mut is_used = 0;
    contain(|| {
        // SAFETY: the runtime's function, which takes a name.
        let Some(set) = (unsafe { lookup(c"ompt_set_callback".as_ptr()) }) else {
            return;
        };
        // SAFETY: a function of this name has this type.
        let set = unsafe { core::mem::transmute::<OmpFunction, SetCallback>(set) };
        let set = |event: c_int, callback: *const c_void| {
            // SAFETY: the runtime's function; the callback has the type that the specification gives to this event's.
            let set = unsafe { set(event, callback) };
            set >= SET_SOMETIMES
        };
        let _ = set(PARALLEL_BEGIN, parallel_begin as ParallelBegin as _)
            && set(PARALLEL_END, parallel_end as ParallelEnd as _)
            && set(IMPLICIT_TASK, implicit_task as ImplicitTask as _);
        set(WORK, work as WorkCallback as _);
        set(SYNC_REGION, sync_region as SyncRegion as _);
        let _ = set(TARGET_EMI, target_emi as TargetEmi as _) || set(TARGET, target as Target as _);
        let _ = set(
            TARGET_DATA_OP_EMI,
            target_data_op_emi as TargetDataOpEmi as _,
        ) || set(TARGET_DATA_OP, target_data_op as TargetDataOp as _);
        let _ = set(TARGET_SUBMIT_EMI, target_submit_emi as TargetSubmitEmi as _)
            || set(TARGET_SUBMIT, target_submit as TargetSubmit as _);
        is_used = 1;
    });
    is_used
}

unsafe extern "C" fn finalize(_: *mut ToolWord) {}

/// What a range is, and the code that it belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
struct NamedRange {
    what: &'static str,
    code: usize,
}

/// A name that is kept for ever.
struct Kept {
    of: NamedRange,
    text: KeptText,
}

/// The latest names, by code: threads read them without a lock.
static LATEST: [AtomicPtr<Kept>; 512] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 512];

/// All names.
static NAMES: PerProcess<HashMap<NamedRange, &'static Kept>> = PerProcess::new();

/// The most names: code beyond them has none.
const MAX_NAMES: usize = 1 << 14;

/// The name of a range: what it is, and the function around it, if that can be found.
fn name(what: &'static str, code: *const c_void) -> &'static KeptText {
    let of = NamedRange {
        what,
        code: code as usize,
    };
    let place = &LATEST[(of.code >> 2).wrapping_add(what.len()) % LATEST.len()];
    // SAFETY: null, or a name that is kept for ever.
    match unsafe { place.load(Ordering::Acquire).as_ref() } {
        Some(kept) if kept.of == of => &kept.text,
        _ => {
            let kept = find_name(of);
            place.store(core::ptr::from_ref(kept).cast_mut(), Ordering::Release);
            &kept.text
        }
    }
}

#[cold]
fn find_name(of: NamedRange) -> &'static Kept {
    let mut names = NAMES.lock();
    let of = if names.len() < MAX_NAMES {
        of
    } else {
        NamedRange { code: 0, ..of }
    };
    if let Some(known) = names.get(&of) {
        return known;
    }
    // The loader is asked without the lock.
    drop(names);
    let text = match function_names::function_at(of.code) {
        Some(function) => format!("{}: {function}", of.what),
        None => of.what.to_owned(),
    };
    let text = KeptText::new(Cow::Owned(text));
    names = NAMES.lock();
    names
        .entry(of)
        .or_insert_with(|| Box::leak(Box::new(Kept { of, text })))
}

fn number(value: u64) -> EventValue<'static> {
    EventValue::Number(PayloadKind::UNSIGNED, value)
}

/// Begins a range. Returns its level.
fn push(name: &KeptText, payload: EventValue<'_>) -> u32 {
    let pushed = DOMAIN.push(&MarkerEvent {
        name: MarkerText::Kept(name),
        payload,
        ..MarkerEvent::default()
    });
    pushed.unwrap_or(0)
}

/// Ends the innermost range at `time`, or now. Returns its level, if there was one.
fn pop(time: Option<Ticks>) -> Option<u32> {
    let popped = DOMAIN.pop(&MarkerEvent {
        time: time.unwrap_or(Ticks::NONE),
        ..MarkerEvent::default()
    });
    popped.ok()
}

/// Ends the ranges down to the one at `level`, and this one: runtimes do not report the end of everything.
fn pop_to(level: u32, time: Option<Ticks>) {
    while pop(time).is_some_and(|popped| popped > level) {}
}

/// A range whose two ends the runtime reports.
fn range(endpoint: c_int, name: &KeptText, payload: EventValue<'_>) {
    if endpoint != END {
        push(name, payload);
    }
    // Otherwise both are reported at once.
    if endpoint != BEGIN {
        pop(None);
    }
}

unsafe extern "C" fn parallel_begin(
    _: *mut ToolWord,
    _: *const c_void,
    region: *mut ToolWord,
    threads: u32,
    _: c_int,
    code: *const c_void,
) {
    contain(|| {
        let name = name("parallel", code);
        let level = push(name, number(threads.into()));
        // SAFETY: the runtime's place for our word about the region.
        if let Some(word) = unsafe { region.as_mut() } {
            *word = Word::new(Region::begin(name), level, false).0;
        }
    });
}

unsafe extern "C" fn parallel_end(
    region: *mut ToolWord,
    _: *mut ToolWord,
    _: c_int,
    _: *const c_void,
) {
    contain(|| {
        let now = clock::now();
        // SAFETY: the runtime's place for our word about the region.
        let word = unsafe { Word::read(region) };
        if word.is_some() {
            word.region().end(now);
            pop_to(word.level(), Some(now));
        }
    });
}

/// A thread's part of a parallel region. That of the thread which began the region has the region's own range.
unsafe extern "C" fn implicit_task(
    endpoint: c_int,
    region: *mut ToolWord,
    task: *mut ToolWord,
    _: u32,
    index: u32,
    flags: c_int,
) {
    contain(|| {
        // SAFETY: the runtime's place for our word about the task.
        let Some(task) = (unsafe { task.as_mut() }) else {
            return;
        };
        if flags & TASK_INITIAL != 0 {
            return;
        }
        if endpoint == BEGIN {
            // SAFETY: the runtime's place for our word about the region.
            let of_region = unsafe { Word::read(region) };
            *task = of_region.0;
            if let Some(name) = of_region.region().name().filter(|_| index > 0) {
                let level = push(name, number(index.into()));
                *task = Word::new(of_region.region(), level, true).0;
            }
        } else {
            let word = Word(std::mem::take(task));
            if word.is_part() {
                pop_to(word.level(), Some(word.region().left()));
            }
        }
    });
}

unsafe extern "C" fn work(
    kind: c_int,
    endpoint: c_int,
    _: *mut ToolWord,
    _: *mut ToolWord,
    count: u64,
    code: *const c_void,
) {
    let what = match kind {
        1 | 10..=12 => "loop",
        2 => "sections",
        3 => "single",
        5 => "workshare",
        6 => "distribute",
        7 => "taskloop",
        8 => "scope",
        WORK_SINGLE_OTHER => return,
        _ => "work",
    };
    contain(|| range(endpoint, name(what, code), number(count)));
}

unsafe extern "C" fn sync_region(
    kind: c_int,
    endpoint: c_int,
    _: *mut ToolWord,
    task: *mut ToolWord,
    _: *const c_void,
) {
    let what = match kind {
        1..=4 | 8..=10 => "barrier",
        5 => "taskwait",
        6 => "taskgroup",
        7 => "reduction",
        _ => "wait",
    };
    contain(|| {
        // SAFETY: null, or the runtime's place for our word about the task.
        let word = unsafe { Word::read(task) };
        if endpoint == END {
            pop(Some(word.region().left()));
            return;
        }
        // There are no barriers inside of shared work: what still is open has ended without a report.
        if what == "barrier" && word.is_some() && DOMAIN.level() > word.level() + 1 {
            pop_to(word.level() + 1, None);
        }
        range(endpoint, name(what, core::ptr::null()), EventValue::None);
    });
}

fn target_name(kind: c_int, code: *const c_void) -> &'static KeptText {
    let what = match kind {
        1 | 9 => "target",
        2 | 10 => "target enter data",
        3 | 11 => "target exit data",
        4 | 12 => "target update",
        _ => "target region",
    };
    name(what, code)
}

unsafe extern "C" fn target_emi(
    kind: c_int,
    endpoint: c_int,
    device: c_int,
    _: *mut ToolWord,
    _: *mut ToolWord,
    _: *mut ToolWord,
    code: *const c_void,
) {
    contain(|| range(endpoint, target_name(kind, code), device_number(device)));
}

unsafe extern "C" fn target(
    kind: c_int,
    endpoint: c_int,
    device: c_int,
    _: *mut ToolWord,
    _: u64,
    code: *const c_void,
) {
    contain(|| range(endpoint, target_name(kind, code), device_number(device)));
}

fn device_number(device: c_int) -> EventValue<'static> {
    EventValue::Number(PayloadKind::SIGNED, i64::from(device) as u64)
}

fn data_op_name(kind: c_int) -> &'static KeptText {
    let what = match kind {
        1 | 17 => "allocate on device",
        2 | 18 => "copy to device",
        3 | 19 => "copy from device",
        4 | 20 => "free on device",
        5 => "associate",
        6 => "disassociate",
        _ => "data operation",
    };
    name(what, core::ptr::null())
}

/// The bytes of a data operation.
unsafe extern "C" fn target_data_op_emi(
    endpoint: c_int,
    _: *mut ToolWord,
    _: *mut ToolWord,
    _: *mut u64,
    kind: c_int,
    _: *mut c_void,
    _: c_int,
    _: *mut c_void,
    _: c_int,
    bytes: usize,
    _: *const c_void,
) {
    contain(|| range(endpoint, data_op_name(kind), number(bytes as u64)));
}

unsafe extern "C" fn target_data_op(
    _: u64,
    _: u64,
    kind: c_int,
    _: *mut c_void,
    _: c_int,
    _: *mut c_void,
    _: c_int,
    bytes: usize,
    _: *const c_void,
) {
    contain(|| mark(data_op_name(kind), number(bytes as u64)));
}

unsafe extern "C" fn target_submit_emi(endpoint: c_int, _: *mut ToolWord, _: *mut u64, teams: u32) {
    let name = || name("launch", core::ptr::null());
    contain(|| range(endpoint, name(), number(teams.into())));
}

unsafe extern "C" fn target_submit(_: u64, _: u64, teams: u32) {
    contain(|| mark(name("launch", core::ptr::null()), number(teams.into())));
}

/// A moment: the runtime does not report how long something takes.
fn mark(name: &KeptText, payload: EventValue<'_>) {
    DOMAIN.mark(&MarkerEvent {
        name: MarkerText::Kept(name),
        payload,
        ..MarkerEvent::default()
    });
}

/// The type of `ompt_start_tool`, for the library that exports it.
pub type StartToolFunction = unsafe extern "C" fn(u32, *const c_char) -> *const StartTool;
