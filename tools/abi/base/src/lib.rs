//! What the libraries with the names of other profilers' APIs have in common: they find gputrail's library, answer in C,
//! and let no panic out.

pub mod activity;
pub mod agents;
mod callee;
pub mod counting;
mod frame;
pub mod functions;
mod handles;
mod named;
pub mod names;
mod place;
mod watch;

pub use callee::{Callee, WithData};
pub use handles::Handles;
pub use named::name_of;
pub use place::{Misplaced, Place};
pub use watch::Watch;

use gputrail_tool::program;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The file of gputrail's library, and its soname.
const LIBRARY: &CStr = c"libgputrail.so.0";

/// Loads `libgputrail.so.0`, if it is not in the process yet, prepares it, and has it observe OpenCL: before the program's
/// first OpenCL call. The library is looked for beside the library that `inside` is a function of, and by the loader.
///
/// # Errors
///
/// A sentence that says what failed, and what to do.
pub fn prepare(inside: *const ()) -> Result<(), String> {
    load(inside)?;
    let failed = |error: gputrail_tool::Error| error.to_string();
    program::initialise().map_err(failed)?;
    program::observe_opencl().map_err(failed)
}

fn load(inside: *const ()) -> Result<(), String> {
    let beside =
        file_of(inside).map(|own| own.with_file_name(OsStr::from_bytes(LIBRARY.to_bytes())));
    let beside = beside.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if is_loaded(LIBRARY) || beside.is_some_and(|path| open(&path, 0)) || open(LIBRARY, 0) {
        return Ok(());
    }
    let reason = failure();
    Err(format!(
        "libgputrail.so.0 is not found ({reason}): write it beside this library with `gputrail library libgputrail.so.0`, \
         or name its folder in LD_LIBRARY_PATH"
    ))
}

/// Whether a library is there or can be loaded. It stays loaded.
fn open(name: &CStr, how: i32) -> bool {
    // SAFETY: a text that ends with a 0. The library's initialisation is gputrail's own.
    !unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | how) }.is_null()
}

/// Whether a library with this name is in the process.
pub fn is_loaded(name: &CStr) -> bool {
    open(name, libc::RTLD_NOLOAD)
}

/// Whether gputrail is in the process and is initialised. Then it is loading this library as a tool.
pub fn is_initialised() -> bool {
    is_loaded(LIBRARY) && program::is_initialised()
}

/// A function of gputrail's library, if that is in the process and has it.
pub fn function(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: asks for a library that is loaded already.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    NonNull::new(library).and_then(|library| UserLibrary(library).function(name))
}

/// A library of the user's, which stays loaded.
pub struct UserLibrary(NonNull<c_void>);

impl UserLibrary {
    /// Opens the library `path`. It finds the functions of the library that `inside` is a function of, also if it is not
    /// linked with that.
    ///
    /// # Errors
    ///
    /// The loader's reason.
    pub fn open(path: &OsStr, inside: *const ()) -> Result<UserLibrary, String> {
        if let Some(own) = file_of(inside)
            && let Ok(own) = CString::new(own.as_os_str().as_bytes())
        {
            open(&own, libc::RTLD_NOLOAD | libc::RTLD_GLOBAL);
        }
        let name = CString::new(path.as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: opens a library, whose constructors run; the user requests it.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(library)
            .map(UserLibrary)
            .ok_or_else(|| failure().into_owned())
    }

    /// A function of the library.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: an open library, and a name that ends with a 0.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

/// The loader's reason for the latest failure of this thread.
fn failure() -> Cow<'static, str> {
    // SAFETY: the text of the latest failure, or null.
    let reason = unsafe { libc::dlerror().as_ref() };
    // SAFETY: it ends with a 0, and is copied before another call of the loader.
    reason.map_or(Cow::Borrowed("no reason given"), |reason| unsafe {
        CStr::from_ptr(reason).to_string_lossy().into_owned().into()
    })
}

/// The library that `address` lies in, and what is there: the loader's texts, which last as long as the library.
pub fn library_of(address: *const ()) -> Option<libc::Dl_info> {
    // SAFETY: zeros are a valid value of this structure of pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about, and there is a place for the answer.
    let is_known = unsafe { libc::dladdr(address.cast(), &mut found) } != 0;
    is_known.then_some(found)
}

/// The file of the library that `address` lies in.
pub fn file_of(address: *const ()) -> Option<PathBuf> {
    let found = library_of(address).filter(|found| !found.dli_fname.is_null())?;
    // SAFETY: the loader's text, which lasts as long as the library.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(Path::new(OsStr::from_bytes(name.to_bytes())).to_owned())
}

/// `text` for C. It lasts for ever, once for each different text; a 0 within ends it.
pub fn kept(text: &str) -> &'static CStr {
    static KEPT: LazyLock<Mutex<HashMap<String, &'static CStr>>> = LazyLock::new(Mutex::default);
    let mut kept = lock(&KEPT);
    if let Some(found) = kept.get(text) {
        return found;
    }
    let bytes = text
        .bytes()
        .take_while(|byte| *byte != 0)
        .collect::<Vec<u8>>();
    let new: &'static CStr = Box::leak(CString::new(bytes).unwrap_or_default().into_boxed_c_str());
    kept.insert(text.to_owned(), new);
    new
}

/// A text that the caller gave.
///
/// # Safety
///
/// `text` is null, or ends with a 0 and is left alone for `'a`.
pub unsafe fn given<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    // SAFETY: `text` is not null, so that it ends with a 0, and it is left alone for `'a`.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Locks `mutex`, also after a panic: what it protects is consistent between statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of `work`, or `None` if it panicked: no panic leaves for C.
pub fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(answer) => Some(answer),
        Err(panic) => {
            // The payload may panic when it is dropped.
            std::mem::forget(panic);
            None
        }
    }
}

/// An enumeration of C: numbers with names, others allowed.
#[macro_export]
macro_rules! enumeration {
    ($(#[$what:meta])* $type:ident { $($name:ident = $value:literal, $text:literal;)* }) => {
        $(#[$what])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $type(pub ::core::ffi::c_int);

        impl $type {
            $(#[doc = $text] pub const $name: $type = $type($value);)*

            /// The text of this value, if it is one.
            pub fn text(self) -> Option<&'static ::core::ffi::CStr> {
                match self {
                    $($type::$name => ::core::ffi::CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()).ok(),)*
                    _ => None,
                }
            }
        }
    };
}
