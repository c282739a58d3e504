//! Code objects that are ELF files, read by the [`reader`](crate::reader).

use super::{Missing, Resolved, Symbol, SymbolFrame, function_name};
use crate::reader::{self, File, LineStatus, ReaderFunctions, Text};
use gputrail_capture::code::CodeOffset;
use gputrail_record::CodeObjectId;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Arc;

/// An opened ELF file.
pub(crate) struct ElfCode {
    functions: &'static ReaderFunctions,
    file: NonNull<File>,
    /// The names of functions and files, each stored once.
    names: HashMap<Box<str>, Arc<str>>,
}

// SAFETY: the reader keeps no state of a thread in a file.
unsafe impl Send for ElfCode {}

/// The reason why a file cannot be opened.
pub(crate) enum ElfError {
    /// The reader is not available.
    NoReader,
    /// The file is damaged; the text is the reader's.
    Damaged(String),
}

impl ElfCode {
    /// Opens the ELF file in `bytes`.
    pub fn open(bytes: &[u8]) -> Result<ElfCode, ElfError> {
        let functions = reader::functions().ok_or(ElfError::NoReader)?;
        let mut error = Text::NONE;
        // SAFETY: bytes with their length, and a place for the error.
        let file = unsafe { (functions.open)(bytes.as_ptr(), bytes.len(), &raw mut error) };
        match NonNull::new(file) {
            Some(file) => Ok(ElfCode {
                functions,
                file,
                names: HashMap::new(),
            }),
            None => {
                // SAFETY: no other file was opened since.
                let error = unsafe { error.get() }.unwrap_or("unknown error");
                Err(ElfError::Damaged(error.to_owned()))
            }
        }
    }

    /// Opens the ELF file at `path` for the names of its functions, if its build id is this one or is not known. `None`: it has
    /// no names for us.
    pub fn open_names(path: &str, build_id: &str) -> Option<ElfCode> {
        let functions = reader::functions()?;
        let build_id = Some(build_id).filter(|id| !id.is_empty());
        let build_id = build_id.map_or(Text::NONE, Text::from);
        let mut error = Text::NONE;
        // SAFETY: texts that last during the call, and a place for the error.
        let file = unsafe { (functions.open_names)(Text::from(path), build_id, &raw mut error) };
        Some(ElfCode {
            functions,
            file: NonNull::new(file)?,
            names: HashMap::new(),
        })
    }

    /// The name of the function at `address`.
    pub fn name(&mut self, address: u64) -> Option<Arc<str>> {
        // SAFETY: the file is open, and the text is copied before the next call with the file.
        let symbol = unsafe {
            let location = *(self.functions.locate)(self.file.as_ptr(), address);
            location.symbol.get()
        };
        symbol.map(|name| self.intern(name))
    }

    /// Looks up `offset` of code object `id`.
    pub fn look_up(&mut self, id: CodeObjectId, offset: CodeOffset) -> Resolved {
        // SAFETY: the file is open, and the location is read before the next call with the file.
        let (location, frames) = unsafe {
            let location = *(self.functions.locate)(self.file.as_ptr(), offset.0);
            let frames = match location.frame_count {
                0 => &[],
                count => std::slice::from_raw_parts(location.frames, count),
            };
            (location, frames)
        };
        // SAFETY: as above: texts are copied before the next call with the file.
        let text = |text: Text| unsafe { text.get() };
        let symbol = text(location.symbol).map(|name| Symbol {
            name: self.intern(name),
            offset: location.symbol_offset,
        });
        let number = |number: u32| (number != 0).then_some(number);
        let mut frames: Vec<SymbolFrame> = frames
            .iter()
            .map(|frame| SymbolFrame {
                function: self.intern(function_name(text(frame.function).unwrap_or("?"))),
                file: text(frame.file).map(|file| self.intern(file)),
                line: number(frame.line),
                column: number(frame.column),
            })
            .collect();
        if frames.is_empty()
            && let Some(symbol) = &symbol
        {
            frames.push(SymbolFrame {
                function: self.intern(function_name(&symbol.name)),
                file: None,
                line: None,
                column: None,
            });
        }
        let missing = match location.lines {
            LineStatus::FOUND => None,
            LineStatus::NOT_HERE => Some(Missing::NoLine(id, offset)),
            LineStatus::NONE if symbol.is_some() => Some(Missing::NoLines(id)),
            LineStatus::NONE => Some(Missing::NoSymbol(id, offset)),
            LineStatus::DAMAGED => {
                let error = text(location.error).unwrap_or("debug information");
                Some(Missing::Damaged(id, error.into()))
            }
            _ => Some(Missing::OutOfRange(id, offset)),
        };
        Resolved {
            symbol,
            frames,
            instruction: text(location.instruction).map(Box::from),
            missing,
        }
    }

    /// The instructions of the function at `offset`; empty where no disassembler is available.
    pub fn instructions(&self, offset: CodeOffset) -> Vec<CodeOffset> {
        let mut addresses = std::ptr::null();
        // SAFETY: the file is open, and the list is copied before the next call with it.
        let addresses = unsafe {
            let instructions = self.functions.instructions;
            match instructions(self.file.as_ptr(), offset.0, &raw mut addresses) {
                0 => &[],
                count => std::slice::from_raw_parts(addresses, count),
            }
        };
        addresses.iter().copied().map(CodeOffset).collect()
    }

    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.names.insert((&*name).into(), name.clone());
        name
    }
}

impl Drop for ElfCode {
    fn drop(&mut self) {
        // SAFETY: the file is open, and is not used again.
        unsafe { (self.functions.close)(self.file.as_ptr()) };
    }
}
