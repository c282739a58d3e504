//! HIP's operations, under which calls of OpenCL and of the simulated GPU's runtime appear ([`functions`]), and the arguments that
//! clients see of them, as they lie in `rocprofiler_callback_tracing_hip_api_data_t`.
//!
//! The numbers and names of all operations are those of the header; the build script reads them there.

pub mod functions;
#[cfg(test)]
mod tests;

use crate::kinds::Named;
use crate::result::Answer;
use core::ffi::{CStr, c_int, c_void};
use functions::{FUNCTIONS, TEXT};
pub use gputrail_abi::functions::Arguments;
use gputrail_abi::functions::{Function, Made, Parameter, Role, Shown, Table, error_of};
use gputrail_abi::{kept, lock};
use gputrail_record::Operation;
use gputrail_rocprofiler::{
    BufferArgumentVisitor, BufferTracingKind, CallbackArgumentVisitor, CallbackTracingRecord,
    CorrelationId, HIP_RESULT_BYTES, RecordHeader, Status, ThreadId, Timestamp, TracingOperation,
};
use gputrail_tool::Callback;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{LazyLock, Mutex};

/// The names of the operations of the kinds, by their numbers.
mod names {
    include!(concat!(env!("OUT_DIR"), "/operations.rs"));
}

/// Bytes of the largest arguments of a function of HIP.
pub const ARGUMENT_BYTES: usize = 88;
/// The most calls whose arguments wait for their records.
const MOST_KEPT: usize = 1 << 16;

/// The payload of a callback on a call of HIP, and behind it what the call has made.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct HipData {
    /// Bytes up to the end of the result.
    pub size: u64,
    /// The values of the parameters.
    pub arguments: [u64; ARGUMENT_BYTES / 8],
    /// A `hipError_t`.
    pub result: [u64; HIP_RESULT_BYTES / 8],
    /// The results to which arguments lead that are places for one.
    pub made: Made,
}

impl HipData {
    /// Without arguments.
    pub const fn new() -> HipData {
        HipData {
            size: (8 + ARGUMENT_BYTES + HIP_RESULT_BYTES) as u64,
            arguments: [0; ARGUMENT_BYTES / 8],
            result: [0; HIP_RESULT_BYTES / 8],
            made: [0; 2],
        }
    }

    /// Puts the arguments of a call: during the call, and before it is told of again at its exit. They lead into this, which stays
    /// where it is for as long as a client reads it.
    pub fn put(&mut self, shown: &Shown, arguments: &Arguments) {
        let made = (&raw const self.made).addr() as u64;
        shown.put(arguments, made, &mut self.arguments);
    }

    /// Puts what a call has returned, at its exit.
    pub fn put_result(&mut self, shown: &Shown, arguments: &Arguments, callback: &Callback<'_>) {
        self.result[0] = callback
            .return_code()
            .map_or(0, |code| error_of(code).into());
        self.made = shown.made(arguments, callback);
    }
}

/// A record of a call of HIP with its arguments (`rocprofiler_buffer_tracing_hip_api_ext_record_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct HipRecord {
    /// Bytes of the record.
    pub size: u64,
    /// `HIP_RUNTIME_API_EXT`
    pub kind: BufferTracingKind,
    /// HIP's operation.
    pub operation: TracingOperation,
    /// The ids of the call.
    pub correlation_id: CorrelationId,
    /// When it began.
    pub start_timestamp: Timestamp,
    /// When it returned.
    pub end_timestamp: Timestamp,
    /// The thread.
    pub thread_id: ThreadId,
    /// The values of the parameters; those that lead to results are 0.
    pub arguments: [u64; ARGUMENT_BYTES / 8],
    /// A `hipError_t`.
    pub result: [u64; HIP_RESULT_BYTES / 8],
}

/// The operation of a call, and the values of its parameters.
pub type KeptCall = (TracingOperation, [u64; ARGUMENT_BYTES / 8]);

/// The arguments of calls, by correlation id, from their enter to their records: arrays and texts are there during the call only.
/// Where records do not come, the arguments of all calls are forgotten once they are too many.
#[derive(Debug, Default)]
pub struct KeptArguments(Mutex<HashMap<u64, KeptCall>>);

impl KeptArguments {
    /// Keeps those of a call that begins.
    pub fn keep(&self, callback: &Callback<'_>) {
        let Some(shown) = shown(callback.operation()) else {
            return;
        };
        let arguments = Arguments::of(callback);
        let mut values = [0; ARGUMENT_BYTES / 8];
        shown.put(&arguments, 0, &mut values);
        let called = shown.function(&arguments);
        for (place, parameter) in called.function.places() {
            if matches!(parameter.role, Role::Made | Role::Total | Role::Count) {
                // It leads to a result, which the record does not have.
                values[place / 8] = 0;
            }
            if parameter.of.mangled != TEXT.mangled {
                continue;
            }
            let text = core::ptr::with_exposed_provenance(values[place / 8] as usize);
            // SAFETY: null, or the program's text for the call, which ends with a 0.
            let text = unsafe { gputrail_abi::given(text) };
            values[place / 8] = text.map_or(0, |text| kept(&text).as_ptr().addr() as u64);
        }
        let mut all = lock(&self.0);
        if all.len() >= MOST_KEPT {
            all.clear();
        }
        let operation = called.number as TracingOperation;
        all.insert(callback.correlation().0, (operation, values));
    }

    /// Takes those of a call whose record has come.
    pub fn take(&self, correlation: u64) -> Option<KeptCall> {
        lock(&self.0).remove(&correlation)
    }
}

/// The number of a function of HIP.
fn number_of(name: &CStr) -> Option<u32> {
    let number = names::HIP_RUNTIME.iter().position(|one| *one == name)?;
    u32::try_from(number).ok()
}

/// The function of an operation, if it is one that calls appear as.
fn function(operation: TracingOperation) -> Option<&'static Function> {
    let name = names::HIP_RUNTIME.get(usize::try_from(operation).ok()?)?;
    FUNCTIONS.iter().find(|one| one.name == *name)
}

/// How a function appears, if it does. Reads the tables when it is first asked for.
pub fn shown(function: Operation) -> Option<&'static Shown> {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(FUNCTIONS, number_of));
    let table: &'static Table = &TABLE;
    table.shown(function)
}

/// The operations under which calls of a function appear; none if it has no like in HIP.
pub fn operations_of(function: Operation) -> impl Iterator<Item = TracingOperation> {
    let shown = shown(function).into_iter();
    shown.flat_map(|shown| shown.numbers().map(|number| number as TracingOperation))
}

/// The operations of `HIP_RUNTIME_API`.
pub fn runtime_operations() -> Named {
    numbered(names::HIP_RUNTIME)
}

/// The operations of `HIP_COMPILER_API`.
pub fn compiler_operations() -> Named {
    numbered(names::HIP_COMPILER)
}

fn numbered(names: &'static [&'static CStr]) -> Named {
    let numbered = names.iter().enumerate();
    let numbered = numbered.map(|(number, name)| (number as TracingOperation, *name));
    numbered.collect()
}

/// Gives the arguments of an operation to `visit`, with their numbers, addresses and texts, until it answers other than 0.
///
/// # Safety
///
/// `arguments` leads to [`ARGUMENT_BYTES`] bytes.
unsafe fn visit_all(
    operation: TracingOperation,
    arguments: *const c_void,
    mut visit: impl FnMut(u32, *const c_void, &'static Parameter, &CStr) -> c_int,
) -> Answer {
    let of = function(operation).ok_or(Status::ERROR_OPERATION_NOT_FOUND)?;
    of.places().zip(0..).all(|((place, parameter), number)| {
        let address = arguments.wrapping_byte_add(place);
        // SAFETY: the places of all functions lie within the bytes.
        let value = unsafe {
            match parameter.of.bytes {
                8 => address.cast::<u64>().read_unaligned(),
                4 => address.cast::<u32>().read_unaligned().into(),
                _ => address.cast::<u8>().read().into(),
            }
        };
        let text = CString::new(text(parameter, value)).unwrap_or_default();
        visit(number, address, parameter, &text) == 0
    });
    Ok(())
}

/// A value for people. No pointer is followed.
fn text(parameter: &Parameter, value: u64) -> String {
    const COPY_KINDS: [&str; 5] = [
        "hipMemcpyHostToHost",
        "hipMemcpyHostToDevice",
        "hipMemcpyDeviceToHost",
        "hipMemcpyDeviceToDevice",
        "hipMemcpyDefault",
    ];
    let of = parameter.of;
    if of.mangled == c"13hipMemcpyKind"
        && let Some(kind) = COPY_KINDS.get(value as usize)
    {
        return (*kind).to_owned();
    }
    match (of.depth, of.mangled.to_bytes()) {
        (1.., _) => format!("{value:#x}"),
        (_, b"i") => (value as u32 as i32).to_string(),
        _ => value.to_string(),
    }
}

/// Visits the arguments of the call that a callback tells of, until the visitor answers other than 0. No pointer is followed.
///
/// # Safety
///
/// The payload is a [`HipData`], or the client's copy of one; `visitor` takes an argument and `data`.
pub unsafe fn visit(
    record: &CallbackTracingRecord,
    visitor: CallbackArgumentVisitor,
    _depth: i32,
    data: *mut c_void,
) -> Answer {
    if record.payload.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let (kind, operation) = (record.kind, record.operation);
    let from = core::mem::offset_of!(HipData, arguments);
    let call = |number, address, parameter: &Parameter, text: &CStr| {
        let (of, name) = (parameter.of, parameter.name.as_ptr());
        let mangled = of.mangled.as_ptr();
        // SAFETY: the client's function for this, with an argument whose texts last until it has been visited.
        unsafe {
            visitor(
                kind,
                operation,
                number,
                address,
                of.depth,
                mangled,
                name,
                text.as_ptr(),
                0,
                data,
            )
        }
    };
    // SAFETY: the payload has the arguments there.
    unsafe { visit_all(operation, record.payload.wrapping_byte_add(from), call) }
}

/// Visits the arguments of the call that a record tells of, until the visitor answers other than 0.
///
/// # Safety
///
/// The payload is a [`HipRecord`]; `visitor` takes an argument and `data`.
pub unsafe fn visit_record(
    record: &RecordHeader,
    visitor: BufferArgumentVisitor,
    data: *mut c_void,
) -> Answer {
    let payload = record.payload.cast::<HipRecord>();
    if payload.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: the payload is a record of a call of HIP.
    let (kind, operation) = unsafe { ((*payload).kind, (*payload).operation) };
    let from = core::mem::offset_of!(HipRecord, arguments);
    let call = |number, address, parameter: &Parameter, text: &CStr| {
        let (of, name) = (parameter.of, parameter.name.as_ptr());
        let mangled = of.mangled.as_ptr();
        // SAFETY: the client's function for this, with an argument whose texts last until it has been visited.
        unsafe {
            visitor(
                kind,
                operation,
                number,
                address,
                of.depth,
                mangled,
                name,
                text.as_ptr(),
                data,
            )
        }
    };
    // SAFETY: the payload has the arguments there.
    unsafe { visit_all(operation, record.payload.wrapping_byte_add(from), call) }
}
