//! The description of each function, from its row of a table: the dispatch struct that loaders and layers exchange, and
//! the operations with their names, groups and arguments.

use super::extension_table::extension_functions;
use super::ffi::*;
use super::table::opencl_functions;
use core::ptr;
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::switchboard::{ArgumentInfo, Observed};
use gputrail_record::{ArgumentType, Domain, Operation, OperationGroup};

/// A function of a dispatch table whose signature does not matter here.
pub(super) type AnyFunction = Option<unsafe extern "C-unwind" fn()>;

macro_rules! field {
    (pass ($($ty:ty),*) -> $ret:ty) => { AnyFunction };
    ($how:ident ($($ty:ty),*) -> $ret:ty) => { Option<unsafe extern "C-unwind" fn($($ty),*) -> $ret> };
}

macro_rules! describe {
    ($(
        $group:ident $how:ident $(($($detail:ident),*))? $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty
        { $($hook:tt)* }
    )*) => {
        &[$(FunctionDescription {
            name: stringify!($name),
            group: OperationGroup::$group,
            observed: observed!($group { $($hook)* }),
            inside: inside!({ $($hook)* }),
            objects: {
                const NAMES: &[&str] = &[$(type_name!($ty)),*];
                [$crate::opencl::functions::object_type(NAMES, 0), $crate::opencl::functions::object_type(NAMES, 1)]
            },
            arguments: &[$(ArgumentInfo {
                name: stringify!($arg),
                type_name: type_name!($ty),
                kept: <$ty as ArgumentForm>::TYPE,
            }),*],
        }),*]
    };
}

macro_rules! declare {
    ($(
        $group:ident $how:ident $(($($detail:ident),*))? $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty
        { $($hook:tt)* }
    )*) => {
        /// The functions of a runtime, a loader or a layer, in the order of `cl_icd_dispatch`.
        #[repr(C)]
        #[derive(Clone)]
        #[allow(non_snake_case)]
        pub struct DispatchTable {
            $(pub(super) $name: field!($how($($ty),*) -> $ret),)*
        }

        /// The functions, numbered as their operations are in records.
        #[allow(non_camel_case_types, dead_code)] // those of other systems are numbers only
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub(super) enum ClFunction { $($name),* }
    };
}

macro_rules! declare_extensions {
    ($(
        $group:ident $how:ident $(($($detail:ident),*))? $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty
        { $($hook:tt)* }
    )*) => {
        #[allow(non_camel_case_types, dead_code)] // only wrappers need their numbers
        #[repr(u16)]
        enum Index { $($name),* }

        /// The numbers of extension functions: those of the dispatch table come first, with room for more.
        #[allow(non_upper_case_globals, dead_code)] // only wrappers need them
        pub(super) mod numbers {
            use super::Index;
            $(pub const $name: u16 = super::FIRST_EXTENSION + Index::$name as u16;)*
        }
    };
}

/// The way in which the layer observes a function, given its group and hook.
macro_rules! observed {
    ($group:ident {}) => {
        Observed::No
    };
    (QUERY { $($hook:tt)* }) => {
        Observed::Books
    };
    (SET { $($hook:tt)* }) => {
        Observed::Books
    };
    ($group:ident { $($hook:tt)* }) => {
        Observed::Work
    };
}

/// The effect of a call, given its hook, whose enter subscribers see before the hook runs.
macro_rules! inside {
    ({ then |$call:ident, $made:ident| memory::created($($rest:tt)*) }) => {
        CallEffect::Allocates
    };
    ({ then |$call:ident, $made:ident| memory::svm_allocated($($rest:tt)*) }) => {
        CallEffect::Allocates
    };
    ({ then |$call:ident, $made:ident| memory::usm_allocated($($rest:tt)*) }) => {
        CallEffect::Allocates
    };
    ({ then |$call:ident, ()| memory::usm_freed($($rest:tt)*) }) => {
        CallEffect::FreesShared
    };
    ($hook:tt) => {
        CallEffect::Nothing
    };
}

/// A type as Rust writes it: `stringify!` puts a space behind the star of a pointer.
macro_rules! type_name {
    ($type:ty) => {{
        const RAW: &str = stringify!($type);
        const LENGTH: usize = $crate::opencl::functions::tidy_length(RAW);
        const TIDY: [u8; LENGTH] = $crate::opencl::functions::tidy(RAW);
        match core::str::from_utf8(&TIDY) {
            Ok(name) => name,
            Err(_) => RAW,
        }
    }};
}

/// Whether the byte at `place` is a space behind a star.
const fn is_gap(text: &[u8], place: usize) -> bool {
    place > 0 && text[place] == b' ' && text[place - 1] == b'*'
}

/// Bytes of `text` without gaps.
pub(super) const fn tidy_length(text: &str) -> usize {
    let (text, mut length, mut place) = (text.as_bytes(), 0, 0);
    while place < text.len() {
        length += !is_gap(text, place) as usize;
        place += 1;
    }
    length
}

/// `text` without gaps.
pub(super) const fn tidy<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let (text, mut tidy) = (text.as_bytes(), [0; LENGTH]);
    let (mut length, mut place) = (0, 0);
    while place < text.len() {
        if !is_gap(text, place) {
            tidy[length] = text[place];
            length += 1;
        }
        place += 1;
    }
    tidy
}

/// Queries one value from a function of the runtime; `None` if the query fails.
macro_rules! ask {
    ($api:expr, $name:ident($($object:expr),+) -> $type:ty) => {{
        // SAFETY: numbers, handles and arrays of them, for which zeros are valid.
        let mut value: $type = unsafe { core::mem::zeroed() };
        let to = (&raw mut value).cast();
        let result = $api.$name.map(|ask| {
            // SAFETY: objects that exist: devices, what the program holds while it is in a call or the table of objects is
            // locked, and what we hold. There is room for the answer.
            unsafe { ask($($object),+, size_of::<$type>(), to, core::ptr::null_mut()) }
        });
        (result == Some(CL_SUCCESS)).then_some(value)
    }};
}
pub(super) use ask;

opencl_functions!(declare);
extension_functions!(declare_extensions);

/// The functions of the dispatch table, in its order.
pub(super) const FUNCTIONS: &[FunctionDescription] = opencl_functions!(describe);

/// The extension functions that the layer observes.
const EXTENSIONS: &[FunctionDescription] = extension_functions!(describe);

/// The number of the first extension function.
const FIRST_EXTENSION: u16 = 0x100;

/// Every function, with its number.
pub(super) fn functions() -> impl Iterator<Item = (u16, &'static FunctionDescription)> {
    let core = FUNCTIONS.iter().zip(0..);
    let extensions = EXTENSIONS.iter().zip(FIRST_EXTENSION..);
    core.chain(extensions)
        .map(|(function, number)| (number, function))
}

/// The description of a function.
pub(super) struct FunctionDescription {
    pub name: &'static str,
    pub group: OperationGroup,
    pub observed: Observed,
    pub inside: CallEffect,
    /// The objects that the first two arguments are.
    pub objects: [ObjectType; 2],
    pub arguments: &'static [ArgumentInfo],
}

/// The object that an argument is. Callbacks of calls look it up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ObjectType {
    Context,
    Queue,
    Program,
    Memory,
    Kernel,
    /// None of these, or there is no such argument.
    Other,
}

/// The object that the argument at `place` is, by the names of the types of all.
pub(super) const fn object_type(names: &[&str], place: usize) -> ObjectType {
    if place >= names.len() {
        return ObjectType::Other;
    }
    match names[place].as_bytes() {
        b"cl_context" => ObjectType::Context,
        b"cl_command_queue" => ObjectType::Queue,
        b"cl_program" => ObjectType::Program,
        b"cl_mem" => ObjectType::Memory,
        b"cl_kernel" => ObjectType::Kernel,
        _ => ObjectType::Other,
    }
}

impl FunctionDescription {
    /// Whether records keep the arguments of calls.
    pub fn keeps_arguments(&self) -> bool {
        matches!(
            self.group,
            OperationGroup::CREATE | OperationGroup::BUILD | OperationGroup::ENQUEUE
        )
    }

    /// The description of the function `number` as an operation.
    pub fn info(&'static self, number: u16) -> OperationInfo {
        OperationInfo {
            operation: operation(number),
            name: self.name,
            group: self.group,
            arguments: self.arguments,
            keeps_arguments: self.keeps_arguments(),
            observed: self.observed,
        }
    }
}

/// The effect of a call whose enter its wrapper reports.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum CallEffect {
    Nothing,
    /// Memory is allocated.
    Allocates,
    /// Memory is freed that is identified by its address, the argument `ptr`.
    FreesShared,
}

/// The description of the function with this number.
pub(super) fn description(number: u16) -> Option<&'static FunctionDescription> {
    match number.checked_sub(FIRST_EXTENSION) {
        None => FUNCTIONS.get(number as usize),
        Some(place) => EXTENSIONS.get(place as usize),
    }
}

/// The operation of a function, by its number.
pub(super) const fn operation(number: u16) -> Operation {
    Operation {
        domain: Domain::OPENCL,
        number,
    }
}

/// A type of argument: whether annotations keep its value, and with which type.
///
/// Pointers to lists, results and callbacks are not kept, since their targets are gone when the annotation is read.
pub(super) trait ArgumentForm: Copy {
    const TYPE: Option<ArgumentType> = None;
    /// Whether it is an event wait list.
    const LIST_OF_EVENTS: bool = false;
}

/// The bits of an argument: a number, a handle or a pointer. Signed ones are sign-extended.
#[inline(always)]
pub(super) fn bits<T: ArgumentForm>(argument: T) -> u64 {
    const { assert!(size_of::<T>() <= 8) };
    let mut bits = [0u8; 8];
    // SAFETY: an argument has no padding and at most 8 bytes.
    unsafe {
        ptr::copy_nonoverlapping(
            (&raw const argument).cast(),
            bits.as_mut_ptr(),
            size_of::<T>(),
        )
    };
    let bits = u64::from_ne_bytes(bits);
    match (T::TYPE, size_of::<T>()) {
        (Some(ArgumentType::SIGNED), 4) => i64::from(bits as i32) as u64,
        _ => bits,
    }
}

macro_rules! kept {
    ($kind:ident for $($type:ty),*) => {
        $(impl ArgumentForm for $type {
            const TYPE: Option<ArgumentType> = Some(ArgumentType::$kind);
        })*
    };
}
kept!(UNSIGNED for u32, u64, usize);
kept!(SIGNED for i32, isize);
kept!(FLAGS for cl_bitfield);
kept!(BOOLEAN for cl_bool);
kept!(POINTER for cl_platform_id, cl_device_id, cl_context, cl_command_queue, cl_mem, cl_program, cl_kernel, cl_event,
    cl_sampler, cl_semaphore_khr, cl_command_buffer_khr, cl_mutable_command_khr, *mut c_void, *const c_void, NativeKernel);
// Kernel names and build options.
kept!(STRING for *const c_char);

macro_rules! left_out {
    ($($type:ty),*) => { $(impl ArgumentForm for $type {})* };
}
left_out!(
    ContextCallback,
    ContextDestructor,
    ProgramCallback,
    EventCallback,
    MemCallback,
    SvmFreeCallback,
    *const cl_platform_id,
    *mut cl_platform_id,
    *const cl_device_id,
    *mut cl_device_id,
    *const cl_mem,
    *const cl_program,
    *mut cl_kernel,
    *const cl_command_queue,
    *mut cl_event,
    *mut cl_command_queue,
    *const cl_semaphore_khr,
    *mut cl_mutable_command_khr,
    *mut i32,
    *mut u32,
    *const u64,
    *mut u64,
    *const isize,
    *const usize,
    *mut usize,
    *const u32,
    *mut cl_bitfield,
    *mut *const c_char,
    *mut *const cl_uchar,
    *mut *const c_void,
    *mut *mut c_void
);

impl ArgumentForm for *const cl_event {
    const LIST_OF_EVENTS: bool = true;
}
