//! Arguments: of calls in callbacks, of recorded calls, and of functions.

use super::Error;
use super::functions::{call, check, read_text};
use core::ffi::{CStr, c_char};
pub use gputrail_interface::c::{Argument as ArgumentData, CallbackData, SizedStruct, Status};
use gputrail_record::*;

/// An argument of a call.
#[derive(Copy, Clone)]
pub struct Argument<'a> {
    data: ArgumentData,
    /// The callback that it comes from, and its index among the arguments of that callback.
    callback: Option<(&'a CallbackData, u32)>,
}

impl Argument<'_> {
    /// Its name.
    pub fn name(&self) -> &'static str {
        lasting(self.data.name)
    }

    /// Its type in C.
    pub fn type_name(&self) -> &'static str {
        lasting(self.data.type_name)
    }

    /// Its bits: a number as it is, a signed one extended to 64 bits, a pointer or handle as an address. A string that
    /// a record keeps is the id of it.
    pub fn value(&self) -> u64 {
        self.data.value
    }

    /// How records keep it, if they do.
    pub fn kept_as(&self) -> Option<ArgumentType> {
        let kept = self.data.kept_as;
        (kept != ArgumentType::default()).then_some(kept)
    }

    /// How often its value can be dereferenced: 0 for a number or handle.
    pub fn dereference_depth(&self) -> usize {
        self.data.dereference_depth as usize
    }

    /// The value for people. Of a call in progress up to `depth` pointers are followed, as far as they lead somewhere.
    pub fn text(&self, depth: usize) -> String {
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let text = self.callback.and_then(|(callback, index)| {
            read_text(|to, capacity, length| {
                // SAFETY: the library's callback, room for that many bytes, and a place for the length.
                unsafe {
                    call!(gputrail_callback_argument_text(
                        callback, index, depth, to, capacity, length
                    ))
                }
            })
        });
        let value = self.value();
        text.unwrap_or_else(|| match self.data.kept_as {
            ArgumentType::SIGNED => (value as i64).to_string(),
            ArgumentType::FLOAT => f64::from_bits(value).to_string(),
            ArgumentType::POINTER | ArgumentType::FLAGS => format!("{value:#x}"),
            ArgumentType::STRING => super::string(StringId(value as u32)).unwrap_or_default(),
            _ => value.to_string(),
        })
    }
}

/// A text of the library's that lasts for ever.
fn lasting(text: *const c_char) -> &'static str {
    // SAFETY: it ends with a 0, and lasts for ever.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// The arguments that `ask` answers for places from 0 on, until there are no more.
fn all<'a>(
    callback: Option<&'a CallbackData>,
    ask: impl Fn(u32, *mut ArgumentData) -> Result<Status, Error>,
) -> impl Iterator<Item = Argument<'a>> {
    (0..).map_while(move |index| {
        let mut data = ArgumentData::blank();
        let status = ask(index, &mut data);
        matches!(status, Ok(Status::OK)).then_some(Argument {
            data,
            callback: callback.map(|callback| (callback, index)),
        })
    })
}

/// The arguments of the call that a callback reports.
pub(super) fn of_callback(callback: &CallbackData) -> impl Iterator<Item = Argument<'_>> {
    let count = callback.arguments as usize;
    let arguments = all(Some(callback), move |place, to| {
        // SAFETY: the library's callback, and a place for the answer.
        unsafe { call!(gputrail_callback_argument(callback, place, to)) }
    });
    arguments.take(count)
}

/// The arguments that a record of kind [`Kind::ARGUMENTS`] keeps of a call.
///
/// # Errors
///
/// `MALFORMED` for a record of another kind, `UNKNOWN_OPERATION` for a function that the library does not know.
pub fn arguments_of_record<'a>(
    record: RecordRef<'a>,
) -> Result<impl Iterator<Item = Argument<'a>>, Error> {
    let bytes = record.bytes();
    let ask = move |place, to: *mut ArgumentData| {
        // SAFETY: a record, all of it, and a place for the answer.
        unsafe { call!(gputrail_record_argument(bytes.as_ptr().cast(), place, to)) }
    };
    let first = ask(0, &mut ArgumentData::blank());
    // Some functions have none.
    if !matches!(first, Ok(Status::NOT_FOUND)) {
        check(first)?;
    }
    Ok(all(None, ask))
}

/// The arguments of a function; their values are 0. What is not a function has none.
pub fn arguments_of_operation(operation: Operation) -> impl Iterator<Item = Argument<'static>> {
    all(None, move |place, to| {
        // SAFETY: a place for the answer.
        unsafe { call!(gputrail_operation_argument(operation, place, to)) }
    })
}
