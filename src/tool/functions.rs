//! Calls of the C API of the library that is in the process. Each function is found by its name when it is first called.

use super::Error;
use bytemuck::Pod;
use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use gputrail_interface::Function;
use gputrail_interface::c::Status;
use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Calls a function of the library. An error says that the library in the process does not have it.
///
/// The call of a function that takes pointers is unsafe, and the macro has no `unsafe` of its own: it stands where the macro is
/// used. The pointers are what the function's documentation asks for.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        static FOUND: crate::functions::FoundFunction<gputrail_interface::functions::$function> =
            crate::functions::FoundFunction::new();
        match FOUND.get() {
            Ok(function) => Ok(function($($argument),*)),
            Err(error) => Err(error),
        }
    }};
}

/// Calls a function whose arguments are plain values; answers whether it succeeded.
macro_rules! act {
    ($($call:tt)*) => {
        crate::functions::check(crate::functions::call!($($call)*))
    };
}

/// Calls a function whose arguments are plain values and a place for its answer.
macro_rules! ask {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let mut answer = bytemuck::Zeroable::zeroed();
        // SAFETY: plain values, and a place for the answer.
        crate::functions::check(unsafe {
            crate::functions::call!($function(
                $(crate::functions::plain($argument),)* &mut answer
            ))
        })
        .map(|()| answer)
    }};
}

/// Calls a function whose arguments are plain values and a place for a text.
macro_rules! text {
    ($function:ident($($argument:expr),* $(,)?)) => {
        crate::functions::read_text(|to, capacity, length| {
            // SAFETY: plain values, room for that many bytes, and a place for the length.
            unsafe {
                crate::functions::call!($function(
                    $(crate::functions::plain($argument),)* to, capacity, length
                ))
            }
        })
    };
}

/// Calls a function whose arguments are plain values and a place for a list.
macro_rules! list {
    ($function:ident($($argument:expr),* $(,)?)) => {
        crate::functions::read_list(|to, capacity, count| {
            // SAFETY: plain values, room for that many, and a place for their number.
            unsafe {
                crate::functions::call!($function(
                    $(crate::functions::plain($argument),)* to, capacity, count
                ))
            }
        })
    };
}

pub(crate) use {act, ask, call, list, text};

/// `value`, which holds no pointer.
pub fn plain<T: Pod>(value: T) -> T {
    value
}

/// A function of the library, once it has been found.
pub struct FoundFunction<F> {
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F: Function> FoundFunction<F> {
    pub const fn new() -> FoundFunction<F> {
        FoundFunction {
            address: AtomicPtr::new(std::ptr::null_mut()),
            function: PhantomData,
        }
    }

    /// A pointer to the function.
    pub fn get(&self) -> Result<F::Pointer, Error> {
        const { assert!(size_of::<F::Pointer>() == size_of::<*mut c_void>()) };
        let mut function = self.address.load(Ordering::Relaxed);
        if function.is_null() {
            // SAFETY: `library` returns a handle of the loader, and the name ends with a 0.
            function = unsafe { libc::dlsym(library()?, F::NAME.as_ptr()) };
            self.address.store(function, Ordering::Relaxed);
        }
        match function.is_null() {
            true => Err(Error {
                status: Status::NOT_AVAILABLE,
                text: format!(
                    "the libgputrail.so.0 in the process has no {}: it is of an earlier version",
                    F::NAME.to_string_lossy()
                ),
            }),
            // SAFETY: the library's function of the name `F::NAME` has the type `F::Pointer`, as `Function` promises.
            false => Ok(unsafe { core::mem::transmute_copy(&function) }),
        }
    }
}

/// The library in the process.
fn library() -> Result<*mut c_void, Error> {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| {
        // SAFETY: asks for a library that is loaded already, and is never unloaded.
        unsafe {
            libc::dlopen(
                c"libgputrail.so.0".as_ptr(),
                libc::RTLD_NOW | libc::RTLD_NOLOAD,
            )
        }
        .expose_provenance()
    });
    match library {
        0 => Err(Error {
            status: Status::NOT_AVAILABLE,
            text: "there is no libgputrail.so.0 in the process: tools are loaded by gputrail"
                .into(),
        }),
        library => Ok(std::ptr::with_exposed_provenance_mut(library)),
    }
}

/// An error for a status that is not OK, with the library's text.
pub fn check(status: Result<Status, Error>) -> Result<(), Error> {
    let status = status?;
    if status == Status::OK {
        return Ok(());
    }
    let mut text = [0u8; 512];
    // SAFETY: room for that many bytes.
    let _ = unsafe { call!(gputrail_last_error(text.as_mut_ptr().cast(), text.len())) };
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
    Err(Error {
        status,
        text: String::from_utf8_lossy(&text[..end]).into_owned(),
    })
}

/// A text that `ask` copies to so many bytes; `ask` also writes how many there are.
pub fn read_text(
    mut ask: impl FnMut(*mut c_char, usize, *mut usize) -> Result<Status, Error>,
) -> Option<String> {
    let mut bytes = vec![0u8; 256];
    loop {
        let mut length = 0;
        match ask(bytes.as_mut_ptr().cast(), bytes.len(), &mut length) {
            Ok(Status::OK) => {
                bytes.truncate(length);
                return String::from_utf8(bytes).ok();
            }
            Ok(Status::TOO_SMALL) if length >= bytes.len() => bytes.resize(length + 1, 0),
            _ => return None,
        }
    }
}

/// A list that `ask` copies to memory for so many elements; `ask` also writes how many there are.
pub fn read_list<T: Copy + Default>(
    mut ask: impl FnMut(*mut T, usize, *mut usize) -> Result<Status, Error>,
) -> Result<Vec<T>, Error> {
    let mut all = vec![T::default(); 64];
    loop {
        let mut count = 0;
        let status = ask(all.as_mut_ptr(), all.len(), &mut count);
        if matches!(status, Ok(Status::TOO_SMALL)) && count > all.len() {
            all.resize(count, T::default());
            continue;
        }
        check(status)?;
        all.truncate(count);
        return Ok(all);
    }
}

/// A text of the tool's, for C.
pub fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error {
        status: Status::INVALID_ARGUMENT,
        text: format!("{text:?} has a 0 in it"),
    })
}
