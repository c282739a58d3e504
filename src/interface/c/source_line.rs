//! Source lines of addresses in code objects.

use bytemuck::{Pod, Zeroable};
use gputrail_record::StringId;

/// The place in the source text of an instruction: of the innermost function, where functions were inlined.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SourceLine {
    /// The file, as the compiler names it.
    pub file: StringId,
    /// The function.
    pub function: StringId,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// The instruction as text; none without a disassembler for its architecture.
    pub instruction: StringId,
}
