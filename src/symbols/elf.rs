//! A reader of ELF files: symbols, DWARF lines, and x86 instructions.

use addr2line::{Context, LookupResult};
use cpp_demangle::DemangleOptions;
use gimli::{EndianArcSlice, RunTimeEndian};
use gputrail_code::reader::{LineStatus, MAX_FRAMES, MAX_INSTRUCTIONS, truncated};
use iced_x86::{
    Decoder, DecoderOptions, FastFormatterOptions, SpecializedFormatter,
    SpecializedFormatterTraitOptions,
};
use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SectionKind, SymbolKind,
};
use std::fs::File;
use std::sync::Arc;

/// Maximum number of symbols that are read of one file.
const MAX_SYMBOLS: usize = 1 << 20;
/// Length of the longest x86 instruction, in bytes.
const LONGEST_INSTRUCTION: usize = 15;

type ElfBytes = EndianArcSlice<RunTimeEndian>;

/// Format of an instruction's text.
struct InstructionFormat;
impl SpecializedFormatterTraitOptions for InstructionFormat {
    fn space_after_operand_separator(_: &FastFormatterOptions) -> bool {
        true
    }

    fn use_hex_prefix(_: &FastFormatterOptions) -> bool {
        true
    }
}

/// An opened ELF file.
pub struct Elf {
    /// The functions, in the order of their addresses.
    symbols: Vec<SymbolRange>,
    /// The sections with instructions, in the order of their addresses.
    code: Vec<Section>,
    architecture: Architecture,
    /// Whether only the names of functions were read.
    only_names: bool,
    /// The line information; `None` where the file has none, and the reason where it is damaged.
    lines: Result<Option<Context<ElfBytes>>, String>,
}

/// A function at an address; see [`Frame`](gputrail_code::reader::Frame).
pub struct ElfFrame {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: u32,
    pub column: u32,
}

/// See [`Location`](gputrail_code::reader::Location).
pub struct ElfLocation<'a> {
    /// The symbol's name, and the bytes from its start.
    pub symbol: Option<(&'a str, u64)>,
    pub frames: Vec<ElfFrame>,
    pub instruction: Option<String>,
    pub lines: LineStatus,
    pub error: Option<String>,
}

struct SymbolRange {
    begin: u64,
    end: u64,
    is_global: bool,
    name: Box<str>,
}

struct Section {
    begin: u64,
    bytes: Box<[u8]>,
}

impl Elf {
    /// Opens a file. The error names the damaged part.
    pub fn parse(bytes: &[u8]) -> Result<Elf, String> {
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
        Ok(Elf {
            symbols: symbols(&file),
            code,
            architecture: file.architecture(),
            only_names: false,
            lines: lines(&file),
        })
    }

    /// Opens the file at `path` for the names of its functions, and its debug file where it has one. The error says why
    /// there are none.
    pub fn open_names(path: &str, build_id: Option<&str>) -> Result<Elf, String> {
        let (mut symbols, has_all) = names_in(path, build_id)?;
        if !has_all
            && let Some((folder, file)) = build_id.and_then(|id| id.split_at_checked(2))
            && let debug = format!("/usr/lib/debug/.build-id/{folder}/{file}.debug")
            && let Ok((more, _)) = names_in(&debug, build_id)
        {
            symbols = more;
        }
        Ok(Elf {
            symbols,
            code: Vec::new(),
            architecture: Architecture::Unknown,
            only_names: true,
            lines: Ok(None),
        })
    }

    /// Looks up an address.
    pub fn locate(&self, address: u64) -> ElfLocation<'_> {
        let mut found = ElfLocation {
            symbol: None,
            frames: Vec::new(),
            instruction: None,
            lines: LineStatus::NO_CODE,
            error: None,
        };
        if self.only_names {
            found.symbol = self.symbol(address);
            found.lines = LineStatus::NONE;
            return found;
        }
        if self.section(address).is_none() {
            return found;
        }
        found.symbol = self.symbol(address);
        found.instruction = self.instruction(address);
        found.lines = match self.frames(address, &mut found.frames) {
            Err(error) => {
                found.error = Some(error);
                LineStatus::DAMAGED
            }
            Ok(_) if found.frames.first().is_some_and(|frame| frame.line != 0) => LineStatus::FOUND,
            Ok(true) => LineStatus::NOT_HERE,
            Ok(false) => LineStatus::NONE,
        };
        found
    }

    fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.begin <= address);
        let found = &self.symbols[after.checked_sub(1)?];
        (address < found.end).then(|| (&*found.name, address - found.begin))
    }

    /// Adds the frames at `address`, and returns whether the file has line information.
    fn frames(&self, address: u64, frames: &mut Vec<ElfFrame>) -> Result<bool, String> {
        let Some(lines) = self.lines.as_ref().map_err(String::clone)? else {
            return Ok(false);
        };
        let damaged = |error: gimli::Error| format!("debug information: {error}");
        let mut found = match lines.find_frames(address) {
            LookupResult::Output(found) => found.map_err(damaged)?,
            // The lines are in another file, which is not available.
            LookupResult::Load { .. } => return Ok(true),
        };
        while frames.len() < MAX_FRAMES {
            let Some(frame) = found.next().map_err(damaged)? else {
                break;
            };
            let function = frame.function.as_ref();
            let function = function.and_then(|function| function.raw_name().ok());
            let function = function.map(|name| truncated(&name).to_owned());
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file);
            if function.is_none() && file.is_none() {
                continue;
            }
            frames.push(ElfFrame {
                function,
                file: file.map(|file| truncated(file).to_owned()),
                line: location.and_then(|location| location.line).unwrap_or(0),
                column: location.and_then(|location| location.column).unwrap_or(0),
            });
        }
        Ok(true)
    }

    fn section(&self, address: u64) -> Option<(&Section, usize)> {
        let after = self
            .code
            .partition_point(|section| section.begin <= address);
        let section = &self.code[after.checked_sub(1)?];
        let place = usize::try_from(address - section.begin).ok()?;
        // A lookup of lines needs the next address, which the last address of all does not have.
        (place < section.bytes.len() && address != u64::MAX).then_some((section, place))
    }

    /// The addresses of the instructions of the function at `address`; empty where no disassembler is available.
    pub fn instructions(&self, address: u64) -> Vec<u64> {
        let mut found = Vec::new();
        let after = self
            .symbols
            .partition_point(|symbol| symbol.begin <= address);
        let Some(symbol) = after.checked_sub(1).map(|place| &self.symbols[place]) else {
            return found;
        };
        if address >= symbol.end {
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
            found.push(decoder.ip());
            let _ = decoder.decode();
        }
        found
    }

    /// The word size that the disassembler needs, or `None` for an architecture that it does not know.
    fn bits(&self) -> Option<u32> {
        match self.architecture {
            Architecture::X86_64 => Some(64),
            Architecture::I386 => Some(32),
            _ => None,
        }
    }

    /// The text of the instruction at `address`.
    fn instruction(&self, address: u64) -> Option<String> {
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
        // A formatter cannot be sent to another thread, so it is not kept.
        SpecializedFormatter::<InstructionFormat>::new().format(&instruction, &mut text);
        Some(text)
    }
}

/// The functions of the file at `path`, with readable names, and whether these are more than what the file exports. Only the
/// parts of the file with symbols are read.
fn names_in(path: &str, build_id: Option<&str>) -> Result<(Vec<SymbolRange>, bool), String> {
    let text = |error: &dyn std::fmt::Display| format!("{path}: {error}");
    let file = File::open(path).map_err(|error| text(&error))?;
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return Err(text(&"not a file"));
    }
    let cache = ReadCache::new(file);
    let file = object::File::parse(&cache).map_err(|error| text(&error))?;
    let own = file.build_id().ok().flatten().unwrap_or_default();
    let own: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
    if build_id.is_some_and(|recorded| recorded != own) {
        return Err(text(&"another file than the recorded one"));
    }
    let has_all = file.symbols().next().is_some();
    let mut symbols = symbols(&file);
    for symbol in &mut symbols {
        symbol.name = demangled(&symbol.name);
    }
    Ok((symbols, has_all))
}

/// The readable form of a mangled name, without parameters; other names as they are.
fn demangled(name: &str) -> Box<str> {
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = cpp_demangle::Symbol::new(name).ok();
    let text = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    let Some(text) = text else {
        return name.into();
    };
    // Names of Rust end in a hash.
    let text = match text.rsplit_once("::h") {
        Some((text, hash)) if hash.len() == 16 => text,
        _ => &text,
    };
    truncated(text).into()
}

/// The functions by address. A function without a size extends to the next one.
fn symbols<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> Vec<SymbolRange> {
    let mut found: Vec<SymbolRange> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .take(MAX_SYMBOLS)
        .filter_map(|symbol| {
            Some(SymbolRange {
                begin: symbol.address(),
                end: symbol.address().saturating_add(symbol.size()),
                is_global: symbol.is_global(),
                name: truncated(symbol.name().ok().filter(|name| !name.is_empty())?).into(),
            })
        })
        .collect();
    // Of several names of a function, one that others know it by.
    found.sort_by_key(|symbol| (symbol.begin, u64::MAX - symbol.end, !symbol.is_global));
    found.dedup_by_key(|symbol| symbol.begin);
    for place in 0..found.len() {
        if found[place].end == found[place].begin {
            let next = found.get(place + 1).map_or(u64::MAX, |next| next.begin);
            found[place].end = next;
        }
    }
    found
}

/// The file's line information, or `None` where it has none.
fn lines(file: &object::File<'_>) -> Result<Option<Context<ElfBytes>>, String> {
    if file.section_by_name(".debug_line").is_none() {
        return Ok(None);
    }
    let endian = if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    };
    let load = |section: gimli::SectionId| -> Result<ElfBytes, String> {
        let bytes = match file.section_by_name(section.name()) {
            Some(section) => section
                .uncompressed_data()
                .map_err(|error| format!("{}: {error}", section.name().unwrap_or_default()))?,
            None => Default::default(),
        };
        Ok(ElfBytes::new(Arc::from(&*bytes), endian))
    };
    let sections = gimli::Dwarf::load(load)?;
    let context = Context::from_dwarf(sections);
    context
        .map(Some)
        .map_err(|error| format!("debug information: {error}"))
}
