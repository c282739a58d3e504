//! Programs in HLO: what their operations are, and from which lines of the source they come.

use std::io;

use super::messages::{Span, SpanFields, SpanValue};
use super::{Space, field};
use crate::import::tables::TextHandle;

/// Field numbers of HLO, of which a file has a program in each event of its plane.
mod number {
    pub const MODULE: u32 = 1;
    pub const COMPUTATIONS: u32 = 3;
    pub const INSTRUCTIONS: u32 = 2;
    pub mod instruction {
        pub const NAME: u32 = 1;
        pub const OPCODE: u32 = 2;
        pub const METADATA: u32 = 7;
    }
    pub mod metadata {
        pub const SCOPE: u32 = 2;
        pub const FILE: u32 = 3;
        pub const LINE: u32 = 4;
    }
}

/// An operation of a program.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct HloOperation {
    pub opcode: TextHandle,
    /// The name of the framework's operation, with those around it.
    pub scope: TextHandle,
    /// File and line.
    pub source: TextHandle,
}

impl Space<'_> {
    /// Calls `each` with every message in the field `wanted` of a message.
    fn each_in(
        &mut self,
        message: Span,
        wanted: u32,
        mut each: impl FnMut(&mut Self, Span) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut fields = SpanFields::new(message);
        while let Some(field) = self.next(&mut fields)? {
            if let SpanValue::Bytes(span) = field.value
                && field.number == wanted
            {
                each(self, span)?;
            }
        }
        Ok(())
    }

    /// Reads the programs of a plane.
    pub(super) fn programs(&mut self, plane: Span) -> io::Result<()> {
        let mut programs = 0;
        self.each_in(plane, field::plane::EVENTS, |space, entry| {
            let mut program = 0;
            let mut fields = SpanFields::new(entry);
            while let Some(field) = space.next(&mut fields)? {
                match (field.number, field.value) {
                    (field::entry::KEY, SpanValue::Number(key)) => program = key,
                    (field::entry::VALUE, SpanValue::Bytes(event)) => {
                        space.each_in(event, field::description::STATISTICS, |space, one| {
                            space.each_in(one, field::statistic::BYTES, |space, bytes| {
                                programs += 1;
                                space.program(program, bytes)
                            })
                        })?;
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        let reason = "programs in HLO: scopes, source lines and opcodes of their operations are beside the work, and nothing else of them";
        self.report.remarks(self.name, reason, programs);
        Ok(())
    }

    fn program(&mut self, program: u64, bytes: Span) -> io::Result<()> {
        self.each_in(bytes, number::MODULE, |space, module| {
            space.each_in(module, number::COMPUTATIONS, |space, computation| {
                space.each_in(computation, number::INSTRUCTIONS, |space, instruction| {
                    space.instruction(program, instruction)
                })
            })
        })
    }

    fn instruction(&mut self, program: u64, instruction: Span) -> io::Result<()> {
        let (mut name, mut operation) = (TextHandle::default(), HloOperation::default());
        let mut fields = SpanFields::new(instruction);
        while let Some(field) = self.next(&mut fields)? {
            let SpanValue::Bytes(span) = field.value else {
                continue;
            };
            match field.number {
                number::instruction::NAME => name = self.handle_at(span)?,
                number::instruction::OPCODE => operation.opcode = self.handle_at(span)?,
                number::instruction::METADATA => self.origin(span, &mut operation)?,
                _ => {}
            }
        }
        if name != TextHandle::default() {
            self.operations.insert((program, name), operation);
        }
        Ok(())
    }

    /// From where an operation comes.
    fn origin(&mut self, metadata: Span, operation: &mut HloOperation) -> io::Result<()> {
        let (mut file, mut line) = (String::new(), 0);
        let mut fields = SpanFields::new(metadata);
        while let Some(field) = self.next(&mut fields)? {
            match (field.number, field.value) {
                (number::metadata::SCOPE, SpanValue::Bytes(span)) => {
                    operation.scope = self.handle_at(span)?;
                }
                (number::metadata::FILE, SpanValue::Bytes(span)) => file = self.text_at(span)?,
                (number::metadata::LINE, SpanValue::Number(number)) => line = number,
                _ => {}
            }
        }
        operation.source = match (&file[..], line) {
            ("", _) => TextHandle::default(),
            (file, 0) => self.tables.text(file),
            (file, line) => self.tables.text(&format!("{file}:{line}")),
        };
        Ok(())
    }

    fn handle_at(&mut self, span: Span) -> io::Result<TextHandle> {
        let text = self.text_at(span)?;
        Ok(self.tables.text(&text))
    }
}
