//! The functions of the C API. `include/gputrail.h` is generated from them, from their structures in
//! [`gputrail_interface::c`] and from the records; [`gputrail_collect::context`] does the work.
//!
//! Every function returns a [`Status`], and keeps what went wrong for [`gputrail_last_error`]. Nothing unwinds into C:
//! a panic, which would be a fault of ours, becomes `GPUTRAIL_INTERNAL`. Objects are named by ids that are never used
//! twice, so that the id of a destroyed one is recognised.
//!
//! # Pointers of callers
//!
//! The words of the `# Safety` sections of the functions, on which the safety comments rely:
//!
//! * A *place* for a value is memory of the value's size that can be written; it may be uninitialised. *Room* for values,
//!   and bytes to write to, are an array of places.
//! * A pointer that *leads to* a value or to values points to initialised memory that can be read.
//! * *Options*, a *batch*, and a *structure whose size is set* begin with the number of their bytes, all of which are there.
//!   The library reads options and batches, and writes to other structures.
//! * A *text that ends with a 0* can be read up to its first 0.
//! * *Such a function* does what its type says. It may be called, with the user data that was given with it, until its
//!   object is destroyed; if there is no object, until the call of the library returns.
//!
//! Until a call returns, nobody else, its callbacks included, writes what it reads or uses what it writes. Its places
//! overlap neither each other nor what it reads.
//!
//! No promise is needed for null and misaligned pointers: `checked`, with which `place`, `values` and the functions of
//! `sized` and `text` begin, refuses them, unless null has a meaning of its own.

mod arguments;
mod attributes;
mod buffer;
mod callback;
mod caller;
mod context;
mod counter_group;
mod counter_pool;
mod counter_sessions;
mod counter_set;
mod counting;
mod external;
mod flight;
mod kinds;
mod library;
mod lifecycle;
mod log;
mod logger;
mod markers;
mod memory;
mod metric;
mod names;
mod objects;
mod owner;
mod pool;
mod sampling;
mod simulation;
mod sized;
mod source_line;
mod status;
mod text;
mod threads;
mod time;
mod timeline;
mod tool_buffer;
mod tools;
mod unified_memory;

pub use arguments::*;
pub use attributes::*;
pub use buffer::*;
pub use callback::*;
pub use context::*;
pub use counter_group::*;
pub use counter_pool::*;
pub use counter_sessions::*;
pub use counter_set::*;
pub use counting::*;
pub use external::*;
pub use flight::*;
pub use kinds::*;
pub use lifecycle::*;
pub use log::gputrail_log_to;
pub use markers::*;
pub use memory::*;
pub use metric::*;
pub use names::*;
pub use sampling::*;
pub use simulation::*;
pub use source_line::*;
pub use status::{gputrail_last_error, gputrail_status_message, gputrail_status_name};
pub use threads::*;
pub use time::*;
pub use timeline::*;
pub use tools::{TOOLS_VARIABLE, gputrail_tool_finish, gputrail_tool_probe, serve_tools};
pub use unified_memory::*;

use gputrail_buffer::platform::inside::Uncancelled;
use gputrail_interface::c::Status;
use status::FailedCall;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

type Answer<T = ()> = Result<T, FailedCall>;

thread_local! {
    /// Functions of ours that the thread is in.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Does the work of one function of the API.
fn answer<W: FnOnce() -> Answer<Status>>(work: W) -> Status {
    keep_panics_silent();
    let _uncancelled = Uncancelled::begin();
    let _ = INSIDE.try_with(|inside| inside.set(inside.get() + 1));
    let result = catch_unwind(AssertUnwindSafe(work));
    let _ = INSIDE.try_with(|inside| inside.set(inside.get() - 1));
    match result {
        Ok(Ok(status)) => {
            logger::returned::<W>(status, None);
            status
        }
        Ok(Err(failure)) => {
            logger::returned::<W>(failure.status, Some(&failure));
            status::keep(failure)
        }
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(panic.downcast_ref::<&str>().copied())
                .map_or_else(String::new, |said| format!(": {said}"));
            // Its payload may be anything, and may panic when it is dropped.
            std::mem::forget(panic);
            status::keep(FailedCall::new(
                Status::INTERNAL,
                format!("an internal error of gputrail{text}"),
            ))
        }
    }
}

/// Does the work of a function of the API that answers OK or an error.
fn done(work: impl FnOnce() -> Answer) -> Status {
    answer(|| work().map(|()| Status::OK))
}

/// A panic that is caught here says nothing: the output is the program's.
fn keep_panics_silent() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if ONCE.load(Ordering::Relaxed) || ONCE.swap(true, Ordering::Relaxed) {
        return;
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if INSIDE.try_with(Cell::get).unwrap_or(1) == 0 {
            before(panic);
        }
    }));
}

/// `pointer` as a place to write an answer to.
///
/// # Safety
///
/// It is null, misaligned, or leads to memory for a `T`, initialised or not, that nobody else uses for `'a`.
unsafe fn place<'a, T>(
    pointer: *mut T,
    name: &'static str,
) -> Answer<&'a mut std::mem::MaybeUninit<T>> {
    checked(pointer, name)?;
    // SAFETY: `checked` has refused null and misaligned pointers; otherwise `pointer` leads to memory for a `T`, initialised
    // or not, that nobody else uses for `'a` (the caller's promise).
    Ok(unsafe { &mut *pointer.cast() })
}

/// Refuses a null or misaligned pointer.
fn checked<T>(pointer: *const T, name: &'static str) -> Answer {
    if pointer.is_null() {
        return Err(FailedCall::new(
            Status::NULL_POINTER,
            format!("{name} is null"),
        ));
    }
    if !pointer.is_aligned() {
        let text = format!("{name} is not aligned to {} bytes", align_of::<T>());
        return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
    }
    Ok(())
}

/// `count` values at `pointer`; none if `count` is 0.
///
/// # Safety
///
/// `pointer` is null, misaligned, or leads to `count` initialised values, which nobody writes for `'a`.
unsafe fn values<'a, T>(pointer: *const T, count: usize, name: &'static str) -> Answer<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    checked(pointer, name)?;
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        let text = format!("{count} values at {name} do not fit into memory");
        return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
    }
    // SAFETY: `checked` has refused null and misaligned pointers, and the values fit into memory; otherwise `pointer` leads
    // to `count` values that nobody writes for `'a` (the caller's promise).
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}
