//! Source lines beside counted samples, as CUPTI delivers them: a source locator for each line that was sampled, and
//! for each function that was sampled, the line of every instruction (of the sampled ones, where no disassembler is
//! available). Each record is written once, to the buffers that request its kind; where none does, nothing is looked
//! up. Where the reader of ELF files is not available, there are no locators; that is printed once (see
//! [`Symbols`](gputrail_code::symbols::Symbols)).

use super::code::LoadedCode;
use crate::correlation::HostThread;
use gputrail_capture::code::CodeOffset;
use gputrail_capture::names::Names;
use gputrail_record::{
    CodeObjectId, InstructionCorrelation, InstructionType, KernelId, Kind, SampleAggregate,
    SourceLocator, SourceLocatorId, StringId,
};
use std::collections::{HashMap, HashSet};

/// The lines of a process that have been written.
#[derive(Default)]
pub struct WrittenLines {
    code: LoadedCode,
    /// By file, line and column.
    locators: HashMap<(StringId, u32, u32), SourceLocatorId>,
    /// Instructions whose functions have been written.
    functions: HashSet<(CodeObjectId, u64)>,
}

/// The place of an instruction.
#[derive(Copy, Clone, Debug)]
pub struct InstructionPlace {
    /// The code object that has the instruction.
    pub code_object: CodeObjectId,
    /// From the load base of the code object.
    pub offset: u64,
    /// The kernel that ran it.
    pub kernel: KernelId,
}

/// The types of the instructions of a code object, by their offsets.
pub(crate) type TypeOf<'a> = &'a dyn Fn(u64) -> InstructionType;

impl WrittenLines {
    /// Writes the records of a sampled address that are new through `host`, and sets the locator of `counted`, if its
    /// line is known and a buffer requests one of the kinds. Types of instructions are not known.
    pub fn of(&mut self, names: &Names, host: &mut HostThread, counted: &mut SampleAggregate) {
        let place = InstructionPlace {
            code_object: counted.code_object,
            offset: counted.offset,
            kernel: counted.kernel,
        };
        counted.source_locator = self.locate(names, host, place, &|_| InstructionType::NONE);
    }

    /// Writes the records of the instruction at `place` that are new through `host`. Returns its locator, if its line is
    /// known and a buffer requests one of the kinds.
    pub fn locate(
        &mut self,
        names: &Names,
        host: &mut HostThread,
        place: InstructionPlace,
        type_of: TypeOf<'_>,
    ) -> SourceLocatorId {
        if host.buffers_for(Kind::SOURCE_LOCATOR).is_none()
            && host.buffers_for(Kind::INSTRUCTION_CORRELATION).is_none()
        {
            return SourceLocatorId::NONE;
        }
        self.sampled(names, host, place, type_of)
    }

    /// Forgets what was read of a code object, which has been stored again with further instructions.
    pub fn forget(&mut self, code_object: CodeObjectId) {
        self.code.forget(code_object);
    }

    fn sampled(
        &mut self,
        names: &Names,
        host: &mut HostThread,
        at: InstructionPlace,
        type_of: TypeOf<'_>,
    ) -> SourceLocatorId {
        if !at.code_object.is_some() {
            return SourceLocatorId::NONE;
        }
        let sampled = CodeOffset(at.offset);
        let locator = self.locator(names, host, at.code_object, sampled);
        let wanted = host.buffers_for(Kind::INSTRUCTION_CORRELATION);
        if !wanted.is_none() && self.functions.insert((at.code_object, at.offset)) {
            let mut all = self.code.instructions(names, at.code_object, sampled);
            if all.is_empty() {
                all.push(sampled);
            }
            for offset in all {
                self.functions.insert((at.code_object, offset.0));
                let mut record = InstructionCorrelation::blank();
                (record.offset, record.code_object) = (offset.0, at.code_object);
                record.kernel = at.kernel;
                record.instruction = type_of(offset.0);
                record.source_locator = self.locator(names, host, at.code_object, offset);
                let known = self.code.resolve(names, at.code_object, offset);
                if let Some(text) = known.as_ref().and_then(|known| known.instruction.as_ref()) {
                    record.text = names.string(text);
                }
                host.write_to(wanted, record);
            }
        }
        locator
    }

    /// The locator of an instruction, which is written if it is new.
    fn locator(
        &mut self,
        names: &Names,
        host: &mut HostThread,
        code_object: CodeObjectId,
        offset: CodeOffset,
    ) -> SourceLocatorId {
        let known = self.code.resolve(names, code_object, offset);
        let frame = known.as_ref().and_then(|known| known.frames.first());
        let Some((file, line, column)) = frame.and_then(|frame| {
            let file = names.string(frame.file.as_ref()?);
            Some((file, frame.line?, frame.column.unwrap_or(0)))
        }) else {
            return SourceLocatorId::NONE;
        };
        let next = SourceLocatorId(self.locators.len() as u32 + 1);
        *self
            .locators
            .entry((file, line, column))
            .or_insert_with(|| {
                let mut record = SourceLocator::blank();
                (record.id, record.file) = (next, file);
                (record.line, record.column) = (line, column);
                host.write_to(host.buffers_for(Kind::SOURCE_LOCATOR), record);
                next
            })
    }
}
