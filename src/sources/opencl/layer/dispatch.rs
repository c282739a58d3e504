//! The layer's wrappers, one for each function of the table, between the loader and the functions below.
//!
//! A wrapper is a plain frame without destructors, so an exception or a longjmp may pass through it. A thread whose
//! cancellation type is asynchronous may be unwound at any instruction of it, and only at cancellation points behind it.

use super::below::{self, ENTRIES, below, next};
use super::call::ObservedCall;
use super::contained::contained;
use super::ffi::*;
use super::functions::{AnyFunction, ArgumentForm, ClFunction, DispatchTable};
use super::table::opencl_functions;
use super::work::{Commands, Mapped};
use super::wrapper_body::{
    after, all_bits, body, exit, keeps_books, kept_arguments, middle, notify_enqueue, notify_enter,
    observe, wait_list,
};
use super::{
    counters, debug_info, events, extensions, kernel_arguments, kernels, memory, objects, programs,
    queue_calls, rect, waits,
};
use core::ptr;
use gputrail_buffer::platform::inside::defer_cancellation;
use gputrail_collect::switchboard::Interest;
use std::sync::OnceLock;

macro_rules! declare {
    ($(
        $group:ident $how:ident $(($($detail:ident),*))? $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty
        { $($hook:tt)* }
    )*) => {
        /// The layer's own functions; functions of other systems are absent.
        const WRAPPERS: DispatchTable = DispatchTable { $($name: wrapped!($how $name)),* };

        #[allow(non_snake_case, unused_mut, unused_variables, clippy::too_many_arguments)]
        mod wrappers {
            use super::*;
            $(wrapper! {
                $how [$($($detail),*)?] $group $name($($arg: $ty),*) -> $ret { $($hook)* }
            })*
        }
    };
}

macro_rules! wrapped {
    (pass $name:ident) => {
        None
    };
    ($how:ident $name:ident) => {
        Some(wrappers::$name)
    };
}

/// A wrapper. It passes calls without consumers through at once; everything else is in a function of its own, so that
/// the wrapper needs no registers for it.
macro_rules! wrapper {
    (pass $($rest:tt)*) => {};

    ($how:ident [$($detail:ident),*] $group:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty
        { $($hook:tt)* }) => {
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            #[inline(never)]
            unsafe extern "C-unwind" fn observed(interest: Interest, $($arg: $ty),*) -> $ret {
                observe!(interest, below().$name.unwrap_unchecked(), $how [$($detail),*] $group
                    $name($($arg: $ty),*) { $($hook)* })
            }
            let interest = ObservedCall::interest_in(ClFunction::$name as u16);
            if ObservedCall::is_handed_on(interest, keeps_books!({ $($hook)* })) {
                // SAFETY: the arguments that this one got.
                return unsafe { next!($name($($arg),*)) };
            }
            let cancel_type = defer_cancellation();
            // SAFETY: the same.
            let result = unsafe { observed(interest, $($arg),*) };
            cancel_type.restore();
            result
        }
    };
}

opencl_functions!(declare);

/// The layer's own functions.
static LAYER: OnceLock<DispatchTable> = OnceLock::new();

/// Stores the functions of the loader, and makes the layer's own: a wrapper for each function that is known, and the
/// loader's entry otherwise.
///
/// # Safety
///
/// `target` leads to `entries` function pointers in the order of `cl_icd_dispatch`.
pub(super) unsafe fn install(
    target: *const DispatchTable,
    entries: usize,
) -> (&'static DispatchTable, usize) {
    let entries = entries.min(ENTRIES);
    // SAFETY: `target` leads to as many pointers (`# Safety`).
    unsafe { below::install(target, entries) };
    let next = below();
    let layer = LAYER.get_or_init(|| {
        let mut layer = WRAPPERS;
        let below = (&raw const *next).cast::<AnyFunction>();
        let own = (&raw mut layer).cast::<AnyFunction>();
        for entry in 0..ENTRIES {
            // SAFETY: both are structs of `ENTRIES` such pointers.
            unsafe {
                if (*below.add(entry)).is_none() || (*own.add(entry)).is_none() {
                    *own.add(entry) = *below.add(entry);
                }
            }
        }
        layer
    });
    (layer, entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencl::functions::{FUNCTIONS, operation};
    use crate::opencl::layer::contained::tests::PARTS_LEFT;
    use gputrail_collect::context::{Context, OperationSet};
    use gputrail_collect::process;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_call_goes_on_whatever_part_of_the_layer_panics() {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        unsafe extern "C-unwind" fn set_argument(
            _: cl_kernel,
            _: cl_uint,
            _: usize,
            _: *const c_void,
        ) -> cl_int {
            CALLS.fetch_add(1, Ordering::Relaxed);
            -7
        }
        // SAFETY: a struct of optional function pointers, for which all zeros are `None`.
        let mut runtime: DispatchTable = unsafe { core::mem::zeroed() };
        runtime.clSetKernelArg = Some(set_argument);
        // SAFETY: it has all entries.
        let (layer, _) = unsafe { install(&runtime, ENTRIES) };
        let set = layer.clSetKernelArg.unwrap();
        static CALLBACKS: AtomicU32 = AtomicU32::new(0);
        let context = Context::new().unwrap();
        let mut operations = OperationSet::default();
        operations.set(operation(ClFunction::clSetKernelArg as u16), true);
        let subscribed = context.call_back(operations, |_| {
            CALLBACKS.fetch_add(1, Ordering::Relaxed);
        });
        let _subscriber = subscribed.unwrap();
        context.start().unwrap();
        // The panic is in the enter, in the callbacks of the enter, after the runtime's function, or nowhere. A
        // subscriber that did not see the enter does not see the exit.
        for (parts, expected) in [(Some(0), 0), (Some(1), 0), (Some(2), 1), (None, 2)] {
            PARTS_LEFT.set(parts);
            let (calls, before) = (
                CALLS.load(Ordering::Relaxed),
                CALLBACKS.load(Ordering::Relaxed),
            );
            let value = 1u64;
            // SAFETY: the runtime looks at none of it.
            let status = unsafe { set(cl_kernel::NULL, 0, 8, (&raw const value).cast()) };
            assert_eq!((status, CALLS.load(Ordering::Relaxed) - calls), (-7, 1));
            assert_eq!(
                CALLBACKS.load(Ordering::Relaxed) - before,
                expected,
                "{parts:?}"
            );
            assert_eq!(PARTS_LEFT.get(), None);
        }
        let host = process::current().and_then(|thread| thread.with(|_| ()));
        assert!(host.is_some(), "the thread's state is free again");
    }

    #[test]
    fn the_table_has_the_entries_of_opencl_3_in_their_order() {
        assert_eq!((ENTRIES, FUNCTIONS.len()), (149, 149));
        let offset = |function: ClFunction| function as usize * size_of::<AnyFunction>();
        assert_eq!(
            core::mem::offset_of!(DispatchTable, clGetPlatformIDs),
            offset(ClFunction::clGetPlatformIDs)
        );
        assert_eq!(
            core::mem::offset_of!(DispatchTable, clSetEventCallback),
            81 * 8
        );
        assert_eq!(
            core::mem::offset_of!(DispatchTable, clCreateCommandQueueWithProperties),
            123 * 8
        );
        assert_eq!(
            core::mem::offset_of!(DispatchTable, clSetContextDestructorCallback),
            148 * 8
        );
    }

    #[test]
    fn an_operation_says_which_arguments_it_keeps() {
        let read = &FUNCTIONS[ClFunction::clEnqueueReadBuffer as usize];
        assert!(read.keeps_arguments());
        assert_eq!(
            read.info(ClFunction::clEnqueueReadBuffer as u16)
                .signature(),
            "command_queue:pointer,buffer:pointer,blocking_read:bool,offset:uint,cb:uint,ptr:pointer,\
             num_events_in_wait_list:uint"
        );
    }
}
