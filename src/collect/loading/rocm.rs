//! The variable ROCP_TOOL_LIBRARIES: libraries, separated by colons, that rocprofiler-sdk loads as its tools.

use super::Variable;
use super::opencl::can_name;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The environment variable that names the tools for rocprofiler-sdk.
pub const TOOLS_VARIABLE: &str = "ROCP_TOOL_LIBRARIES";

/// The variable, with `library` before those that are named already; see [`environment`](super::environment). `None` if there is no
/// such file: rocprofiler-sdk ends programs whose tools it cannot open.
pub(super) fn variable(
    library: &Path,
    outer_session: Option<&Path>,
    existing: &dyn Fn(&str) -> Option<OsString>,
) -> Option<Variable> {
    if !library.is_file() || !can_name(library) {
        return None;
    }
    let tools = existing(TOOLS_VARIABLE);
    let value = with(tools.as_deref(), outer_session, library);
    Some((TOOLS_VARIABLE, value))
}

/// The variable's value with `ours` before the tools that it already names. The tool of the session in which this process runs, and
/// other copies of ours, are removed: two of them would record every call twice.
fn with(existing: Option<&OsStr>, outer_session: Option<&Path>, ours: &Path) -> OsString {
    let others = existing
        .unwrap_or_default()
        .as_bytes()
        .split(|&byte| byte == b':');
    let others = others.filter(|tool| !tool.is_empty()).filter(|tool| {
        let tool = Path::new(OsStr::from_bytes(tool));
        tool.file_name() != ours.file_name()
            && outer_session.is_none_or(|session| !tool.starts_with(session))
    });
    let mut tools = vec![ours.as_os_str().as_bytes()];
    tools.extend(others);
    let mut value = tools.join(&b':');
    if tools.len() > 1 {
        // Versions up to 1.3 leave out what comes behind the last colon, if there is one.
        value.push(b':');
    }
    OsString::from_vec(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_existing(existing: &str) -> String {
        let ours = Path::new("/run/b/libgputrail.so.0");
        let outer = Some(Path::new("/run/a"));
        let value = with(Some(existing.as_ref()), outer, ours);
        value.into_string().unwrap()
    }

    #[test]
    fn ours_goes_before_tools_that_are_named_and_takes_the_place_of_copies() {
        assert_eq!(with_existing(""), "/run/b/libgputrail.so.0");
        assert_eq!(
            with_existing("/opt/tool.so:/opt/other.so"),
            "/run/b/libgputrail.so.0:/opt/tool.so:/opt/other.so:"
        );
        assert_eq!(
            with_existing("/run/a/libgputrail.so.0:/opt/tool.so:"),
            "/run/b/libgputrail.so.0:/opt/tool.so:"
        );
        assert_eq!(
            with_existing("/elsewhere/libgputrail.so.0"),
            "/run/b/libgputrail.so.0"
        );
    }

    #[test]
    fn a_library_that_is_not_there_is_not_named() {
        let none = |_: &str| None;
        assert_eq!(variable(Path::new("/nowhere/lib.so"), None, &none), None);
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib.so");
        std::fs::write(&library, "").unwrap();
        let found = variable(&library, None, &none).unwrap();
        assert_eq!(found, (TOOLS_VARIABLE, library.into_os_string()));
    }
}
