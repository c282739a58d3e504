//! Finding libcupti. It is not opened before libcuda is in the process: some versions crash without it.

use super::devices::DRIVER;
use super::ffi::Cuda;
use super::library::{CUPTI_VARIABLE, is_own_cupti, load};
use super::places::{self, Surroundings, Versions};
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::system::loader_reason;
use libloading::os::unix::Library;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// The reason why there is no libcupti to use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CuptiError {
    /// The process does not use CUDA.
    #[error("{DRIVER} is not in the process")]
    NoDriver,
    /// No place has one.
    #[error(
        "no libcupti was found: neither in the process, beside its CUDA libraries, in its Python or conda environment, in \
         CUDA_HOME, CUDA_PATH or /usr/local/cuda, nor by the loader. Set {CUPTI_VARIABLE} to the path of one; `pip install \
         nvidia-cuda-cupti-cu12` (CUDA 13: nvidia-cuda-cupti) brings one, which programs of that Python find by themselves"
    )]
    NoLibrary,
    /// The one that [`CUPTI_VARIABLE`] names cannot be opened.
    #[error("{CUPTI_VARIABLE}: {0}")]
    Refused(String),
}

/// A libcupti that was opened.
pub(super) struct FoundCupti {
    /// It is never closed: its threads and handlers may go on.
    pub library: ManuallyDrop<Library>,
    /// Its path, or its name if the loader found it.
    pub path: PathBuf,
    pub versions: Versions,
    /// The one that [`CUPTI_VARIABLE`] names, if another was in the process already.
    pub overruled: Option<PathBuf>,
}

impl FoundCupti {
    /// The versions that must fit each other, in words. `version` is that of the library's API, 0 if it does not tell.
    pub fn describe(&self, version: u32) -> String {
        let mut text = match places::cupti_major(&self.path) {
            Some(major) => format!("libcupti is of CUDA {major}"),
            None => "the version of libcupti is unknown".to_owned(),
        };
        if version > 0 {
            text += &format!(" (API version {version})");
        }
        if let Some(driver) = self.versions.driver {
            text += &format!(", the driver supports CUDA {}", in_words(driver));
        }
        if let Some(runtime) = self.versions.runtime {
            text += &format!(", the program's libcudart is of CUDA {runtime}");
        }
        text += &match self.versions.wanted() {
            Some(wanted) => {
                format!("; {CUPTI_VARIABLE} may name the libcupti to take, one of CUDA {wanted}")
            }
            None => format!("; {CUPTI_VARIABLE} may name the libcupti to take"),
        };
        text
    }
}

/// A version of CUDA as the driver tells it.
fn in_words(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The driver's library, if the process has loaded it.
pub(super) fn driver() -> Option<Library> {
    loaded(DRIVER)
}

/// Finds libcupti: one that the process has loaded already, since two copies disturb each other; the one of
/// [`CUPTI_VARIABLE`], and no other where that is set; one that fits the program's version of CUDA, from the places of
/// [`Surroundings::folders`] and of the loader; one that does not fit.
pub(super) fn open() -> Result<FoundCupti, CuptiError> {
    let driver = driver().ok_or(CuptiError::NoDriver)?;
    let version = Cuda::of(&driver).version();
    let version = u32::try_from(version).ok().filter(|version| *version > 0);
    let surroundings = Surroundings::of_this_process();
    let versions = Versions::new(&surroundings.runtimes(), version);
    let found = |library, path| FoundCupti {
        library: ManuallyDrop::new(library),
        path,
        versions,
        overruled: None,
    };
    let named = variable(CUPTI_VARIABLE).map(PathBuf::from);

    let mut there = places::NAMES.iter();
    if let Some((library, name)) = there.find_map(|name| Some((loaded_cupti(name)?, name))) {
        let path = path_of_loaded(&surroundings).unwrap_or_else(|| name.into());
        return Ok(FoundCupti {
            overruled: named.filter(|named| !is_same(named, &path)),
            ..found(library, path)
        });
    }
    if let Some(named) = named {
        let path = resolve(named, &versions).map_err(CuptiError::Refused)?;
        let library =
            load(path.as_os_str()).map_err(|error| CuptiError::Refused(loader_reason(&error)))?;
        if is_own_cupti(&library) {
            let text = format!("{} is gputrail's own, not NVIDIA's", path.display());
            return Err(CuptiError::Refused(text));
        }
        return Ok(found(library, path));
    }
    places::candidates(&surroundings.folders(), &versions)
        .into_iter()
        .find_map(|path| Some(found(load_cupti(&path)?, path)))
        .ok_or(CuptiError::NoLibrary)
}

/// The file that the variable means: in a folder, the libcupti that fits best.
fn resolve(named: PathBuf, versions: &Versions) -> Result<PathBuf, String> {
    if !named.is_dir() {
        return Ok(named);
    }
    let files = places::in_folders(std::slice::from_ref(&named), versions);
    let none = || {
        let names = places::NAMES.join(", ");
        format!("the folder {} has none of {names}", named.display())
    };
    files.into_iter().next().ok_or_else(none)
}

/// Whether two paths lead to one file, or to one folder and a file in it.
fn is_same(named: &Path, path: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    match (real(named), real(path)) {
        (Some(named), Some(path)) => path == named || path.parent() == Some(&*named),
        _ => named == path,
    }
}

/// Where libcupti is found from a process that has loaded the driver, as a program beside it would find it by itself.
/// Opens it, and calls none of its functions. A program that brings its own, with its Python packages or its libcudart, may find
/// another one.
///
/// # Errors
///
/// The reason why none is found.
pub fn locate() -> Result<PathBuf, CuptiError> {
    let found = open()?;
    let by_loader = found.path.components().count() == 1;
    let mapped = by_loader.then(|| path_of_loaded(&Surroundings::of_this_process()));
    Ok(mapped.flatten().unwrap_or(found.path))
}

/// NVIDIA's libcupti, if this file is one.
fn load_cupti(path: &Path) -> Option<Library> {
    load(path.as_os_str())
        .ok()
        .filter(|library| !is_own_cupti(library))
}

/// NVIDIA's libcupti, if the process has loaded it under this name.
fn loaded_cupti(name: &str) -> Option<Library> {
    loaded(name).filter(|library| !is_own_cupti(library))
}

/// The file of NVIDIA's libcupti that the process has loaded.
fn path_of_loaded(surroundings: &Surroundings<'_>) -> Option<PathBuf> {
    let mut files = surroundings.loaded_cuptis();
    files.find(|path| path.to_str().and_then(loaded_cupti).is_some())
}

/// A library that the process has loaded.
fn loaded(name: &str) -> Option<Library> {
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: the library is in the process already, so that opening it runs nothing.
    unsafe { Library::open(Some(name), flags) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_driver_nothing_is_opened() {
        assert!(matches!(open(), Err(CuptiError::NoDriver)));
    }

    #[test]
    fn a_folder_that_is_named_has_the_library_that_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let versions = Versions::new(&[], Some(12090));
        let refused = resolve(path.clone(), &versions).unwrap_err();
        assert!(refused.contains("has none of libcupti.so.13"), "{refused}");
        for name in ["libcupti.so.13", "libcupti.so.12"] {
            std::fs::write(path.join(name), "").unwrap();
        }
        let twelve = path.join("libcupti.so.12");
        assert_eq!(resolve(path.clone(), &versions), Ok(twelve.clone()));
        assert!(is_same(&path, &twelve) && is_same(&twelve, &twelve));
        assert!(!is_same(&path.join("libcupti.so.13"), &twelve));
        // A file that is not there is the loader's to refuse.
        let missing = PathBuf::from("/nonsense");
        assert_eq!(resolve(missing.clone(), &versions), Ok(missing));
    }
}
