//! The folder from which tools are built: headers, the library under the name that linkers look for, and what pkg-config and
//! CMake read. `gputrail library DIR` writes it.

use crate::carried::{Carried, FILE_NAME, HEADER_NAME};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The name under which a linker finds the library for `-lgputrail`.
const LINK_NAME: &str = "libgputrail.so";

/// What pkg-config reads. It finds the folder by its own place, so the folder may be moved.
const PKG_CONFIG: &str = "\
prefix=${pcfiledir}/../..
libdir=${prefix}/lib
includedir=${prefix}/include

Name: gputrail
Description: Activity records and callbacks of what a program does on GPUs, for tools
Version: @VERSION@
Libs: -L${libdir} -lgputrail
Cflags: -I${includedir}
";

/// What CMake reads. It finds the folder by its own place, too.
const CMAKE: &str = "\
# find_package(gputrail) makes the target gputrail::gputrail: the library and its headers.
if(TARGET gputrail::gputrail)
  return()
endif()
get_filename_component(_gputrail_prefix \"${CMAKE_CURRENT_LIST_DIR}/../../..\" ABSOLUTE)
add_library(gputrail::gputrail SHARED IMPORTED)
set_target_properties(gputrail::gputrail PROPERTIES
  IMPORTED_LOCATION \"${_gputrail_prefix}/lib/@LIBRARY@\"
  IMPORTED_SONAME @LIBRARY@
  INTERFACE_INCLUDE_DIRECTORIES \"${_gputrail_prefix}/include\")
unset(_gputrail_prefix)
";

/// Tells CMake whether this version will do. Later versions have all that earlier ones had.
const CMAKE_VERSION: &str = "\
set(PACKAGE_VERSION @VERSION@)
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
";

/// Whether the path stands for a folder: it is one, or no file and without `.so` in its name.
pub fn is_folder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or(OsStr::new("")).as_bytes();
    path.is_dir() || !path.exists() && !name.windows(3).any(|part| part == b".so")
}

/// Writes everything but the library into `folder`, and returns the path for the library.
pub fn write(carried: Carried, folder: &Path) -> Result<PathBuf> {
    let cannot_write = |path: &Path| format!("cannot write {}", path.display());
    let filled = |text: &str| {
        text.replace("@VERSION@", env!("CARGO_PKG_VERSION"))
            .replace("@LIBRARY@", FILE_NAME)
    };
    let files = [
        (format!("include/{HEADER_NAME}"), carried.header.to_owned()),
        ("include/gputrail.hpp".into(), carried.cpp_header.to_owned()),
        (
            "include/CLPerfMarker.h".into(),
            carried.clperfmarker_header.to_owned(),
        ),
        ("lib/pkgconfig/gputrail.pc".into(), filled(PKG_CONFIG)),
        (
            "lib/cmake/gputrail/gputrail-config.cmake".into(),
            filled(CMAKE),
        ),
        (
            "lib/cmake/gputrail/gputrail-config-version.cmake".into(),
            filled(CMAKE_VERSION),
        ),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| cannot_write(parent))?;
        std::fs::write(&path, text).with_context(|| cannot_write(&path))?;
    }
    let link = folder.join("lib").join(LINK_NAME);
    // The link of an earlier version may be there.
    let _ = std::fs::remove_file(&link);
    symlink(FILE_NAME, &link).with_context(|| cannot_write(&link))?;
    Ok(folder.join("lib").join(FILE_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_what_is_one_or_has_no_name_of_a_library() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("made.so")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        for (name, expected) in [
            ("new", true),
            ("new/", true),
            ("made.so", true),
            ("new.so", false),
            ("libgputrail.so.0", false),
            ("file", false),
        ] {
            assert_eq!(is_folder(&at(name)), expected, "{name}");
        }
        assert!(is_folder(".".as_ref()));
    }
}
