//! CUPTI alone: callbacks that do nothing, and buffers that nobody reads. The cost beside which that of gputrail stands.

use crate::library::Library;
use std::ffi::c_void;
use std::path::PathBuf;
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
    cupti.cuptiSubscribe(&raw mut subscriber, callback, std::ptr::null_mut())?;
    for call in CALLS {
        cupti.cuptiEnableCallback(1, subscriber, DRIVER_API, call)?;
    }
    cupti.cuptiActivityRegisterCallbacks(requested, completed)?;
    cupti.cuptiActivityEnable(CONCURRENT_KERNEL)?;
    Ok(())
}

/// The libcupti of this machine: the one that is named for gputrail, else that of the toolkit, of a Python package, or
/// of the loader.
pub fn find() -> Option<PathBuf> {
    let named = std::env::var_os("GPUTRAIL_CUPTI").map(PathBuf::from);
    if named.is_some() {
        return named;
    }
    let toolkit = PathBuf::from("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so");
    if toolkit.exists() {
        return Some(toolkit);
    }
    let script = "import glob, sys\n\
                  found = [f for p in sys.path for d in ('cu13', 'cuda_cupti') \
                  for f in glob.glob(p + '/nvidia/' + d + '/lib/libcupti.so*')]\n\
                  print(found[0] if found else '')";
    let python = Command::new("python3").args(["-c", script]).output().ok();
    let packaged = python.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let packaged = packaged.filter(|path| !path.is_empty()).map(PathBuf::from);
    packaged.or_else(|| {
        let names = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
        // In a process of its own: its constructors are not to run in this one.
        let opens = |name: &&&str| {
            let own = std::env::current_exe().ok();
            let output = own.and_then(|own| Command::new(own).args(["opens", name]).output().ok());
            output.is_some_and(|output| output.status.success())
        };
        names.iter().find(opens).map(PathBuf::from)
    })
}
