//! Counters of agents: the counters of an architecture, the metrics that are derived from them, and the passes in which the
//! hardware can count them.
//!
//! Definitions come from files: those of ROCProfiler v1, rocprofiler-sdk and GPUPerfAPI, and gputrail's own files. [`read`]
//! recognises them by their content. Files in YAML take the feature `counters`. A [`Catalogue`] is made from all of them; a definition that is wrong is refused with its
//! place, and the rest is there.
//!
#![cfg_attr(feature = "counters", doc = "```")]
#![cfg_attr(not(feature = "counters"), doc = "```ignore")]
//! use gputrail::counters::{self, Catalogue, Sources};
//!
//! let mut sources = Sources::default();
//! counters::read_built_in(&mut sources);
//! let catalogue = Catalogue::from(sources);
//! let gfx90a = &catalogue.architectures["gfx90a"];
//! let occupancy = gfx90a.find("OccupancyPercent").unwrap();
//! let plan = counters::plan(gfx90a, &[occupancy]).unwrap();
//! assert_eq!(plan.passes.len(), 1);
//! ```

mod added;
mod catalogue;
mod evaluate;
mod expression;
mod gpuperfapi;
mod input;
mod passes;
#[cfg(feature = "counters")]
mod rocprofiler_sdk;
mod rocprofiler_v1;
mod totals;

pub use added::{add_metrics, with_added};
#[cfg(feature = "cuda")]
pub(crate) use catalogue::nearest;
pub use catalogue::{
    Architecture, Block, BlockIndex, Catalogue, Counter, CounterIndex, CounterLibrary, Defined,
    DefinedFrom, Definition, Definitions, Dialect, Formula, LibraryCounter, LibraryError, Location,
    Property, Refused, Sources, Usage,
};
pub use evaluate::{Column, Invalid, Measured, evaluate};
pub use expression::{Expression, Malformed, Name, Node, Operator, Reduction, Resolution};
pub use input::{CounterInput, InputError, KernelSelection, NumberRange, read_input};
pub use passes::{Counted, Impossible, Plan, plan, plan_limited, plan_one_pass, plan_runs};

use std::io::{self, Read};
use std::path::Path;

/// The end of a message about an unknown name: "; the nearest is SQ_WAVES", or nothing if no name is near.
pub fn the_nearest(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("; the nearest is {name}"),
        names => format!("; the nearest are {}", names.join(", ")),
    }
}

/// Maximum size of a definition file.
const MAX_FILE_BYTES: u64 = 16 << 20;

#[cfg(feature = "counters")]
/// Adds the definitions that the library has: those of rocprofiler-sdk, and the capacities of blocks.
pub fn read_built_in(sources: &mut Sources) {
    let sdk = include_str!("../../schemas/counters/amd/counter_defs.yaml");
    rocprofiler_sdk::read("counter_defs.yaml", sdk, sources);
    let blocks = include_str!("../../schemas/counters/blocks.yaml");
    rocprofiler_sdk::read("blocks.yaml", blocks, sources);
}

/// Adds the definitions of a file, and of those that it includes, which lie in the same folder. Definitions that are wrong are in
/// [`Sources::refused`].
///
/// # Errors
///
/// The file cannot be read, is larger than 16 MiB, or is no UTF-8.
pub fn read(file: &Path, sources: &mut Sources) -> io::Result<()> {
    let text = text_of(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut include = |name: &str| {
        let is_neighbour = Path::new(name).file_name().is_some_and(|own| own == name);
        match is_neighbour {
            true => text_of(&folder.join(name)).map_err(|error| error.to_string()),
            false => Err("expected the name of a file in the same folder".to_owned()),
        }
    };
    read_text(&file.display().to_string(), &text, &mut include, sources);
    Ok(())
}

/// As [`read`], of a file with this name and text. `include` returns the text of a file that it includes.
pub fn read_text(
    file: &str,
    text: &str,
    include: &mut dyn FnMut(&str) -> Result<String, String>,
    sources: &mut Sources,
) {
    let mut lines = text.lines().map(str::trim_start);
    let begins = lines.find(|line| !line.is_empty() && !line.starts_with(';'));
    match begins {
        Some(line) if line.starts_with('<') || line.starts_with("#include") => {
            rocprofiler_v1::read(file, text, include, sources);
        }
        Some(line) if line.starts_with("name=") => gpuperfapi::read((file, text), None, sources),
        #[cfg(feature = "counters")]
        _ => rocprofiler_sdk::read(file, text, sources),
        #[cfg(not(feature = "counters"))]
        _ => sources.refused.push(Refused {
            at: Location {
                file: file.into(),
                line: 1,
                column: 1,
            },
            problem: "this build reads no definitions in YAML".to_owned(),
        }),
    }
}

/// Adds GPUPerfAPI's public counters, and all hardware counters of its list of names: the name and the text of both files.
pub fn read_gpuperfapi(public: (&str, &str), names: (&str, &str), sources: &mut Sources) {
    gpuperfapi::read(public, Some(names), sources);
}

fn text_of(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let opened = std::fs::File::open(file)?;
    opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_FILE_BYTES {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "a definition file has at most 16 MiB",
        )),
        false => Ok(text),
    }
}
