//! Where librocprofiler-sdk is, for a late start and for questions about the machine. A program that is recorded has it in the
//! process already.

use super::sdk::{FILES, Sdk};
use gputrail_buffer::platform::environment::variable;
use libloading::os::unix::Library;
use std::path::{Path, PathBuf};

/// The environment variable that names the librocprofiler-sdk to use, or the folder that it is in.
pub const ROCPROFILER_VARIABLE: &str = "GPUTRAIL_ROCPROFILER";
/// The environment variable that names ROCm's folder.
const ROCM_VARIABLE: &str = "ROCM_PATH";
/// ROCm's folder where nothing names it.
const ROCM: &str = "/opt/rocm";
/// The runtimes of ROCm, beside which the library is.
const RUNTIMES: [&str; 4] = [
    "libhsa-runtime64.so.1",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
];

/// Words about gputrail's own library with the names of rocprofiler-sdk, which is not taken for AMD's.
const IS_OWN: &str = "is gputrail's own, and has no GPUs of ROCm";

/// A library that has been opened.
pub(super) struct FoundSdk {
    pub sdk: Sdk,
    pub path: PathBuf,
}

/// Opens the library: the one that [`ROCPROFILER_VARIABLE`] names and no other, or one that the process has loaded, or that of
/// the runtimes in the process, of ROCm's folder, or where the loader finds it.
///
/// # Errors
///
/// A sentence that says where it was looked for.
pub(super) fn open() -> Result<FoundSdk, String> {
    if let Some(named) = variable(ROCPROFILER_VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        let files: Vec<PathBuf> = match named.is_dir() {
            true => FILES.iter().map(|file| named.join(file)).collect(),
            false => vec![named.clone()],
        };
        let mut reasons = Vec::new();
        for file in files {
            match load(&file, false) {
                Ok(found) => return Ok(found),
                Err(reason) => reasons.push(reason),
            }
        }
        return Err(format!("{ROCPROFILER_VARIABLE}: {}", reasons.join("; ")));
    }
    let loaded = FILES
        .iter()
        .find_map(|file| load(Path::new(file), true).ok());
    if let Some(found) = loaded {
        return Ok(found);
    }
    let folders = folders();
    let in_folders = folders
        .iter()
        .flat_map(|folder| FILES.iter().map(move |file| folder.join(file)));
    let mut reasons = Vec::new();
    for file in in_folders.filter(|file| file.exists()) {
        match load(&file, false) {
            Ok(found) => return Ok(found),
            Err(reason) => reasons.push(format!("; {reason}")),
        }
    }
    for file in FILES {
        match load(Path::new(file), false) {
            Ok(found) => return Ok(found),
            Err(reason) if reason.ends_with(IS_OWN) => reasons.push(format!("; {reason}")),
            // The loader finds none.
            Err(_) => {}
        }
    }
    let folders: Vec<String> = folders
        .iter()
        .map(|one| one.display().to_string())
        .collect();
    Err(format!(
        "there is no {} of ROCm's in {}, nor where the loader looks{}: install ROCm's rocprofiler-sdk, or name it in {ROCPROFILER_VARIABLE}",
        FILES[0],
        folders.join(", "),
        reasons.concat()
    ))
}

/// Folders in which the library may be.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for runtime in RUNTIMES {
        folders.extend(folder_of_loaded(runtime));
    }
    let named = variable(ROCM_VARIABLE).map(PathBuf::from);
    for rocm in named.into_iter().chain([PathBuf::from(ROCM)]) {
        folders.push(rocm.join("lib"));
    }
    folders.dedup();
    folders
}

/// Whether a runtime of ROCm is in the process.
pub fn is_rocm_loaded() -> bool {
    RUNTIMES
        .iter()
        .any(|runtime| loaded(Path::new(runtime)).is_some())
}

/// The folder of a library that the process has loaded.
fn folder_of_loaded(file: &str) -> Option<PathBuf> {
    let library = loaded(Path::new(file))?;
    // Every library of a runtime has one of these functions.
    let address = ["hsa_init", "hipInit"].iter().find_map(|symbol| {
        // SAFETY: the address alone is asked for.
        let found = unsafe { library.get::<*const ()>(*symbol) };
        found.ok().map(|found| *found)
    })?;
    let path = gputrail_buffer::platform::system::library_of(address)?;
    Some(path.parent()?.to_owned())
}

fn loaded(path: &Path) -> Option<Library> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the library is in the process already, so opening it runs nothing.
    unsafe { Library::open(Some(path), flags) }.ok()
}

/// Loads a library, or finds it if it `is_loaded`, and keeps it if it is AMD's.
///
/// # Errors
///
/// Words that name the file, and why it is not the library.
fn load(path: &Path, is_loaded: bool) -> Result<FoundSdk, String> {
    let library = if is_loaded {
        loaded(path).ok_or("it is not loaded")?
    } else {
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: opening a library runs its constructors: those of AMD's library, in a process that asks for its GPUs.
        unsafe { Library::open(Some(path), flags) }.map_err(|error| reason_of(path, &error))?
    };
    let sdk =
        Sdk::of(&library).ok_or_else(|| format!("{} is no rocprofiler-sdk", path.display()))?;
    if sdk.is_own {
        return Err(format!("{} {IS_OWN}", path.display()));
    }
    // Never closed: its functions are called until the process ends.
    let _ = library.into_raw();
    Ok(FoundSdk {
        sdk,
        path: path.to_owned(),
    })
}

/// The loader's reason, which names the file, or words that do.
fn reason_of(path: &Path, error: &libloading::Error) -> String {
    let reason =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    match reason.contains(&*path.to_string_lossy()) {
        true => reason,
        false => format!("{}: {reason}", path.display()),
    }
}
