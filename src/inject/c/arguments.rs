//! Arguments: of calls in callbacks, of recorded calls, and of operations.

use super::callback::with_arguments;
use super::sized;
use super::status::FailedCall;
use super::text::{self, kept};
use super::{Answer, checked, done};
use core::ffi::c_char;
use gputrail_collect::context::{self, ArgumentInfo, CallArguments};
use gputrail_interface::c::{Argument, CallbackData, SizedStruct, Status};
use gputrail_record::{Arguments, Header, Operation};
use gputrail_sources::operations;

/// A type of the table of functions, as C writes it.
fn type_in_c(rust: &str) -> String {
    let Some(pointer) = rust.strip_prefix('*') else {
        let plain = rust.rsplit("::").next().unwrap_or(rust);
        return match (plain.strip_prefix("c_"), plain.strip_prefix(['u', 'i'])) {
            (Some(c), _) => c.to_owned(),
            (None, Some("size")) => "size_t".to_owned(),
            (None, Some(bits)) if bits.parse::<u8>().is_ok() => {
                let sign = if plain.starts_with('u') { "u" } else { "" };
                format!("{sign}int{bits}_t")
            }
            _ => plain.to_owned(),
        };
    };
    let pointer = pointer.trim_start();
    match pointer.strip_prefix("const ") {
        Some(of) if of.starts_with('*') => format!("{}const *", type_in_c(of)),
        Some(of) => format!("const {} *", type_in_c(of)),
        None => {
            let of = type_in_c(pointer.trim_start_matches("mut "));
            let space = if of.ends_with('*') { "" } else { " " };
            format!("{of}{space}*")
        }
    }
}

fn described(info: &ArgumentInfo, value: u64) -> Argument {
    Argument {
        name: kept(info.name),
        type_name: kept(&type_in_c(info.type_name)),
        value,
        kept_as: info.kept.unwrap_or_default(),
        dereference_depth: info.dereference_depth() as u32,
        ..Argument::blank()
    }
}

/// The one at `place` of `arguments`.
fn at<'a>(arguments: &CallArguments<'a>, place: u32) -> Answer<context::CallArgument<'a>> {
    let found = arguments.iter().nth(place as usize);
    found.ok_or_else(|| none_there(place, arguments.len()))
}

fn none_there(place: u32, count: usize) -> FailedCall {
    FailedCall::new(Status::NOT_FOUND, format!("argument {place} of {count}"))
}

/// An argument of the call that a callback is about, by its place from 0.
///
/// Errors: `GPUTRAIL_NOT_FOUND` behind the last; `GPUTRAIL_INVALID_ARGUMENT` if this is not the callback that the
/// calling thread is in; `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `argument` is null or leads to such a structure, whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_callback_argument(
    callback: *const CallbackData,
    place: u32,
    argument: *mut Argument,
) -> Status {
    done(|| {
        let found = with_arguments(callback, |arguments| {
            let found = at(arguments, place)?;
            Ok(described(found.info, found.value))
        })?;
        // SAFETY: `argument` is null or leads to a structure of as many bytes as its size says (the caller's promise).
        unsafe { sized::write(argument, &found) }
    })
}

/// An argument of the call that a callback is about, for people: up to `depth` pointers are followed, as far as they
/// lead somewhere. Addresses that are not the program's are shown as they are, and nothing is read through `void`.
/// Ended by a 0; `length`, which may be null, gets the length without it.
///
/// Errors: as for `gputrail_callback_argument`; `GPUTRAIL_TOO_SMALL`, and nothing is written but the length.
///
/// # Safety
///
/// `to` is null or leads to `capacity` bytes, `length` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_callback_argument_text(
    callback: *const CallbackData,
    place: u32,
    depth: u32,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    done(|| {
        let shown = with_arguments(callback, |arguments| {
            Ok(at(arguments, place)?.text(depth as usize))
        })?;
        // SAFETY: `to` is null or leads to `capacity` bytes, `length` is null or a place for a number (the caller's
        // promises).
        unsafe { text::copy(&shown, to, capacity, length) }
    })
}

/// An argument of a call, by its place from 0, out of a record of kind `GPUTRAIL_KIND_ARGUMENTS`.
///
/// Errors: `GPUTRAIL_NOT_FOUND` behind the last; `GPUTRAIL_MALFORMED` if it is no such record;
/// `GPUTRAIL_UNKNOWN_OPERATION`; `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or leads to a record, all of it; `argument` is null or leads to such a structure, whose size is
/// set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_record_argument(
    record: *const Header,
    place: u32,
    argument: *mut Argument,
) -> Status {
    done(|| {
        checked(record, "record")?;
        // SAFETY: `checked` has refused null and misaligned pointers; otherwise `record` leads to a record of as many bytes
        // as its header says, which nobody writes during the call (the caller's promise).
        let bytes = unsafe { std::slice::from_raw_parts(record.cast::<u8>(), (*record).bytes()) };
        let read = gputrail_record::Records::new(bytes).next();
        let mut read = read
            .and_then(|record| record.read::<Arguments>())
            .ok_or(Status::MALFORMED)?;
        let held = bytes.len().saturating_sub(Arguments::bytes_for(0)) / 8;
        let count = (read.count as usize).min(held).min(read.values.len());
        read.count = count as _;
        let known = operations::arguments_of(&read).ok_or_else(|| unknown(read.operation))?;
        let found = at(&known, place)?;
        // SAFETY: `argument` is null or leads to a structure of as many bytes as its size says (the caller's promise);
        // `read` is a copy of the record.
        unsafe { sized::write(argument, &described(found.info, found.value)) }
    })
}

/// An argument of an operation, by its place from 0; its value is 0. What is not a function has none.
///
/// Errors: `GPUTRAIL_NOT_FOUND` behind the last; `GPUTRAIL_UNKNOWN_OPERATION`, `GPUTRAIL_WRONG_SIZE`,
/// `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `argument` is null or leads to such a structure, whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_operation_argument(
    operation: Operation,
    place: u32,
    argument: *mut Argument,
) -> Status {
    done(|| {
        let all = operations::get(operation).ok_or_else(|| unknown(operation))?;
        let found = all.arguments.get(place as usize);
        let found = found.ok_or_else(|| none_there(place, all.arguments.len()))?;
        // SAFETY: `argument` is null or leads to a structure of as many bytes as its size says (the caller's promise).
        unsafe { sized::write(argument, &described(found, 0)) }
    })
}

fn unknown(operation: Operation) -> FailedCall {
    let text = format!("unknown {operation}");
    FailedCall::new(Status::UNKNOWN_OPERATION, text)
}

#[cfg(test)]
mod tests {
    use super::type_in_c;

    #[test]
    fn types_of_arguments_are_those_of_c() {
        for (rust, c) in [
            ("cl_mem", "cl_mem"),
            ("usize", "size_t"),
            ("u64", "uint64_t"),
            ("*const c_void", "const void *"),
            ("*mut *mut c_char", "char **"),
            ("*const *const c_char", "const char *const *"),
            ("*mut cl_int", "cl_int *"),
        ] {
            assert_eq!(type_in_c(rust), c);
        }
    }
}
