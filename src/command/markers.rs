//! Sources of markers of a program that is recorded: those that it has to be asked for, and libraries that stand in the way.

use crate::cli::record::Record;
use crate::failure::Failure;
use crate::messages::say;
use anyhow::{Context, anyhow};
use gputrail_collect::loading::markers;
use std::ffi::OsString;
use std::path::Path;

/// Sources of markers that the program has to be asked for.
pub struct MarkerSources {
    /// The name of CLPerfMarker's file.
    file: Option<OsString>,
    openmp: bool,
    openacc: bool,
}

impl MarkerSources {
    pub fn of(arguments: &Record) -> Result<MarkerSources, Failure> {
        Ok(MarkerSources {
            file: markers_file(arguments.clperfmarker.as_deref())?,
            openmp: arguments.openmp,
            openacc: arguments.openacc,
        })
    }

    /// Those of another run of the program, whose markers are not written to a file.
    pub fn without_file(&self) -> MarkerSources {
        MarkerSources {
            file: None,
            ..*self
        }
    }

    /// The variables by which the program has them.
    pub fn variables(self, library: &Path) -> impl Iterator<Item = (&'static str, OsString)> {
        let libraries = |name, separator| {
            let value = markers::libraries(library, std::env::var_os(name), separator);
            (name, value)
        };
        let openmp = || libraries(markers::OPENMP_VARIABLE, ':');
        let openacc = || libraries(markers::OPENACC_VARIABLE, ';');
        let file = self.file.map(|base| (markers::CLPERFMARKER_VARIABLE, base));
        let all = [file, self.openmp.then(openmp), self.openacc.then(openacc)];
        all.into_iter().flatten()
    }
}

/// The value of the variable that asks for a file of CLPerfMarker's markers. A file of an earlier run is removed.
fn markers_file(base: Option<&Path>) -> Result<Option<OsString>, Failure> {
    let Some(base) = base else {
        return Ok(None);
    };
    let base = std::path::absolute(base).context("--clperfmarker")?;
    let mut file = base.clone().into_os_string();
    file.push(format!(".{}", markers::CLPERFMARKER_EXTENSION));
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let context = format!("--clperfmarker: cannot replace {}", file.display());
            Err(Failure::from(anyhow!(error).context(context)))
        }
        _ => Ok(Some(base.into_os_string())),
    }
}

/// Prints which libraries of markers programs find before ours, and whose markers are not recorded.
pub fn mention_other_libraries() {
    let folders = std::env::var_os(markers::LIBRARIES_VARIABLE);
    // An empty value names no folder; an empty part of a value is the current directory.
    let Some(folders) = folders.filter(|folders| !folders.is_empty()) else {
        return;
    };
    for folder in std::env::split_paths(&folders) {
        let is_ours = folder.file_name() == Some(markers::LIBRARIES_FOLDER.as_ref());
        let unobserved = markers::LIBRARIES.iter().filter(|one| !one.is_told_of);
        let names = unobserved.flat_map(|one| one.names());
        let mut there = names.map(|name| folder.join(name));
        let there = there.find(|path| !is_ours && path.exists());
        if let Some(path) = there {
            say!(
                "{} in {} goes before gputrail's library of that name: its markers are not recorded",
                path.display(),
                markers::LIBRARIES_VARIABLE,
            );
        }
    }
}
