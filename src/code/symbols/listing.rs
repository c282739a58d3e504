//! Code objects of the simulated GPU and of CUDA: a table of instructions in place of machine code. CUDA's has those that
//! were sampled, without their text.
//!
//! ```text
//! gputrail listing\n
//! offset in hexadecimal \t function \t file \t line \t instruction \n
//! ```
//!
//! Lines are in the order of their offsets; an instruction reaches to the next one, the last one for 8 bytes.

use super::{MAX_INSTRUCTIONS, Missing, Resolved, Symbol, SymbolFrame, truncated};
use gputrail_capture::code::CodeOffset;
use gputrail_record::CodeObjectId;
use std::fmt::Write;
use std::sync::Arc;

const MAGIC: &str = "gputrail listing\n";
/// Maximum number of instructions of one listing.
const MAX_LINES: usize = 1 << 20;
/// Size of the last instruction.
const LAST: u64 = 8;

/// One instruction of a listing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ListingLine<'a> {
    /// Its offset.
    pub offset: CodeOffset,
    /// Its function.
    pub function: &'a str,
    /// The file of its source.
    pub file: &'a str,
    /// The line in the file, from 1; 0 for none.
    pub line: u32,
    /// Its text.
    pub instruction: &'a str,
}

/// The code object made from a table of instructions. Tabs and line breaks in the texts become spaces.
pub fn listing(lines: &[ListingLine<'_>]) -> Vec<u8> {
    let mut text = MAGIC.to_owned();
    let clean = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:x}\t{}\t{}\t{}\t{}",
            line.offset.0,
            clean(line.function),
            clean(line.file),
            line.line,
            clean(line.instruction)
        );
    }
    text.into_bytes()
}

/// A parsed listing.
pub(super) struct Listing {
    instructions: Vec<Instruction>,
    /// Whether an instruction has a line.
    has_lines: bool,
}

struct Instruction {
    offset: u64,
    /// The begin of its function.
    begin: u64,
    frame: SymbolFrame,
    text: Box<str>,
}

impl Listing {
    /// Whether `bytes` begin like a listing.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC.as_bytes())
    }

    /// The error contains the damaged line and the reason.
    pub fn parse(bytes: &[u8]) -> Result<Listing, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let text = text.strip_prefix(MAGIC).ok_or("it is not a listing")?;
        let mut instructions: Vec<Instruction> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let damaged = |what: &str| format!("line {}: {what}", number + 2);
            if instructions.len() == MAX_LINES {
                return Err(damaged("too many instructions"));
            }
            let mut cells = line.split('\t');
            let mut cell = |what: &str| cells.next().ok_or_else(|| damaged(&format!("no {what}")));
            let offset = u64::from_str_radix(cell("offset")?, 16)
                .map_err(|_| damaged("the offset is not a hexadecimal number"))?;
            let (function, file) = (cell("function")?, cell("file")?);
            let number = cell("line")?
                .parse::<u32>()
                .map_err(|_| damaged("the line is not a number"))?;
            let text = cell("instruction")?;
            let last = instructions.last();
            if last.is_some_and(|last| last.offset >= offset) {
                return Err(damaged("the offset is not above the one before"));
            }
            // Repeated names are stored once.
            let same = |known: Option<&Arc<str>>, text: &str| match known {
                Some(known) if **known == *text => known.clone(),
                _ => Arc::from(truncated(text)),
            };
            let begin = match last {
                Some(last) if *last.frame.function == *truncated(function) => last.begin,
                _ => offset,
            };
            let frame = SymbolFrame {
                function: same(last.map(|last| &last.frame.function), function),
                file: (!file.is_empty())
                    .then(|| same(last.and_then(|last| last.frame.file.as_ref()), file)),
                line: (number != 0).then_some(number),
                column: None,
            };
            instructions.push(Instruction {
                offset,
                begin,
                frame,
                text: truncated(text).into(),
            });
        }
        let mut frames = instructions.iter().map(|instruction| &instruction.frame);
        Ok(Listing {
            has_lines: frames.any(|frame| frame.line.is_some()),
            instructions,
        })
    }

    /// The instructions of the function that contains `offset`.
    pub fn instructions(&self, offset: CodeOffset) -> Vec<CodeOffset> {
        let after = self
            .instructions
            .partition_point(|instruction| instruction.offset <= offset.0);
        let Some(found) = after.checked_sub(1).map(|place| &self.instructions[place]) else {
            return Vec::new();
        };
        let first = self
            .instructions
            .partition_point(|instruction| instruction.offset < found.begin);
        self.instructions[first..]
            .iter()
            .take_while(|instruction| instruction.begin == found.begin)
            .take(MAX_INSTRUCTIONS)
            .map(|instruction| CodeOffset(instruction.offset))
            .collect()
    }

    pub fn look_up(&self, id: CodeObjectId, offset: CodeOffset) -> Resolved {
        let after = self
            .instructions
            .partition_point(|instruction| instruction.offset <= offset.0);
        let is_last = after == self.instructions.len();
        let found = after
            .checked_sub(1)
            .map(|place| &self.instructions[place])
            .filter(|found| !is_last || offset.0 - found.offset < LAST);
        let Some(found) = found else {
            return Resolved {
                missing: Some(Missing::OutOfRange(id, offset)),
                ..Resolved::default()
            };
        };
        Resolved {
            symbol: Some(Symbol {
                name: found.frame.function.clone(),
                offset: offset.0 - found.begin,
            }),
            frames: vec![found.frame.clone()],
            instruction: (!found.text.is_empty()).then(|| found.text.clone()),
            missing: match found.frame.line {
                Some(_) => None,
                None if self.has_lines => Some(Missing::NoLine(id, offset)),
                None => Some(Missing::NoListedLines),
            },
        }
    }
}
