//! The body of a wrapper whose call may have consumers: what the layer does before and after the function below. Wrappers of
//! the table and those of extension functions have the same.

use super::call::ObservedCall;
use super::ffi::*;
use super::functions::{ArgumentForm, bits};
use gputrail_record::ArgumentType;

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
        unsafe { $crate::opencl::layer::wrapper_body::and_then($call, $result, $then) }
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
    ($($arg:ident),*) => { &[$($crate::opencl::functions::bits($arg)),*] };
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
            let returned = $crate::opencl::layer::wrapper_body::returned($returned);
            $call.notify_exit(all_bits!($($arg),*), $status, returned);
        }
    };
}
pub(super) use exit;

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
pub(super) fn kept<T: ArgumentForm>(call: &mut ObservedCall, argument: T) -> u64 {
    match T::TYPE {
        Some(ArgumentType::BOOLEAN) => u64::from(bits(argument) != 0),
        // SAFETY: OpenCL's strings end with a 0, and the call that got this one has returned.
        Some(ArgumentType::STRING) => unsafe { call.intern(bits(argument) as *const c_char) },
        _ => bits(argument),
    }
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

/// The body of a wrapper whose call may have consumers, `$interest`. `$next` is the function below us.
macro_rules! observe {
    ($interest:expr, $next:expr, $how:ident [$($detail:ident),*] $group:ident $name:ident($($arg:ident: $ty:ty),*)
        { $($hook:tt)* }) => {{
        let mut call = ObservedCall::UNRECORDED;
        let call = &mut call;
        let frame = (&raw const *call) as usize;
        if !call.enter($interest, ClFunction::$name as u16, frame) {
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
        let counts = $crate::opencl::layer::counters::is_on() && {
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
        const KEPT: usize = 0 $(+ <$ty as ArgumentForm>::TYPE.is_some() as usize)*;
        let mut all = [0u64; KEPT];
        let $values = if $call.keeps_arguments() {
                $call.end();
                let mut places = all.iter_mut();
                $(if <$ty as ArgumentForm>::TYPE.is_some()
                    && let Some(place) = places.next()
                {
                    *place = $crate::opencl::layer::wrapper_body::kept($call, $arg);
                })*
                &all[..]
            } else { &[] };
    };
}
pub(super) use kept_arguments;
