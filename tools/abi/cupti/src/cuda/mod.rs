//! The callback ids of CUDA's driver and runtime, under which calls of OpenCL and of the simulated GPU's runtime appear ([`functions`]),
//! and the arguments that tools see of them, as they lie in the structures of `generated_cuda_meta.h` and `generated_cuda_runtime_api_meta.h`.
//!
//! The numbers and names are those of the headers, which are read when they are first asked for. Every number of the version is an
//! id: those of functions that never happen here can be enabled, too.

pub mod functions;
#[cfg(test)]
mod tests;

use crate::domain::CallbackDomain;
use crate::layout::Layout;
use core::ffi::CStr;
pub use gputrail_abi::functions::Numbered;
use gputrail_abi::functions::{Function, Shown, Table};
use gputrail_abi::kept;
use gputrail_record::Operation;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The most words of a function's parameters.
pub const WORDS: usize = 9;

/// An API of CUDA's.
struct Api {
    /// The number of ids in each layout.
    sizes: [u32; crate::layout::LAYOUTS],
    /// The names of ids.
    names: HashMap<u32, &'static str>,
    /// The functions that appear in it.
    shown: Table,
}

static DRIVER: LazyLock<Api> = LazyLock::new(|| {
    Api::new(
        include_str!("../../include/cupti_driver_cbid.h"),
        "CUPTI_DRIVER_TRACE_CBID_",
        [677, 677, 784, 877],
        functions::DRIVER,
    )
});
static RUNTIME: LazyLock<Api> = LazyLock::new(|| {
    Api::new(
        include_str!("../../include/cupti_runtime_cbid.h"),
        "CUPTI_RUNTIME_TRACE_CBID_",
        [434, 434, 487, 567],
        functions::RUNTIME,
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
        functions: &'static [Function],
    ) -> Api {
        let ids: HashMap<&'static str, u32> = enumerators(header, prefix).collect();
        let names = ids.iter().map(|(name, id)| (*id, *name)).collect();
        let shown = Table::new(functions, |name| ids.get(name.to_str().ok()?).copied());
        Api {
            sizes,
            names,
            shown,
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
    api(domain)?.shown.shown(operation)
}

/// The operations that appear under an id.
pub fn operations_of(domain: CallbackDomain, id: u32) -> impl Iterator<Item = Operation> {
    let api = api(domain).into_iter();
    api.flat_map(move |api| api.shown.operations_of(id))
}

/// The name of a function, without the version that it has in its id's name.
pub fn plain_name(function: &Function) -> &'static CStr {
    let name = function.name.to_str().unwrap_or_default();
    let version = |(_, version): &(&str, &str)| version.parse::<u32>().is_ok();
    let plain = name.rsplit_once("_v").filter(version);
    // A driver's function has versions of one digit in its name.
    let plain = plain.filter(|(_, version)| version.len() > 1);
    kept(plain.map_or(name, |(plain, _)| plain))
}
