//! Line information in kernels, on request of the user: compiler options are added to the program's builds, and removed
//! from the answers to its queries.
//!
//! Only PoCL's compilers get the options. Before version 4 they give lines only to code that is not optimised.

use super::below::{below, next};
use super::call::ObservedCall;
use super::device;
use super::ffi::*;
use core::ffi::CStr;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::process;
use gputrail_record::NoteKind;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

const CL_PROGRAM_BUILD_OPTIONS: cl_uint = 0x1182;

/// The options that were added to each program.
static ADDED: PerProcess<HashMap<u64, Added>> = PerProcess::new();

#[derive(Clone, Copy)]
struct Added {
    lines: bool,
    not_optimised: bool,
}

/// Forgets the options of an earlier program with the same handle.
pub(super) fn new_program(program: cl_program) {
    ADDED.lock().remove(&program.into());
}

/// The options to build `program` with instead of `asked`, by this version of PoCL.
pub(super) fn options(program: cl_program, version: u32, asked: &str) -> Option<CString> {
    let has = |option: &str| asked.split_whitespace().any(|word| word == option);
    let adds = Added {
        lines: !has("-g"),
        not_optimised: version < 4 && !has("-cl-opt-disable"),
    };
    let mut options = asked.to_owned();
    for (add, option) in [(adds.lines, "-g"), (adds.not_optimised, "-cl-opt-disable")] {
        if add {
            options.push(' ');
            options.push_str(option);
        }
    }
    ADDED.lock().insert(program.into(), adds);
    say(adds);
    CString::new(options.trim_start()).ok()
}

/// Notes once in the capture that options were added.
fn say(adds: Added) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !adds.lines && !adds.not_optimised || SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    let what = if adds.not_optimised {
        "programs were built with -g -cl-opt-disable for source lines: their kernels are not optimised, and take \
             longer than they would"
    } else {
        "programs were built with -g for source lines"
    };
    if let Some(names) = process::names() {
        names.note(NoteKind::OTHER, what);
    }
}

/// Removes the form that our options have taken in `answer`.
fn without(answer: &str, added: Added) -> String {
    let ours = |word: &str| {
        let lines = added.lines
            && (word == "-g"
                || ["-debug-info-kind=", "-dwarf-version=", "-debugger-tuning="]
                    .iter()
                    .any(|option| word.starts_with(option)));
        lines || added.not_optimised && word == "-cl-opt-disable"
    };
    // Spaces are kept: the program may compare the answer with its own options.
    let kept: Vec<&str> = answer.split(' ').filter(|word| !ours(word)).collect();
    let kept = kept.join(" ");
    if answer.ends_with(' ') {
        kept
    } else {
        kept.trim_end_matches(' ').to_owned()
    }
}

/// Answers the program's query about a build.
pub(super) unsafe fn build_info(
    _: &mut ObservedCall,
    program: cl_program,
    device: cl_device_id,
    what: cl_uint,
    room: usize,
    value: *mut c_void,
    size: *mut usize,
) -> cl_int {
    let adds = match what {
        CL_PROGRAM_BUILD_OPTIONS => ADDED.lock().get(&program.into()).copied(),
        _ => None,
    };
    let Some(adds) = adds else {
        // SAFETY: the program's own arguments.
        return unsafe {
            next!(clGetProgramBuildInfo(
                program, device, what, room, value, size
            ))
        };
    };
    let mut status = CL_SUCCESS;
    let answer = device::text(|bytes, to, size| {
        status = below()
            .clGetProgramBuildInfo
            .map_or(CL_INVALID_VALUE, |ask| {
                // SAFETY: the program's handles, and room for the answer.
                unsafe { ask(program, device, what, bytes, to, size) }
            });
        status
    });
    if status != CL_SUCCESS {
        return status;
    }
    let answer = CString::new(without(&answer, adds)).unwrap_or_default();
    // SAFETY: the program's places for the answer.
    unsafe { give(&answer, room, value, size) }
}

/// Answers with `text`, as OpenCL does.
///
/// # Safety
///
/// `value` is null or has room for `room` bytes, `size` is null or a place for a size.
unsafe fn give(text: &CStr, room: usize, value: *mut c_void, size: *mut usize) -> cl_int {
    let bytes = text.to_bytes_with_nul();
    if !value.is_null() {
        if room < bytes.len() {
            return CL_INVALID_VALUE;
        }
        // SAFETY: `value` has room for `room` bytes, which are enough; the text is our own.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast(), bytes.len()) };
    }
    if !size.is_null() {
        // SAFETY: `size` is not null, so that it is a place for a size.
        unsafe { size.write(bytes.len()) };
    }
    CL_SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_were_added_are_not_in_the_answer() {
        let both = Added {
            lines: true,
            not_optimised: true,
        };
        let answer =
            "-DX=1 -debug-info-kind=limited -dwarf-version=4 -debugger-tuning=gdb -cl-opt-disable";
        assert_eq!(without(answer, both), "-DX=1");
        let lines = Added {
            lines: true,
            not_optimised: false,
        };
        assert_eq!(without("-cl-opt-disable -g", lines), "-cl-opt-disable");
        assert_eq!(without("-I /tmp/-g  -O1", lines), "-I /tmp/-g  -O1");
    }
}
