//! The callback ids of CUDA's driver and runtime, under which calls of OpenCL and of the simulated GPU's runtime appear ([`table`]),
//! and the arguments that tools see of them, as they lie in the structures of `generated_cuda_meta.h` and `generated_cuda_runtime_api_meta.h`.
//!
//! The numbers and names are those of the headers, which are read when they are first asked for. Every number of the version is an
//! id: those of functions that never happen here can be enabled, too.

#[cfg(not(test))]
mod functions;
#[cfg(test)]
pub mod functions;
mod table;
#[cfg(test)]
mod tests;

use crate::domain::CallbackDomain;
use crate::layout::Layout;
use core::ffi::CStr;
use functions::Function;
use gputrail_abi::calls::{Arguments, Translation};
use gputrail_abi::kept;
use gputrail_record::{Domain, Operation};
use gputrail_tool::{Callback, operation_name, operations};
use std::collections::HashMap;
use std::sync::LazyLock;
use table::Row;

/// The most words of a function's parameters.
const WORDS: usize = 9;

/// The status for one of OpenCL or of the simulated GPU's runtime, as a `CUresult` and a `cudaError_t`.
pub fn status(of: i32) -> u32 {
    match of {
        0 => 0,
        // CL_INVALID_VALUE
        -30 => 1,
        // CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY
        -6..=-4 => 2,
        _ => 999,
    }
}

/// An API of CUDA's.
struct Api {
    /// The number of ids in each layout.
    sizes: [u32; crate::layout::LAYOUTS],
    /// The names of ids, and the ids of names.
    names: HashMap<u32, &'static str>,
    #[cfg(test)]
    ids: HashMap<&'static str, u32>,
    /// The functions that appear in it, by domain and number.
    shown: HashMap<(Domain, u16), Shown>,
}

static DRIVER: LazyLock<Api> = LazyLock::new(|| {
    Api::new(
        include_str!("../../include/cupti_driver_cbid.h"),
        "CUPTI_DRIVER_TRACE_CBID_",
        [677, 677, 784, 877],
        table::DRIVER,
    )
});
static RUNTIME: LazyLock<Api> = LazyLock::new(|| {
    Api::new(
        include_str!("../../include/cupti_runtime_cbid.h"),
        "CUPTI_RUNTIME_TRACE_CBID_",
        [434, 434, 487, 567],
        table::RUNTIME,
    )
});

fn api(domain: CallbackDomain) -> Option<&'static Api> {
    match domain {
        CallbackDomain::DRIVER_API => Some(&DRIVER),
        CallbackDomain::RUNTIME_API => Some(&RUNTIME),
        _ => None,
    }
}

/// The enumerators of a header: names without their prefix, and numbers.
fn enumerators(
    header: &'static str,
    prefix: &'static str,
) -> impl Iterator<Item = (&'static str, u32)> {
    header.lines().filter_map(move |line| {
        let (name, number) = line.trim().strip_prefix(prefix)?.split_once(" = ")?;
        let number: u32 = number.strip_suffix(',')?.parse().ok()?;
        (number != 0).then_some((name, number))
    })
}

impl Api {
    fn new(
        header: &'static str,
        prefix: &'static str,
        sizes: [u32; crate::layout::LAYOUTS],
        rows: &'static [Row],
    ) -> Api {
        let ids: HashMap<&'static str, u32> = enumerators(header, prefix).collect();
        let names = ids.iter().map(|(name, id)| (*id, *name)).collect();
        let of_domain = |domain| operations(domain).unwrap_or_default();
        let all = [Domain::OPENCL, Domain::SIM]
            .into_iter()
            .flat_map(of_domain);
        let shown = all.filter_map(|operation| {
            let name = operation_name(operation)?;
            let row = rows.iter().find(|row| row.function == name)?;
            let shown = Shown::new(operation, row, &ids)?;
            Some(((operation.domain, operation.number), shown))
        });
        Api {
            sizes,
            names,
            shown: shown.collect(),
            #[cfg(test)]
            ids,
        }
    }
}

/// One more than the greatest id of CUDA's in a domain; 0 in others.
pub fn size(domain: CallbackDomain, layout: Layout) -> u32 {
    api(domain).map_or(0, |api| api.sizes[layout as usize])
}

/// The name of an id, if the headers have it.
pub fn name(domain: CallbackDomain, id: u32) -> Option<&'static str> {
    api(domain)?.names.get(&id).copied()
}

/// How a function appears in an API, if it does.
pub fn shown(domain: CallbackDomain, operation: Operation) -> Option<&'static Shown> {
    let place = (operation.domain, operation.number);
    api(domain)?.shown.get(&place)
}

/// The operations that appear under an id.
pub fn operations_of(domain: CallbackDomain, id: u32) -> Vec<Operation> {
    let Some(api) = api(domain) else {
        return Vec::new();
    };
    let all = api.shown.iter();
    let found = all.filter(|(_, shown)| shown.ids().any(|one| one == id));
    let operation = |((domain, number), _): (&(Domain, u16), &Shown)| Operation {
        domain: *domain,
        number: *number,
    };
    found.map(operation).collect()
}

/// A function of CUDA, with its id.
#[derive(Copy, Clone, Debug)]
struct Numbered {
    id: u32,
    function: &'static Function,
}

/// A function of OpenCL or of the simulated GPU's runtime that appears as one of CUDA.
#[derive(Debug)]
pub struct Shown {
    shown: Numbered,
    blocking: Option<(usize, Numbered)>,
    translation: Translation,
}

impl Shown {
    fn new(operation: Operation, row: &Row, ids: &HashMap<&'static str, u32>) -> Option<Shown> {
        let numbered = |function: &'static Function| {
            let id = *ids.get(function.name)?;
            Some(Numbered { id, function })
        };
        let translation = Translation::new(operation, row.values);
        let blocking = row.blocking.and_then(|(argument, function)| {
            Some((translation.place(argument)?, numbered(function)?))
        });
        Some(Shown {
            shown: numbered(row.shown)?,
            blocking,
            translation,
        })
    }

    /// The ids of its calls: one, or another one for those that wait for their work.
    pub fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        let blocking = self.blocking.map(|(_, function)| function.id);
        [self.shown.id].into_iter().chain(blocking)
    }

    fn function(&self, arguments: &Arguments) -> Numbered {
        match self.blocking {
            Some((argument, blocking)) if arguments.at(argument) != 0 => blocking,
            _ => self.shown,
        }
    }

    /// The id of a call with these arguments.
    pub fn id(&self, arguments: &Arguments) -> u32 {
        self.function(arguments).id
    }

    /// The name of the function that a call with these arguments appears as: without the version that it has in the id's name.
    pub fn function_name(&self, arguments: &Arguments) -> &'static CStr {
        let name = self.function(arguments).function.name;
        let version = |(_, version): &(&str, &str)| version.parse::<u32>().is_ok();
        let plain = name.rsplit_once("_v").filter(version);
        // A driver's function has versions of one digit in its name.
        let plain = plain.filter(|(_, version)| version.len() > 1);
        kept(plain.map_or(name, |(plain, _)| plain))
    }

    /// How its arguments are translated.
    pub fn translation(&self) -> &Translation {
        &self.translation
    }

    /// The parameters of a call; `made` is where its result is put.
    pub fn parameters(&self, arguments: &Arguments, made: *const u64) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let parameters = self.function(arguments).function.parameters.iter();
        let bytes = parameters.map(|parameter| parameter.bytes);
        self.translation
            .put(bytes, arguments, made.addr() as u64, &mut words);
        words
    }

    /// The result of a call at its exit.
    pub fn made(&self, arguments: &Arguments, callback: &Callback<'_>) -> u64 {
        self.translation.made(arguments, callback)
    }
}
