//! Source lines beside counted samples, as CUPTI delivers them: a source locator for each line that was sampled, and for the
//! functions that were, the line of every instruction (where instructions cannot be told apart, of the sampled ones). Each
//! is told once, to the buffers that want such records; where none does, nothing is looked up. In a build without the
//! feature `symbols` there are none.

#[cfg(feature = "symbols")]
use crate::capture::code::CodeOffset;
use crate::capture::names::Names;
use crate::collect::correlation::HostThread;
use crate::record::SampleAggregate;
#[cfg(feature = "symbols")]
use crate::record::{
    CodeObjectId, InstructionCorrelation, Kind, SourceLocator, SourceLocatorId, StringId,
};

/// What has been told of the lines of a process.
#[derive(Default)]
pub(crate) struct Lines {
    #[cfg(feature = "symbols")]
    told: Told,
}

#[cfg(feature = "symbols")]
#[derive(Default)]
struct Told {
    metadata: crate::capture::Metadata,
    symbols: crate::code::symbols::Symbols,
    /// Code objects whose bytes are in `metadata`.
    objects: std::collections::HashSet<CodeObjectId>,
    /// By file, line and column.
    locators: std::collections::HashMap<(StringId, u32, u32), SourceLocatorId>,
    /// Instructions whose functions have been told.
    functions: std::collections::HashSet<(CodeObjectId, u64)>,
}

impl Lines {
    /// Samples were counted: tells what is new of where they were taken by way of `host`, and notes the line in `counted`,
    /// if it is known and anybody wants to know.
    pub fn of(&mut self, names: &Names, host: &mut HostThread, counted: &mut SampleAggregate) {
        #[cfg(feature = "symbols")]
        if !host.buffers_for(Kind::SOURCE_LOCATOR).is_none()
            || !host.buffers_for(Kind::INSTRUCTION_CORRELATION).is_none()
        {
            counted.source_locator = self.told.sampled(names, host, counted);
        }
        #[cfg(not(feature = "symbols"))]
        let _ = (names, host, counted);
    }
}

#[cfg(feature = "symbols")]
impl Told {
    fn sampled(
        &mut self,
        names: &Names,
        host: &mut HostThread,
        at: &SampleAggregate,
    ) -> SourceLocatorId {
        if !at.code_object.is_some() {
            return SourceLocatorId::NONE;
        }
        if self.objects.insert(at.code_object) {
            names.read_code(at.code_object, |piece| self.metadata.add(piece));
        }
        let sampled = CodeOffset(at.offset);
        let locator = self.locator(names, host, at.code_object, sampled);
        let wanted = host.buffers_for(Kind::INSTRUCTION_CORRELATION);
        if !wanted.is_none() && self.functions.insert((at.code_object, at.offset)) {
            let mut all = self
                .symbols
                .instructions(&self.metadata, at.code_object, sampled);
            if all.is_empty() {
                all.push(sampled);
            }
            for offset in all {
                self.functions.insert((at.code_object, offset.0));
                let mut record = InstructionCorrelation::blank();
                (record.offset, record.code_object) = (offset.0, at.code_object);
                record.kernel = at.kernel;
                record.source_locator = self.locator(names, host, at.code_object, offset);
                let known = self.symbols.resolve(&self.metadata, at.code_object, offset);
                if let Some(text) = &known.instruction {
                    record.text = names.string(text);
                }
                host.write_to(wanted, record);
            }
        }
        locator
    }

    /// The line of an instruction, told if it is new.
    fn locator(
        &mut self,
        names: &Names,
        host: &mut HostThread,
        code_object: CodeObjectId,
        offset: CodeOffset,
    ) -> SourceLocatorId {
        let known = self.symbols.resolve(&self.metadata, code_object, offset);
        let Some((file, line, column)) = known.frames.first().and_then(|frame| {
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
