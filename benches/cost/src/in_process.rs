//! The cost of one API record, from enter to exit, in a shared library that was loaded as programs load theirs.

use crate::sample::median;
use crate::{Outcome, Places, Row};
use libloading::Library;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;

const ROUNDS: usize = 400;
/// Number of calls in a round: their records take an eighth of the pool.
const CALLS: u64 = 32_768;
/// The limit for a call beyond two tick reads, in nanoseconds.
const ALLOWED: f64 = 9.0;

/// The limit for the addition by pushed external ids, in nanoseconds.
const EXTERNAL_ALLOWED: f64 = 3.0;

/// Returns the cost of two tick reads in nanoseconds, and the rows.
pub fn measure(places: &Places) -> Outcome<(f64, Vec<Row>)> {
    // SAFETY: a library of this workspace without constructors.
    let library = unsafe { Library::new(&places.library) }?;
    // SAFETY: the functions of `lib.rs`, with their signatures.
    let (begin, calls, pairs, frequency, flush, push) = unsafe {
        (
            library.get::<unsafe extern "C" fn(*const c_char) -> bool>("cost_begin")?,
            library.get::<extern "C" fn(u64) -> u64>("cost_calls")?,
            library.get::<extern "C" fn(u64) -> u64>("cost_tick_pairs")?,
            library.get::<extern "C" fn() -> u64>("cost_frequency")?,
            library.get::<extern "C" fn()>("cost_flush")?,
            library.get::<extern "C" fn()>("cost_push_external")?,
        )
    };
    let capture = places.scratch.join("calls.gputrail");
    let capture = CString::new(capture.as_os_str().as_bytes())?;
    // SAFETY: a string that ends with a 0.
    if !unsafe { begin(capture.as_ptr()) } {
        return Err("the library could not begin a recording".into());
    }
    let nanos = 1e9 / frequency() as f64 / CALLS as f64;
    let (mut call, mut pair) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        pair.push(pairs(CALLS) as f64 * nanos);
        call.push(calls(CALLS) as f64 * nanos);
        flush();
    }
    // From here on this thread has two external ids of different kinds: each call writes two more records.
    push();
    let mut pushed = Vec::new();
    for _ in 0..ROUNDS {
        pushed.push(calls(CALLS) as f64 * nanos);
        flush();
    }
    let (call, pair, pushed) = (median(call), median(pair), median(pushed));
    let row = Row {
        what: "an API record, enter to exit, in a loaded library",
        measured: format!(
            "{call:.1} ns: {:.2} x two tick reads, {:+.1} ns",
            call / pair,
            call - pair
        ),
        beside: format!("{pair:.1} ns for two tick reads"),
        target: format!("two tick reads + {ALLOWED} ns"),
        met: call <= pair + ALLOWED,
    };
    let external = Row {
        what: "the same with two external ids pushed, and their records",
        measured: format!("{pushed:.1} ns: {:+.1} ns", pushed - call),
        beside: format!("{call:.1} ns without"),
        target: format!("that + {EXTERNAL_ALLOWED} ns"),
        met: pushed <= call + EXTERNAL_ALLOWED,
    };
    // Threads of the recording may still run code of the library: it stays open.
    std::mem::forget(library);
    Ok((pair, vec![row, external]))
}
