//! The variable CUDA_INJECTION64_PATH: the library that the driver loads when a program initialises CUDA. A library that it names
//! already is kept in GPUTRAIL_NEXT_CUDA_INJECTION and initialised after ours.

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
) -> Vec<(&'static str, OsString)> {
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

/// Initialises the library that the variable named before ours.
pub(super) fn call_next() {
    use libloading::os::unix::Library;
    use std::sync::atomic::{AtomicBool, Ordering};

    static ONCE: AtomicBool = AtomicBool::new(false);
    let next = gputrail_buffer::platform::environment::variable(NEXT_VARIABLE);
    let Some(path) = next.filter(|_| !ONCE.swap(true, Ordering::Relaxed)) else {
        return;
    };
    // SAFETY: the driver would have opened the library.
    let library = match unsafe { Library::new(&path) } {
        Ok(library) => library,
        Err(error) => {
            let reason = gputrail_buffer::platform::system::loader_reason(&error);
            return gputrail_buffer::platform::inside::message(format_args!(
                "the library that {INJECTION_VARIABLE} named before, {}, is not initialised: {reason}",
                path.display()
            ));
        }
    };
    type Initialize = unsafe extern "C" fn() -> i32;
    // SAFETY: a function of this name in a library for injection has this type.
    if let Ok(initialize) = unsafe { library.get::<Initialize>("InitializeInjection") } {
        // SAFETY: called once, as the driver would have.
        unsafe { initialize() };
    }
    let _ = library.into_raw();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_existing(existing: &str) -> Vec<(&'static str, OsString)> {
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
