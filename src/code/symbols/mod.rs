//! Resolution of addresses in code objects to symbols, functions, source lines and instructions.
//!
//! Used for traces and tables; in a recorded program only for a tool that requests source lines with counts of samples.
//! Each address is resolved once. Code objects come from compilers and captures, so their bytes are hostile: an address
//! without a line has a reason, [`Missing`], and no bytes cause a panic or memory without bounds.

pub(crate) mod elf;
mod listing;
mod source_lines;

pub use listing::{ListingLine, listing};
pub use source_lines::SourceLines;

use crate::disassembly;
use crate::reader::{MAX_INSTRUCTIONS, truncated};
use elf::{ElfCode, ElfError};
use gputrail_capture::Metadata;
use gputrail_capture::code::{CodeOffset, NoCode, pocl_kernel};
use gputrail_record::{CodeObjectId, ModuleId};
use listing::Listing;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Maximum number of addresses in the table; the next one clears it.
const MAX_RESOLVED: usize = 1 << 20;

/// The resolution of an address of a code object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Resolved {
    /// The symbol that contains the address.
    pub symbol: Option<Symbol>,
    /// The functions, innermost first, each followed by the function into which it was inlined. Without debug
    /// information: the symbol alone, without a line.
    pub frames: Vec<SymbolFrame>,
    /// The instruction, if there is a disassembler for its architecture.
    pub instruction: Option<Box<str>>,
    /// The reason why it has no source line, if it has none.
    pub missing: Option<Missing>,
}

/// A symbol, and an offset in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name in the code object.
    pub name: Arc<str>,
    /// Offset in bytes from its beginning.
    pub offset: u64,
}

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolFrame {
    /// Its name; for a kernel's function, the kernel's name.
    pub function: Arc<str>,
    /// The source file as named in the debug information: a file with this name may never have existed.
    pub file: Option<Arc<str>>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// The reason why an address has no source line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No code object contains it.
    #[error("no known code object contains the address")]
    NoObject,
    /// The bytes of the code object are not available.
    #[error("code object {}: {}", .0.0, .1)]
    NoCode(CodeObjectId, NoCode),
    /// The library that reads ELF files could not be opened.
    #[error("code object {}: libgputrail-symbols.so.0, which reads it, cannot be opened", .0.0)]
    NoReader(CodeObjectId),
    /// The bytes are malformed.
    #[error("code object {}: damaged: {}", .0.0, .1)]
    Damaged(CodeObjectId, Arc<str>),
    /// It is not an address of code.
    #[error("code object {} has no code at {:#x}", .0.0, .1.0)]
    OutOfRange(CodeObjectId, CodeOffset),
    /// The code object has no debug information.
    #[error(
        "code object {} has no line information: build the program with -g (nvcc: -lineinfo), or record it with \
         --kernel-debug-info", .0.0
    )]
    NoLines(CodeObjectId),
    /// The recorded listing of a function has no lines.
    #[error("its module was compiled without line information: nvcc -lineinfo adds it")]
    NoListedLines,
    /// The code object has neither symbols nor lines there.
    #[error(
        "code object {} has neither a symbol nor lines for {:#x}: it was stripped; build the program with -g, or record it \
         with --kernel-debug-info", .0.0, .1.0
    )]
    NoSymbol(CodeObjectId, CodeOffset),
    /// The code object has debug information, but no line for the address.
    #[error("code object {} has no line for {:#x}: the compiler generated it", .0.0, .1.0)]
    NoLine(CodeObjectId, CodeOffset),
    /// Only the loaded part of the file was recorded.
    #[error(
        "code object {}: its file was deleted, and its copy in memory has no line information", .0.0
    )]
    FromMemory(CodeObjectId),
}

/// Resolves addresses in the code objects of one process.
#[derive(Default)]
pub struct Symbols {
    objects: HashMap<CodeObjectId, OpenedCode>,
    resolved: HashMap<(CodeObjectId, CodeOffset), Arc<Resolved>>,
    /// The instructions of functions that the reader cannot disassemble, by address.
    disassembled: HashMap<(CodeObjectId, Arc<str>), HashMap<u64, Box<str>>>,
    /// The number of addresses that were resolved, and not found in the table.
    looked_up: u64,
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols")
            .field("objects", &self.objects.len())
            .field("resolved", &self.resolved.len())
            .finish()
    }
}

/// An opened code object.
enum OpenedCode {
    Elf(ElfCode),
    Listing(Listing),
    Missing(Missing),
}

impl Symbols {
    /// An empty table.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// The resolution of `offset` in `code_object`; `metadata` is that of the capture with these ids. Resolved the
    /// first time, and kept.
    pub fn resolve(
        &mut self,
        metadata: &Metadata,
        code_object: CodeObjectId,
        offset: CodeOffset,
    ) -> Arc<Resolved> {
        if let Some(known) = self.resolved.get(&(code_object, offset)) {
            return known.clone();
        }
        if self.resolved.len() >= MAX_RESOLVED {
            self.resolved.clear();
        }
        let resolved = Arc::new(self.look_up(metadata, code_object, offset));
        self.looked_up += 1;
        self.resolved
            .insert((code_object, offset), resolved.clone());
        resolved
    }

    /// The instructions of the function that contains `offset`; empty if unknown.
    pub fn instructions(
        &mut self,
        metadata: &Metadata,
        code_object: CodeObjectId,
        offset: CodeOffset,
    ) -> Vec<CodeOffset> {
        match self.object(metadata, code_object) {
            OpenedCode::Elf(code) => code.instructions(offset),
            OpenedCode::Listing(listing) => listing.instructions(offset),
            OpenedCode::Missing(_) => Vec::new(),
        }
    }

    fn object(&mut self, metadata: &Metadata, id: CodeObjectId) -> &mut OpenedCode {
        self.objects
            .entry(id)
            .or_insert_with(|| OpenedCode::open(metadata, id))
    }

    /// The number of resolved addresses: each distinct one once, while the table holds them.
    pub fn looked_up(&self) -> u64 {
        self.looked_up
    }

    /// Forgets a code object, because further parts of it have come.
    pub fn forget(&mut self, code_object: CodeObjectId) {
        if self.objects.remove(&code_object).is_some() {
            self.resolved.retain(|(of, _), _| *of != code_object);
            self.disassembled.retain(|(of, _), _| *of != code_object);
        }
    }

    fn look_up(&mut self, metadata: &Metadata, id: CodeObjectId, offset: CodeOffset) -> Resolved {
        if !id.is_some() {
            return Resolved {
                missing: Some(Missing::NoObject),
                ..Resolved::default()
            };
        }
        match self.object(metadata, id) {
            OpenedCode::Elf(code) => {
                let mut resolved = code.look_up(id, offset);
                if metadata.code.is_from_memory(id) && resolved.missing.is_some() {
                    resolved.missing = Some(Missing::FromMemory(id));
                }
                if resolved.instruction.is_none() {
                    resolved.instruction = self.disassemble(metadata, id, offset, &resolved);
                }
                resolved
            }
            OpenedCode::Listing(listing) => listing.look_up(id, offset),
            OpenedCode::Missing(missing) => Resolved {
                missing: Some(missing.clone()),
                ..Resolved::default()
            },
        }
    }
}

impl Symbols {
    /// The instruction at `offset`, which lies in a known symbol, by a disassembler for code that the reader has none for.
    fn disassemble(
        &mut self,
        metadata: &Metadata,
        id: CodeObjectId,
        offset: CodeOffset,
        at: &Resolved,
    ) -> Option<Box<str>> {
        let symbol = &at.symbol.as_ref()?.name;
        let key = (id, symbol.clone());
        if !self.disassembled.contains_key(&key) {
            let bytes = metadata.code.get(id).ok()?;
            let disassembler = disassembly::for_code(bytes)?;
            if self.disassembled.len() >= disassembly::MAX_FUNCTIONS {
                return None;
            }
            let instructions = disassembler.function(bytes, symbol);
            let instructions = instructions.into_iter().take(MAX_INSTRUCTIONS).collect();
            self.disassembled.insert(key.clone(), instructions);
        }
        self.disassembled.get(&key)?.get(&offset.0).cloned()
    }
}

impl OpenedCode {
    fn open(metadata: &Metadata, id: CodeObjectId) -> OpenedCode {
        let bytes = match metadata.code.get(id) {
            Ok(bytes) => bytes,
            Err(none) => return OpenedCode::Missing(Missing::NoCode(id, none)),
        };
        let damaged = |reason: String| OpenedCode::Missing(Missing::Damaged(id, reason.into()));
        if Listing::is_one(bytes) {
            return Listing::parse(bytes).map_or_else(damaged, OpenedCode::Listing);
        }
        match ElfCode::open(bytes) {
            Ok(code) => OpenedCode::Elf(code),
            Err(ElfError::NoReader) => OpenedCode::Missing(Missing::NoReader(id)),
            Err(ElfError::Damaged(reason)) => damaged(reason),
        }
    }
}

/// The source text of the program of `code_object`, if the program supplied it.
pub fn source(metadata: &Metadata, code_object: CodeObjectId) -> Option<&str> {
    let module = metadata.code_objects.get(&code_object)?.module;
    module_source(metadata, module)
}

/// The source text of a program, if it was supplied and recorded.
pub fn module_source(metadata: &Metadata, module: ModuleId) -> Option<&str> {
    let text = metadata.string(metadata.modules.get(&module)?.source);
    (!text.is_empty()).then_some(text)
}

/// Line `line`, from 1, of a source text.
pub fn source_line(source: &str, line: u32) -> Option<&str> {
    source.lines().nth((line as usize).checked_sub(1)?)
}

/// The demangled name of a function.
fn function_name(symbol: &str) -> &str {
    pocl_kernel(symbol).unwrap_or(symbol)
}

#[cfg(test)]
mod tests;
