//! CUPTI alone: callbacks that do nothing, and buffers that nobody reads. The cost beside which that of gputrail stands.

use crate::library::Library;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable that names the libcupti for a program which CUPTI alone observes.
pub const VARIABLE: &str = "GPU_CHECK_CUPTI";

type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

crate::functions! {
    /// The functions of libcupti.
    Cupti("libcupti") {
        cuptiSubscribe(subscriber: *mut *mut c_void, callback: Callback, user: *mut c_void);
        cuptiEnableCallback(enable: u32, subscriber: *mut c_void, domain: u32, number: u32);
        cuptiActivityRegisterCallbacks(requested: Requested, completed: Completed);
        cuptiActivityEnable(kind: u32);
    }
}

const BYTES: usize = 128 << 10;
const DRIVER_API: u32 = 1;
const CONCURRENT_KERNEL: u32 = 10;
/// cuLaunchKernel, cuStreamQuery and cuStreamSynchronize.
const CALLS: [u32; 3] = [307, 125, 126];

static CALLBACKS: AtomicU64 = AtomicU64::new(0);
static BUFFERS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn callback(_: *mut c_void, _: u32, _: u32, _: *const c_void) {
    CALLBACKS.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    let memory = vec![0_u64; BYTES / 8].into_boxed_slice();
    // SAFETY: CUPTI's places for the answer.
    unsafe {
        buffer.write(Box::into_raw(memory).cast());
        size.write(BYTES);
        records.write(0);
    }
}

unsafe extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, _: usize) {
    BUFFERS.fetch_add(1, Ordering::Relaxed);
    let memory = std::ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), BYTES / 8);
    // SAFETY: a buffer that `requested` has made.
    drop(unsafe { Box::from_raw(memory) });
}

/// Observes this process by CUPTI, if the variable says so. Before the driver is initialised.
pub fn observe() -> Result<(), Box<dyn std::error::Error>> {
    let Some(path) = std::env::var_os(VARIABLE) else {
        return Ok(());
    };
    // Some versions of libcupti crash without it.
    Library::open("libcuda.so.1")?;
    let cupti = Cupti::of(Library::open(&path.to_string_lossy())?);
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: CUPTI writes the subscriber to a local, which is that of the calls after it; the functions take what CUPTI
    // calls them with.
    unsafe {
        cupti.cuptiSubscribe(&raw mut subscriber, callback, std::ptr::null_mut())?;
        for call in CALLS {
            cupti.cuptiEnableCallback(1, subscriber, DRIVER_API, call)?;
        }
        cupti.cuptiActivityRegisterCallbacks(requested, completed)?;
        cupti.cuptiActivityEnable(CONCURRENT_KERNEL)?;
    }
    Ok(())
}

/// The libcupti of this machine: the one that is named for gputrail, else the one that `gputrail agents` finds, else one of the
/// Python packages that fits the driver.
pub fn find(gputrail: &Path) -> Option<PathBuf> {
    let named = std::env::var_os("GPUTRAIL_CUPTI").filter(|path| !path.is_empty());
    if let Some(named) = named {
        return Some(named.into());
    }
    let agents = Command::new(gputrail).arg("agents").output().ok()?;
    let agents = String::from_utf8_lossy(&agents.stdout);
    let (found, driver) = of_agents(&agents)?;
    let script = "import glob, sys\n\
                  for path in sys.path:\n\
                  \tfor folder in ('cu13', 'cuda_cupti'):\n\
                  \t\tprint(*glob.glob(path + '/nvidia/' + folder + '/lib/libcupti.so.1*'), sep='\\n')";
    found.or_else(|| {
        let python = Command::new("python3").args(["-c", script]).output().ok()?;
        fitting(&String::from_utf8_lossy(&python.stdout), driver)
    })
}

/// The libcupti that `gputrail agents` found, and the major version of CUDA that the driver supports.
fn of_agents(text: &str) -> Option<(Option<PathBuf>, u32)> {
    let (_, cuda) = text.split_once("\nCUDA\n")?;
    let value = |name: &str| {
        let mut values = cuda.lines().filter_map(|line| {
            let value = line.trim_start().strip_prefix(name)?;
            value.starts_with(' ').then(|| value.trim())
        });
        values.next()
    };
    let driver = value("driver")?.strip_prefix("CUDA ")?.split('.').next()?;
    let found = value("libcupti").filter(|path| path.starts_with('/'));
    Some((found.map(PathBuf::from), driver.parse().ok()?))
}

/// Of the files, one a line, the newest that the driver supports.
fn fitting(files: &str, driver: u32) -> Option<PathBuf> {
    let major = |file: &&str| -> Option<u32> {
        let (_, version) = file.rsplit_once("libcupti.so.")?;
        version.split('.').next()?.parse().ok()
    };
    let supported = files
        .lines()
        .filter(|file| major(file).is_some_and(|major| major <= driver));
    supported.max_by_key(major).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libcupti_of_gputrail_is_taken_else_one_that_fits_the_driver() {
        let agents = |libcupti: &str| {
            format!(
                "OpenCL\n  0  A\n     platform       NVIDIA CUDA\n     driver         3.1\n\nCUDA\n  0  GPU\n     driver         CUDA 12.8\n     \
                 libcupti       {libcupti}\n"
            )
        };
        let found = of_agents(&agents("/c/libcupti.so.12"));
        assert_eq!(found, Some((Some("/c/libcupti.so.12".into()), 12)));
        let missing = of_agents(&agents("MISSING: no libcupti was found"));
        assert_eq!(missing, Some((None, 12)));
        let files =
            "/p/cu13/lib/libcupti.so.13\n/p/cuda_cupti/lib/libcupti.so.12\n/q/libcupti.so.11.8\n\n";
        let twelve = "/p/cuda_cupti/lib/libcupti.so.12".into();
        assert_eq!(fitting(files, 12), Some(twelve));
        assert_eq!(fitting(files, 10), None);
    }
}
