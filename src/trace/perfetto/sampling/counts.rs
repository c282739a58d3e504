//! Exact counts in a trace: our own packets ([`PcSamples`]), which `gputrail hotspots` reads and Perfetto passes over.
//!
//! Packets are written now and then while samples stream by, so that a trace that is cut has what came before, and
//! each says what was counted since the one before. What an id stands for is told once, with its first use.

use std::collections::{HashMap, HashSet};

use super::places::{Places, kernel_name};
use crate::capture::Metadata;
use crate::code::aggregate::{Address, KernelSamples};
use crate::code::symbols::{self, Resolved};
use crate::record::number_map::NumberMap;
use crate::record::{AgentId, CodeObjectId, KernelId, SamplingTotals};
use crate::trace::perfetto::devices::Devices;
use crate::trace::perfetto::schema::PcSamples;
use crate::trace::perfetto::schema::pc_samples::address::Frame;
use crate::trace::perfetto::schema::pc_samples::{
    Address as AddressEntry, Agent, CodeObject, Configuration, Count, Kernel, Line, Text, Totals,
};

/// Most addresses that are told apart in one trace; samples at others count for the kernel as a whole.
const MAX_ADDRESSES: usize = 1 << 18;
/// Most texts.
const MAX_TEXTS: usize = 1 << 18;
/// Bytes of the longest text, and of the longest line of source code.
const LONGEST: usize = 512;
/// Lines around one that was sampled that are kept too.
const AROUND: u32 = 2;
/// Entries of a packet, so that none becomes large.
const PACKET: usize = 1000;
/// Outcomes of one entry.
const OUTCOMES: usize = 256;

/// The number of an address that is not told apart.
const NO_ADDRESS: u32 = 0;

/// What has been told, and what is to be told next.
#[derive(Debug, Default)]
pub(super) struct Counts {
    texts: HashMap<Box<str>, u32>,
    agents: HashSet<AgentId>,
    kernels: HashSet<KernelId>,
    objects: HashSet<CodeObjectId>,
    addresses: NumberMap<(CodeObjectId, u64), u32>,
    lines: HashSet<(u32, u32)>,
    configurations: Vec<Configuration>,
    next: PcSamples,
    entries: usize,
}

/// What names things.
pub(super) struct Names<'a> {
    pub metadata: &'a Metadata,
    pub devices: &'a Devices,
    pub places: &'a mut Places,
}

impl Counts {
    /// Adds what was counted of a kernel.
    pub fn kernel(
        &mut self,
        names: &mut Names<'_>,
        (agent, kernel): (AgentId, KernelId),
        samples: &KernelSamples,
        full: &mut impl FnMut(PcSamples) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.agent(names, agent);
        self.kernel_name(names, kernel);
        let mut all: Vec<_> = samples.entries().collect();
        all.sort_by_key(|(address, outcome, _)| (*address, *outcome));
        for at_one in all.chunk_by(|(first, ..), (second, ..)| first == second) {
            let (address, ..) = at_one[0];
            let address = self.address(names, address);
            for some in at_one.chunks(OUTCOMES) {
                let numbers = some.iter().flat_map(|(_, outcome, count)| {
                    [outcome.code().into(), count.samples, count.latency]
                });
                self.next.counts.push(Count {
                    agent: Some(agent.0),
                    kernel: Some(kernel.0),
                    address: Some(address),
                    outcomes: numbers.collect(),
                });
                self.entries += some.len();
                self.hand_on_if_full(full)?;
            }
        }
        for (method, totals) in samples.totals() {
            self.next.totals.push(Totals {
                agent: Some(agent.0),
                kernel: Some(kernel.0),
                method: Some(method.0.into()),
                dispatches: Some(totals.dispatches),
                samples: Some(totals.samples),
                dropped: Some(totals.dropped),
            });
            self.entries += 1;
        }
        self.hand_on_if_full(full)
    }

    fn hand_on_if_full(
        &mut self,
        full: &mut impl FnMut(PcSamples) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        match self.is_full() {
            true => full(self.take().expect("it is full")),
            false => Ok(()),
        }
    }

    /// What is to be told; none if it is nothing.
    pub fn take(&mut self) -> Option<PcSamples> {
        self.entries = 0;
        let next = std::mem::take(&mut self.next);
        (next != PcSamples::default()).then_some(next)
    }

    /// Whether there is enough for a packet.
    pub fn is_full(&self) -> bool {
        self.entries >= PACKET
    }

    /// Whether there is nothing to be told.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// What is to be told next.
    pub fn next(&mut self) -> &mut PcSamples {
        self.entries += 1;
        &mut self.next
    }

    /// How an agent was sampled.
    pub fn configuration(&mut self, totals: &SamplingTotals) {
        let configuration = Configuration {
            agent: Some(totals.agent.0),
            method: Some(totals.method.0.into()),
            unit: Some(totals.unit.0.into()),
            interval: Some(totals.interval),
        };
        let known = self.configurations.contains(&configuration);
        if totals.interval != 0 && !known && self.configurations.len() < 64 {
            self.configurations.push(configuration);
            self.next().configurations.push(configuration);
        }
    }

    pub fn agent(&mut self, names: &Names<'_>, agent: AgentId) {
        if self.agents.insert(agent) {
            let record = names.metadata.agents.get(&agent);
            let model = record.map_or("", |agent| names.metadata.string(agent.name));
            let name = match (names.devices.title(agent), model) {
                (Some(title), "") => title.to_owned(),
                (Some(title), model) => format!("{title} ({model})"),
                (None, _) => "unknown device".to_owned(),
            };
            self.next().agents.push(Agent {
                id: Some(agent.0),
                name: Some(name),
            });
        }
    }

    pub fn kernel_name(&mut self, names: &Names<'_>, kernel: KernelId) {
        if self.kernels.insert(kernel) {
            let name = kernel_name(names.metadata, kernel);
            self.next().kernels.push(Kernel {
                id: Some(kernel.0),
                name: Some(cut(&name).to_owned()),
            });
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
        self.next().texts.push(Text {
            id: Some(id),
            text: Some(text.to_owned()),
        });
        id
    }

    /// The number of an address, told with all that is known of it.
    pub fn address(&mut self, names: &mut Names<'_>, address: Address) -> u32 {
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
            self.next().code_objects.push(CodeObject {
                id: Some(address.code_object.0),
                path: Some(path),
            });
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
        let frames = known.frames.iter().map(|frame| Frame {
            function: Some(self.text(&frame.function)),
            file: frame.file.as_ref().map(|file| self.text(file)),
            line: frame.line,
        });
        let frames = frames.collect();
        self.source_lines(metadata, address.code_object, &known);
        self.next().addresses.push(AddressEntry {
            id: Some(id),
            code_object: Some(address.code_object.0),
            offset: Some(address.offset),
            symbol: Some(symbol),
            instruction: Some(instruction),
            frames,
            missing,
        });
        id
    }

    /// Tells the source lines of an address and those around them, where the program's text is known. It is that of
    /// the file that the outermost function is in: others were included.
    fn source_lines(&mut self, metadata: &Metadata, object: CodeObjectId, known: &Resolved) {
        let Some(source) = symbols::source(metadata, object) else {
            return;
        };
        let Some(main) = known.frames.last().and_then(|frame| frame.file.clone()) else {
            return;
        };
        let file = self.text(&main);
        for frame in &known.frames {
            let (Some(line), Some(true)) =
                (frame.line, frame.file.as_ref().map(|file| *file == main))
            else {
                continue;
            };
            let wanted = line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND);
            let new = |line: &u32| !self.lines.contains(&(file, *line));
            if file == 0 || !wanted.clone().any(|line| new(&line)) {
                continue;
            }
            let first = *wanted.start();
            let texts = source.lines().skip(first as usize - 1);
            for (line, text) in wanted.zip(texts) {
                if self.lines.insert((file, line)) {
                    self.next().lines.push(Line {
                        file: Some(file),
                        line: Some(line),
                        text: Some(cut(text).to_owned()),
                    });
                }
            }
        }
    }
}

/// As much of a text as is kept.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len().min(LONGEST))]
}
