//! Definitions of counters, and files that name the counters of a recording.
//!
//! Definitions come from files of ROCProfiler v1, rocprofiler-sdk and GPUPerfAPI, and from gputrail's own files. [`read`]
//! recognises them by their content; [`read_built_in`] has those that gputrail carries. This is a crate of its own since a
//! recorded program reads no YAML.
//!
//! | file | of | what is read |
//! |---|---|---|
//! | `metrics.xml` | ROCProfiler v1 | sections per architecture with their bases, `<global>`, `#include` of a file in the same folder, `#` comments, values without quotes |
//! | `counter_defs.yaml` | rocprofiler-sdk | a definition for each architecture: block and event, or an expression |
//! | `PublicCounterDefinitions*.txt` | GPUPerfAPI 2.x | public counters with formulas in postfix notation, ranges of instances (`TA*_X[0..15]`) |
//! | a file of your own | gputrail | as rocprofiler-sdk's with `gputrail:` at the top; counters may have a `usage`, and blocks their `instances` and `capacity` |
//!
//! A block counts as many events at a time as its capacity in `blocks.yaml` (one, if unknown), whatever other blocks count.
//!
//! All files that AMD publishes in these formats lie in `amd`, with their licences; `cargo test --test counters` reads each of them and
//! compares every metric with an evaluation in Python.
//!
//! ```
//! use gputrail_counters::{Catalogue, Sources, plan};
//!
//! let mut sources = Sources::default();
//! gputrail_definitions::read_built_in(&mut sources);
//! let catalogue = Catalogue::from(sources);
//! let gfx90a = &catalogue.architectures["gfx90a"];
//! let occupancy = gfx90a.find("OccupancyPercent").unwrap();
//! let plan = plan(gfx90a, &[occupancy]).unwrap();
//! assert_eq!(plan.passes.len(), 1);
//! ```
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

mod input;
mod jobs;
mod rocprofiler_sdk;

pub use input::{CounterInput, InputError, read_input};

use gputrail_counters::Sources;
use std::io;
use std::path::Path;

/// Adds the definitions that the library has: those of rocprofiler-sdk, and the capacities of blocks.
pub fn read_built_in(sources: &mut Sources) {
    let sdk = include_str!("amd/counter_defs.yaml");
    rocprofiler_sdk::read("counter_defs.yaml", sdk, sources);
    let blocks = include_str!("blocks.yaml");
    rocprofiler_sdk::read("blocks.yaml", blocks, sources);
}

/// Adds the definitions of a file, and of those that it includes, which lie in the same folder. Wrong definitions are in
/// [`Sources::refused`].
///
/// # Errors
///
/// The file cannot be read, is larger than 16 MiB, or is no UTF-8.
pub fn read(file: &Path, sources: &mut Sources) -> io::Result<()> {
    gputrail_counters::read_file(file, sources, rocprofiler_sdk::read)
}

/// As [`read`], of a file with this name and text. `include` returns the text of a file that it includes.
pub fn read_text(
    file: &str,
    text: &str,
    include: &mut dyn FnMut(&str) -> Result<String, String>,
    sources: &mut Sources,
) {
    if !gputrail_counters::read_text(file, text, include, sources) {
        rocprofiler_sdk::read(file, text, sources);
    }
}
