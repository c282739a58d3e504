//! Functions of tools that the libraries call: an exception that leaves one is told, and ends the program as an exception
//! that nobody catches does.
//!
//! Between a tool's function and whoever could catch lie frames of Rust, which cannot let an exception of C++ pass. So the
//! function is called through a frame whose personality routine ends the search for a handler: `throw` finds none, and the C++
//! runtime calls `std::terminate`, whose message has the exception.

use crate::{file_of, frame, library_of};
use core::ffi::{CStr, c_void};
use std::cell::Cell;
use std::fmt::Write;

/// A function of a tool's.
#[derive(Copy, Clone)]
pub struct Callee {
    /// The library that calls it, as messages name it.
    pub library: &'static str,
    /// The function by which the tool has set it, or its name if it is found by that.
    pub set_by: &'static str,
    /// Its address.
    pub function: *const (),
}

/// A function of a tool's, with the data that it is called with.
#[derive(Copy, Clone, Debug)]
pub struct WithData<F> {
    /// The function.
    pub function: F,
    /// The data.
    pub data: *mut c_void,
}

// SAFETY: the pointer is passed on to the function alone, which the tool expects on any thread.
unsafe impl<F: Send> Send for WithData<F> {}
// SAFETY: as above.
unsafe impl<F: Sync> Sync for WithData<F> {}

thread_local! {
    /// The innermost function of a tool's that the calling thread is in.
    static INNERMOST: Cell<Option<Callee>> = const { Cell::new(None) };
}

/// A call in progress.
struct Called<W, R> {
    work: Option<W>,
    result: Option<R>,
}

impl Callee {
    /// Calls the function: `work` does, by a pointer of the ABI `C-unwind`.
    pub fn call<R>(self, work: impl FnOnce() -> R) -> R {
        let mut called = Called {
            work: Some(work),
            result: None,
        };
        let run = run_of(&called);
        let outer = INNERMOST.replace(Some(self));
        // SAFETY: `run` takes what is at the address, which lives until it returns.
        unsafe { frame::called(run, (&raw mut called).cast()) };
        INNERMOST.set(outer);
        match called.result {
            Some(result) => result,
            // `run` has returned, and with a result.
            None => std::process::abort(),
        }
    }
}

/// Tells that `what` has left the innermost function of a tool's.
pub fn tell(what: &str) {
    let Some(callee) = INNERMOST.get() else {
        return;
    };
    let mut text = format!("{}: {what} left ", callee.library);
    let _ = match name_of(callee.function) {
        Some(name) => write!(text, "the function {}", name.to_string_lossy()),
        None => write!(text, "a function"),
    };
    if let Some(file) = file_of(callee.function) {
        let _ = write!(text, " of {}", file.display());
    }
    eprintln!("{text}, set by {}, which ends the program", callee.set_by);
}

/// The name of a function, if its library exports it.
fn name_of(function: *const ()) -> Option<&'static CStr> {
    let found = library_of(function)?;
    let is_it = !found.dli_sname.is_null() && found.dli_saddr.cast() == function.cast_mut();
    // SAFETY: the loader's text, which lasts as long as the library: that of a function which is being called.
    is_it.then(|| unsafe { CStr::from_ptr(found.dli_sname) })
}

/// Calls a function, of which it gets the address of all that it needs.
pub type Run = unsafe extern "C-unwind" fn(*mut c_void);

fn run_of<W: FnOnce() -> R, R>(_: &Called<W, R>) -> Run {
    run::<W, R>
}

/// # Safety
///
/// `called` leads to a `Called` of these types, which nobody else uses.
unsafe extern "C-unwind" fn run<W: FnOnce() -> R, R>(called: *mut c_void) {
    // SAFETY: `called` leads to one.
    let called = unsafe { &mut *called.cast::<Called<W, R>>() };
    called.result = called.work.take().map(|work| work());
}
