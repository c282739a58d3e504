//! The contents of files of any format, as lines: `gputrail convert --dry-run` and `gputrail info` print them.

use crate::figures::{bytes, count, grouped};
use crate::lines::{Lines, span};
use crate::report::{counts, remarks};
use gputrail_convert::import::Report;
use gputrail_record::{Nanos, ThreadId};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterIndex, CounterValue, Instant, Process, ProcessIndex,
    Queue, QueueIndex, Slice, SliceEnd, TraceHeader, Track, TrackIndex, TrackKind, Work,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Maximum number of categories, queues and processes that are told apart.
const MAX_ENTRIES: usize = 1 << 16;

/// A queue or stream of a device.
#[derive(Debug, Default)]
struct QueueContents {
    agent: Option<AgentIndex>,
    name: String,
    work: u64,
}

/// A process.
#[derive(Debug, Default)]
struct ProcessContents {
    name: String,
    threads: BTreeSet<ThreadId>,
}

/// Takes the contents of a stream.
#[derive(Debug, Default)]
pub struct StreamContents {
    host: String,
    first: Option<Nanos>,
    last: Option<Nanos>,
    processes: Vec<ProcessContents>,
    agents: Vec<String>,
    queues: Vec<QueueContents>,
    categories: BTreeMap<String, u64>,
    counters: u64,
}

impl StreamContents {
    /// The lines: `report` is that of the stream.
    pub fn text(&self, report: &Report) -> String {
        let files = &report.files;
        let length = files.iter().map(|(.., length)| length).sum();
        let mut lines = match &files[..] {
            [(path, format, _)] => Lines::title(path, &format.to_string()),
            _ => Lines {
                text: format!("{}:\n", count(files.len() as u64, "file")),
            },
        };
        lines.line("size", bytes(length));
        if files.len() > 1 {
            let files = files.iter();
            lines.list(
                "files",
                files.map(|(path, format, length)| {
                    format!("{}: {format}, {}", path.display(), bytes(*length))
                }),
            );
        }
        match (self.first, self.last) {
            (Some(first), Some(last)) => lines.line("time", span(first, last)),
            _ => lines.line("time", "no events"),
        }
        if !self.host.is_empty() {
            lines.line("host", &self.host);
        }
        lines.list(
            "processes",
            self.processes.iter().map(|process| {
                let threads = process.threads.len() as u64;
                format!("{}, {}", process.name, count(threads, "thread"))
            }),
        );
        lines.list("devices", &self.agents);
        lines.list("queues", self.queues.iter().map(|queue| self.queue(queue)));
        let mut categories: Vec<_> = self.categories.iter().collect();
        categories.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        lines.list(
            "categories",
            categories.iter().map(|(name, count)| match &***name {
                "" => format!("(none): {}", grouped(**count)),
                name => format!("{name}: {}", grouped(**count)),
            }),
        );
        if self.counters > 0 {
            lines.line("counters", grouped(self.counters));
        }
        lines.line("holds", counts(report));
        lines.text + &remarks(report)
    }

    fn queue(&self, queue: &QueueContents) -> String {
        let agent = queue.agent.and_then(|agent| {
            let name = self.agents.get(agent.0 as usize)?;
            name.split_once(": ").map(|(title, _)| title)
        });
        let work = count(queue.work, "operation");
        match agent {
            Some(title) => format!("{title} · {}: {work}", queue.name),
            None => format!("{}: {work}", queue.name),
        }
    }

    fn at(&mut self, start: Nanos, end: Option<Nanos>) {
        let end = end.unwrap_or(start).max(start);
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        self.last = Some(self.last.map_or(end, |last| last.max(end)));
    }

    fn category(&mut self, category: &str) {
        let is_full = self.categories.len() >= MAX_ENTRIES;
        match self.categories.get_mut(category) {
            Some(count) => *count += 1,
            None if is_full => *self.categories.entry("(others)".to_owned()).or_default() += 1,
            None => drop(self.categories.insert(category.to_owned(), 1)),
        }
    }
}

impl Consumer for StreamContents {
    gputrail_trace::leave_out!(clocks attributes counters samples stack stack_samples loss note);

    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        self.host = header.machine.host.clone();
        Ok(())
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.agents.truncate(first.0 as usize);
        let names = agents.iter();
        let names = names.map(|agent| format!("{}: {}", agent.title, agent.name));
        self.agents.extend(names);
        Ok(())
    }

    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        let place = index.0 as usize;
        if place >= MAX_ENTRIES {
            return Ok(());
        }
        if place >= self.processes.len() {
            self.processes.resize_with(place + 1, Default::default);
        }
        let rank = match process.rank {
            "" => String::new(),
            rank => format!(" ({rank})"),
        };
        self.processes[place].name = format!("{}{rank} {}", process.name, process.pid);
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        match track.kind {
            TrackKind::Thread(process, thread) => {
                if let Some(process) = self.processes.get_mut(process.0 as usize) {
                    process.threads.insert(thread);
                }
            }
            TrackKind::Counter(_) => self.counters += 1,
            _ => {}
        }
        Ok(())
    }

    fn queue(&mut self, index: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let place = index.0 as usize;
        if place >= MAX_ENTRIES {
            return Ok(());
        }
        if place >= self.queues.len() {
            self.queues.resize_with(place + 1, Default::default);
        }
        self.queues[place] = QueueContents {
            agent: Some(queue.agent),
            name: queue.name.to_owned(),
            work: 0,
        };
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.at(call.start, call.end);
        let category = call.function.category.as_deref();
        self.category(category.or(call.function.domain.name()).unwrap_or(""));
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.at(slice.start, slice.end);
        self.category(slice.category);
        Ok(())
    }

    fn end(&mut self, _: TrackIndex, end: Nanos) -> io::Result<()> {
        self.at(end, None);
        Ok(())
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.at(end.time, None);
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.at(instant.time, None);
        self.category(instant.category);
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        if let Some(start) = work.start {
            let end = Nanos(start.0.saturating_add(work.duration.unwrap_or(0)));
            self.at(start, Some(end));
        }
        if let Some(queue) = self.queues.get_mut(work.queue.0 as usize) {
            queue.work += 1;
        }
        Ok(())
    }

    fn value(&mut self, _: TrackIndex, time: Nanos, _: CounterValue) -> io::Result<()> {
        self.at(time, None);
        Ok(())
    }

    fn counter_values(
        &mut self,
        _: CounterIndex,
        time: Nanos,
        _: &[CounterValue],
    ) -> io::Result<()> {
        self.at(time, None);
        Ok(())
    }
}
