//! Tables of the functions of other vendors' APIs, under which calls of OpenCL and of the simulated GPU's runtime appear: those that
//! do the same.
//!
//! A runtime's function has an [`Action`], and values for the [`Role`]s that parameters have in it (`runtimes`). An API has one table:
//! each function with its parameters, their roles, and the actions that it is for. Actions without a function there have no like in
//! that API.
//!
//! Differences: a workgroup whose size the runtime chooses counts as one work-item, so that the grid is the work-items. An object
//! that is released may have other references. Images are arrays. Attributes of devices have other numbers in each API, and are
//! 0, but those of the simulated GPU in CUDA. Of a list of events, the first appears. A fill with a pattern of words may appear as
//! a fill with the pattern's first byte.

mod arguments;
mod runtimes;

pub use arguments::{Arguments, Made};
pub(crate) use runtimes::USUAL;
pub use runtimes::{all_calls, translation};

use arguments::Translation;
use core::ffi::CStr;
use gputrail_record::{Domain, Operation};
use gputrail_tool::Callback;

/// The `cudaError_t`, `CUresult` and `hipError_t` for a status of OpenCL or of the simulated GPU's runtime: they have the same numbers.
pub fn error_of(status: i32) -> u32 {
    match status {
        0 => 0,
        // CL_INVALID_VALUE; the simulated GPU's
        -30 | 1 => 1,
        // CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY; the simulated GPU's
        -6..=-4 | 2 => 2,
        // Work has not ended: the simulated GPU's
        3 => 600,
        _ => 999,
    }
}

/// The value that a call has returned, at its exit. A function of the simulated GPU's runtime returns a status, beside what it makes.
pub fn returned(callback: &Callback<'_>) -> u64 {
    match callback.operation().domain {
        Domain::OPENCL => callback.return_value().unwrap_or(0),
        _ => callback
            .return_code()
            .map_or(0, |code| i64::from(code) as u64),
    }
}

/// Enumerations whose values are places in arrays.
macro_rules! places {
    ($(#[$what:meta])* $type:ident [$count:ident] { $($(#[$doc:meta])* $name:ident,)* }) => {
        $(#[$what])*
        #[allow(missing_docs, reason = "the names say it")]
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$doc])* $name,)* }

        /// The number of values.
        pub const $count: usize = [$($type::$name),*].len();
    };
}

places! {
    /// The effect of a function. Those with `AndWait` return when their work has ended.
    Action [ACTIONS] {
        Initialise, CountDevices, GetDeviceAttribute, SetDevice, SynchronizeDevice, GetMemoryInfo, GetLastError,
        CreateContext, DestroyContext,
        CreateStream, DestroyStream, SynchronizeStream, WaitInStream,
        CreateEvent, DestroyEvent, RecordEvent, SynchronizeEvent, QueryEvent,
        Allocate, AllocateHost, AllocateManaged, AllocateArray, Free, FreeHost, FreeInStream, Prefetch,
        CopyToHost, CopyToHostAndWait, CopyToDevice, CopyToDeviceAndWait, CopyWithinDevice, CopyBetweenDevices,
        /// A copy whose direction follows from the addresses.
        Copy, CopyAndWait, CopyWithoutStream,
        CopyRectangle, CopyRectangleAndWait,
        CopyFromArray, CopyFromArrayAndWait, CopyToArray, CopyToArrayAndWait, CopyArray,
        Fill, FillArray,
        LoadModule, LoadModuleData, UnloadModule, GetFunction,
        Launch, LaunchHostFunction,
        CreateGraph, InstantiateGraph, LaunchGraph, DestroyExecutableGraph, DestroyGraph,
    }
}

places! {
    /// The meaning of a parameter.
    Role [ROLES] {
        /// None: its value is 0.
        Zero,
        /// None: its value is 1.
        One,
        /// A place of what the function makes or finds out.
        Made,
        /// A place for the memory of the device.
        Total,
        /// A place for the number of devices.
        Count,
        /// The number of an attribute in CUDA.
        CudaAttribute,
        Context, Device, Flags, Stream, Event, Memory, Bytes, Value, Module, Code, Name, Graph,
        Destination, DestinationPitch, Source, SourcePitch, Width, Height,
        /// `cudaMemcpyKind` and `hipMemcpyKind`.
        Direction,
        Kernel, GridX, GridY, GridZ, BlockX, BlockY, BlockZ, LocalMemory, HostFunction, UserData,
    }
}

/// The type of a parameter.
#[derive(Copy, Clone, Debug)]
pub struct Type {
    /// Its name, as C++ mangles it; empty where nobody is told of it.
    pub mangled: &'static CStr,
    /// How many pointers it is away from what it leads to.
    pub depth: i32,
    /// Its bytes: 1, 4 or 8.
    pub bytes: usize,
}

/// A parameter.
#[derive(Copy, Clone, Debug)]
pub struct Parameter {
    /// Its name; that of a part where the parameter is a structure.
    pub name: &'static CStr,
    /// Its type.
    pub of: Type,
    /// Its meaning.
    pub role: Role,
}

/// A function of an API.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static CStr,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The actions that appear as this function.
    pub actions: &'static [Action],
}

impl Function {
    /// The parameters, each with the offset of its value from the first, as C puts the fields of a structure.
    pub fn places(&self) -> impl Iterator<Item = (usize, &'static Parameter)> + use<> {
        let mut end = 0_usize;
        self.parameters.iter().map(move |parameter| {
            let place = end.next_multiple_of(parameter.of.bytes);
            end = place + parameter.of.bytes;
            (place, parameter)
        })
    }
}

/// `text`, which ends with a 0, for C.
pub const fn text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a name ends with a 0, and has none within"),
    }
}

/// The functions of an API: `function(parameter: TYPE = Role, ...) for Action, ...;` with types that are constants.
#[macro_export]
macro_rules! functions {
    ($(#[$what:meta])* $table:ident: $(
        $name:ident($($($parameter:ident).+: $type:ident $(= $role:ident)?),* $(,)?) for $($action:ident),+;
    )*) => {
        $(#[$what])*
        pub static $table: &[$crate::functions::Function] = &[$($crate::functions::Function {
            name: $crate::functions::text(concat!(stringify!($name), "\0")),
            parameters: &[$($crate::functions::Parameter {
                name: $crate::functions::text(concat!(stringify!($($parameter).+), "\0")),
                of: $type,
                role: $crate::functions!(@ $($role)?),
            }),*],
            actions: &[$($crate::functions::Action::$action),+],
        }),*];
    };
    (@) => { $crate::functions::Role::Zero };
    (@ $role:ident) => { $crate::functions::Role::$role };
}

/// A function with its number in its API.
#[derive(Copy, Clone, Debug)]
pub struct Numbered {
    /// The number.
    pub number: u32,
    /// The function.
    pub function: &'static Function,
}

/// A function of a runtime that appears as one of an API.
#[derive(Debug)]
pub struct Shown {
    translation: &'static Translation,
    shown: Numbered,
    /// The function if an argument, which has this place, is not 0: the call waits for its work.
    waiting: Option<(usize, Numbered)>,
}

/// The functions of runtimes that appear in an API.
#[derive(Debug)]
pub struct Table([Vec<Option<Shown>>; 2]);

/// The runtimes whose calls appear.
pub(crate) const DOMAINS: [Domain; 2] = [Domain::OPENCL, Domain::SIM];

/// The values of `of` for all functions of the runtimes, by domain and number.
fn by_number<T>(of: impl Fn(Operation) -> Option<T>) -> [Vec<Option<T>>; 2] {
    DOMAINS.map(|domain| {
        let mut all = Vec::new();
        for operation in gputrail_tool::operations(domain).unwrap_or_default() {
            let place = usize::from(operation.number);
            if all.len() <= place {
                all.resize_with(place + 1, || None);
            }
            all[place] = of(operation);
        }
        all
    })
}

/// The entry for an operation.
fn entry<T>(all: &[Vec<Option<T>>; 2], operation: Operation) -> Option<&T> {
    let domain = DOMAINS.iter().position(|one| *one == operation.domain)?;
    all[domain].get(usize::from(operation.number))?.as_ref()
}

impl Table {
    /// The table of the API with these functions. Those without a `number` are left out.
    pub fn new(functions: &'static [Function], number: impl Fn(&CStr) -> Option<u32>) -> Table {
        let mut of_actions = [None; ACTIONS];
        for function in functions {
            let number = number(function.name);
            for action in function.actions {
                of_actions[*action as usize] = number.map(|number| Numbered { number, function });
            }
        }
        Table(by_number(|operation| {
            let call = runtimes::call(operation)?;
            let waiting = call
                .waiting
                .and_then(|(argument, action)| Some((argument, of_actions[action as usize]?)));
            Some(Shown {
                translation: &call.translation,
                shown: of_actions[call.action as usize]?,
                waiting,
            })
        }))
    }

    /// How a function of a runtime appears, if it does.
    pub fn shown(&self, operation: Operation) -> Option<&Shown> {
        entry(&self.0, operation)
    }

    /// The functions of runtimes that appear under a number.
    pub fn operations_of(&self, number: u32) -> impl Iterator<Item = Operation> {
        all_calls().filter(move |operation| {
            let shown = self.shown(*operation);
            shown.is_some_and(|shown| shown.numbers().any(|one| one == number))
        })
    }
}

impl Shown {
    /// The numbers of its calls: one, or another one for those that wait for their work.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let waiting = self.waiting.map(|(_, function)| function.number);
        [self.shown.number].into_iter().chain(waiting)
    }

    /// The function as which a call with these arguments appears.
    pub fn function(&self, arguments: &Arguments) -> Numbered {
        match self.waiting {
            Some((argument, waiting)) if arguments.at(argument) != 0 => waiting,
            _ => self.shown,
        }
    }

    /// The number of a call whose arguments are known, or not.
    pub fn number(&self, arguments: Option<&Arguments>) -> u32 {
        let function = arguments.map_or(self.shown, |arguments| self.function(arguments));
        function.number
    }

    /// Puts the parameters of a call into words, as C puts the fields of a structure; `made` is the address of its results. Called
    /// during the call: arrays of the program's are read.
    pub fn put(&self, arguments: &Arguments, made: u64, to: &mut [u64]) {
        let parameters = self.function(arguments).function.places();
        self.translation.put(parameters, arguments, made, to);
    }

    /// The results of a call at its exit.
    pub fn made(&self, arguments: &Arguments, callback: &Callback<'_>) -> Made {
        self.translation.made(arguments, callback)
    }
}

/// The actions for which an API has several functions.
pub fn ambiguous(functions: &[Function]) -> Vec<Action> {
    let actions = functions.iter().flat_map(|function| function.actions);
    let mut of_actions = [0; ACTIONS];
    let twice = actions.filter(|action| {
        of_actions[**action as usize] += 1;
        of_actions[**action as usize] > 1
    });
    twice.copied().collect()
}
