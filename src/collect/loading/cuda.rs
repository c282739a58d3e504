//! The variable CUDA_INJECTION64_PATH: the library that the driver loads when a program initialises CUDA.

use super::Variable;
use std::ffi::OsString;
use std::path::Path;

/// The environment variable that names the library for the driver.
pub const INJECTION_VARIABLE: &str = "CUDA_INJECTION64_PATH";
/// The environment variable in which the library that was named before is kept: it is initialised after ours.
pub const NEXT_VARIABLE: &str = "GPUTRAIL_NEXT_CUDA_INJECTION";

/// The environment variable that has kernels of sampled devices run one after the other, if it is 1.
pub const SERIALIZE_VARIABLE: &str = "GPUTRAIL_SERIALIZE_KERNELS";

/// The variables with which the driver loads `library`. A library that is named already is kept as the next one, unless
/// it is ours or that of `outer_session`, which makes way.
pub(super) fn variables(
    library: &Path,
    outer_session: Option<&Path>,
    existing: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<Variable> {
    let mut variables = vec![(INJECTION_VARIABLE, library.as_os_str().to_owned())];
    let others = existing(INJECTION_VARIABLE).filter(|before| {
        let before = Path::new(before);
        let is_outer = outer_session.is_some_and(|session| before.starts_with(session));
        !before.as_os_str().is_empty() && !is_outer && before.file_name() != library.file_name()
    });
    if let Some(other) = others {
        variables.push((NEXT_VARIABLE, other));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_existing(existing: &str) -> Vec<Variable> {
        let existing = |name: &str| (name == INJECTION_VARIABLE).then(|| existing.into());
        let ours = Path::new("/run/a/libgputrail.so.0");
        variables(ours, Some(Path::new("/run/outer")), &existing)
    }

    #[test]
    fn a_library_that_is_named_already_comes_next() {
        let ours = (INJECTION_VARIABLE, "/run/a/libgputrail.so.0".into());
        let alone = std::slice::from_ref(&ours);
        assert_eq!(with_existing(""), alone);
        assert_eq!(with_existing("/run/outer/libgputrail.so.0"), alone);
        assert_eq!(with_existing("/other/libgputrail.so.0"), alone);
        let next = (NEXT_VARIABLE, "/opt/nsys.so".into());
        assert_eq!(with_existing("/opt/nsys.so"), [ours, next]);
    }
}
