//! The functions below the layer: those of the loader, which lead to the next layer or to the runtimes.

use super::functions::{AnyFunction, DispatchTable};
use crate::opencl::loader;
use core::cell::UnsafeCell;
use core::ptr;
use std::sync::Once;

/// Calls the function below us, without a check that it is there: a loader that lacks it gets no wrapper for it either, and
/// each loader with layers has those of OpenCL 1.1, which the layer calls by itself, too. The caller's `unsafe` block says
/// why the arguments are what the function asks for.
macro_rules! next {
    ($name:ident($($arg:expr),*)) => {
        ($crate::opencl::layer::below::below().$name.unwrap_unchecked())($($arg),*)
    };
}
pub(super) use next;

/// The functions below the layer.
static NEXT: Below = Below {
    // SAFETY: a struct of optional function pointers, for which all zeros are `None`.
    functions: UnsafeCell::new(unsafe { core::mem::zeroed() }),
    installed: Once::new(),
};

struct Below {
    functions: UnsafeCell<DispatchTable>,
    installed: Once,
}

// SAFETY: the functions are written once, by `installed`; who reads them has a wrapper, which was handed out after that.
unsafe impl Sync for Below {}

/// Number of functions in [`DispatchTable`].
pub(super) const ENTRIES: usize = size_of::<DispatchTable>() / size_of::<AnyFunction>();

/// The functions below the layer; only the wrappers, which exist after `install`, may call this.
#[inline(always)]
pub(super) fn below() -> &'static DispatchTable {
    // SAFETY: `install` writes them before it hands out a wrapper, and no thread does after that.
    unsafe { &*NEXT.functions.get() }
}

/// The functions below the layer, if a loader has put the layer in the process.
pub(super) fn if_installed() -> Option<&'static DispatchTable> {
    NEXT.installed.is_completed().then(below)
}

/// Stores the functions of the loader. The first loader of a process wins, and stays loaded when the program closes it: work
/// that the program has left behind completes later.
///
/// # Safety
///
/// `target` leads to `entries` function pointers in the order of `cl_icd_dispatch`, and `entries` is at most [`ENTRIES`].
pub(super) unsafe fn install(target: *const DispatchTable, entries: usize) {
    NEXT.installed.call_once(|| {
        let next = NEXT.functions.get().cast::<AnyFunction>();
        // SAFETY: both have at least `entries` pointers, and no wrapper has been handed out yet.
        let functions = unsafe {
            ptr::copy_nonoverlapping(target.cast::<AnyFunction>(), next, entries);
            core::slice::from_raw_parts(next, entries)
        };
        let addresses = functions.iter().flatten();
        loader::keep_loaded(addresses.map(|function| *function as usize));
    });
}
