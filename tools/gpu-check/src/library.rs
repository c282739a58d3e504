//! Libraries that are opened while the program runs: a machine without CUDA lacks them.

use std::ffi::{CStr, CString, c_void};

/// An open library, which is never closed.
#[derive(Copy, Clone)]
pub struct Library(*mut c_void);

// SAFETY: a handle of the loader, which any thread may use.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Opens a library, or says why it cannot be opened.
    pub fn open(name: &str) -> Result<Library, String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: a text; opening a library runs its constructors.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !library.is_null() {
            return Ok(Library(library));
        }
        // SAFETY: the loader's text about its last error, or null.
        let error = unsafe { libc::dlerror() };
        if error.is_null() {
            return Err("the loader gives no reason".into());
        }
        // SAFETY: as above; the text is copied at once.
        Err(unsafe { CStr::from_ptr(error) }
            .to_string_lossy()
            .into_owned())
    }

    /// The address of a function.
    pub fn symbol(self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: an open library and a text.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }
}

/// Declares a table of the functions of a library. A call of one that the library lacks is an error.
#[macro_export]
macro_rules! functions {
    ($(#[$meta:meta])* $table:ident($what:literal) { $($name:ident($($argument:ident: $type:ty),*);)* }) => {
        $(#[$meta])*
        #[allow(non_snake_case)]
        #[derive(Copy, Clone)]
        pub struct $table {
            $($name: Option<unsafe extern "C" fn($($type),*) -> i32>,)*
        }

        #[allow(non_snake_case, clippy::too_many_arguments, missing_docs)]
        impl $table {
            /// The functions that `library` exports.
            pub fn of(library: $crate::library::Library) -> $table {
                $table {
                    $($name: library.symbol(stringify!($name)).map(|found| {
                        // SAFETY: a function of this name in such a library has this type.
                        unsafe {
                            core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn($($type),*) -> i32>(found)
                        }
                    }),)*
                }
            }

            $(
            /// The function of this name; an error names it with its status.
            ///
            /// # Safety
            ///
            /// Pointers lead to what the function reads or writes, and handles are those of objects that exist.
            #[inline(always)]
            pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), $crate::library::Failed> {
                let failed = |status| $crate::library::Failed { what: stringify!($name), status };
                let function = self.$name.ok_or(failed(i32::MIN))?;
                // SAFETY: the arguments are what the function asks for (`# Safety`).
                match unsafe { function($($argument),*) } {
                    0 => Ok(()),
                    status => Err(failed(status)),
                }
            }
            )*
        }
    };
}

/// A call that failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The function.
    pub what: &'static str,
    /// Its status; `i32::MIN` if the library lacks the function.
    pub status: i32,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.status {
            i32::MIN => write!(f, "the library lacks {}", self.what),
            status => write!(f, "{} failed with {status}", self.what),
        }
    }
}

impl std::error::Error for Failed {}
