//! Extension functions, which programs look up by name and call past the loader: known ones are wrapped, others are
//! passed through and noted.
//!
//! Each platform may have a function of its own for a name, so there is a set of wrappers for each of the first few
//! platforms.

use super::below::{below, next};
use super::call::ObservedCall;
use super::command_buffers::{self, CommandBuffer};
use super::contained::contained;
use super::extension_table::extension_functions;
use super::ffi::*;
use super::functions::numbers as ClFunction;
use super::functions::{ArgumentForm, FUNCTIONS};
use super::work::Commands;
use super::wrapper_body::{
    after, all_bits, body, exit, keeps_books, kept_arguments, middle, notify_enqueue, notify_enter,
    observe, wait_list,
};
use super::{counters, devices, kernel_arguments, memory, programs, queue_calls, rect};
use core::ffi::CStr;
use core::ptr;
use gputrail_buffer::platform::inside::defer_cancellation;
use gputrail_buffer::platform::sync::{OnceBox, PerProcess};
use gputrail_collect::process;
use gputrail_collect::switchboard::Interest;
use gputrail_record::{MemoryKind, NoteKind};
use std::collections::HashSet;

/// Number of platforms whose functions get wrappers of their own.
const PLATFORMS: usize = 3;

macro_rules! declare {
    ($(
        $group:ident $how:ident $(($($detail:ident),*))? $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty
        { $($hook:tt)* }
    )*) => {
        /// The functions of one platform that have been looked up.
        #[allow(non_snake_case)]
        struct Targets { $($name: OnceBox<unsafe extern "C-unwind" fn($($ty),*) -> $ret>,)* }

        static TARGETS: [Targets; PLATFORMS] =
            [const { Targets { $($name: OnceBox::new(),)* } }; PLATFORMS];

        /// The wrappers' bodies for calls that have consumers, of all platforms.
        #[allow(non_snake_case, unused_mut, unused_variables, clippy::too_many_arguments)]
        mod observed {
            use super::*;
            $(
                #[inline(never)]
                pub unsafe extern "C-unwind" fn $name(
                    interest: Interest,
                    target: unsafe extern "C-unwind" fn($($ty),*) -> $ret,
                    $($arg: $ty),*
                ) -> $ret {
                    observe!(interest, target, $how [$($($detail),*)?] $group $name($($arg: $ty),*)
                        { $($hook)* })
                }
            )*
        }

        /// The layer's own functions for one platform after the other.
        #[allow(non_snake_case, unused_variables, clippy::too_many_arguments)]
        mod platform0 { use super::*; wrappers!(0 $($name($($arg: $ty),*) -> $ret { $($hook)* })*); }
        #[allow(non_snake_case, unused_variables, clippy::too_many_arguments)]
        mod platform1 { use super::*; wrappers!(1 $($name($($arg: $ty),*) -> $ret { $($hook)* })*); }
        #[allow(non_snake_case, unused_variables, clippy::too_many_arguments)]
        mod platform2 { use super::*; wrappers!(2 $($name($($arg: $ty),*) -> $ret { $($hook)* })*); }

        /// Our function that replaces `target`, the platform's function `name`.
        fn wrap(name: &str, target: *mut c_void) -> Option<*mut c_void> {
            match name {
                $(stringify!($name) => {
                    // SAFETY: a function of that name has that signature.
                    let target = unsafe {
                        core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($ty),*) -> $ret>(target)
                    };
                    let same = |targets: &Targets| {
                        ptr::fn_addr_eq(*targets.$name.get_or_init(|| target), target)
                    };
                    let platform = TARGETS.iter().position(same)?;
                    Some([
                        platform0::$name as *mut c_void,
                        platform1::$name as *mut c_void,
                        platform2::$name as *mut c_void,
                    ][platform])
                })*
                _ => None,
            }
        }
    };
}

/// The set of wrappers of one platform.
macro_rules! wrappers {
    ($platform:literal $($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty { $($hook:tt)* })*) => {
        $(pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: `wrap` sets the target before it hands out a wrapper.
            let target = unsafe { *TARGETS[$platform].$name.get().unwrap_unchecked() };
            let interest = ObservedCall::interest_in(ClFunction::$name as u16);
            if ObservedCall::is_handed_on(interest, keeps_books!({ $($hook)* })) {
                // SAFETY: the program's own arguments.
                return unsafe { target($($arg),*) };
            }
            let cancel_type = defer_cancellation();
            // SAFETY: the same.
            let result = unsafe { observed::$name(interest, target, $($arg),*) };
            cancel_type.restore();
            result
        })*
    };
}

/// Makes a queue by a platform's own function, with profiling forced on.
///
/// # Safety
///
/// As for `create`, whose arguments these are; `errcode` is not null.
unsafe fn create_queue(
    call: &mut ObservedCall,
    create: unsafe extern "C-unwind" fn(
        cl_context,
        cl_device_id,
        *const cl_ulong,
        *mut cl_int,
    ) -> cl_command_queue,
    context: cl_context,
    device: cl_device_id,
    properties: *const cl_ulong,
    errcode: *mut cl_int,
) -> cl_command_queue {
    // SAFETY: the platform's function gets what the program passes to it, but another list: the program's own, or one that
    // lives during the call.
    let create = |list| unsafe { create(context, device, list, errcode) };
    // SAFETY: the program's list.
    unsafe { queue_calls::create_by(call, properties, errcode, create) }
}

extension_functions!(declare);

pub(super) unsafe fn address(_: &mut ObservedCall, name: *const c_char) -> *mut c_void {
    // SAFETY: the program's own arguments.
    let found = unsafe { next!(clGetExtensionFunctionAddress(name)) };
    // SAFETY: the program's string.
    unsafe { observed(cl_platform_id::NULL, name, found) }
}

pub(super) unsafe fn address_for_platform(
    _: &mut ObservedCall,
    platform: cl_platform_id,
    name: *const c_char,
) -> *mut c_void {
    // SAFETY: the program's own arguments.
    let found = unsafe { next!(clGetExtensionFunctionAddressForPlatform(platform, name)) };
    // SAFETY: the program's string.
    unsafe { observed(platform, name, found) }
}

/// Our function that replaces `found`, if there is one.
///
/// # Safety
///
/// `name` is null or a string that ends with a 0.
unsafe fn observed(
    platform: cl_platform_id,
    name: *const c_char,
    found: *mut c_void,
) -> *mut c_void {
    if found.is_null() || name.is_null() {
        return found;
    }
    // SAFETY: `name` is not null, so that it is a string that ends with a 0; the program keeps it during the call.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    // The loader's own functions lead back to the layer.
    if FUNCTIONS.iter().any(|function| function.name == name) && is_loaders(found) {
        return found;
    }
    let wrapped = if is_understood(platform, &name) {
        wrap(&name, found)
    } else {
        None
    };
    wrapped.unwrap_or_else(|| {
        list(&name);
        found
    })
}

/// Whether the library of the loader's functions contains `address`.
fn is_loaders(address: *mut c_void) -> bool {
    let base = |address: *const c_void| {
        // SAFETY: plain data that dladdr fills in.
        let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
        // SAFETY: any address may be asked about.
        (unsafe { libc::dladdr(address, &mut found) } != 0).then_some(found.dli_fbase)
    };
    let loaders = below()
        .clGetPlatformIDs
        .map(|function| function as *const c_void);
    loaders.is_some_and(|loaders| base(loaders) == base(address))
}

/// Whether the function has the signature in the table. The commands of command buffers got another argument with
/// version 0.9.5 of the extension.
fn is_understood(platform: cl_platform_id, name: &str) -> bool {
    !name.starts_with("clCommand")
        || devices::extension_version(platform, "cl_khr_command_buffer") < version(0, 9, 5)
}

/// A version as OpenCL packs it.
const fn version(major: u32, minor: u32, patch: u32) -> u32 {
    major << 22 | minor << 12 | patch
}

/// Notes that a function is called past the layer.
fn list(name: &str) {
    static LISTED: PerProcess<HashSet<String>> = PerProcess::new();
    let is_new = LISTED.lock().insert(name.to_owned());
    if is_new && let Some(names) = process::names() {
        names.note(NoteKind::UNOBSERVED_FUNCTION, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_platforms_functions_of_one_name_get_two_wrappers() {
        let (one, two) = (0x1000 as *mut c_void, 0x2000 as *mut c_void);
        let name = "clMemFreeINTEL";
        let first = wrap(name, one).unwrap();
        assert_eq!(wrap(name, one), Some(first));
        assert_ne!(wrap(name, two).unwrap(), first);
        assert!(wrap(name, 0x3000 as *mut c_void).is_some());
        assert_eq!(wrap(name, 0x4000 as *mut c_void), None);
        assert_eq!(wrap("clUnheardOf", one), None);
    }
}
