//! The library of another tool that gets the calls of NVTX, too, and its functions: `NVTX_INJECTION64_PATH` named it before
//! gputrail took its place.

use super::tables::{ExtensionModule, FunctionPointer, GetExportTable};
use core::ffi::c_void;
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::inside::{Uncancelled, message};
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_buffer::platform::system::loader_reason;
use gputrail_collect::loading::markers::OTHER_TOOL_VARIABLE;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::ffi::OsString;
use std::sync::atomic::{AtomicPtr, Ordering};

type InitialiseNvtx = unsafe extern "C" fn(Option<GetExportTable>) -> i32;
type InitialiseExtension = unsafe extern "C" fn(*mut ExtensionModule) -> i32;

/// The library of another tool.
pub(super) struct OtherTool {
    pub initialise: Option<InitialiseNvtx>,
    pub initialise_extension: Option<InitialiseExtension>,
}

impl OtherTool {
    /// The other tool's library, if there is one. It is loaded at the first call, and stays.
    pub fn get() -> Option<&'static OtherTool> {
        static OTHER: OnceBox<Option<OtherTool>> = OnceBox::new();
        OTHER.get_or_init(OtherTool::load).as_ref()
    }

    fn load() -> Option<OtherTool> {
        let path = variable(OTHER_TOOL_VARIABLE)?;
        let _uncancelled = Uncancelled::begin();
        // SAFETY: the library that NVTX would load without gputrail.
        match unsafe { OtherTool::open(&path) } {
            Ok(other) => Some(other),
            Err(error) => {
                let reason = loader_reason(&error);
                let path = path.display();
                message(format_args!("{path} gets no calls of NVTX: {reason}"));
                None
            }
        }
    }

    /// Loads the library, which stays.
    ///
    /// # Safety
    ///
    /// The library at `path` is one that NVTX may load: its functions for NVTX have NVTX's types.
    unsafe fn open(path: &OsString) -> Result<OtherTool, libloading::Error> {
        // SAFETY: the library may be loaded: its initialisers do what NVTX would have them do. The functions of these names
        // have these types.
        unsafe {
            let library = Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL)?;
            let other = OtherTool {
                initialise: library
                    .get("InitializeInjectionNvtx2")
                    .ok()
                    .map(|found| *found),
                initialise_extension: library
                    .get("InitializeInjectionNvtxExtension")
                    .ok()
                    .map(|found| *found),
            };
            // NVTX keeps pointers to its functions.
            let _ = library.into_raw();
            Ok(other)
        }
    }
}

/// The functions of the other tool, of one module of NVTX or one extension.
pub(super) struct OtherFunctions([AtomicPtr<c_void>; MAX_FUNCTIONS]);

/// Maximum number of functions of a module or extension.
const MAX_FUNCTIONS: usize = 20;

impl OtherFunctions {
    const fn new() -> OtherFunctions {
        OtherFunctions([const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_FUNCTIONS])
    }

    /// Keeps the function in a place.
    pub fn put(&self, place: usize, function: FunctionPointer) {
        if let Some(known) = self.0.get(place) {
            known.store(function.cast_mut(), Ordering::Release);
        }
    }

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        let mut all = self.0.iter();
        all.all(|function| function.load(Ordering::Acquire).is_null())
    }

    /// The function in a place.
    ///
    /// # Safety
    ///
    /// The function that was put there has the type `F`.
    #[inline]
    pub unsafe fn get<F: Copy>(&self, place: usize) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let function = self.0[place].load(Ordering::Acquire);
        // SAFETY: the pointer is not null, and the function in this place has the type `F`, a pointer to a function.
        (!function.is_null()).then(|| unsafe { core::mem::transmute_copy(&function) })
    }
}

/// The other tool's functions of NVTX's modules, by number and id.
pub(super) static THEIR_MODULES: [OtherFunctions; 7] = [const { OtherFunctions::new() }; 7];
/// The other tool's functions of extensions, by number and place.
pub(super) static THEIR_EXTENSIONS: [OtherFunctions; 5] = [const { OtherFunctions::new() }; 5];

/// The numbers of modules.
pub(super) const CORE: usize = 1;
pub(super) const CORE2: usize = 5;
pub(super) const SYNC: usize = 6;

/// Whether the other tool has no function of these modules.
pub(super) fn take_none(modules: &[usize]) -> bool {
    modules
        .iter()
        .all(|module| THEIR_MODULES[*module].is_empty())
}
