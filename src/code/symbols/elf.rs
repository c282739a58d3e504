//! Code objects that are ELF files: their symbols, lines and instructions.

use super::{Frame, MAX_FRAMES, MAX_INSTRUCTIONS, Missing, Resolved, Symbol, cut, function_name};
use crate::capture::code::CodeOffset;
use crate::record::CodeObjectId;
use addr2line::{Context, LookupResult};
use gimli::{EndianArcSlice, RunTimeEndian};
use iced_x86::{
    Decoder, DecoderOptions, FastFormatterOptions, SpecializedFormatter,
    SpecializedFormatterTraitOptions,
};
use object::{Architecture, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::HashMap;
use std::sync::Arc;

/// Most symbols of one code object.
const MAX_SYMBOLS: usize = 1 << 20;
/// Longest instruction of an x86 processor, bytes.
const LONGEST_INSTRUCTION: usize = 15;

type Reader = EndianArcSlice<RunTimeEndian>;

/// How an instruction's text is written: no more than an address needs.
struct Format;
impl SpecializedFormatterTraitOptions for Format {
    fn space_after_operand_separator(_: &FastFormatterOptions) -> bool {
        true
    }

    fn use_hex_prefix(_: &FastFormatterOptions) -> bool {
        true
    }
}

/// An ELF file, opened.
pub(super) struct ElfCode {
    /// In the order of their addresses.
    symbols: Vec<Range>,
    /// Sections with instructions, in the order of their addresses.
    code: Vec<Section>,
    architecture: Architecture,
    /// Absent where there is no debug information.
    lines: Option<Context<Reader>>,
    /// Why there is none although there should be.
    damage: Option<Arc<str>>,
    /// Names of functions and files that were seen, each once.
    names: HashMap<Box<str>, Arc<str>>,
}

struct Range {
    begin: u64,
    end: u64,
    name: Arc<str>,
}

struct Section {
    begin: u64,
    bytes: Box<[u8]>,
}

impl ElfCode {
    /// The error says what is wrong with the file.
    pub fn parse(bytes: &[u8]) -> Result<ElfCode, String> {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let mut code = Vec::new();
        for section in file.sections() {
            if section.kind() == SectionKind::Text {
                // A section that lies outside of the file has no bytes.
                let bytes = section.data().map_err(|error| {
                    format!(
                        "section {}: {error}",
                        section.name().unwrap_or("(without a name)")
                    )
                })?;
                code.push(Section {
                    begin: section.address(),
                    bytes: bytes.into(),
                });
            }
        }
        code.sort_by_key(|section| section.begin);
        let (lines, damage) = match lines(&file) {
            Ok(lines) => (lines, None),
            Err(damage) => (None, Some(damage.into())),
        };
        Ok(ElfCode {
            symbols: symbols(&file),
            code,
            architecture: file.architecture(),
            lines,
            damage,
            names: HashMap::new(),
        })
    }

    pub fn look_up(&mut self, id: CodeObjectId, offset: CodeOffset) -> Resolved {
        if self.section(offset.0).is_none() {
            return Resolved {
                missing: Some(Missing::OutOfRange(id, offset)),
                ..Resolved::default()
            };
        }
        let instruction = self.instruction(offset.0);
        let symbol = self.symbol(offset.0);
        let mut frames = Vec::new();
        let missing = match self.frames(offset.0, &mut frames) {
            Err(damage) => Some(Missing::Damaged(id, damage)),
            Ok(()) if frames.first().is_some_and(|frame| frame.line.is_some()) => None,
            Ok(()) if self.lines.is_some() => Some(Missing::NoLine(id, offset)),
            Ok(()) if symbol.is_some() => Some(Missing::NoLines(id)),
            Ok(()) => Some(Missing::NoSymbol(id, offset)),
        };
        if frames.is_empty()
            && let Some(symbol) = &symbol
        {
            frames.push(Frame {
                function: self.keep(function_name(&symbol.name)),
                file: None,
                line: None,
                column: None,
            });
        }
        Resolved {
            symbol,
            frames,
            instruction,
            missing,
        }
    }

    fn symbol(&self, address: u64) -> Option<Symbol> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.begin <= address);
        let found = &self.symbols[after.checked_sub(1)?];
        (address < found.end).then(|| Symbol {
            name: found.name.clone(),
            offset: address - found.begin,
        })
    }

    /// The functions at `address`, as the debug information has them.
    fn frames(&mut self, address: u64, frames: &mut Vec<Frame>) -> Result<(), Arc<str>> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let Some(lines) = &self.lines else {
            return Ok(());
        };
        let damaged = |error: gimli::Error| Arc::<str>::from(format!("debug information: {error}"));
        let mut found = match lines.find_frames(address) {
            LookupResult::Output(found) => found.map_err(damaged)?,
            // Lines that are in another file: there is none.
            LookupResult::Load { .. } => return Ok(()),
        };
        let names = &mut self.names;
        while frames.len() < MAX_FRAMES {
            let Some(frame) = found.next().map_err(damaged)? else {
                break;
            };
            let function = frame
                .function
                .as_ref()
                .and_then(|function| function.raw_name().ok());
            let location = frame.location;
            let file = location.as_ref().and_then(|location| location.file);
            let (function, file) = match (function, file) {
                (None, None) => continue,
                (function, file) => (
                    keep(names, function_name(function.as_deref().unwrap_or("?"))),
                    file.map(|file| keep(names, file)),
                ),
            };
            // Line 0 is the compiler's own.
            let number = |number: Option<u32>| number.filter(|number| *number != 0);
            frames.push(Frame {
                function,
                file,
                line: number(location.as_ref().and_then(|location| location.line)),
                column: number(location.as_ref().and_then(|location| location.column)),
            });
        }
        Ok(())
    }

    fn keep(&mut self, name: &str) -> Arc<str> {
        keep(&mut self.names, name)
    }

    fn section(&self, address: u64) -> Option<(&Section, usize)> {
        let after = self
            .code
            .partition_point(|section| section.begin <= address);
        let section = &self.code[after.checked_sub(1)?];
        let place = usize::try_from(address - section.begin).ok()?;
        // Of the last address of all there is no next one, which those who look up lines ask for.
        (place < section.bytes.len() && address != u64::MAX).then_some((section, place))
    }

    /// Where the instructions of the function are that `offset` is in; none where there is no disassembler.
    pub fn instructions(&self, offset: CodeOffset) -> Vec<CodeOffset> {
        let mut found = Vec::new();
        let after = self
            .symbols
            .partition_point(|symbol| symbol.begin <= offset.0);
        let Some(symbol) = after.checked_sub(1).map(|place| &self.symbols[place]) else {
            return found;
        };
        if offset.0 >= symbol.end {
            return found;
        }
        let (Some(bits), Some((section, place))) = (self.bits(), self.section(symbol.begin)) else {
            return found;
        };
        let length = usize::try_from(symbol.end - symbol.begin).unwrap_or(usize::MAX);
        let rest = &section.bytes[place..];
        let rest = &rest[..rest.len().min(length)];
        let mut decoder = Decoder::with_ip(bits, rest, symbol.begin, DecoderOptions::NONE);
        while decoder.can_decode() && found.len() < MAX_INSTRUCTIONS {
            found.push(CodeOffset(decoder.ip()));
            let _ = decoder.decode();
        }
        found
    }

    /// What the disassembler has to know of the architecture, if it is one of its.
    fn bits(&self) -> Option<u32> {
        match self.architecture {
            Architecture::X86_64 => Some(64),
            Architecture::I386 => Some(32),
            _ => None,
        }
    }

    /// The text of the instruction at `address`.
    fn instruction(&mut self, address: u64) -> Option<Box<str>> {
        let bits = self.bits()?;
        let (section, place) = self.section(address)?;
        let rest = &section.bytes[place..];
        let rest = &rest[..rest.len().min(LONGEST_INSTRUCTION)];
        let mut decoder = Decoder::with_ip(bits, rest, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let mut text = String::new();
        // One of its own each time: it cannot be sent to another thread.
        SpecializedFormatter::<Format>::new().format(&instruction, &mut text);
        Some(text.into())
    }
}

/// One string for all that are the same.
fn keep(names: &mut HashMap<Box<str>, Arc<str>>, name: &str) -> Arc<str> {
    let name = cut(name);
    match names.get(name) {
        Some(known) => known.clone(),
        None => {
            let kept: Arc<str> = name.into();
            names.insert(name.into(), kept.clone());
            kept
        }
    }
}

/// Functions by their addresses. One without a size reaches to the next.
fn symbols(file: &object::File<'_>) -> Vec<Range> {
    let mut found: Vec<Range> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .take(MAX_SYMBOLS)
        .filter_map(|symbol| {
            Some(Range {
                begin: symbol.address(),
                end: symbol.address().saturating_add(symbol.size()),
                name: cut(symbol.name().ok().filter(|name| !name.is_empty())?).into(),
            })
        })
        .collect();
    found.sort_by_key(|symbol| (symbol.begin, u64::MAX - symbol.end));
    found.dedup_by_key(|symbol| symbol.begin);
    for place in 0..found.len() {
        if found[place].end == found[place].begin {
            let next = found.get(place + 1).map_or(u64::MAX, |next| next.begin);
            found[place].end = next;
        }
    }
    found
}

/// What the file says of lines; `None` where it says nothing.
fn lines(file: &object::File<'_>) -> Result<Option<Context<Reader>>, String> {
    if file.section_by_name(".debug_line").is_none() {
        return Ok(None);
    }
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let load = |section: gimli::SectionId| -> Result<Reader, String> {
        let bytes = match file.section_by_name(section.name()) {
            Some(section) => section
                .uncompressed_data()
                .map_err(|error| format!("{}: {error}", section.name().unwrap_or_default()))?,
            None => Default::default(),
        };
        Ok(Reader::new(Arc::from(&*bytes), endian))
    };
    let sections = gimli::Dwarf::load(load)?;
    let context = Context::from_dwarf(sections);
    context
        .map(Some)
        .map_err(|error| format!("debug information: {error}"))
}
