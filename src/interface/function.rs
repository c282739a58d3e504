//! The type that says what a function of the C API is.

use core::ffi::CStr;

/// A function of the C API.
///
/// # Safety
///
/// `Pointer` is the type of a pointer to the function `NAME` of every version of the library that has it.
pub unsafe trait Function {
    /// A pointer to it, which is unsafe to call unless its arguments are plain values.
    type Pointer: Copy;
    /// Its name.
    const NAME: &'static CStr;
}

/// Declares functions by their names and the types of pointers to them.
macro_rules! functions {
    ($($name:ident: $pointer:ty;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of `gputrail.h`.")]
            #[derive(Copy, Clone, Debug)]
            pub enum $name {}

            // SAFETY: the list is made from the functions of these names in the library, whose types never change.
            unsafe impl $crate::Function for $name {
                type Pointer = $pointer;
                const NAME: &'static core::ffi::CStr =
                    match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => unreachable!(),
                    };
            }
        )*
    };
}
pub(crate) use functions;
