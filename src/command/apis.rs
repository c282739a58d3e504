//! The libraries with vendors' names: `gputrail library --api NAME FOLDER` writes their files, links and headers.
//!
//! A build that is given away carries the libraries. Any other is told by `--built` in which folder cargo has made them. A library that
//! stands for several versions of an API is one file with several names of its own (`DT_SONAME`), by which it tells
//! what it is to be: it is written once for each.

use crate::carried::{Carried, CarriedApi};
use crate::soname::renamed;
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use std::fs::create_dir_all;
use std::os::unix::fs::symlink;
use std::path::Path;

/// An API of a vendor's.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApiName {
    /// NVIDIA's CUPTI
    Cupti,
    /// AMD's GPUPerfAPI 2
    Gpuperfapi,
    /// AMD's ROCProfiler v1
    Rocprofiler,
    /// AMD's rocprofiler-sdk
    RocprofilerSdk,
}

/// The files of an API.
struct Files {
    /// The folder in `tools/abi`.
    folder: &'static str,
    /// The package, and the file that cargo makes of it.
    package: &'static str,
    built: &'static str,
    /// The names of the library, its own one first.
    names: &'static [&'static str],
    /// The name that linkers look for, and the one of `names` that they find.
    link: Option<[&'static str; 2]>,
}

impl ApiName {
    fn files(self) -> Files {
        match self {
            ApiName::Cupti => Files {
                folder: "cupti",
                package: "gputrail-abi-cupti",
                built: "libcupti.so",
                // The library finds its layout by its name.
                names: &[
                    "libcupti.so.10.0",
                    "libcupti.so.11.8",
                    "libcupti.so.12",
                    "libcupti.so.13",
                ],
                link: Some(["libcupti.so", "libcupti.so.13"]),
            },
            ApiName::Gpuperfapi => Files {
                folder: "gpuperfapi",
                package: "gputrail-abi-gpuperfapi",
                built: "libGPUPerfAPICL.so",
                names: &["libGPUPerfAPICL.so"],
                link: None,
            },
            ApiName::Rocprofiler => Files {
                folder: "rocprofiler",
                package: "gputrail-abi-rocprofiler",
                built: "librocprofiler64.so",
                names: &["librocprofiler64.so.1"],
                link: Some(["librocprofiler64.so", "librocprofiler64.so.1"]),
            },
            ApiName::RocprofilerSdk => Files {
                folder: "rocprofiler-sdk",
                package: "gputrail-abi-rocprofiler-sdk",
                built: "librocprofiler_sdk.so",
                names: &["librocprofiler-sdk.so.1"],
                link: Some(["librocprofiler-sdk.so", "librocprofiler-sdk.so.1"]),
            },
        }
    }
}

/// Writes the libraries and headers of `apis` into `folder`, with the libraries that cargo has `built` in a folder, or those
/// that are carried.
pub fn write(
    carried: Carried,
    apis: &[ApiName],
    built: Option<&Path>,
    folder: &Path,
) -> Result<()> {
    for api in apis {
        let files = api.files();
        let carried = carried.apis.iter().find(|one| one.name == files.folder);
        let carried = carried.filter(|one| !one.headers.is_empty()).ok_or_else(|| {
            anyhow!(
                "this gputrail was built without the headers of {}: build it from a clone of the repository, or take pip's",
                files.folder
            )
        })?;
        let library = library(&files, carried, built)?;
        write_library(&files, &library, &folder.join("lib"))?;
        for (name, text) in carried.headers {
            write_file(&folder.join("include").join(name), text.as_bytes())?;
        }
    }
    Ok(())
}

/// The bytes of a library.
fn library(files: &Files, carried: &CarriedApi, built: Option<&Path>) -> Result<Vec<u8>> {
    match built {
        Some(folder) => {
            let path = folder.join(files.built);
            std::fs::read(&path).with_context(|| {
                format!(
                    "{}: `cargo build --release -p {}` makes it",
                    path.display(),
                    files.package
                )
            })
        }
        None if carried.library.is_empty() => bail!(
            "this gputrail carries no libraries with vendors' names, as pip's does: `cargo build --release -p {}` in a clone of \
             the repository makes {}, and `--built target/release` takes it",
            files.package,
            files.built
        ),
        None => Ok(carried.library.to_vec()),
    }
}

fn write_library(files: &Files, library: &[u8], folder: &Path) -> Result<()> {
    let own = files.names.first().copied().unwrap_or(files.built);
    for name in files.names {
        let bytes = renamed(library, own, name)
            .with_context(|| format!("the library of {}", files.folder))?;
        write_file(&folder.join(name), &bytes)?;
    }
    if let Some([link, to]) = files.link {
        let path = folder.join(link);
        // That of an earlier version may be there.
        let _ = std::fs::remove_file(&path);
        symlink(to, &path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Writes a file in the place of an earlier one, which programs that have loaded it keep.
fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot_write = || format!("cannot write {}", path.display());
    let folder = path.parent().unwrap_or(path);
    create_dir_all(folder).with_context(cannot_write)?;
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .with_context(cannot_write)?;
    std::io::Write::write_all(&mut file, bytes).with_context(cannot_write)?;
    file.persist(path).with_context(cannot_write)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carried::CarriedLibrary;

    fn carried(apis: &'static [CarriedApi]) -> Carried {
        let library = CarriedLibrary {
            bytes: b"",
            id: "1",
        };
        Carried {
            library,
            symbols: library,
            header: "",
            cpp_header: "",
            clperfmarker_header: "",
            pages: &[],
            apis,
        }
    }

    #[test]
    fn a_build_without_the_libraries_says_how_to_make_them() {
        const APIS: &[CarriedApi] = &[CarriedApi {
            name: "gpuperfapi",
            library: b"",
            headers: &[("GPUPerfAPI.h", "text")],
        }];
        let folder = tempfile::tempdir().unwrap();
        let write = |api, built: Option<&Path>| {
            let error = write(carried(APIS), &[api], built, folder.path()).unwrap_err();
            format!("{error:#}")
        };
        let told = write(ApiName::Gpuperfapi, None);
        assert!(
            told.contains("`cargo build --release -p gputrail-abi-gpuperfapi`"),
            "{told}"
        );
        let told = write(ApiName::Gpuperfapi, Some(folder.path()));
        assert!(told.contains("libGPUPerfAPICL.so: `cargo build"), "{told}");
        let told = write(ApiName::Cupti, None);
        assert!(told.contains("without the headers of cupti"), "{told}");
    }

    #[test]
    fn each_name_of_an_api_is_a_library_with_headers_beside_it() {
        const APIS: &[CarriedApi] = &[CarriedApi {
            name: "rocprofiler-sdk",
            library: b"",
            headers: &[("rocprofiler-sdk/hip/api_id.h", "text")],
        }];
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("librocprofiler_sdk.so");
        let name = "librocprofiler-sdk.so.1";
        let bytes = crate::link_library::file(name, &["function"], "none").unwrap();
        std::fs::write(&made, &bytes).unwrap();
        // A second time, too.
        for _ in 0..2 {
            let apis = [ApiName::RocprofilerSdk];
            write(carried(APIS), &apis, Some(folder.path()), folder.path()).unwrap();
        }
        let at = |name: &str| folder.path().join(name);
        assert_eq!(
            std::fs::read(at("lib/librocprofiler-sdk.so.1")).unwrap(),
            bytes
        );
        assert_eq!(
            std::fs::read_link(at("lib/librocprofiler-sdk.so")).unwrap(),
            Path::new(name)
        );
        let header = std::fs::read_to_string(at("include/rocprofiler-sdk/hip/api_id.h"));
        assert_eq!(header.unwrap(), "text");
    }

    #[test]
    fn the_table_has_a_link_to_a_name_that_is_there() {
        for api in ApiName::value_variants() {
            let files = api.files();
            assert!(files.link.is_none_or(|[_, to]| files.names.contains(&to)));
            let folder = gputrail_harness::repository("tools/abi").join(files.folder);
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            assert!(manifest.contains(&format!("name = \"{}\"", files.package)));
            let script = std::fs::read_to_string(folder.join("build.rs")).unwrap();
            assert!(script.contains(&format!("-soname,{}\"", files.names[0])));
        }
    }
}
