//! The C functions of the reader. A panic in them, which only a defect can cause, is an answer without lines.

use crate::elf::{self, Elf};
use gputrail_code::reader::{File, Frame, LineStatus, Location, ReaderFunctions, Text, VERSION};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The table of this library's functions.
#[unsafe(no_mangle)]
pub static GPUTRAIL_SYMBOLS: ReaderFunctions = ReaderFunctions {
    version: VERSION,
    open,
    open_names,
    close,
    locate,
    instructions,
};

/// An opened ELF file, with the latest results of its functions; what a pointer to a [`File`] points to.
struct OpenElf {
    elf: Elf,
    texts: LocationTexts,
    frames: Vec<Frame>,
    location: Location,
    instructions: Vec<u64>,
}

/// The texts that `location` and `frames` point to.
#[derive(Default)]
struct LocationTexts {
    frames: Vec<elf::ElfFrame>,
    instruction: Option<String>,
    error: Option<String>,
}

const NOWHERE: Location = Location {
    symbol: Text::NONE,
    symbol_offset: 0,
    instruction: Text::NONE,
    frames: core::ptr::null(),
    frame_count: 0,
    lines: LineStatus::NO_CODE,
    error: Text::NONE,
};

thread_local! {
    static OPEN_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// # Safety
///
/// `bytes` is not null and leads to `length` initialised bytes, which nobody writes during the call; `error` is a place for
/// a text.
unsafe extern "C" fn open(bytes: *const u8, length: usize, error: *mut Text) -> *mut File {
    // SAFETY: `bytes` leads to `length` initialised bytes, which nobody writes until this returns (the caller's promise);
    // `Elf` copies what it keeps.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, length) };
    let parsed = catch_unwind(|| Elf::parse(bytes));
    // SAFETY: `error` is a place for a text, aligned and not null (the caller's promise).
    unsafe { opened(parsed.unwrap_or_else(|_| Err(FAILED.into())), error) }
}

/// # Safety
///
/// The texts are valid during the call; `error` is a place for a text.
unsafe extern "C" fn open_names(path: Text, build_id: Text, error: *mut Text) -> *mut File {
    // SAFETY: the texts are valid until this returns (the caller's promise).
    let (path, build_id) = unsafe { (path.get(), build_id.get()) };
    let opened_names = catch_unwind(|| Elf::open_names(path.unwrap_or_default(), build_id));
    // SAFETY: `error` is a place for a text, aligned and not null (the caller's promise).
    unsafe { opened(opened_names.unwrap_or_else(|_| Err(FAILED.into())), error) }
}

/// The reason given for a panic.
const FAILED: &str = "the reader of ELF files failed";

/// # Safety
///
/// `error` is a place for a text, aligned and not null.
unsafe fn opened(elf: Result<Elf, String>, error: *mut Text) -> *mut File {
    match elf {
        Ok(elf) => Box::into_raw(Box::new(OpenElf {
            elf,
            texts: LocationTexts::default(),
            frames: Vec::new(),
            location: NOWHERE,
            instructions: Vec::new(),
        }))
        .cast(),
        Err(reason) => {
            let text = OPEN_ERROR.with_borrow_mut(|last| {
                *last = reason;
                Text::from(&**last)
            });
            // SAFETY: `error` is a place for a text, aligned and not null (the caller's promise).
            unsafe { error.write(text) };
            core::ptr::null_mut()
        }
    }
}

/// # Safety
///
/// `open` returned `file`, which is not null. Nobody uses it, or what was returned of it, during the call or later.
unsafe extern "C" fn close(file: *mut File) {
    // SAFETY: `open` made the box and returned it as `file`, and nobody uses it any more (the caller's promise).
    drop(unsafe { Box::from_raw(file.cast::<OpenElf>()) });
}

/// # Safety
///
/// `open` returned `file`, which is not null and has not been closed. Nobody else uses it, or reads the result of an earlier
/// call with it, during the call.
unsafe extern "C" fn locate(file: *mut File, address: u64) -> *const Location {
    // SAFETY: `open` made the `OpenElf` and returned it as `file`, it has not been closed, and nobody else uses it until
    // this returns (the caller's promise).
    let file = unsafe { &mut *file.cast::<OpenElf>() };
    file.location = NOWHERE;
    // Whatever a panic leaves half done is replaced by the next lookup.
    let _ = catch_unwind(AssertUnwindSafe(|| file.locate(address)));
    &raw const file.location
}

/// # Safety
///
/// As for [`locate`]; `addresses` is a place for a pointer.
unsafe extern "C" fn instructions(
    file: *mut File,
    address: u64,
    addresses: *mut *const u64,
) -> usize {
    // SAFETY: as in `locate`.
    let file = unsafe { &mut *file.cast::<OpenElf>() };
    let found = catch_unwind(AssertUnwindSafe(|| file.elf.instructions(address)));
    file.instructions = found.unwrap_or_default();
    // SAFETY: `addresses` is a place for a pointer, aligned and not null, outside of what belongs to `file` (the caller's
    // promise).
    unsafe { addresses.write(file.instructions.as_ptr()) };
    file.instructions.len()
}

fn text(text: &Option<String>) -> Text {
    text.as_deref().map_or(Text::NONE, Text::from)
}

impl OpenElf {
    fn locate(&mut self, address: u64) {
        let found = self.elf.locate(address);
        let (symbol, symbol_offset) = found.symbol.unzip();
        let (symbol, symbol_offset) = (
            symbol.map_or(Text::NONE, Text::from),
            symbol_offset.unwrap_or(0),
        );
        let lines = found.lines;
        self.texts = LocationTexts {
            frames: found.frames,
            instruction: found.instruction,
            error: found.error,
        };
        let frames = self.texts.frames.iter().map(|frame| Frame {
            function: text(&frame.function),
            file: text(&frame.file),
            line: frame.line,
            column: frame.column,
        });
        self.frames = frames.collect();
        self.location = Location {
            symbol,
            symbol_offset,
            instruction: text(&self.texts.instruction),
            frames: self.frames.as_ptr(),
            frame_count: self.frames.len(),
            lines,
            error: text(&self.texts.error),
        };
    }
}
