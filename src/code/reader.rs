//! The C interface of `gputrail-symbols`, which reads symbols, source lines and instructions out of ELF files.
//!
//! The reader needs a DWARF parser and a disassembler, which do not belong into every recorded program. The command
//! links with it and names it by [`link`]; a recorded program opens `libgputrail-symbols.so` instead, and only when a
//! tool requests source lines. Both use the same table of C functions, [`ReaderFunctions`].
//!
//! The bytes of an ELF file come from compilers and captures and are not trusted: a damaged file is an error or an
//! address without lines, never a panic or memory without bounds.

use gputrail_buffer::platform::system;
use libloading::os::unix::Library;
use std::io::Write;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Version of [`ReaderFunctions`] and of the structures that its functions exchange.
pub const VERSION: u32 = 2;
/// Name under which the library exports its [`ReaderFunctions`].
pub const EXPORT: &str = "GPUTRAIL_SYMBOLS";
/// Maximum number of instructions that are listed of one function.
pub const MAX_INSTRUCTIONS: usize = 1 << 16;
/// Maximum number of frames at one address: the function there and those that it is inlined into.
pub const MAX_FRAMES: usize = 64;
/// Maximum length of a name, in bytes. Longer names are truncated.
pub const MAX_NAME: usize = 4096;

/// The functions of the reader. The library exports one such table.
#[repr(C)]
pub struct ReaderFunctions {
    /// Equals [`VERSION`]. The rest is valid only then.
    pub version: u32,
    /// Opens the ELF file in `bytes[..length]`, which it copies from. On failure it returns null and sets `error`,
    /// which stays valid until this thread's next call of `open`.
    pub open: unsafe extern "C" fn(bytes: *const u8, length: usize, error: *mut Text) -> *mut File,
    /// Opens the ELF file at `path` for the names of its functions alone, if its build id is `build_id` or that is no
    /// text. The symbols of its debug file are used, too, where that is installed. Errors are as with `open`.
    pub open_names: unsafe extern "C" fn(path: Text, build_id: Text, error: *mut Text) -> *mut File,
    /// Closes a file.
    pub close: unsafe extern "C" fn(*mut File),
    /// Looks up an address. The result stays valid until the next call with this file.
    pub locate: unsafe extern "C" fn(*mut File, address: u64) -> *const Location,
    /// Lists the addresses of the instructions of the function at `address` and returns their number, which is 0 where
    /// no disassembler is available. The list stays valid until the next call with this file.
    pub instructions:
        unsafe extern "C" fn(*mut File, address: u64, addresses: *mut *const u64) -> usize,
}

/// An opened ELF file, whose contents only the library knows.
#[derive(Debug)]
pub enum File {}

/// UTF-8 text that belongs to the reader; a null `start` means no text.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Text {
    start: *const u8,
    length: usize,
}

impl Text {
    /// No text.
    pub const NONE: Text = Text {
        start: core::ptr::null(),
        length: 0,
    };

    /// The text, or `None`.
    ///
    /// # Safety
    ///
    /// The text is still valid, for as long as the caller uses the result.
    pub unsafe fn get<'a>(self) -> Option<&'a str> {
        if self.start.is_null() {
            return None;
        }
        // SAFETY: the reader's promise, and the caller's.
        let bytes = unsafe { core::slice::from_raw_parts(self.start, self.length) };
        core::str::from_utf8(bytes).ok()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text {
            start: text.as_ptr(),
            length: text.len(),
        }
    }
}

/// The function, source line and instruction at an address.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Location {
    /// The symbol that the address lies in.
    pub symbol: Text,
    /// Bytes from the symbol's start.
    pub symbol_offset: u64,
    /// Text of the instruction, where a disassembler is available.
    pub instruction: Text,
    /// The frames at the address, innermost first.
    pub frames: *const Frame,
    /// Number of frames.
    pub frame_count: usize,
    /// Whether there is a source line.
    pub lines: LineStatus,
    /// For [`LineStatus::DAMAGED`], the reason.
    pub error: Text,
}

/// A function at an address, and the source line in it.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Frame {
    /// The function's name, as the file has it; none if only its lines are known.
    pub function: Text,
    /// The source file.
    pub file: Text,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
}

/// Whether an address has a source line, and otherwise why not.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct LineStatus(pub u32);

impl LineStatus {
    /// The first frame has a line.
    pub const FOUND: LineStatus = LineStatus(0);
    /// The file has line information, but none for this address.
    pub const NOT_HERE: LineStatus = LineStatus(1);
    /// The file has no line information.
    pub const NONE: LineStatus = LineStatus(2);
    /// The address lies in none of the file's code sections.
    pub const NO_CODE: LineStatus = LineStatus(3);
    /// The line information is damaged.
    pub const DAMAGED: LineStatus = LineStatus(4);
}

/// `name`, truncated to [`MAX_NAME`].
pub fn truncated(name: &str) -> &str {
    &name[..name.floor_char_boundary(name.len().min(MAX_NAME))]
}

/// Name of the library with the reader.
const LIBRARY: &str = "libgputrail-symbols.so.0";

// No lock: a forked child would inherit it locked. Two threads may open the library at once, which does no harm.
static OPENED: AtomicPtr<ReaderFunctions> = AtomicPtr::new(ptr::null_mut());
static FAILED: AtomicBool = AtomicBool::new(false);

/// Has [`functions`] return this table, of a reader that the program is linked with, instead of opening the library.
pub fn link(functions: &'static ReaderFunctions) {
    OPENED.store(ptr::from_ref(functions).cast_mut(), Ordering::Release);
}

/// The reader that was [linked](link), or that of the library beside this one. A failure to open it is printed once.
pub fn functions() -> Option<&'static ReaderFunctions> {
    let opened = OPENED.load(Ordering::Acquire);
    if !opened.is_null() {
        // SAFETY: a table of a library that is never closed.
        return Some(unsafe { &*opened });
    }
    if FAILED.load(Ordering::Relaxed) {
        return None;
    }
    match open() {
        Ok(functions) => {
            OPENED.store(ptr::from_ref(functions).cast_mut(), Ordering::Release);
            Some(functions)
        }
        Err(error) => {
            if !FAILED.swap(true, Ordering::Relaxed) {
                let _ = writeln!(
                    std::io::stderr(),
                    "gputrail: tools get no source lines of sampled code: {error}"
                );
            }
            None
        }
    }
}

fn open() -> Result<&'static ReaderFunctions, String> {
    let own = system::library_of(functions as *const ()).ok_or("own path is unknown")?;
    let path = own.with_file_name(LIBRARY);
    // SAFETY: the constructors of the library do nothing.
    let library = unsafe { Library::new(&path) }.map_err(|error| system::loader_reason(&error))?;
    // SAFETY: the library's symbol of this name has this type.
    let functions = unsafe { library.get::<*const ReaderFunctions>(EXPORT) };
    let functions = *functions
        .map_err(|error| format!("{}: {}", path.display(), system::loader_reason(&error)))?;
    let _ = library.into_raw();
    // SAFETY: the table of a library that is never closed; its first field is the version in all versions.
    let functions = unsafe { &*functions };
    match functions.version {
        VERSION => Ok(functions),
        other => Err(format!(
            "{}: version {other} of the reader's functions, expected {VERSION}",
            path.display()
        )),
    }
}
