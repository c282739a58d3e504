//! The layer's wrappers, one for each function of the table, between the loader and the functions below.
//!
//! A wrapper is a plain frame without destructors, so an exception or a longjmp may pass through it. A thread whose
//! cancellation type is asynchronous may be unwound at any instruction of it, and only at cancellation points behind it.

use super::call::ObservedCall;
use super::ffi::*;
use super::functions::{AnyFunction, Argument, Description, Dispatch, Function, ObjectType};
use super::table::opencl_functions;
use super::work::{Commands, Mapped};
use super::{
    counting, debug_info, events, extensions, kernels, memory, objects, programs, queues, rect,
    replay, waits,
};
use crate::opencl::loader;
use core::cell::UnsafeCell;
use core::ptr;
use gputrail_buffer::platform::inside::{contain, defer_cancellation};
use gputrail_collect::switchboard::Interest;
use gputrail_record::{ArgumentType, ContextId, KernelId, OperationGroup};
use std::sync::{Once, OnceLock};

macro_rules! declare {
    ($(
        $group:ident $how:ident $(($($detail:ident),*))? $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty
        { $($hook:tt)* }
    )*) => {
        /// The layer's own functions; functions of other systems are absent.
        const WRAPPERS: Dispatch = Dispatch { $($name: wrapped!($how $name)),* };

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

/// Calls the function below us, without a check that it is there: a loader that lacks it gets no wrapper for it either, and
/// each loader with layers has those of OpenCL 1.1, which the layer calls by itself, too. The caller's `unsafe` block says
/// why the arguments are what the function asks for.
macro_rules! next {
    ($name:ident($($arg:expr),*)) => {
        ($crate::opencl::layer::dispatch::below().$name.unwrap_unchecked())($($arg),*)
    };
}
pub(super) use next;

/// The call of `$next`, the function below us, by a wrapper.
macro_rules! middle {
    ($call:ident $next:expr, ($($arg:ident),*) { through $path:path }) => {
        // SAFETY: the program's own arguments, but that places for a status and an event are ours where it gave none, and
        // that the event of work always goes to a place of ours.
        unsafe { $path($call $(, $arg)*) }
    };
    ($call:ident $next:expr, ($($arg:ident),*) { by $path:path }) => {
        // SAFETY: as for `through`.
        unsafe { $path($call, $next $(, $arg)*) }
    };
    ($call:ident $next:expr, ($($arg:ident),*) { $($hook:tt)* }) => {
        // SAFETY: as for `through`; `$next` is there, since there is a wrapper for it.
        unsafe { ($next)($($arg),*) }
    };
}

/// The part of a wrapper that runs after success.
macro_rules! after {
    ($call:ident $result:expr, { then $then:expr }) => {
        // SAFETY: the function succeeded, so that pointers among its arguments are valid.
        unsafe { $crate::opencl::layer::dispatch::and_then($call, $result, $then) }
    };
    ($call:ident $result:expr, { if $condition:expr; $($hook:tt)* }) => {
        if $condition {
            after!($call $result, { $($hook)* });
        }
    };
    ($call:ident $result:expr, { $($hook:tt)* }) => {};
}

#[inline(always)]
pub(super) unsafe fn and_then<T>(
    call: &mut ObservedCall,
    result: T,
    then: impl FnOnce(&mut ObservedCall, T),
) {
    then(call, result)
}

/// The bits of the arguments, as subscribers get them.
macro_rules! all_bits {
    ($($arg:ident),*) => { &[$($crate::opencl::layer::dispatch::bits($arg)),*] };
}
pub(super) use all_bits;

/// Calls back subscribers at the enter of a call.
macro_rules! notify_enter {
    ($call:ident $($arg:ident),*) => {
        if $call.has_callbacks() {
            $call.notify_enter(all_bits!($($arg),*));
        }
    };
}
pub(super) use notify_enter;

/// Calls back subscribers at the enter of a call that puts work into a queue.
macro_rules! notify_enqueue {
    ($call:ident $queue:ident, $work:expr, $blocking:expr, $($arg:ident),*) => {
        if $call.has_callbacks() {
            $call.notify_enter(all_bits!($($arg),*));
            // SAFETY: what the program says, the runtime would read too.
            unsafe { $call.notify_enqueue($queue, $work, $blocking) };
        }
    };
}
pub(super) use notify_enqueue;

/// The event wait list among the arguments.
macro_rules! wait_list {
    ($($arg:ident),*) => {
        $crate::opencl::layer::waits::WaitList::NONE$(.after($arg))*
    };
}
pub(super) use wait_list;

/// Ends a call, and calls back subscribers.
macro_rules! exit {
    ($call:ident $status:expr, $values:expr, $returned:expr, $($arg:ident),*) => {
        let has_callbacks = $call.has_callbacks();
        if has_callbacks {
            $call.end_with_callbacks($status);
        }
        $call.exit($status, $values);
        if has_callbacks {
            let returned = $crate::opencl::layer::dispatch::returned($returned);
            $call.notify_exit(all_bits!($($arg),*), $status, returned);
        }
    };
}
pub(super) use exit;

/// The bits of an argument: a number, a handle or a pointer. Signed ones are sign-extended.
#[inline(always)]
pub(super) fn bits<T: Argument>(argument: T) -> u64 {
    const { assert!(size_of::<T>() <= 8) };
    let mut bits = [0u8; 8];
    // SAFETY: an argument has no padding and at most 8 bytes.
    unsafe {
        ptr::copy_nonoverlapping(
            (&raw const argument).cast(),
            bits.as_mut_ptr(),
            size_of::<T>(),
        )
    };
    let bits = u64::from_ne_bytes(bits);
    match (T::TYPE, size_of::<T>()) {
        (Some(ArgumentType::SIGNED), 4) => i64::from(bits as i32) as u64,
        _ => bits,
    }
}

/// The bits of what a function has returned: nothing, a status, which is sign-extended, a handle or a pointer.
#[inline(always)]
pub(super) fn returned<T: Copy>(value: T) -> u64 {
    const { assert!(matches!(size_of::<T>(), 0 | 4 | 8)) };
    let place = (&raw const value).cast::<u8>();
    // SAFETY: a value of this size, without padding.
    unsafe {
        match size_of::<T>() {
            0 => 0,
            4 => i64::from(place.cast::<i32>().read()) as u64,
            _ => place.cast::<u64>().read(),
        }
    }
}

/// The value of an argument that records keep.
#[inline(always)]
pub(super) fn kept<T: Argument>(call: &mut ObservedCall, argument: T) -> u64 {
    match T::TYPE {
        Some(ArgumentType::BOOLEAN) => u64::from(bits(argument) != 0),
        // SAFETY: OpenCL's strings end with a 0, and the call that got this one has returned.
        Some(ArgumentType::STRING) => unsafe { call.intern(bits(argument) as *const c_char) },
        _ => bits(argument),
    }
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
            let interest = ObservedCall::interest_in(Function::$name as u16);
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

/// Whether the layer needs a call for its own state, given its hook.
macro_rules! keeps_books {
    ({ if $condition:expr; $($hook:tt)* }) => {
        $condition
    };
    ($hook:tt) => {
        true
    };
}

/// Does the layer's own part of a call. A panic in it is contained, and the program's call goes on.
///
/// Code of the runtime that may be cancelled is not called in it: its unwinding is foreign to Rust.
#[inline(always)]
pub(super) fn contained(work: impl FnOnce()) {
    let work = || {
        #[cfg(test)]
        tests::panic_if_asked();
        work();
    };
    contain(work);
}

/// The body of a wrapper whose call may have consumers, `$interest`. `$next` is the function below us.
macro_rules! observe {
    ($interest:expr, $next:expr, $how:ident [$($detail:ident),*] $group:ident $name:ident($($arg:ident: $ty:ty),*)
        { $($hook:tt)* }) => {{
        let mut call = ObservedCall::UNRECORDED;
        let call = &mut call;
        let frame = (&raw const *call) as usize;
        if !call.enter($interest, Function::$name as u16, frame) {
            return middle!(call $next, ($($arg),*) {});
        }
        body!(call $next, $how [$($detail),*] $group $name($($arg: $ty),*) { $($hook)* })
    }};
}

/// The body of a wrapper whose call has consumers.
macro_rules! body {
    ($call:ident $next:expr, status [] $group:ident $name:ident($($arg:ident: $ty:ty),*) { $($hook:tt)* }) => {{
        contained(|| notify_enter!($call $($arg),*));
        let result = middle!($call $next, ($($arg),*) { $($hook)* });
        contained(|| {
            if result == CL_SUCCESS {
                after!($call (), { $($hook)* });
            }
            kept_arguments!(values: $call $group $($arg: $ty),*);
            exit!($call result, values, result, $($arg),*);
        });
        result
    }};

    ($call:ident $next:expr, value [] $group:ident $name:ident($($arg:ident: $ty:ty),*) { $($hook:tt)* }) => {{
        contained(|| notify_enter!($call $($arg),*));
        let result = middle!($call $next, ($($arg),*) { $($hook)* });
        contained(|| {
            after!($call result, { $($hook)* });
            kept_arguments!(values: $call $group $($arg: $ty),*);
            exit!($call CL_SUCCESS, values, result, $($arg),*);
        });
        result
    }};

    ($call:ident $next:expr, object [$errcode:ident] $group:ident $name:ident($($arg:ident: $ty:ty),*) { $($hook:tt)* }) => {{
        contained(|| notify_enter!($call $($arg),*));
        let mut status = CL_SUCCESS;
        let asked = $errcode;
        let $errcode = if asked.is_null() { &raw mut status } else { asked };
        let result = middle!($call $next, ($($arg),*) { $($hook)* });
        // SAFETY: the program's pointer, or ours.
        let status = unsafe { $errcode.read() };
        contained(|| {
            if !result.is_null() {
                after!($call result, { $($hook)* });
            }
            kept_arguments!(values: $call $group $($arg: $ty),*);
            exit!($call status, values, result, $($arg),*);
        });
        result
    }};

    ($call:ident $next:expr, work [$queue:ident, $event:ident $(, $blocking:ident)?] $group:ident $name:ident
        ($($arg:ident: $ty:ty),*) { $work:expr }) => {{
        let blocking = false $(|| $blocking.0 != 0)?;
        contained(|| notify_enqueue!($call $queue, $work, blocking, $($arg),*));
        let counts = $crate::opencl::layer::counting::is_on() && {
            // SAFETY: what the program says, the runtime would read too.
            unsafe {
                let waits = wait_list!($($arg),*);
                $crate::opencl::layer::counting::before($call, $queue, $work, waits)
            }
        };
        let mut own = cl_event::NULL;
        let asked = $event;
        let $event = &raw mut own;
        let result = middle!($call $next, ($($arg),*) {});
        if result == CL_SUCCESS && !asked.is_null() {
            // SAFETY: the program's place for the event.
            unsafe { asked.write(own) };
        }
        contained(|| {
            if result == CL_SUCCESS {
                // SAFETY: the function succeeded, so that pointers among its arguments are valid.
                unsafe {
                    let (is_ours, waits) = (asked.is_null(), wait_list!($($arg),*));
                    $call.enqueued($queue, $work, own, is_ours, blocking, waits)
                };
            }
            kept_arguments!(values: $call $group $($arg: $ty),*);
            exit!($call result, values, result, $($arg),*);
        });
        if counts {
            $crate::opencl::layer::counting::abandon($call, result == CL_SUCCESS);
        }
        result
    }};

    ($call:ident $next:expr, map [$queue:ident, $event:ident, $blocking:ident, $errcode:ident] $group:ident $name:ident
        ($($arg:ident: $ty:ty),*) { $work:expr }) => {{
        contained(|| notify_enqueue!($call $queue, $work, $blocking.0 != 0, $($arg),*));
        contained($crate::opencl::layer::replay::wait_for_others);
        let mut status = CL_SUCCESS;
        let status_asked = $errcode;
        let $errcode = if status_asked.is_null() { &raw mut status } else { status_asked };
        let mut own = cl_event::NULL;
        let asked = $event;
        let $event = &raw mut own;
        let result = middle!($call $next, ($($arg),*) {});
        // SAFETY: the program's pointer, or ours.
        let status = unsafe { $errcode.read() };
        if status == CL_SUCCESS && !asked.is_null() {
            // SAFETY: the program's place for the event.
            unsafe { asked.write(own) };
        }
        contained(|| {
            if status == CL_SUCCESS {
                // SAFETY: the function succeeded, so that pointers among its arguments are valid.
                unsafe {
                    let work = $work.mapped_at(result);
                    let (is_ours, waits) = (asked.is_null(), wait_list!($($arg),*));
                    $call.enqueued($queue, work, own, is_ours, $blocking.0 != 0, waits)
                };
            }
            kept_arguments!(values: $call $group $($arg: $ty),*);
            exit!($call status, values, result, $($arg),*);
        });
        result
    }};

    ($call:ident $next:expr, untracked [$queue:ident] $group:ident $name:ident($($arg:ident: $ty:ty),*) { $work:expr }) => {{
        contained(|| notify_enqueue!($call $queue, $work, false, $($arg),*));
        contained($crate::opencl::layer::replay::wait_for_others);
        let result = middle!($call $next, ($($arg),*) {});
        contained(|| {
            if result == CL_SUCCESS {
                // SAFETY: the function succeeded, so that pointers among its arguments are valid.
                unsafe {
                    let waits = wait_list!($($arg),*);
                    $call.enqueued($queue, $work, cl_event::NULL, false, false, waits)
                };
            }
            kept_arguments!(values: $call $group $($arg: $ty),*);
            exit!($call result, values, result, $($arg),*);
        });
        result
    }};
}
pub(super) use {after, body, keeps_books, middle, observe};

/// The recorded values of a call's arguments, if records of its group keep them.
macro_rules! kept_arguments {
    ($values:ident: $call:ident QUERY $($rest:tt)*) => { let $values = &[]; };
    ($values:ident: $call:ident LIFETIME $($rest:tt)*) => { let $values = &[]; };
    ($values:ident: $call:ident SET $($rest:tt)*) => { let $values = &[]; };
    ($values:ident: $call:ident SYNCHRONIZE $($rest:tt)*) => { let $values = &[]; };
    ($values:ident: $call:ident OTHER $($rest:tt)*) => { let $values = &[]; };
    ($values:ident: $call:ident $group:ident $($arg:ident: $ty:ty),*) => {
        // The number is a constant: this compiles to a row of stores.
        const KEPT: usize = 0 $(+ <$ty as Argument>::TYPE.is_some() as usize)*;
        let mut all = [0u64; KEPT];
        let $values = if $call.keeps_arguments() {
                $call.end();
                let mut places = all.iter_mut();
                $(if <$ty as Argument>::TYPE.is_some()
                    && let Some(place) = places.next()
                {
                    *place = $crate::opencl::layer::dispatch::kept($call, $arg);
                })*
                &all[..]
            } else { &[] };
    };
}
pub(super) use kept_arguments;

opencl_functions!(declare);

/// The kernel that a call of `function` with these arguments launches.
#[inline]
pub(super) fn launched(function: &Description, arguments: &[u64]) -> KernelId {
    // The kernel is always the second argument.
    match (function.objects, arguments) {
        ([_, ObjectType::Kernel], [_, kernel, ..]) if function.group == OperationGroup::ENQUEUE => {
            kernels::id(cl_kernel(*kernel as *mut c_void))
        }
        _ => KernelId::NONE,
    }
}

/// The context of a call, as far as its first argument says.
#[inline]
pub(super) fn context_of(function: &Description, arguments: &[u64]) -> ContextId {
    let Some(handle) = arguments.first() else {
        return ContextId::NONE;
    };
    let handle = *handle as *mut c_void;
    let known = match function.objects[0] {
        ObjectType::Context => objects::CONTEXTS
            .get(cl_context(handle))
            .map(|info| info.id),
        ObjectType::Queue => {
            let info = queues::QUEUES.get(cl_command_queue(handle));
            info.map(|info| info.ids.context)
        }
        ObjectType::Program => programs::context_of(cl_program(handle)),
        ObjectType::Memory => memory::context_of(cl_mem(handle)),
        ObjectType::Kernel => kernels::context_of(cl_kernel(handle)),
        ObjectType::Other => None,
    };
    known.unwrap_or_default()
}

/// The functions below the layer.
static NEXT: Below = Below {
    // SAFETY: a struct of optional function pointers, for which all zeros are `None`.
    functions: UnsafeCell::new(unsafe { core::mem::zeroed() }),
    installed: Once::new(),
};

struct Below {
    functions: UnsafeCell<Dispatch>,
    installed: Once,
}

// SAFETY: the functions are written once, by `installed`; who reads them has a wrapper, which was handed out after that.
unsafe impl Sync for Below {}

/// The layer's own functions.
static LAYER: OnceLock<Dispatch> = OnceLock::new();

/// Number of functions in [`Dispatch`].
const ENTRIES: usize = size_of::<Dispatch>() / size_of::<AnyFunction>();

/// The functions below the layer; only the wrappers, which exist after `install`, may call this.
#[inline(always)]
pub(super) fn below() -> &'static Dispatch {
    // SAFETY: `install` writes them before it hands out a wrapper, and no thread does after that.
    unsafe { &*NEXT.functions.get() }
}

/// Stores the functions of the loader, and makes the layer's own: a wrapper for each function that is known, and the
/// loader's entry otherwise. The first loader of a process wins, and stays loaded when the program closes it: work that the
/// program has left behind completes later.
///
/// # Safety
///
/// `target` leads to `entries` function pointers in the order of `cl_icd_dispatch`.
pub(super) unsafe fn install(
    target: *const Dispatch,
    entries: usize,
) -> (&'static Dispatch, usize) {
    let entries = entries.min(ENTRIES);
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
    use gputrail_collect::context::{Context, OperationSet};
    use gputrail_collect::process;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    thread_local! {
        /// The number of parts of the layer's own work that run before one panics.
        static PARTS_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    pub fn panic_if_asked() {
        match PARTS_LEFT.get() {
            Some(0) => {
                PARTS_LEFT.set(None);
                panic!("as the test asked");
            }
            Some(left) => PARTS_LEFT.set(Some(left - 1)),
            None => {}
        }
    }

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
        let mut runtime: Dispatch = unsafe { core::mem::zeroed() };
        runtime.clSetKernelArg = Some(set_argument);
        // SAFETY: it has all entries.
        let (layer, _) = unsafe { install(&runtime, ENTRIES) };
        let set = layer.clSetKernelArg.unwrap();
        static CALLBACKS: AtomicU32 = AtomicU32::new(0);
        let context = Context::new().unwrap();
        let mut operations = OperationSet::default();
        operations.set(operation(Function::clSetKernelArg as u16), true);
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
        let offset = |function: Function| function as usize * size_of::<AnyFunction>();
        assert_eq!(
            core::mem::offset_of!(Dispatch, clGetPlatformIDs),
            offset(Function::clGetPlatformIDs)
        );
        assert_eq!(core::mem::offset_of!(Dispatch, clSetEventCallback), 81 * 8);
        assert_eq!(
            core::mem::offset_of!(Dispatch, clCreateCommandQueueWithProperties),
            123 * 8
        );
        assert_eq!(
            core::mem::offset_of!(Dispatch, clSetContextDestructorCallback),
            148 * 8
        );
    }

    #[test]
    fn an_operation_says_which_arguments_it_keeps() {
        let read = &FUNCTIONS[Function::clEnqueueReadBuffer as usize];
        assert!(read.keeps_arguments());
        assert_eq!(
            read.info(Function::clEnqueueReadBuffer as u16).signature(),
            "command_queue:pointer,buffer:pointer,blocking_read:bool,offset:uint,cb:uint,ptr:pointer,\
             num_events_in_wait_list:uint"
        );
    }
}
