//! The library of gputrail in this process, by the C API in `gputrail.h`.

use super::Payload;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Names of the library where the program has loaded it, or is linked with it.
const NAME: &CStr = c"libgputrail.so.0";
/// The directory of the recording that this process belongs to, with the library in it.
const SESSION_VARIABLE: &str = "GPUTRAIL_SESSION";
/// The time between two looks for the library.
const PAUSE: Duration = Duration::from_secs(1);

const OK: c_int = 0;

/// `gputrail_mark_options`.
#[repr(C)]
pub struct Options {
    size: usize,
    name: *const c_char,
    domain: *const c_char,
    category: *const c_char,
    payload: u64,
    color: u32,
    payload_kind: u32,
}

impl Options {
    /// The name and the category.
    #[cfg(test)]
    pub fn texts(&self) -> [*const c_char; 2] {
        [self.name, self.category]
    }

    /// The bits of the payload, if there is one.
    #[cfg(test)]
    pub fn payload_bits(&self) -> Option<u64> {
        (self.payload_kind != 0).then_some(self.payload)
    }

    /// Options with the name, the domain and the category in `texts`, which must outlive the result.
    pub fn new(texts: [&CString; 3], color: u32, payload: Option<Payload>) -> Options {
        let [name, domain, category] = texts.map(|text| text.as_ptr());
        let (payload_kind, payload) = match payload {
            None => (0, 0),
            Some(Payload::Unsigned(value)) => (1, value),
            Some(Payload::Signed(value)) => (2, value as u64),
            Some(Payload::Float(value)) => (3, value.to_bits()),
        };
        Options {
            size: size_of::<Options>(),
            name,
            domain,
            category,
            payload,
            color,
            payload_kind,
        }
    }
}

type WithOptions = unsafe extern "C" fn(*const Options) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;
type Start = unsafe extern "C" fn(*const Options, *mut u64) -> c_int;
type End = unsafe extern "C" fn(u64) -> c_int;
/// ROCTx's.
type Stop = unsafe extern "C" fn(u64);

/// The functions of the library.
pub struct Library {
    pub mark: WithOptions,
    pub push: WithOptions,
    pub pop: Pop,
    pub start: Start,
    pub end: End,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Has the layer call these functions.
#[cfg(test)]
pub fn use_instead(library: Library) {
    LIBRARY.get_or_init(|| library);
}

impl Library {
    /// The library, if this process has it.
    #[inline]
    pub fn get() -> Option<&'static Library> {
        LIBRARY.get().or_else(|| Library::look())
    }

    #[cold]
    fn look() -> Option<&'static Library> {
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        /// Milliseconds after which the next look is due.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = BEGAN.get_or_init(Instant::now).elapsed().as_millis() as u64;
        let next = NEXT.load(Ordering::Relaxed);
        let due = now + PAUSE.as_millis() as u64;
        let exchange = NEXT.compare_exchange(next, due, Ordering::Relaxed, Ordering::Relaxed);
        if now < next || exchange.is_err() {
            return None;
        }
        let found = Library::loaded().or_else(Library::of_session)?;
        Some(LIBRARY.get_or_init(|| found))
    }

    /// The library that is loaded already, or linked with the program.
    fn loaded() -> Option<Library> {
        // SAFETY: a text that ends with a zero; nothing is loaded.
        let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        Library::of(if library.is_null() {
            libc::RTLD_DEFAULT
        } else {
            library
        })
    }

    /// The library of the session that the environment names: in a program that uses no GPU, nobody else loads it.
    fn of_session() -> Option<Library> {
        // SAFETY: no preconditions. A program with more rights than its user does not load what the user names.
        if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
            return None;
        }
        let path = PathBuf::from(std::env::var_os(SESSION_VARIABLE)?);
        if !path.is_absolute() {
            return None;
        }
        let path = path.join(NAME.to_str().ok()?).into_os_string().into_vec();
        let path = CString::new(path).ok()?;
        // SAFETY: a text that ends with a zero; gputrail's library, which is made to be loaded into any program.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        Library::of(library)
    }

    /// The functions of `library`, which stays loaded.
    fn of(library: *mut c_void) -> Option<Library> {
        let find = |name: &CStr| {
            // SAFETY: a library that stays loaded, or the program with all of its libraries.
            let function = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!function.is_null()).then_some(function)
        };
        // SAFETY: the functions of these names have these types, in all versions of the API.
        let library = unsafe {
            Library {
                mark: std::mem::transmute::<*mut c_void, WithOptions>(find(c"gputrail_mark")?),
                push: std::mem::transmute::<*mut c_void, WithOptions>(find(
                    c"gputrail_range_push",
                )?),
                pop: std::mem::transmute::<*mut c_void, Pop>(find(c"gputrail_range_pop")?),
                start: std::mem::transmute::<*mut c_void, Start>(find(c"gputrail_range_start")?),
                end: std::mem::transmute::<*mut c_void, End>(find(c"gputrail_range_end")?),
            }
        };
        // The first call of ROCTx's interface has markers recorded in programs that use no GPU. No range has the number 0.
        if let Some(stop) = find(c"roctxRangeStop") {
            // SAFETY: the function of this name has this type, in every library.
            let stop = unsafe { std::mem::transmute::<*mut c_void, Stop>(stop) };
            // SAFETY: no preconditions.
            unsafe { stop(0) };
        }
        Some(library)
    }

    /// Marks a moment.
    pub fn mark(&self, options: &Options) {
        // SAFETY: options of this size, whose texts are there.
        unsafe { (self.mark)(options) };
    }

    /// Begins a range of the calling thread. `false`: the library refused it.
    pub fn push(&self, options: &Options) -> bool {
        // SAFETY: as in `mark`.
        unsafe { (self.push)(options) == OK }
    }

    /// Ends the innermost range of the calling thread.
    pub fn pop(&self) {
        // SAFETY: no preconditions.
        unsafe { (self.pop)() };
    }

    /// Starts a range, and returns its number; 0 if the library refused it.
    pub fn start(&self, options: &Options) -> u64 {
        let mut number = 0;
        // SAFETY: as in `mark`, and a place for the number.
        match unsafe { (self.start)(options, &mut number) } {
            OK => number,
            _ => 0,
        }
    }

    /// Ends a started range.
    pub fn end(&self, number: u64) {
        // SAFETY: no preconditions.
        unsafe { (self.end)(number) };
    }
}
