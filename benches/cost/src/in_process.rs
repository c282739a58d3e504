//! One API record, enter to exit, in a shared library that was loaded as programs load theirs.

use crate::sample::median;
use crate::{Outcome, Places, Row};
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const ROUNDS: usize = 400;
/// Calls in a round: their records take an eighth of the pool.
const CALLS: u64 = 32_768;
/// What a call may take beyond two tick reads, in nanoseconds.
const ALLOWED: f64 = 9.0;

/// What it may take more with external ids pushed.
const EXTERNAL_ALLOWED: f64 = 20.0;

/// Returns what two tick reads take, in nanoseconds, too.
pub fn measure(places: &Places) -> Outcome<(f64, Vec<Row>)> {
    let library = Library::open(&places.library)?;
    // SAFETY: these are the functions of `lib.rs`, with their signatures.
    let (begin, calls, pairs, frequency, flush, push) = unsafe {
        (
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> bool>(
                library.symbol(c"cost_begin")?,
            ),
            std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> u64>(
                library.symbol(c"cost_calls")?,
            ),
            std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> u64>(
                library.symbol(c"cost_tick_pairs")?,
            ),
            std::mem::transmute::<*mut c_void, extern "C" fn() -> u64>(
                library.symbol(c"cost_frequency")?,
            ),
            std::mem::transmute::<*mut c_void, extern "C" fn()>(library.symbol(c"cost_flush")?),
            std::mem::transmute::<*mut c_void, extern "C" fn()>(
                library.symbol(c"cost_push_external")?,
            ),
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
    // From here on this thread has two, of different kinds: each call has two records more.
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
    Ok((pair, vec![row, external]))
}

/// A library that stays loaded.
struct Library(*mut c_void);

impl Library {
    fn open(path: &Path) -> Outcome<Library> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: a library of this workspace; what it does when it is loaded is nothing.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("{} cannot be loaded", path.display()).into());
        }
        Ok(Library(handle))
    }

    fn symbol(&self, name: &CStr) -> Outcome<*mut c_void> {
        // SAFETY: the handle is of a library that is loaded, and the name ends with a 0.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return Err(format!("the library has no {}", name.to_string_lossy()).into());
        }
        Ok(symbol)
    }
}
