//! The function of a tool that gets the messages of the library.

use super::owner::{Owner, ToolPointer};
use super::status::{self, FailedCall};
use core::ffi::{CStr, c_char, c_void};
use gputrail_buffer::platform::inside::set_message_reader;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_interface::c::{LogKind, Status};
use std::cell::Cell;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kinds that the function wants; 0 without one.
static WANTED: AtomicU32 = AtomicU32::new(0);
static LOGGER: PerProcess<Option<Arc<Logger>>> = PerProcess::new();

/// A function that gets messages.
pub(super) struct Logger {
    pub kinds: u32,
    pub function: unsafe extern "C-unwind" fn(u32, *const c_char, *mut c_void),
    pub user_data: ToolPointer,
    pub owner: Owner,
}

thread_local! {
    /// Whether the thread is in the function.
    static IS_LOGGING: Cell<bool> = const { Cell::new(false) };
}

/// Whether messages of one of these kinds are wanted.
#[inline(always)]
pub(super) fn is_wanted(kinds: u32) -> bool {
    WANTED.load(Ordering::Relaxed) & kinds != 0
}

/// Passes a message to the function. Returns whether there is one that wants it.
pub(super) fn log(kind: LogKind, text: &str) -> bool {
    let wants = |logger: &Arc<Logger>| logger.kinds & kind as u32 != 0;
    let Some(logger) = LOGGER.lock().clone().filter(wants) else {
        return false;
    };
    // Its own calls are not told.
    if IS_LOGGING.try_with(|is| is.replace(true)) != Ok(false) {
        return true;
    }
    let line: Vec<u8> = text.trim_end().bytes().filter(|byte| *byte != 0).collect();
    let line = CString::new(line).unwrap_or_default();
    let user_data = logger.user_data.get();
    // SAFETY: the tool's function, which it gave for this, a text that ends with a 0, and its data.
    unsafe { (logger.function)(kind as u32, line.as_ptr(), user_data) };
    let _ = IS_LOGGING.try_with(|is| is.set(false));
    true
}

/// The function of the API that the closure of type `W` does the work of.
fn function_of<W>() -> &'static str {
    let work = std::any::type_name::<W>();
    let name = work.rfind("gputrail_").map_or("", |from| &work[from..]);
    let end = name.find(|of: char| !(of.is_ascii_alphanumeric() || of == '_'));
    &name[..end.unwrap_or(name.len())]
}

/// Tells that a call has returned, of the function that `W` does the work of.
#[inline(always)]
pub(super) fn returned<W>(status: Status, failure: Option<&FailedCall>) {
    if is_wanted(LogKind::Error as u32 | LogKind::Trace as u32) {
        tell::<W>(status, failure);
    }
}

#[cold]
fn tell<W>(status: Status, failure: Option<&FailedCall>) {
    let function = function_of::<W>();
    let name = status::gputrail_status_name(status);
    // SAFETY: a text that ends with a 0 and is never freed.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if let Some(failure) = failure
        && is_wanted(LogKind::Error as u32)
    {
        let text = format!("{function}: {} ({name})", failure.text);
        log(LogKind::Error, &text);
    }
    if is_wanted(LogKind::Trace as u32) {
        log(LogKind::Trace, &format!("{function}: {name}"));
    }
}

/// Reads the messages that would go to the standard error.
fn read_message(text: &str) -> bool {
    is_wanted(LogKind::Message as u32) && log(LogKind::Message, text)
}

/// Has messages passed to this function from now on; to none for `None`.
pub(super) fn set(logger: Option<Logger>) {
    let kinds = logger.as_ref().map_or(0, |logger| logger.kinds);
    let before = std::mem::replace(&mut *LOGGER.lock(), logger.map(Arc::new));
    drop(before);
    WANTED.store(kinds, Ordering::Relaxed);
    set_message_reader(read_message);
}

/// Removes the function of `owner`; of anybody for `None`.
pub(super) fn forget(owner: Option<Owner>) {
    let mut logger = LOGGER.lock();
    let is_of = |logger: &mut Arc<Logger>| owner.is_none_or(|owner| owner == logger.owner);
    let gone = logger.take_if(is_of);
    if gone.is_some() {
        WANTED.store(0, Ordering::Relaxed);
    }
    drop(logger);
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name<W>(_: W) -> &'static str {
        function_of::<W>()
    }

    #[test]
    fn messages_name_the_function_that_was_called() {
        fn gputrail_some_call() -> &'static str {
            name(|| name(|| 1))
        }
        assert_eq!(gputrail_some_call(), "gputrail_some_call");
        assert_eq!(name(0), "");
    }
}
