//! What the packets of a sequence refer to: interned names, callstacks, and other entries of its tables.

use super::fields::{MessageField, MessageFields, number_of, numbers_of};
use super::findings::{Findings, PacketPosition};
use super::sequences::{InternedEntry, Sequence, name_of_table};
use super::texts::{TextId, Texts};
use crate::model::StackFrame;
use crate::perfetto::schema::field::{self, interned_data as table};

/// Maximum number of frames of a callstack that are read.
const MAX_FRAMES: usize = 1 << 12;
/// Maximum number of annotations, of flows, of further categories and of further values of an event. Each takes more memory than
/// its bytes in the packet. Further ones are counted as fields that are not read.
pub(super) const MAX_REPEATED: usize = 1 << 16;

/// A text with its number.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberedText<'a> {
    /// Its number: equal texts of a trace have equal numbers.
    pub id: TextId,
    /// The text.
    pub text: &'a str,
}

/// The state with which references are resolved, and the list of findings.
pub(super) struct Resolving<'a, 'f> {
    pub sequence: Option<&'a Sequence>,
    pub texts: &'a Texts,
    pub position: PacketPosition,
    pub findings: &'f mut Findings,
    /// Whether entries were left out, so that a missing one is not a defect.
    pub incomplete: bool,
    /// Bytes of the tables and lists among the packet's annotations.
    pub json_bytes: usize,
    /// The bits of ids that say which trace of the file they belong to.
    pub part: u64,
}

impl<'a> Resolving<'a, '_> {
    /// The entry with `number` in a table; `None` for 0.
    #[inline]
    pub fn entry(&mut self, table: u32, number: u64) -> Option<&'a InternedEntry> {
        let entry = self
            .sequence
            .and_then(|sequence| sequence.entry(table, number));
        if entry.is_none() && number != 0 && !self.incomplete {
            self.findings.add(self.position, || {
                format!("{} {number} was never interned", name_of_table(table))
            });
        }
        entry
    }

    #[inline]
    pub(super) fn name(&mut self, table: u32, number: u64) -> NumberedText<'a> {
        self.entry(table, number)
            .map_or(NumberedText::default(), |entry| NumberedText {
                id: entry.name,
                text: self.texts.get(entry.name),
            })
    }

    /// A text that is written in full in the packet.
    #[inline]
    pub(super) fn text(&mut self, bytes: &'a [u8]) -> &'a str {
        std::str::from_utf8(bytes).unwrap_or_else(|_| {
            self.findings
                .add(self.position, || "a text that is not UTF-8".into());
            ""
        })
    }

    #[inline]
    pub(super) fn own_text(&mut self, bytes: &'a [u8]) -> NumberedText<'a> {
        NumberedText {
            id: TextId::OTHER,
            text: self.text(bytes),
        }
    }

    #[inline]
    pub(super) fn end_of(&mut self, what: &str, fields: &MessageFields<'_>) {
        if let Some(why) = fields.malformed() {
            self.findings
                .add(self.position, || format!("{what}: {why}"));
        }
    }

    /// Resolves the callstacks that a sample names: repeated field `number` of its message.
    pub fn callstacks(&mut self, bytes: &'a [u8], number: u32) {
        let mut fields = MessageFields::new(bytes);
        let wanted = |field: &MessageField<'_>| field.number == number;
        for field in fields.by_ref().filter(wanted) {
            for callstack in field.numbers() {
                self.callstack(callstack);
            }
        }
        self.end_of("sample", &fields);
    }

    /// The frames of a callstack, outermost first.
    pub fn frames(&mut self, number: u64) -> Vec<StackFrame> {
        let Some(stack) = self.entry(table::CALLSTACKS, number) else {
            return Vec::new();
        };
        numbers_of(&stack.bytes, field::callstack::FRAME_IDS)
            .take(MAX_FRAMES)
            .map(|frame| {
                let frame = self.entry(table::FRAMES, frame);
                let number = |name| frame.and_then(|frame| number_of(&frame.bytes, name));
                let function = number(field::frame::FUNCTION_NAME_ID).unwrap_or(0);
                let mapping = number(field::frame::MAPPING_ID).unwrap_or(0);
                let mapping = self.entry(table::MAPPINGS, mapping);
                let path = mapping.and_then(|mapping| {
                    numbers_of(&mapping.bytes, field::mapping::PATH_STRING_IDS).next()
                });
                StackFrame {
                    name: self.name(table::FUNCTION_NAMES, function).text.to_owned(),
                    mapping: self
                        .name(table::MAPPING_PATHS, path.unwrap_or(0))
                        .text
                        .to_owned(),
                }
            })
            .collect()
    }

    fn callstack(&mut self, number: u64) {
        let Some(stack) = self.entry(table::CALLSTACKS, number) else {
            return;
        };
        for frame in numbers_of(&stack.bytes, field::callstack::FRAME_IDS) {
            let Some(frame) = self.entry(table::FRAMES, frame) else {
                continue;
            };
            for (field, table) in [
                (field::frame::FUNCTION_NAME_ID, table::FUNCTION_NAMES),
                (field::frame::MAPPING_ID, table::MAPPINGS),
            ] {
                if let Some(number) = number_of(&frame.bytes, field) {
                    self.entry(table, number);
                }
            }
        }
    }
}
