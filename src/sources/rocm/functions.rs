//! The functions of ROCm's APIs: the library tells their names, their effect follows from the name, and what arguments they
//! have is learned when one of them is first recorded with its arguments.
//!
//! The SDK describes the arguments of a call at the price of texts for all of their values. So it is asked once for each function,
//! at the exit of a call that has succeeded. It tells addresses of arguments in a copy of the structure that is gone when they are told
//! (versions up to 1.3.2): their distances say where in the structure each argument lies. The values of later calls are read there.

use super::effects::{ResultType, enqueues, group, result};
use super::sdk::{Refused, Sdk, call, text_of};
use core::ffi::{CStr, c_char, c_int, c_void};
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_capture::names::Names;
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::switchboard::{ArgumentInfo, Observed};
use gputrail_record::{ArgumentType, Domain, Operation};
use gputrail_rocprofiler::{
    CallbackTracingKind, CallbackTracingRecord, HIP_RESULT_BYTES, RESULT_BYTES, Status,
    TracingOperation, before_1_0,
};

/// The most values of arguments of a call.
pub(super) const MAX_ARGUMENTS: usize = 20;
/// Where the arguments begin in the structure of a call, behind its size: the first one lies there.
const FIRST_ARGUMENT: usize = size_of::<u64>();
/// The operations of one table of functions of HSA: the tables' numbers follow one another.
const TABLE: u16 = 256;
/// The operations of a domain that the switchboard has room for.
const MAX_OPERATIONS: usize = 1024;

/// The kinds of callbacks that make up each domain, in the order of [`DOMAINS`](super::DOMAINS). Those of HSA are numbered one
/// after the other, in steps of [`TABLE`].
const KINDS: [&[&CStr]; super::DOMAINS.len()] = [
    &[
        c"HSA_CORE_API",
        c"HSA_AMD_EXT_API",
        c"HSA_IMAGE_EXT_API",
        c"HSA_FINALIZE_EXT_API",
    ],
    &[c"HIP_RUNTIME_API"],
    &[c"HIP_COMPILER_API"],
    &[c"RCCL_API"],
    &[c"OMPT"],
];

/// A function.
pub(super) struct RocmFunction {
    info: OperationInfo,
    result: ResultType,
    /// Its arguments, from the first call that was recorded with them.
    arguments: OnceBox<LearnedArguments>,
}

/// The arguments of a function.
struct LearnedArguments {
    infos: &'static [ArgumentInfo],
    /// Where each lies in the SDK's structure.
    places: Vec<(usize, ValueType)>,
}

/// How a value lies in memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum ValueType {
    /// A pointer, or a handle in a structure of its own.
    Pointer,
    Boolean,
    Unsigned(u8),
    Signed(u8),
    Float,
    Double,
}

/// The functions of all domains by their numbers, found once.
static FUNCTIONS: OnceBox<[Vec<Option<RocmFunction>>; super::DOMAINS.len()]> = OnceBox::new();

/// The place of a domain in [`DOMAINS`](super::DOMAINS).
#[inline]
pub(super) fn row(domain: Domain) -> Option<usize> {
    super::DOMAINS.iter().position(|one| *one == domain)
}

/// Asks the library for the names of all functions.
pub(super) fn find(sdk: &Sdk) {
    FUNCTIONS.get_or_init(|| {
        core::array::from_fn(|row| {
            let domain = super::DOMAINS[row];
            let mut functions: Vec<Option<RocmFunction>> = Vec::new();
            for (table, kind) in kinds_of(sdk, domain) {
                for (operation, name) in sdk.callback_operations(kind) {
                    let Some(number) = number_of(table, operation) else {
                        continue;
                    };
                    let place = usize::from(number);
                    if functions.len() <= place {
                        functions.resize_with(place + 1, || None);
                    }
                    // Once in a process.
                    let name: &'static str = String::leak(name);
                    functions[place] = Some(describe(Operation { domain, number }, name));
                }
            }
            functions
        })
    });
}

/// The kinds of callbacks of a domain that the library has, each with the number of its table.
pub(super) fn kinds_of(sdk: &Sdk, domain: Domain) -> Vec<(u16, CallbackTracingKind)> {
    let names = row(domain).map_or(&[][..], |row| KINDS[row]);
    let kinds = (0..).zip(names);
    kinds
        .filter_map(|(table, name)| Some((table, sdk.callback_kind(name)?)))
        .collect()
}

/// The number of an operation of a table in its domain.
fn number_of(table: u16, operation: TracingOperation) -> Option<u16> {
    let number = u16::try_from(operation).ok()?;
    let is_in_table = table == 0 || number < TABLE;
    let number = number.checked_add(table * TABLE)?;
    (is_in_table && usize::from(number) < MAX_OPERATIONS).then_some(number)
}

/// The functions of a domain; none before the library was found.
pub(super) fn all(domain: Domain) -> impl Iterator<Item = &'static RocmFunction> {
    let rows = FUNCTIONS.get().zip(row(domain));
    let row = rows.map(|(rows, row)| &rows[row]);
    row.into_iter().flatten().flatten()
}

/// The function of an operation of a kind of callbacks.
#[inline]
pub(super) fn get(
    domain: usize,
    table: u16,
    operation: TracingOperation,
) -> Option<&'static RocmFunction> {
    let number = number_of(table, operation)?;
    FUNCTIONS.get()?[domain].get(usize::from(number))?.as_ref()
}

impl RocmFunction {
    /// The operation.
    #[inline]
    pub fn operation(&self) -> Operation {
        self.info.operation
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.info.name
    }

    /// Its description, with the arguments that are known by now.
    pub fn info(&self) -> OperationInfo {
        let arguments = self.arguments.get().map_or(&[][..], |known| known.infos);
        OperationInfo {
            arguments,
            keeps_arguments: !arguments.is_empty(),
            ..self.info
        }
    }

    /// The status that a call has returned; 0 if it returns none.
    ///
    /// # Safety
    ///
    /// `payload` is null or leads to the SDK's structure of a call of this function.
    #[inline]
    pub unsafe fn status(&self, payload: *const c_void) -> i32 {
        if payload.is_null() || self.result == ResultType::Other {
            return 0;
        }
        // SAFETY: the structure begins with its size.
        let size = unsafe { payload.cast::<u64>().read() } as usize;
        let from_end = match self.info.operation.domain {
            Domain::HIP | Domain::HIP_COMPILER => HIP_RESULT_BYTES,
            _ => RESULT_BYTES,
        };
        let Some(at) = size
            .checked_sub(from_end)
            .filter(|at| *at >= FIRST_ARGUMENT)
        else {
            return 0;
        };
        // SAFETY: the result is the last field of the structure, and a status its first 4 bytes.
        unsafe { payload.byte_add(at).cast::<i32>().read() }
    }

    /// Reads the arguments of a call, and returns their number; 0 before they were learned.
    ///
    /// # Safety
    ///
    /// `payload` is null or leads to the SDK's structure of a call of this function.
    #[inline]
    pub unsafe fn arguments(
        &self,
        payload: *const c_void,
        values: &mut [u64; MAX_ARGUMENTS],
    ) -> usize {
        let Some(known) = self.arguments.get().filter(|_| !payload.is_null()) else {
            return 0;
        };
        for (value, (offset, what)) in values.iter_mut().zip(&known.places) {
            // SAFETY: the argument lies there, as the SDK has said of an earlier call of this function.
            *value = unsafe { what.read(payload.byte_add(*offset).cast()) };
        }
        known.places.len()
    }

    /// Whether the arguments are still to be learned.
    #[inline]
    pub fn lacks_arguments(&self) -> bool {
        self.arguments.get().is_none()
    }

    /// Learns what arguments the function has from a call that has succeeded, and tells `names`.
    ///
    /// # Safety
    ///
    /// `record` is that of the exit of a call of this function, and in progress.
    #[cold]
    pub unsafe fn learn(&self, sdk: &Sdk, record: &CallbackTracingRecord, names: Option<&Names>) {
        // SAFETY: the SDK's record of the call (`# Safety`).
        let described = unsafe { describe_arguments(sdk, record) };
        let known = self.arguments.get_or_init(|| {
            // SAFETY: the payload of this call (`# Safety`).
            let end = unsafe { end_of_arguments(self.info.operation.domain, record.payload) };
            LearnedArguments::of(described.unwrap_or_default(), end)
        });
        if let Some(names) = names.filter(|_| !known.infos.is_empty()) {
            let info = self.info();
            names.operation(info.operation, info.name, &info.signature(), info.group);
        }
    }
}

/// The offset at which the arguments end in the structure of a call.
///
/// # Safety
///
/// `payload` leads to the SDK's structure of a call of the domain.
unsafe fn end_of_arguments(domain: Domain, payload: *const c_void) -> usize {
    let from_end = match domain {
        Domain::HIP | Domain::HIP_COMPILER => HIP_RESULT_BYTES,
        _ => RESULT_BYTES,
    };
    // SAFETY: the structure begins with its size (`# Safety`).
    let size = unsafe { payload.cast::<u64>().read() } as usize;
    size.saturating_sub(from_end)
}

/// An argument as the SDK describes it.
struct DescribedArgument {
    /// Its offset in the structure.
    offset: usize,
    /// The type, as C++ mangles it.
    type_name: String,
    name: String,
    /// Its value in words.
    value: String,
}

/// The SDK's description of the arguments of a call.
///
/// # Safety
///
/// `record` is that of a call in progress.
unsafe fn describe_arguments(
    sdk: &Sdk,
    record: &CallbackTracingRecord,
) -> Result<Vec<DescribedArgument>, Refused> {
    unsafe extern "C" fn visit(
        _: CallbackTracingKind,
        _: TracingOperation,
        _: u32,
        value: *const c_void,
        _: i32,
        type_name: *const c_char,
        name: *const c_char,
        text: *const c_char,
        _: i32,
        described: *mut c_void,
    ) -> c_int {
        // SAFETY: the local of the caller below, which waits for this.
        let described = unsafe { &mut *described.cast::<Vec<DescribedArgument>>() };
        // SAFETY: null or texts of the SDK that last during the call.
        let texts = [type_name, name, text].map(|text| unsafe { text_of(text) });
        let [type_name, name, text] = texts.map(Option::unwrap_or_default);
        described.push(DescribedArgument {
            offset: value as usize,
            type_name,
            name,
            value: text,
        });
        0
    }
    type Iterate = unsafe extern "C" fn(
        before_1_0::CallbackTracingRecord,
        Option<gputrail_rocprofiler::CallbackArgumentVisitor>,
        i32,
        *mut c_void,
    ) -> Status;
    let mut described = Vec::new();
    let place = (&raw mut described).cast();
    // No pointer is followed.
    // SAFETY: the record is that of a call in progress (`# Safety`); the callback is called in the call, with the local.
    let status = unsafe {
        match sdk.functions.iterate_callback_tracing_kind_operation_args {
            Some(iterate) if sdk.is_before_1_0() => {
                // The function takes the structure of its version.
                let iterate: Iterate = core::mem::transmute(iterate);
                iterate(before(record), Some(visit), 0, place)
            }
            _ => call!(
                sdk,
                iterate_callback_tracing_kind_operation_args(*record, Some(visit), 0, place)
            ),
        }
    };
    match status {
        Status::SUCCESS => {
            place_in_structure(&mut described);
            Ok(described)
        }
        refused => Err(refused),
    }
}

/// Makes offsets in the structure of a call of the addresses of arguments: the lowest one is that of the first argument.
fn place_in_structure(described: &mut [DescribedArgument]) {
    let first = described.iter().map(|argument| argument.offset).min();
    for argument in &mut *described {
        let distance = argument.offset - first.unwrap_or_default();
        argument.offset = distance.saturating_add(FIRST_ARGUMENT);
    }
}

/// A record as versions before 1.0 have it.
fn before(record: &CallbackTracingRecord) -> before_1_0::CallbackTracingRecord {
    before_1_0::CallbackTracingRecord {
        context_id: record.context_id,
        thread_id: record.thread_id,
        correlation_id: gputrail_rocprofiler::AsyncCorrelationId {
            internal: record.correlation_id.internal,
            external: record.correlation_id.external,
        },
        kind: record.kind,
        operation: record.operation,
        phase: record.phase,
        payload: record.payload,
    }
}

impl LearnedArguments {
    /// The arguments that the SDK has described, in a structure whose arguments end at `end`. Structures passed by value are left out.
    fn of(described: Vec<DescribedArgument>, end: usize) -> LearnedArguments {
        let mut infos = Vec::new();
        let mut places = Vec::new();
        for (at, argument) in described.iter().enumerate() {
            // Behind the last argument is the room that other functions need.
            let last = || argument.end_of_last(end);
            let next = described.get(at + 1).map_or_else(last, |next| next.offset);
            let room = next.saturating_sub(argument.offset);
            if argument.offset.saturating_add(room) > end {
                continue;
            }
            if argument.type_name.ends_with("dim3_t") || argument.type_name == "4dim3" {
                for (axis, letter) in ["x", "y", "z"].iter().enumerate() {
                    let name = format!("{}.{letter}", argument.name);
                    infos.push(ValueType::Unsigned(4).info(&name, "j"));
                    places.push((argument.offset + 4 * axis, ValueType::Unsigned(4)));
                }
            } else if let Some(what) = ValueType::of(&argument.type_name, room) {
                infos.push(what.info(&argument.name, &argument.type_name));
                places.push((argument.offset, what));
            }
        }
        infos.truncate(MAX_ARGUMENTS);
        places.truncate(MAX_ARGUMENTS);
        LearnedArguments {
            // Once in a process for each function.
            infos: Vec::leak(infos),
            places,
        }
    }
}

impl DescribedArgument {
    /// Where the argument ends at the latest if it is the last one in a structure whose arguments end at `end`. A value of one word has no
    /// fields in words, or the handle of an object alone.
    fn end_of_last(&self, end: usize) -> usize {
        let fields = self.value.trim_matches(['{', '}']);
        let is_handle = fields.starts_with("handle=") && !fields.contains(',');
        match is_handle || !fields.contains('=') {
            true => end.min(self.offset.saturating_add(size_of::<u64>())),
            false => end,
        }
    }
}

impl ValueType {
    /// How a value of a type, which C++ mangles as `mangled`, lies in memory, where it has `room` bytes at most.
    fn of(mangled: &str, room: usize) -> Option<ValueType> {
        let what = match mangled {
            "b" => ValueType::Boolean,
            "c" | "a" => ValueType::Signed(1),
            "h" => ValueType::Unsigned(1),
            "s" => ValueType::Signed(2),
            "t" => ValueType::Unsigned(2),
            "i" => ValueType::Signed(4),
            "j" => ValueType::Unsigned(4),
            "l" | "x" => ValueType::Signed(8),
            "m" | "y" => ValueType::Unsigned(8),
            "f" => ValueType::Float,
            "d" => ValueType::Double,
            _ if mangled.starts_with('P') => ValueType::Pointer,
            // Handles of HSA are structures of one word, whose names end so.
            _ if mangled.ends_with("_s") && room == 8 => ValueType::Pointer,
            // Enumerations; larger ones are structures.
            _ if mangled.starts_with(|first: char| first.is_ascii_digit()) && room <= 8 => {
                ValueType::Signed(4)
            }
            _ => return None,
        };
        (what.bytes() <= room).then_some(what)
    }

    const fn bytes(self) -> usize {
        match self {
            ValueType::Boolean => 1,
            ValueType::Unsigned(bytes) | ValueType::Signed(bytes) => bytes as usize,
            ValueType::Float => 4,
            ValueType::Pointer | ValueType::Double => 8,
        }
    }

    /// The description of an argument with this name and mangled type.
    fn info(self, name: &str, mangled: &str) -> ArgumentInfo {
        let (type_name, kept) = match self {
            ValueType::Pointer if mangled == "PKc" => ("*const c_char", ArgumentType::POINTER),
            ValueType::Pointer if mangled.starts_with("PK") => {
                ("*const c_void", ArgumentType::POINTER)
            }
            ValueType::Pointer if mangled.starts_with('P') => {
                ("*mut c_void", ArgumentType::POINTER)
            }
            ValueType::Pointer => ("handle", ArgumentType::POINTER),
            ValueType::Boolean => ("bool", ArgumentType::BOOLEAN),
            ValueType::Unsigned(1) => ("u8", ArgumentType::UNSIGNED),
            ValueType::Unsigned(2 | 4) => ("u32", ArgumentType::UNSIGNED),
            ValueType::Unsigned(_) => ("u64", ArgumentType::UNSIGNED),
            ValueType::Signed(1 | 2 | 4) => ("i32", ArgumentType::SIGNED),
            ValueType::Signed(_) => ("isize", ArgumentType::SIGNED),
            ValueType::Float => ("f32", ArgumentType::FLOAT),
            ValueType::Double => ("f64", ArgumentType::FLOAT),
        };
        ArgumentInfo {
            // Once in a process for each argument.
            name: String::leak(name.to_owned()),
            type_name,
            kept: Some(kept),
        }
    }

    /// The value at `at`, as 64 bits.
    ///
    /// # Safety
    ///
    /// A value of this type lies at `at`.
    #[inline]
    unsafe fn read(self, at: *const u8) -> u64 {
        // SAFETY: a value of this type lies there (`# Safety`).
        unsafe {
            match self {
                ValueType::Boolean => u64::from(at.read() != 0),
                ValueType::Unsigned(1) => u64::from(at.read()),
                ValueType::Unsigned(2) => u64::from(at.cast::<u16>().read_unaligned()),
                ValueType::Unsigned(4) => u64::from(at.cast::<u32>().read_unaligned()),
                ValueType::Signed(1) => i64::from(at.cast::<i8>().read()) as u64,
                ValueType::Signed(2) => i64::from(at.cast::<i16>().read_unaligned()) as u64,
                ValueType::Signed(4) => i64::from(at.cast::<i32>().read_unaligned()) as u64,
                ValueType::Float => f64::from(at.cast::<f32>().read_unaligned()).to_bits(),
                ValueType::Pointer
                | ValueType::Double
                | ValueType::Unsigned(_)
                | ValueType::Signed(_) => at.cast::<u64>().read_unaligned(),
            }
        }
    }
}

fn describe(operation: Operation, name: &'static str) -> RocmFunction {
    let group = group(operation.domain, name);
    RocmFunction {
        result: result(operation.domain, name),
        arguments: OnceBox::new(),
        info: OperationInfo {
            operation,
            name,
            group,
            arguments: &[],
            keeps_arguments: false,
            observed: if enqueues(operation.domain, name, group) {
                Observed::Work
            } else {
                Observed::No
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_the_tables_of_hsa_follow_one_another() {
        assert_eq!(number_of(0, 7), Some(7));
        assert_eq!(number_of(1, 7), Some(263));
        assert_eq!(number_of(3, 255), Some(1023));
        // HIP has one table, and more functions.
        assert_eq!(number_of(0, 500), Some(500));
        assert_eq!(number_of(1, 256), None);
        assert_eq!(number_of(0, -1), None);
        assert_eq!(number_of(0, 1024), None);
    }

    /// A structure of a call, as the SDK passes it.
    #[repr(C)]
    struct Payload {
        size: u64,
        function: *const c_void,
        blocks: [u32; 3],
        kind: i32,
        flag: u8,
        bytes: u64,
        status: i32,
        rest: [u8; 20],
    }

    #[test]
    fn arguments_and_the_status_are_read_where_they_lie() {
        let payload = Payload {
            size: size_of::<Payload>() as u64,
            function: 16 as *const c_void,
            blocks: [2, 3, 4],
            kind: -5,
            flag: 7,
            bytes: 1 << 40,
            status: 98,
            rest: [0; 20],
        };
        let operation = Operation {
            domain: Domain::HIP,
            number: 1,
        };
        let function = describe(operation, "hipLaunchKernel");
        // The SDK tells addresses in a copy that is gone.
        let argument = |offset, type_name: &str, name: &str| DescribedArgument {
            offset: 0x7ff0_0000 + offset,
            type_name: type_name.to_owned(),
            name: name.to_owned(),
            value: "1".to_owned(),
        };
        let mut described = vec![
            argument(core::mem::offset_of!(Payload, function), "PKv", "function"),
            argument(
                core::mem::offset_of!(Payload, blocks),
                "18rocprofiler_dim3_t",
                "blocks",
            ),
            argument(
                core::mem::offset_of!(Payload, kind),
                "13hipMemcpyKind",
                "kind",
            ),
            argument(core::mem::offset_of!(Payload, flag), "h", "flag"),
            argument(core::mem::offset_of!(Payload, bytes), "m", "bytes"),
        ];
        place_in_structure(&mut described);
        let at = (&raw const payload).cast();
        let mut values = [0; MAX_ARGUMENTS];
        // SAFETY: the structure of this function.
        assert_eq!(unsafe { function.arguments(at, &mut values) }, 0);
        // SAFETY: as above.
        let end = unsafe { end_of_arguments(Domain::HIP, at) };
        function
            .arguments
            .get_or_init(|| LearnedArguments::of(described, end));
        // SAFETY: the structure of this function.
        let count = unsafe { function.arguments(at, &mut values) };
        let minus_5 = i64::from(-5) as u64;
        assert_eq!(values[..count], [16, 2, 3, 4, minus_5, 7, 1 << 40]);
        assert_eq!(
            function.info().signature(),
            "function:pointer,blocks.x:uint,blocks.y:uint,blocks.z:uint,kind:int,flag:uint,bytes:uint"
        );
        // SAFETY: the structure of this function.
        assert_eq!(unsafe { function.status(at) }, 98);
    }

    #[test]
    fn structures_that_are_passed_by_value_have_no_value() {
        let last = |type_name: &str, value: &str| {
            let argument = DescribedArgument {
                offset: FIRST_ARGUMENT,
                type_name: type_name.to_owned(),
                name: "last".to_owned(),
                value: value.to_owned(),
            };
            LearnedArguments::of(vec![argument], 200).places
        };
        assert_eq!(last("9hipExtent", "{width=1, height=1, depth=1}"), []);
        assert_eq!(
            last("13hipMemcpyKind", "HostToDevice"),
            [(8, ValueType::Signed(4))]
        );
        for value in ["handle=68725239936", "{handle=68725239936}"] {
            assert_eq!(last("12hsa_signal_s", value), [(8, ValueType::Pointer)]);
        }
        assert_eq!(ValueType::of("9hipExtent", 24), None);
        assert_eq!(ValueType::of("12hsa_signal_s", 8), Some(ValueType::Pointer));
        assert_eq!(ValueType::of("m", 4), None);
        assert_eq!(
            ValueType::of("P12ihipStream_t", 8),
            Some(ValueType::Pointer)
        );
    }
}
