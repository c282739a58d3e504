//! Counters of agents: the counters of an architecture, the metrics that are derived from them, and the passes in which the
//! hardware can count them.
//!
//! Definitions come from files; `gputrail-definitions` reads those in YAML, too. A [`Catalogue`] is made from all of them.
//! A wrong definition is reported with its file, line and column; the remaining definitions are loaded.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

mod added;
mod catalogue;
pub mod describe;
mod evaluate;
mod expression;
mod gpuperfapi;
mod kernel_selection;
mod passes;
mod rocprofiler_v1;
mod totals;

pub use added::{add_metrics, with_added};
pub use catalogue::nearest;
pub use catalogue::{
    Architecture, BlockIndex, Catalogue, Counter, CounterIndex, CounterLibrary, Defined,
    DefinedFrom, Definition, DefinitionPlace, Definitions, Dialect, Formula, HardwareBlock,
    LibraryCounter, LibraryError, Property, Refused, Sources, Usage,
};
pub use evaluate::{Invalid, Measured, ValueColumn, evaluate};
pub use expression::{
    CounterName, Expression, MalformedExpression, Node, Operator, Reduction, Resolution,
};
pub use kernel_selection::{KernelSelection, NumberRange};
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

/// Adds the definitions of a file, and of those that it includes, which lie in the same folder. Wrong definitions are in
/// [`Sources::refused`]. A text in another format than those of [`read_text`] is passed to `read_other`, with the name of the file.
///
/// # Errors
///
/// The file cannot be read, is larger than 16 MiB, or is no UTF-8.
pub fn read_file(
    file: &Path,
    sources: &mut Sources,
    read_other: fn(&str, &str, &mut Sources),
) -> io::Result<()> {
    let text = text_of(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut include = |name: &str| {
        let is_neighbour = Path::new(name).file_name().is_some_and(|own| own == name);
        if is_neighbour {
            text_of(&folder.join(name)).map_err(|error| error.to_string())
        } else {
            Err("expected the name of a file in the same folder".to_owned())
        }
    };
    let name = file.display().to_string();
    if !read_text(&name, &text, &mut include, sources) {
        read_other(&name, &text, sources);
    }
    Ok(())
}

/// Adds the definitions of a file with this name and text, if it has the format of ROCProfiler v1 or GPUPerfAPI; returns
/// whether it has. `include` returns the text of a file that it includes. Wrong definitions are in [`Sources::refused`].
pub fn read_text(
    file: &str,
    text: &str,
    include: &mut dyn FnMut(&str) -> Result<String, String>,
    sources: &mut Sources,
) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    let begins = lines.find(|line| !line.is_empty() && !line.starts_with(';'));
    match begins {
        Some(line) if line.starts_with('<') || line.starts_with("#include") => {
            rocprofiler_v1::read(file, text, include, sources);
            true
        }
        Some(line) if line.starts_with("name=") => {
            gpuperfapi::read((file, text), None, sources);
            true
        }
        _ => false,
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
    if text.len() as u64 > MAX_FILE_BYTES {
        Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "a definition file has at most 16 MiB",
        ))
    } else {
        Ok(text)
    }
}
