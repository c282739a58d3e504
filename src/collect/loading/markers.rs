//! Markers: the variables by which NVTX, OpenMP and OpenACC load a library, and the folder in which programs find those that
//! they link to.

use super::Variable;
use std::ffi::OsString;
use std::path::Path;

/// The environment variable that names the library which NVTX loads and initialises.
pub const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// The environment variable that names the library of another tool, whose place ours takes in [`NVTX_VARIABLE`].
pub const OTHER_TOOL_VARIABLE: &str = "GPUTRAIL_NVTX_INJECTION";
/// The value of [`NVTX_VARIABLE`] by which a program asks NVTX to load no library.
const NO_INJECTION: &str = "./.";

/// The environment variable that asks for a file of CLPerfMarker's markers: its name without the extension.
pub const CLPERFMARKER_VARIABLE: &str = "GPUTRAIL_CLPERFMARKER";
/// The extension of that file.
pub const CLPERFMARKER_EXTENSION: &str = "clperfmarker";
/// The environment variable with the libraries that an OpenMP runtime asks for a tool, separated by colons.
pub const OPENMP_VARIABLE: &str = "OMP_TOOL_LIBRARIES";
/// The environment variable with the libraries that an OpenACC runtime loads, separated by semicolons.
pub const OPENACC_VARIABLE: &str = "ACC_PROFLIB";
/// The environment variable with the folders in which the loader looks for libraries first.
pub const LIBRARIES_VARIABLE: &str = "LD_LIBRARY_PATH";
/// The folder beside the injected library with [`LIBRARIES`].
pub const LIBRARIES_FOLDER: &str = "gputrail-markers";
/// A library of markers that the injected library stands for.
pub struct MarkerLibrary {
    /// Its own name (`DT_SONAME`), by which a program that is linked with it finds it.
    pub name: &'static str,
    /// Further names under which programs look for it.
    pub others: &'static [&'static str],
    /// Its functions.
    pub functions: &'static [&'static str],
    /// Whether the markers of a program that finds its vendor's library are recorded: rocprofiler-sdk tells of them.
    pub is_told_of: bool,
}

/// The functions of ROCTx.
const ROCTX: &[&str] = &[
    "roctracer_error_string",
    "roctxGetThreadId",
    "roctxMarkA",
    "roctxNameHipDevice",
    "roctxNameHipStream",
    "roctxNameHsaAgent",
    "roctxNameOsThread",
    "roctxProfilerPause",
    "roctxProfilerResume",
    "roctxRangePop",
    "roctxRangePushA",
    "roctxRangeStartA",
    "roctxRangeStop",
    "roctx_version_major",
    "roctx_version_minor",
];

/// The libraries of markers.
pub const LIBRARIES: [MarkerLibrary; 3] = [
    MarkerLibrary {
        name: "libroctx64.so.4",
        others: &["libroctx64.so", "libroctx64.so.1"],
        functions: ROCTX,
        is_told_of: false,
    },
    MarkerLibrary {
        name: "librocprofiler-sdk-roctx.so.1",
        others: &[
            "librocprofiler-sdk-roctx.so",
            "librocprofiler-sdk-roctx.so.0",
        ],
        functions: ROCTX,
        is_told_of: true,
    },
    MarkerLibrary {
        name: "libCLPerfMarker.so",
        others: &[],
        functions: &[
            "clBeginPerfMarkerAMD",
            "clEndPerfMarkerAMD",
            "clFinalizePerfMarkerAMD",
            "clInitializePerfMarkerAMD",
            "clinitializePerfMarkerAMD",
        ],
        is_told_of: false,
    },
];

impl MarkerLibrary {
    /// All names under which programs look for it.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.others.iter().copied())
    }
}

/// The variables by which NVTX loads `library`, and programs find the libraries beside it; see
/// [`environment`](super::environment).
pub(super) fn variables(
    library: &Path,
    outer_session: Option<&Path>,
    existing: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<Variable> {
    let mut variables = vec![(NVTX_VARIABLE, library.into())];
    let folder = library.with_file_name(LIBRARIES_FOLDER);
    let folders = existing(LIBRARIES_VARIABLE).filter(|folders| !folders.is_empty());
    let folders = folders.as_deref().map(std::env::split_paths);
    // Libraries in folders that are named already go before ours.
    let others = folders.into_iter().flatten().filter(|other| {
        let is_outer = outer_session.is_some_and(|session| other.starts_with(session));
        *other != folder && !is_outer
    });
    let folders = std::env::join_paths(others.chain([folder.clone()]));
    variables.extend(folders.ok().map(|folders| (LIBRARIES_VARIABLE, folders)));
    // The library of another tool gets the calls of NVTX, too.
    let other = existing(NVTX_VARIABLE).filter(|other| {
        let is_ours = Path::new(other).file_name() == library.file_name();
        !(is_ours || other.is_empty() || other == NO_INJECTION)
    });
    variables.extend(other.map(|other| (OTHER_TOOL_VARIABLE, other)));
    variables
}

/// The value of a variable by which a program's runtime loads `library` before those of the list `existing`.
pub fn libraries(library: &Path, existing: Option<OsString>, separator: char) -> OsString {
    let mut libraries = OsString::from(library);
    if let Some(existing) = existing.filter(|existing| !existing.is_empty()) {
        libraries.push(separator.to_string());
        libraries.push(existing);
    }
    libraries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_named_go_before_ours_and_those_of_an_outer_session_make_way() {
        let environment = |existing: Option<&str>| {
            let existing = existing.map(OsString::from);
            let lookup = |name: &str| existing.clone().filter(|_| name == LIBRARIES_VARIABLE);
            let library = Path::new("/run/b/libgputrail.so.0");
            let found = variables(library, Some("/run/a".as_ref()), &lookup);
            assert_eq!(found[0], (NVTX_VARIABLE, library.into()));
            found[1].1.clone().into_string().unwrap()
        };
        assert_eq!(environment(None), "/run/b/gputrail-markers");
        assert_eq!(environment(Some("")), "/run/b/gputrail-markers");
        let outer = "/x:/run/a/gputrail-markers:/run/b/gputrail-markers";
        assert_eq!(environment(Some(outer)), "/x:/run/b/gputrail-markers");
    }

    #[test]
    fn the_library_goes_before_those_of_the_list() {
        let library = Path::new("/run/a.so");
        assert_eq!(libraries(library, None, ':'), "/run/a.so");
        assert_eq!(libraries(library, Some("".into()), ':'), "/run/a.so");
        let others = Some("/b.so;/c.so".into());
        assert_eq!(libraries(library, others, ';'), "/run/a.so;/b.so;/c.so");
    }

    #[test]
    fn the_nvtx_library_of_another_tool_is_passed_on_and_ours_and_none_are_not() {
        let other = |existing: &str| {
            let lookup = |name: &str| (name == NVTX_VARIABLE).then(|| existing.into());
            let library = Path::new("/run/b/libgputrail.so.0");
            let found = variables(library, None, &lookup);
            let other = found.iter().find(|(name, _)| *name == OTHER_TOOL_VARIABLE);
            other.map(|(_, value)| value.clone().into_string().unwrap())
        };
        assert_eq!(other("/opt/tool.so").as_deref(), Some("/opt/tool.so"));
        for nothing in ["", "./.", "/run/a/libgputrail.so.0"] {
            assert_eq!(other(nothing), None);
        }
    }
}
