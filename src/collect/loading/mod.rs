//! How the runtimes of a program come to load the injected library: by environment variables that the program is started
//! with.

pub mod cuda;
pub mod markers;
pub mod opencl;
pub mod rocm;

use std::ffi::OsString;
use std::path::Path;

/// A variable and its value.
pub type Variable = (&'static str, OsString);

/// The variables that a program is to be started with, so that its runtimes load `library`. A library in `outer_session`,
/// the folder of the session that the calling process is recorded in, makes way.
pub fn environment(library: &Path, outer_session: Option<&Path>) -> Vec<Variable> {
    let existing = |name: &str| std::env::var_os(name);
    let mut variables = vec![opencl::variable(library, outer_session, &existing)];
    variables.extend(markers::variables(library, outer_session, &existing));
    variables.extend(cuda::variables(library, outer_session, &existing));
    variables.extend(rocm::variable(library, outer_session, &existing));
    variables
}
