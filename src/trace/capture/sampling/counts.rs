//! Exact counts of samples, in parts ([`Samples`]).
//!
//! Parts are passed on now and then while samples are read, so that a trace that is cut has the earlier ones. Each part
//! holds the counts since the one before. Ids are declared once, with their first use.

use std::collections::{HashMap, HashSet};

use super::places::{Places, kernel_name};
use crate::capture::devices::Devices;
use crate::model::{
    AgentConfiguration, CodeAddress, CodeFrame, ExecutionCount, Executions, OutcomeCount,
    ProcessIndex, RawSample, SampleCount, SampleTotals, SamplerIndex, Samples, SourceText,
    UNKNOWN_DEVICE,
};
use gputrail_capture::Metadata;
use gputrail_code::aggregate::{Address, KernelSamples};
use gputrail_code::symbols::{self, Resolved, SourceLines};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{AgentId, CodeObjectId, KernelId, SamplingTotals};

/// Maximum number of addresses that are distinguished in one trace; samples at others count for the kernel as a whole.
const MAX_ADDRESSES: usize = 1 << 18;
/// Maximum number of texts.
const MAX_TEXTS: usize = 1 << 18;
/// Maximum size of a text, and of a line of source code.
const MAX_TEXT: usize = 512;
/// Number of lines before and after a sampled one that are kept, too.
const AROUND: u32 = 2;
/// Maximum number of entries of a part.
const PART: usize = 1000;
/// Number of single samples in a part.
const RAW_PART: usize = 1024;
/// Maximum number of outcomes of one entry.
const OUTCOMES: usize = 256;

/// The id of addresses that are not distinguished.
const NO_ADDRESS: u32 = 0;

/// The ids that have been declared, and the next part.
#[derive(Debug, Default)]
pub(super) struct ProcessCounts {
    texts: HashMap<Box<str>, u32>,
    agents: HashSet<AgentId>,
    kernels: HashSet<KernelId>,
    objects: HashSet<CodeObjectId>,
    addresses: NumberMap<(CodeObjectId, u64), u32>,
    lines: HashSet<(u32, u32)>,
    sources: HashMap<CodeObjectId, SourceLines>,
    configurations: Vec<AgentConfiguration>,
    next: Samples,
    entries: usize,
    raw: Vec<RawSample>,
}

/// The sources of names.
pub(super) struct NameSources<'a> {
    pub metadata: &'a Metadata,
    pub devices: &'a Devices,
    pub places: &'a mut Places,
}

impl ProcessCounts {
    /// The counts of `process`.
    pub fn new(process: ProcessIndex) -> ProcessCounts {
        ProcessCounts {
            next: Samples {
                sampler: SamplerIndex(process.0),
                process: Some(process),
                ..Samples::default()
            },
            ..ProcessCounts::default()
        }
    }

    /// Adds the counts of a kernel. Full parts are appended to `full`.
    pub fn kernel(
        &mut self,
        names: &mut NameSources<'_>,
        (agent, kernel): (AgentId, KernelId),
        samples: &KernelSamples,
        full: &mut Vec<Samples>,
    ) {
        self.agent(names, agent);
        self.kernel_name(names, kernel);
        let mut all: Vec<_> = samples.entries().collect();
        all.sort_by_key(|(address, outcome, _)| (*address, *outcome));
        for at_one in all.chunk_by(|(first, ..), (second, ..)| first == second) {
            let (address, ..) = at_one[0];
            let address = self.address(names, address);
            for some in at_one.chunks(OUTCOMES) {
                let outcomes = some.iter().map(|(_, outcome, count)| OutcomeCount {
                    outcome: *outcome,
                    samples: count.samples,
                    latency: count.latency,
                });
                self.next.counts.push(SampleCount {
                    agent,
                    kernel,
                    address,
                    outcomes: outcomes.collect(),
                });
                self.entries += some.len();
                self.take_if_full(full);
            }
        }
        for (method, totals) in samples.totals() {
            self.next.totals.push(SampleTotals {
                agent,
                kernel,
                method: *method,
                dispatches: totals.dispatches,
                samples: totals.samples,
                dropped: totals.dropped,
            });
            self.entries += 1;
        }
        self.take_if_full(full);
    }

    /// Adds the executions of an instruction. Full parts are appended to `full`.
    pub fn executions(
        &mut self,
        names: &mut NameSources<'_>,
        (agent, kernel, address): (AgentId, KernelId, Address),
        executions: Executions,
        full: &mut Vec<Samples>,
    ) {
        self.agent(names, agent);
        self.kernel_name(names, kernel);
        let address = self.address(names, address);
        self.next().executions.push(ExecutionCount {
            agent,
            kernel,
            address,
            executions,
        });
        self.take_if_full(full);
    }

    fn take_if_full(&mut self, full: &mut Vec<Samples>) {
        if self.entries >= PART {
            full.extend(self.take());
        }
    }

    /// Adds a single sample.
    pub fn raw(&mut self, sample: RawSample) {
        self.raw.push(sample);
    }

    /// Adds the single samples to the next part.
    pub fn flush_raw(&mut self) {
        self.next.raw = std::mem::take(&mut self.raw);
        self.entries += usize::from(!self.next.raw.is_empty());
    }

    /// Takes the next part; `None` if it is empty.
    pub fn take(&mut self) -> Option<Samples> {
        if std::mem::take(&mut self.entries) == 0 {
            return None;
        }
        let following = Samples {
            sampler: self.next.sampler,
            process: self.next.process,
            ..Samples::default()
        };
        Some(std::mem::replace(&mut self.next, following))
    }

    /// Whether the next part is full.
    pub fn is_full(&self) -> bool {
        self.entries >= PART || self.raw.len() >= RAW_PART
    }

    /// Whether the next part is empty.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The next part, for adding to it.
    pub fn next(&mut self) -> &mut Samples {
        self.entries += 1;
        &mut self.next
    }

    /// Adds the sampling configuration of an agent.
    pub fn configuration(&mut self, totals: &SamplingTotals) {
        let configuration = AgentConfiguration {
            agent: totals.agent,
            method: totals.method,
            unit: totals.unit,
            interval: totals.interval,
        };
        let known = self.configurations.contains(&configuration);
        if totals.interval != 0 && !known && self.configurations.len() < 64 {
            self.configurations.push(configuration);
            self.next().configurations.push(configuration);
        }
    }

    pub fn agent(&mut self, names: &NameSources<'_>, agent: AgentId) {
        if self.agents.insert(agent) {
            let record = names.metadata.agents.get(&agent);
            let model = record.map_or("", |agent| names.metadata.string(agent.name));
            let name = match (names.devices.title(agent), model) {
                (Some(title), "") => title.to_owned(),
                (Some(title), model) => format!("{title} ({model})"),
                (None, _) => UNKNOWN_DEVICE.to_owned(),
            };
            self.next().agents.push((agent, name));
        }
    }

    pub fn kernel_name(&mut self, names: &NameSources<'_>, kernel: KernelId) {
        if self.kernels.insert(kernel) {
            let name = kernel_name(names.metadata, kernel);
            self.next().kernels.push((kernel, cut(&name).to_owned()));
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        let text = cut(text);
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        if self.texts.len() >= MAX_TEXTS {
            return 0;
        }
        let id = self.texts.len() as u32 + 1;
        self.texts.insert(text.into(), id);
        self.next().texts.push((id, text.to_owned()));
        id
    }

    /// The id of an address, which is declared with its symbol, lines and instruction.
    pub fn address(&mut self, names: &mut NameSources<'_>, address: Address) -> u32 {
        let key = (address.code_object, address.offset);
        if let Some(number) = self.addresses.get(&key) {
            return *number;
        }
        if self.addresses.len() >= MAX_ADDRESSES {
            return NO_ADDRESS;
        }
        let id = self.addresses.len() as u32 + 1;
        self.addresses.insert(key, id);
        let metadata = names.metadata;
        if address.code_object.is_some() && self.objects.insert(address.code_object) {
            let path = cut(names.places.object(metadata, address)).to_owned();
            self.next().code_objects.push((address.code_object, path));
        }
        let known = names.places.resolve(metadata, address);
        let symbol = known
            .symbol
            .as_ref()
            .map_or(0, |symbol| self.text(&symbol.name));
        let instruction = self.text(known.instruction.as_deref().unwrap_or(""));
        let missing = known
            .missing
            .as_ref()
            .map(|missing| self.text(&missing.to_string()));
        let frames = known.frames.iter().map(|frame| CodeFrame {
            function: self.text(&frame.function),
            file: frame.file.as_ref().map(|file| self.text(file)),
            line: frame.line,
        });
        let frames = frames.collect();
        self.source_lines(metadata, address.code_object, &known);
        self.next().addresses.push(CodeAddress {
            id,
            code_object: address.code_object,
            offset: address.offset,
            symbol,
            instruction,
            frames,
            missing,
        });
        id
    }

    /// Adds the source lines of an address and the lines around them, if the program's text is known. It is the text of
    /// the file of the outermost function, and of the files that its `#line` directives name; other files were
    /// included.
    fn source_lines(&mut self, metadata: &Metadata, object: CodeObjectId, known: &Resolved) {
        let Some(source) = symbols::source(metadata, object) else {
            return;
        };
        let main = known.frames.last().and_then(|frame| frame.file.as_deref());
        let lines = self
            .sources
            .remove(&object)
            .unwrap_or_else(|| SourceLines::new(source));
        for frame in &known.frames {
            let (Some(line), Some(path)) = (frame.line, frame.file.as_deref()) else {
                continue;
            };
            let wanted = line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND);
            for line in wanted {
                let Some(text) = lines.get(source, path, main == Some(path), line) else {
                    continue;
                };
                let file = self.text(path);
                if file != 0 && self.lines.insert((file, line)) {
                    self.next().lines.push(SourceText {
                        file,
                        line,
                        text: cut(text).to_owned(),
                    });
                }
            }
        }
        self.sources.insert(object, lines);
    }
}

/// The text, cut to the maximum size.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len().min(MAX_TEXT))]
}
