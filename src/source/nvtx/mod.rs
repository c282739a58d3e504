//! NVTX, NVIDIA's tools extension: its calls become markers, in programs with and without a GPU.
//!
//! NVTX is code of its headers, compiled into each binary that uses it. Its first call loads the library that
//! [`NVTX_VARIABLE`](super::markers::NVTX_VARIABLE) names and calls [`initialise`], once for each binary, with that
//! binary's tables of functions. `functions` has what is put there. Extensions call [`initialise_extension`]: `payload`
//! reads structured payloads, `counters` samples of counters.
//!
//! In a process that is not recorded, the tables are left alone, and NVTX's calls do nothing.

mod abi;
mod counters;
mod functions;
mod payload;
mod schema;

pub use abi::{ExtensionModule, GetExportTable};

use super::markers;
use crate::platform::inside::Uncancelled;
use abi::{CALLBACKS, ExportCallbacks, Function};
use functions::{FunctionOf, answer};

/// Puts our functions into the tables of the calling binary. Returns 1, or 0 if the process is not recorded: NVTX does
/// nothing then.
///
/// # Safety
///
/// `export` is the function of that name which NVTX passes.
pub unsafe fn initialise(export: Option<GetExportTable>) -> i32 {
    answer(0, || {
        let _uncancelled = Uncancelled::begin();
        let Some(export) = export.filter(|_| markers::attach()) else {
            return 0;
        };
        // SAFETY: the table with this id has this type; it lives as long as the binary.
        let callbacks = unsafe { export(CALLBACKS).cast::<ExportCallbacks>().as_ref() };
        let get = callbacks
            .filter(|table| table.size >= size_of::<ExportCallbacks>())
            .and_then(|table| table.get_module_function_table);
        let Some(get) = get else {
            return 0;
        };
        for (module, ours) in &functions::MODULES {
            let (mut table, mut size) = (std::ptr::null(), 0);
            // SAFETY: places for the results. Modules that the binary does not have are refused.
            if unsafe { get(*module, &mut table, &mut size) } == 0 || table.is_null() {
                continue;
            }
            for (id, FunctionOf(function)) in (1..size as usize).zip(*ours) {
                // SAFETY: the table has `size` entries, each null or a place for a function of that id.
                unsafe {
                    let place = *table.add(id);
                    if !place.is_null() {
                        *place = *function;
                    }
                }
            }
        }
        1
    })
}

/// Puts our functions into the slots of an extension. Returns 1, or 0 if the process is not recorded.
///
/// # Safety
///
/// `module` is null or what NVTX passes.
pub unsafe fn initialise_extension(module: *mut ExtensionModule) -> i32 {
    answer(0, || {
        let _uncancelled = Uncancelled::begin();
        // SAFETY: the caller's promise.
        let Some(module) = (unsafe { module.as_ref() }).filter(|_| markers::attach()) else {
            return 0;
        };
        let is_known = usize::from(module.size) >= size_of::<ExtensionModule>()
            && module.nvtx_version == 3
            && module.compatibility >> 8 == 1
            && !module.segments.is_null()
            && module.segments_count > 0;
        let ours: &[Option<FunctionOf>] = match module.module {
            payload::MODULE => &payload::FUNCTIONS,
            counters::MODULE => &counters::FUNCTIONS,
            _ => &[],
        };
        if is_known {
            // SAFETY: there is a first segment; its slots can be written while NVTX initialises.
            unsafe {
                let segment = &*module.segments;
                for (place, function) in (0..segment.slots_count).zip(ours) {
                    if let Some(FunctionOf(function)) = function {
                        *segment.slots.add(place) = *function as Function;
                    }
                }
            }
        }
        1
    })
}
