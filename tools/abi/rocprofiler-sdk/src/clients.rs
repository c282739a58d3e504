//! Clients, in the order in which they are configured: the forced one; the libraries of `ROCP_TOOL_LIBRARIES`; the
//! `rocprofiler_configure` that the loader finds first, and the next one; then those of all other libraries in the process, if there
//! is any. A function is called once, however it was found.
//!
//! `gputrail record` names `libgputrail.so.0` in the variable, for AMD's library. Here it is a client only if `GPUTRAIL_ROCPROFILER`
//! names this library too: what it is to tell of is recorded without it. A library that cannot be opened, or is none of a client, is told
//! on standard error, and the program goes on. In programs with privileges of their own (setuid) the variable is not read.

use core::ffi::{CStr, c_int, c_void};
use gputrail_abi::UserLibrary;
use gputrail_rocprofiler::{
    ClientFinalize, ClientId, Configure, ToolConfigureResult, ToolFinalize, ToolInitialize, VERSION,
};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// Names libraries of clients, with a colon between them.
const VARIABLE: &str = "ROCP_TOOL_LIBRARIES";
/// Names the librocprofiler-sdk through which gputrail records, or its folder.
const RECORDED_VARIABLE: &str = "GPUTRAIL_ROCPROFILER";
/// The version of the API as a text.
const VERSION_TEXT: &CStr = c"1.3.0";
/// The function that a client exports.
const CONFIGURE: &CStr = c"rocprofiler_configure";
/// A function that gputrail's library exports.
const GPUTRAIL: &CStr = c"gputrail_initialise";
/// The handle of the first client.
const FIRST: u32 = 0x1000;

/// A client.
pub struct Client {
    /// Its handle.
    pub handle: u32,
    configure: Configure,
    /// Where it was found.
    origin: String,
    /// The place for its name: clients keep the address.
    id: NonNull<ClientId>,
    initialise: Option<ToolInitialize>,
    finalise: Option<ToolFinalize>,
    data: *mut c_void,
}

// SAFETY: pointers that are passed on to the client's functions, and one to memory that is never freed.
unsafe impl Send for Client {}

/// The beginning of a client.
pub struct Initialiser {
    /// The client.
    pub client: u32,
    function: ToolInitialize,
    data: *mut c_void,
}

impl Initialiser {
    /// Calls it. Its answer changes nothing, as with AMD's library.
    pub fn call(self, finish: ClientFinalize) -> c_int {
        // SAFETY: the client's function for this, with its data.
        unsafe { (self.function)(Some(finish), self.data) }
    }
}

/// The end of a client.
pub struct Ending {
    function: ToolFinalize,
    data: *mut c_void,
}

impl Ending {
    /// Calls it.
    pub fn call(self) {
        // SAFETY: the client's function for this, with its data.
        unsafe { (self.function)(self.data) };
    }
}

impl Client {
    fn new(place: usize, configure: Configure, origin: String) -> Client {
        let handle = FIRST + place as u32;
        let id = Box::leak(Box::new(ClientId {
            size: size_of::<ClientId>(),
            name: std::ptr::null(),
            handle,
        }));
        Client {
            handle,
            configure,
            origin,
            id: NonNull::from(id),
            initialise: None,
            finalise: None,
            data: std::ptr::null_mut(),
        }
    }

    /// Has it configure itself. `false` if it refuses.
    pub fn configure(&mut self) -> bool {
        let (version, place) = (VERSION_TEXT.as_ptr(), self.handle - FIRST);
        // SAFETY: the client's function for this, with a text and memory that last for ever.
        let result = unsafe { (self.configure)(VERSION, version, place, self.id.as_ptr()) };
        // SAFETY: null or what the client answers, which it leaves alone meanwhile.
        let Some(result) = (unsafe { result.as_ref() }) else {
            return false;
        };
        let ToolConfigureResult {
            initialize,
            finalize,
            tool_data,
            ..
        } = *result;
        (self.initialise, self.finalise, self.data) = (initialize, finalize, tool_data);
        true
    }

    /// Its beginning, once.
    pub fn take_initialiser(&mut self) -> Option<Initialiser> {
        self.initialise.take().map(|function| Initialiser {
            client: self.handle,
            function,
            data: self.data,
        })
    }

    /// Its end, once.
    pub fn take_finaliser(&mut self) -> Option<Ending> {
        self.finalise.take().map(|function| Ending {
            function,
            data: self.data,
        })
    }

    /// The name that it has given itself, or else where it was found.
    pub fn name(&self) -> String {
        // SAFETY: memory that is never freed, which the client has written to while it was configured.
        let name = unsafe { self.id.read() }.name;
        // SAFETY: null, or the client's text, which ends with a 0 and lasts as long as the client.
        let name = unsafe { gputrail_abi::given(name) };
        name.map_or_else(|| self.origin.clone(), |name| name.into_owned())
    }
}

/// The variable, where it may be read.
fn variable() -> Option<OsString> {
    // SAFETY: asks for a number.
    let has_privileges = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
    named.filter(|_| !has_privileges)
}

/// Whether the variable names libraries.
pub fn are_named() -> bool {
    variable().is_some()
}

/// Whether gputrail records through this library.
fn is_recorded() -> bool {
    let path = |path: &Path| std::fs::canonicalize(path).ok();
    let named = std::env::var_os(RECORDED_VARIABLE).and_then(|named| path(Path::new(&named)));
    let own = gputrail_abi::file_of(find as *const ()).and_then(|own| path(&own));
    named.is_some_and(|named| own.is_some_and(|own| own.starts_with(named)))
}

/// The clients, each found once.
struct Found(Vec<Client>);

impl Found {
    fn add(&mut self, configure: Configure, origin: impl Into<String>) {
        let is_same = |client: &Client| client.configure as usize == configure as usize;
        if !self.0.iter().any(is_same) {
            let place = self.0.len();
            self.0.push(Client::new(place, configure, origin.into()));
        }
    }
}

/// The clients of this process.
pub fn find(forced: Option<Configure>) -> Vec<Client> {
    let mut found = Found(Vec::new());
    if let Some(forced) = forced {
        found.add(forced, "a client that forced its configuration");
    }
    let named = variable();
    let paths = named
        .iter()
        .flat_map(|all| all.as_bytes().split(|byte| *byte == b':'));
    for path in paths.filter(|path| !path.is_empty()) {
        let text = String::from_utf8_lossy(path).into_owned();
        match opened(OsStr::from_bytes(path)) {
            Ok((_, true)) if !is_recorded() => {}
            Ok((configure, _)) => found.add(configure, text),
            Err(reason) => eprintln!("librocprofiler-sdk: {VARIABLE}: {text}: {reason}"),
        }
    }
    let own = Library::of(find as *const c_void);
    let gputrail = gputrail_abi::function(GPUTRAIL);
    let gputrail = gputrail.and_then(|function| Library::of(function.as_ptr()));
    let is_others = |configure: &Configure| {
        let library = Library::of(*configure as *const c_void);
        library.is_some() && library != own && library != gputrail
    };
    let first = symbol(libc::RTLD_DEFAULT);
    let next = symbol(libc::RTLD_NEXT);
    for configure in [first, next].into_iter().flatten().filter(is_others) {
        found.add(configure, "the first library with rocprofiler_configure");
    }
    if first.is_some() {
        for name in loaded_libraries() {
            // SAFETY: asks for a library that is loaded already.
            let library =
                unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            let configure = NonNull::new(library).and_then(|library| symbol(library.as_ptr()));
            if let Some(configure) = configure.filter(is_others) {
                found.add(configure, name.to_string_lossy());
            }
        }
    }
    found.0
}

/// `rocprofiler_configure` of a library, or where the loader looks first or next.
fn symbol(library: *mut c_void) -> Option<Configure> {
    // SAFETY: a library that is open or a word of the loader's, and a text that ends with a 0.
    let found = unsafe { libc::dlsym(library, CONFIGURE.as_ptr()) };
    // SAFETY: a client's function of this name has this type; null is none.
    unsafe { core::mem::transmute::<*mut c_void, Option<Configure>>(found) }
}

/// Opens a library of a client, which stays open, and says whether it is gputrail's: copies of that are one.
fn opened(path: &OsStr) -> Result<(Configure, bool), String> {
    let library = UserLibrary::open(path, find as *const ())?;
    let found = library.function(CONFIGURE);
    let found = found.ok_or_else(|| "it has no rocprofiler_configure".to_owned())?;
    // A client may be linked with gputrail's library.
    let gputrail = library.function(GPUTRAIL);
    let gputrail = gputrail.and_then(|function| Library::of(function.as_ptr()));
    let is_gputrail = gputrail.is_some() && gputrail == Library::of(found.as_ptr());
    // SAFETY: a client's function of this name has this type.
    let configure = unsafe { core::mem::transmute::<*mut c_void, Configure>(found.as_ptr()) };
    Ok((configure, is_gputrail))
}

/// A library in the process, by the address at which it begins.
#[derive(PartialEq, Eq)]
struct Library(usize);

impl Library {
    /// The library that `address` lies in.
    fn of(address: *const c_void) -> Option<Library> {
        let found = gputrail_abi::library_of(address.cast())?;
        Some(Library(found.dli_fbase.addr()))
    }
}

/// The names of the libraries in the process, in the order in which they were loaded.
fn loaded_libraries() -> Vec<CString> {
    unsafe extern "C" fn collect(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's structure, and what was given below.
        let (name, names) = unsafe { ((*info).dlpi_name, &mut *names.cast::<Vec<CString>>()) };
        if !name.is_null() {
            // SAFETY: the loader's text, which ends with a 0.
            let name = unsafe { CStr::from_ptr(name) };
            if !name.is_empty() {
                names.push(name.to_owned());
            }
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: a function for this, with a place that outlasts the call.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut names).cast()) };
    names
}
