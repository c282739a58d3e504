//! OpenACC: records of what its runtime tells through the profiling interface of OpenACC 2.6 (chapter 5).
//!
//! A library of the program's that `ACC_PROFLIB` names passes what the runtime gives it to [`cuptiOpenACCInitialize`]. Each pair of
//! events, and each moment, is a record, made on the thread that the event is told on, at its end. Devices, contexts and streams are
//! 0: constructs run where the runtime has them run, and it is not told where that is in terms of CUDA.

use super::directives::{Thread, put_range, time};
use super::kind::ActivityKind;
use super::record::{ActivityRecord, OpenAccData, OpenAccLaunch, OpenAccOther};
use super::wanted::is_anywhere;
use crate::result::CUptiResult;
use crate::with_gputrail;
use core::ffi::{CStr, c_char, c_int, c_void};
use gputrail_abi::{contained, kept};

/// The runtime's description of an event's place (`acc_prof_info`).
#[repr(C)]
struct Place {
    event: c_int,
    /// The bytes of the structure that are filled.
    valid_bytes: c_int,
    version: c_int,
    device_type: c_int,
    device: c_int,
    thread: c_int,
    asynchronous: isize,
    queue: isize,
    source_file: *const c_char,
    function: *const c_char,
    line: c_int,
    end_line: c_int,
    function_line: c_int,
    function_end_line: c_int,
}

/// The runtime's description of an event (`acc_event_info`): of data operations, and of launches, which have other words behind
/// the name.
#[repr(C)]
struct Event {
    event: c_int,
    valid_bytes: c_int,
    construct: c_int,
    implicit: c_int,
    tool: *mut c_void,
    /// The variable, or the kernel.
    name: *const c_char,
    /// Bytes, host and device address; or gangs, workers and vector length.
    words: [u64; 3],
}

type Callback = unsafe extern "C" fn(*const Place, *const Event, *const c_void);
/// The runtime's function that registers a callback.
type Register = unsafe extern "C" fn(c_int, Callback, c_int);

/// The way in which a callback is registered that is always on.
const ALWAYS: c_int = 0;
/// One more than the greatest event.
const END: c_int = 26;

/// Begins to take events of OpenACC.
///
/// # Safety
///
/// `register` is null or the first argument of `acc_register_library`, which can be called until that returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiOpenACCInitialize(
    register: *mut c_void,
    _unregister: *mut c_void,
    _lookup: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| {
        if register.is_null() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: `register` is not null, so that it is the runtime's function.
        let register = unsafe { core::mem::transmute::<*mut c_void, Register>(register) };
        for event in 1..END {
            // SAFETY: the runtime's function, and a callback of the type that it takes.
            unsafe { register(event, happened, ALWAYS) };
        }
        Ok(())
    })
}

/// The kind of records and of events (`CUpti_OpenAccEventKind`) that an event belongs to.
fn meaning(event: c_int, is_implicit: bool) -> Option<(ActivityKind, u32)> {
    let (data, launch, other) = (
        ActivityKind::OPENACC_DATA,
        ActivityKind::OPENACC_LAUNCH,
        ActivityKind::OPENACC_OTHER,
    );
    Some(match event {
        1 | 2 => (other, 1),
        3 | 4 => (other, 2),
        5 => (other, 3),
        18 | 19 => (launch, 4),
        20 | 21 => (data, 5),
        22 | 23 => (data, 6),
        24 | 25 => (other, if is_implicit { 8 } else { 7 }),
        16 | 17 => (other, 9),
        14 | 15 => (other, 10),
        10 | 11 => (other, 11),
        12 | 13 => (other, 12),
        6 => (data, 13),
        7 => (data, 14),
        8 => (data, 15),
        9 => (data, 16),
        _ => return None,
    })
}

/// Whether an event is the begin of a pair, whose end has the next number.
fn is_begin(event: c_int) -> bool {
    matches!(event, 1 | 3 | 10 | 12 | 14 | 16 | 18 | 20 | 22 | 24)
}

/// Whether an event is a moment.
fn is_moment(event: c_int) -> bool {
    (5..=9).contains(&event)
}

unsafe extern "C" fn happened(place: *const Place, event: *const Event, _: *const c_void) {
    contained(|| {
        // SAFETY: the runtime's descriptions, as far as they say that they are filled.
        let (place, event) = unsafe { (filled(place), filled(event)) };
        if let (Some(place), Some(event)) = (place, event) {
            note(&place, &event);
        }
    });
}

/// A copy of a description, with zeros for what is not filled.
///
/// # Safety
///
/// `from` is null or leads to a description, which begins with the event and the number of filled bytes.
unsafe fn filled<T>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    // SAFETY: `from` is not null, so that it leads to a description, which begins so.
    let valid = unsafe { from.cast::<c_int>().add(1).read() };
    let bytes = usize::try_from(valid).ok()?.min(size_of::<T>());
    // SAFETY: zeros are a value of both structures: numbers and pointers.
    let mut copy: T = unsafe { core::mem::zeroed() };
    // SAFETY: as many bytes are filled, and there is room for them.
    unsafe { core::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut copy).cast(), bytes) };
    Some(copy)
}

fn note(place: &Place, event: &Event) {
    let Some((kind, event_kind)) = meaning(place.event, event.implicit != 0) else {
        return;
    };
    if is_begin(place.event) {
        Thread::begin(kind);
        return;
    }
    let (start, external) = if is_moment(place.event) {
        (time(), 0)
    } else {
        match Thread::end(kind) {
            Some(begun) => begun,
            // Its begin was not told.
            None => return,
        }
    };
    if !is_anywhere(kind) {
        return;
    }
    let texts = [event.name, place.source_file, place.function];
    // SAFETY: null or texts of the runtime, which last during the event.
    let [name, source_file, function] = texts.map(|one| unsafe { text(one) });
    macro_rules! common {
        ($type:ident) => {{
            let mut record = $type::blank();
            record.event_kind = event_kind;
            record.parent_construct = match event.construct {
                construct @ 0..=15 => construct as u32 + 1,
                _ => 0,
            };
            record.version = place.version as u32;
            record.implicit = event.implicit as u32;
            record.device_type = place.device_type as u32;
            record.device_number = place.device as u32;
            record.thread_id = place.thread as u32;
            (record.r#async, record.async_map) = (place.asynchronous as u64, place.queue as u64);
            (record.line_no, record.end_line_no) = (place.line as u32, place.end_line as u32);
            record.func_line_no = place.function_line as u32;
            record.func_end_line_no = place.function_end_line as u32;
            (record.start, record.end) = (start, time());
            [record.cu_process_id, record.cu_thread_id] = Thread::ids();
            record.external_id = external;
            (record.src_file, record.func_name) = (source_file, function);
            record
        }};
    }
    if kind == ActivityKind::OPENACC_DATA {
        let mut record = common!(OpenAccData);
        [record.bytes, record.host_ptr, record.device_ptr] = event.words;
        record.var_name = name;
        put_range(&record);
    } else if kind == ActivityKind::OPENACC_LAUNCH {
        let mut record = common!(OpenAccLaunch);
        [record.num_gangs, record.num_workers, record.vector_length] = event.words;
        record.kernel_name = name;
        put_range(&record);
    } else {
        put_range(&common!(OpenAccOther));
    }
}

/// A text that lasts as long as the process.
///
/// # Safety
///
/// `text` is null or ends with a 0.
unsafe fn text(text: *const c_char) -> *const c_char {
    if text.is_null() {
        return text;
    }
    // SAFETY: `text` is not null, so that it ends with a 0.
    kept(&unsafe { CStr::from_ptr(text) }.to_string_lossy()).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_and_ends_mean_the_same() {
        let mut meant = std::collections::HashSet::new();
        for event in 1..END {
            let own = meaning(event, false).unwrap();
            if is_begin(event) {
                assert_eq!(meaning(event + 1, false), Some(own), "{event}");
            }
            if is_begin(event) || is_moment(event) {
                assert!(meant.insert(own.1), "{event}");
            }
        }
        assert_eq!(meaning(24, true).unwrap().1, 8);
        assert!(meaning(0, false).is_none() && meaning(END, false).is_none());
    }

    #[test]
    fn descriptions_are_read_as_far_as_they_are_filled() {
        let event = Event {
            event: 6,
            valid_bytes: 40,
            construct: 3,
            implicit: 0,
            tool: core::ptr::null_mut(),
            name: c"x".as_ptr(),
            words: [4096, 1, 2],
        };
        // SAFETY: a description.
        let read = unsafe { filled(&raw const event) }.unwrap();
        assert_eq!((read.construct, read.words), (3, [4096, 0, 0]));
    }
}
