//! NVTX, NVIDIA's tools extension: its calls become markers, in programs with and without a GPU.
//!
//! NVTX is code of its headers, compiled into each binary that uses it. Its first call loads the library that
//! [`NVTX_VARIABLE`](gputrail_collect::loading::markers::NVTX_VARIABLE) names and calls [`initialise`], once for each binary, with that
//! binary's tables of functions. `functions` has what is put there. Extensions call [`initialise_extension`]: `payload`
//! records structured payloads, whose layouts are in `schema` and whose values `values` reads, `counters` samples of counters,
//! `memory` names of heaps and regions.
//!
//! In a process that is not recorded, the tables are left alone, and NVTX's calls do nothing. Another tool that the program
//! was to load gets the calls, too: `forwarding` passes them on.
//!
//! # What programs say, and what becomes of it
//!
//! | part | what happens |
//! |---|---|
//! | domains of equal names | one domain |
//! | deferred events and samples | placed by their time domain: `nvtxTimestampGet` (the default), the time-stamp counter, CLOCK_REALTIME, _MONOTONIC, _MONOTONIC_RAW, _BOOTTIME, C++ clocks that are one of these, and registered domains of these types or tied to them by synchronisation points or a factor. Events of other domains are instants at their submission, with timestamps as arguments; samples of other domains are left out |
//! | a registered scope | its path is an argument `scope`, and follows the name of counters. Predefined scopes (`NVTX_SCOPE_CURRENT_...`) have none |
//! | heaps and named memory regions | named objects. Regions of CUDA arrays get no handles |
//! | payloads of any registered layout | read. An array whose length is in another payload is empty; pointers and structures behind pointers are an offset or address; 128-bit numbers are hexadecimal digits |
//! | correlations (`nvtxSemanticsCorrelation_t`) | an argument like any other |
//! | semantics of counters besides their unit | values as submitted; samples "unchanged" and "unavailable" are left out, "zero" is 0 |

mod attributes;
mod counters;
mod domain;
mod forwarding;
mod functions;
mod handles;
mod memory;
mod other_tool;
mod payload;
mod registered;
mod schema;
mod scope;
mod semantics;
mod tables;
mod text;
mod time;
mod values;

pub use tables::{ExtensionModule, GetExportTable};

use super::markers;
use core::ffi::c_int;
use gputrail_buffer::platform::inside::Uncancelled;
use other_tool::{OtherTool, THEIR_EXTENSIONS, THEIR_MODULES};
use tables::{CALLBACKS, ExportCallbacks, FunctionOf, FunctionPointer, answer};

/// Puts our functions into the tables of the calling binary. Returns 1, or 0 if the process is not recorded and there is no
/// other tool: NVTX does nothing then.
///
/// # Safety
///
/// `export` is the function of that name which NVTX passes.
pub unsafe fn initialise(export: Option<GetExportTable>) -> i32 {
    answer(0, || {
        let _uncancelled = Uncancelled::begin();
        let Some(get) = export else {
            return 0;
        };
        let is_recorded = markers::attach();
        let other = OtherTool::get().and_then(|other| other.initialise);
        // SAFETY: NVTX's function.
        let before = unsafe { tables(get) };
        // SAFETY: the other tool gets what NVTX would pass it.
        let is_taken = other.is_some_and(|initialise| unsafe { initialise(export) } != 0);
        if !is_recorded {
            return is_taken.into();
        }
        if is_taken {
            handles::begin();
        }
        for (module, places) in &before {
            let theirs = &THEIR_MODULES[*module];
            for (id, place, initial) in places {
                // SAFETY: a place of NVTX's table, which is written during its initialisation.
                let there = unsafe { **place };
                if is_taken && there != *initial {
                    theirs.put(*id, there);
                }
            }
        }
        let ours = if is_taken {
            &forwarding::MODULES
        } else {
            &functions::MODULES
        };
        for (module, functions) in ours {
            let places = before.iter().filter(|(of, _)| *of == *module as usize);
            for (id, place, _) in places.flat_map(|(_, places)| places) {
                if let Some(FunctionOf(function)) = functions.get(id - 1) {
                    // SAFETY: a place for a function of this id.
                    unsafe { **place = *function };
                }
            }
        }
        1
    })
}

/// The places of a module's functions: their ids, and the functions that are there.
type FunctionPlaces = Vec<(usize, *mut FunctionPointer, FunctionPointer)>;

/// The tables of functions of the calling binary, by the number of the module.
///
/// # Safety
///
/// `export` is NVTX's.
unsafe fn tables(export: GetExportTable) -> Vec<(usize, FunctionPlaces)> {
    // SAFETY: the table with this id has this type; it lives as long as the binary.
    let callbacks = unsafe { export(CALLBACKS).cast::<ExportCallbacks>().as_ref() };
    let get = callbacks
        .filter(|table| table.size >= size_of::<ExportCallbacks>())
        .and_then(|table| table.get_module_function_table);
    let Some(get) = get else {
        return Vec::new();
    };
    let table = |module: c_int| {
        let (mut table, mut size) = (std::ptr::null(), 0);
        // SAFETY: places for the results. Modules that the binary does not have are refused.
        if unsafe { get(module, &mut table, &mut size) } == 0 || table.is_null() {
            return None;
        }
        let place = |id: usize| {
            // SAFETY: the table has `size` entries, each null or a place for a function of that id.
            unsafe {
                let place = *table.add(id);
                (!place.is_null()).then(|| (id, place, *place))
            }
        };
        Some((
            module as usize,
            (1..size as usize).filter_map(place).collect(),
        ))
    };
    functions::MODULES
        .iter()
        .filter_map(|(module, _)| table(*module))
        .collect()
}

/// Puts our functions into the slots of an extension. Returns 1, or 0 if the process is not recorded and there is no other
/// tool.
///
/// # Safety
///
/// `module` is null or what NVTX passes, which lasts during the call.
pub unsafe fn initialise_extension(module: *mut ExtensionModule) -> i32 {
    answer(0, || {
        let _uncancelled = Uncancelled::begin();
        if module.is_null() {
            return 0;
        }
        let is_recorded = markers::attach();
        let other = OtherTool::get().and_then(|other| other.initialise_extension);
        // SAFETY: the other tool gets what NVTX would pass it.
        let is_taken = other.is_some_and(|initialise| unsafe { initialise(module) } != 0);
        if !is_recorded {
            return is_taken.into();
        }
        // SAFETY: not null: the structure that NVTX passes, which lasts during the call. The other tool is done with it.
        let given = unsafe { &*module };
        let is_known = usize::from(given.size) >= size_of::<ExtensionModule>()
            && given.nvtx_version == 3
            && given.compatibility >> 8 == 1
            && !given.segments.is_null()
            && given.segments_count > 0;
        if !is_known {
            return 1;
        }
        let ours: &[Option<FunctionOf>] = match given.module {
            payload::MODULE => &payload::FUNCTIONS,
            counters::MODULE => &counters::FUNCTIONS,
            memory::MODULE => &memory::FUNCTIONS,
            _ => &[],
        };
        let all = forwarding::EXTENSIONS.iter();
        let forwarding = all.filter(|(module, _)| is_taken && *module == given.module);
        let forwarding = forwarding.flat_map(|(_, functions)| functions.iter());
        let mut forwarding = forwarding.map(Option::as_ref);
        // SAFETY: there is a first segment.
        let segment = unsafe { &*given.segments };
        for (place, function) in (0..segment.slots_count).zip(ours) {
            // SAFETY: a slot of the segment, which can be written while NVTX initialises.
            let slot = unsafe { &mut *segment.slots.add(place) };
            let theirs = Some(*slot).filter(|theirs| is_taken && !theirs.is_null());
            let function = match (theirs, forwarding.next().flatten()) {
                (Some(theirs), Some(forwarding)) => {
                    THEIR_EXTENSIONS[usize::from(given.module)].put(place, theirs);
                    Some(forwarding)
                }
                (Some(_), None) => None,
                (None, _) => function.as_ref(),
            };
            if let Some(FunctionOf(function)) = function {
                *slot = *function;
            }
        }
        1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_harness::machine::{Need, tools};
    use gputrail_harness::{needs, repository};

    #[test]
    fn functions_of_nvtxs_extensions_that_do_nothing_are_documented() {
        needs!(functions_of_nvtxs_extensions_that_do_nothing_are_documented: Need::Nvtx);
        let page = std::fs::read_to_string(repository("docs/markers.md")).unwrap();
        let rows = page.lines().filter(|line| line.starts_with("| `nvtx"));
        let rows: String = rows.collect();
        let headers = tools().join("nvtx/nvidia/cu13/include/nvtx3");
        let extensions: [(&str, &[Option<FunctionOf>]); 3] = [
            ("nvToolsExtPayload.h", &payload::FUNCTIONS),
            ("nvToolsExtCounters.h", &counters::FUNCTIONS),
            ("nvToolsExtMem.h", &memory::FUNCTIONS),
        ];
        for (header, ours) in extensions {
            let text = std::fs::read_to_string(headers.join(header)).unwrap();
            let ids = text.lines().filter_map(|line| {
                let (name, id) = line
                    .strip_prefix("#define NVTX3EXT_CBID_")?
                    .split_once(' ')?;
                Some((name, id.trim().parse::<usize>().ok()?))
            });
            let mut known = 0;
            for (name, id) in ids {
                let is_taken = ours.get(id).is_some_and(Option::is_some);
                assert_ne!(is_taken, rows.contains(&format!("`{name}`")), "{name}");
                known += 1;
            }
            assert!(known >= ours.iter().flatten().count(), "{header}");
        }
    }
}
