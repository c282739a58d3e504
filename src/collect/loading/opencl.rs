//! The variable OPENCL_LAYERS: libraries, separated by colons, that OpenCL loaders insert between program and driver.
//! The last one is next to the program.

use super::Variable;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The environment variable that names the layers for a loader.
pub const LAYERS_VARIABLE: &str = "OPENCL_LAYERS";

/// Whether a path can be part of the variable: colons cannot be escaped.
pub fn can_name(path: &Path) -> bool {
    !path.as_os_str().as_bytes().contains(&b':')
}

/// Whether a loader inserts layers: such a loader contains the name of the variable. A file that cannot be read is taken for
/// one.
pub fn inserts_layers(loader: &Path) -> bool {
    let name = LAYERS_VARIABLE.as_bytes();
    std::fs::read(loader).map_or(true, |bytes| {
        bytes.windows(name.len()).any(|window| window == name)
    })
}

/// The variable, with `library` among the layers; see [`environment`](super::environment).
pub(super) fn variable(
    library: &Path,
    outer_session: Option<&Path>,
    existing: &dyn Fn(&str) -> Option<OsString>,
) -> Variable {
    let layers = existing(LAYERS_VARIABLE);
    (
        LAYERS_VARIABLE,
        with(layers.as_deref(), outer_session, library),
    )
}

/// The variable's value with `ours` added to the layers that it already names. The layer of the session in which this
/// process runs, and copies of ours, are removed: two of them would record every call twice.
fn with(existing: Option<&OsStr>, outer_session: Option<&Path>, ours: &Path) -> OsString {
    debug_assert!(can_name(ours));
    let others = existing
        .unwrap_or_default()
        .as_bytes()
        .split(|&byte| byte == b':');
    let mut layers: Vec<&[u8]> = others
        .filter(|layer| !layer.is_empty())
        .filter(|layer| {
            let layer = Path::new(OsStr::from_bytes(layer));
            layer != ours
                && outer_session.is_none_or(|session| !layer.starts_with(session))
                && !is_copy(layer, ours)
        })
        .collect();
    layers.push(ours.as_os_str().as_bytes());
    OsString::from_vec(layers.join(&b':'))
}

/// Whether two files have the same contents: `gputrail library` may have written the library to another path.
fn is_copy(layer: &Path, ours: &Path) -> bool {
    let length = |path: &Path| std::fs::metadata(path).map(|data| data.len()).ok();
    let bytes = |path: &Path| std::fs::read(path).ok();
    length(ours).is_some() && length(layer) == length(ours) && bytes(layer) == bytes(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_existing(existing: &str) -> String {
        let layers = with(
            Some(existing.as_ref()),
            Some("/run/outer".as_ref()),
            "/run/a/lib.so".as_ref(),
        );
        layers.into_string().unwrap()
    }

    #[test]
    fn ours_is_added_behind_those_that_are_there() {
        assert_eq!(with(None, None, "/run/a/lib.so".as_ref()), "/run/a/lib.so");
        assert_eq!(with_existing(""), "/run/a/lib.so");
        assert_eq!(with_existing("/x.so:/y.so"), "/x.so:/y.so:/run/a/lib.so");
        assert_eq!(with_existing(":/x.so::"), "/x.so:/run/a/lib.so");
    }

    #[test]
    fn the_layer_of_an_outer_session_makes_way() {
        assert_eq!(
            with_existing("/run/outer/lib.so:/x.so"),
            "/x.so:/run/a/lib.so"
        );
        assert_eq!(
            with_existing("/run/outer2/lib.so"),
            "/run/outer2/lib.so:/run/a/lib.so"
        );
        assert_eq!(with_existing("/run/a/lib.so"), "/run/a/lib.so");
    }

    #[test]
    fn a_copy_of_ours_makes_way_and_other_libraries_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, copy, other] = ["ours.so", "copy.so", "other.so"].map(|name| {
            let path = folder.path().join(name);
            std::fs::write(&path, if name == "other.so" { "them" } else { "ours" }).unwrap();
            path
        });
        let existing = format!("{}:{}", copy.display(), other.display());
        let layers = with(Some(existing.as_ref()), None, &ours);
        let expected = format!("{}:{}", other.display(), ours.display());
        assert_eq!(layers, OsString::from(expected));
    }

    #[test]
    fn a_path_with_a_colon_cannot_be_named() {
        assert!(can_name("/tmp/x".as_ref()));
        assert!(!can_name("/tmp/a:b/x".as_ref()));
    }
}
