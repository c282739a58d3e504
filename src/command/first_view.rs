//! What Perfetto's UI shows first of a trace. It would show each group of rows as one line: `gputrail view` has it open the
//! groups, and pin the rows that say most, which are that of the steps and the queues with most work.

use crate::input::unpacked;
use anyhow::Result;
use gputrail_convert::import::InputFile;
use gputrail_record::{Nanos, ThreadId};
use gputrail_trace::model::{
    Agent, AgentIndex, Consumer, Parent, Process, ProcessIndex, Producer as _, Queue, QueueIndex,
    Slice, Track, TrackIndex, TrackKind, Work,
};
use gputrail_trace::perfetto::reader::TraceReplay;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, Read as _};

/// Most queues that are pinned.
const MAX_QUEUES: usize = 4;
/// Most processes whose rows are shown.
const MAX_PROCESSES: usize = 2;
/// The part of a trace, unpacked, that decides: what is shown first must not take long to find.
const MAX_BYTES: u64 = 256 << 20;
/// Most series of numbered slices that are looked at.
const MAX_SERIES: usize = 1 << 16;
/// The longest pattern of a row, in bytes: URLs have limits.
const MAX_PATTERN: usize = 500;
/// The groups of the rows of devices, in the versions of the UI.
const GROUPS: [&str; 2] = ["GPU", "Render Stage"];

/// Slices of a track whose names differ in the number at their end: steps of a training, for one.
#[derive(Debug, Default)]
struct Series {
    latest: Option<u64>,
    /// How many of them have a higher number than the one before.
    rises: u64,
    nanos: u64,
}

/// The rows of a trace, and how much each of them says.
#[derive(Debug, Default)]
struct FirstView {
    /// The rows of processes, by their names in the UI.
    processes: Vec<String>,
    /// The titles of devices.
    agents: Vec<String>,
    /// A pattern for the row of each queue, and the time of its work, ns.
    queues: Vec<(String, u64)>,
    /// A pattern for the name of each track, and its thread, if it is of one.
    tracks: Vec<(String, Option<ThreadId>)>,
    series: HashMap<(TrackIndex, String), Series>,
    /// The slices that others stand in: when each began, and the series that it belongs to.
    open: HashMap<TrackIndex, Vec<(Nanos, Option<String>)>>,
}

/// The commands for the UI, as JSON: its URL has them in `startupCommands`.
pub fn commands(trace: &InputFile) -> Result<String> {
    let mut view = FirstView::default();
    TraceReplay::new(unpacked(trace)?.take(MAX_BYTES)).produce(&mut view)?;
    Ok(view.commands())
}

impl FirstView {
    fn commands(&self) -> String {
        let mut groups: Vec<String> = GROUPS.map(str::to_owned).to_vec();
        if self.processes.len() <= MAX_PROCESSES {
            let names = self.processes.iter().map(|name| escaped(name));
            groups.extend(names.filter(|name| name.len() <= MAX_PATTERN));
        }
        let mut queues: Vec<&(String, u64)> =
            self.queues.iter().filter(|(_, nanos)| *nanos > 0).collect();
        queues.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        let queues = queues
            .into_iter()
            .take(MAX_QUEUES)
            .map(|(row, _)| row.clone());
        let command = |id: &str, rows: &[String]| json!({"id": id, "args": [format!("^({})$", rows.join("|"))]});
        let mut commands = vec![command("dev.perfetto.ExpandTracksByRegex", &groups)];
        // Rows are pinned in the order of the commands: the steps stand above.
        for rows in [
            self.steps().into_iter().collect(),
            queues.collect::<Vec<_>>(),
        ] {
            let rows: Vec<String> = rows
                .into_iter()
                .filter(|row| row.len() <= MAX_PATTERN)
                .collect();
            if !rows.is_empty() {
                commands.push(command("dev.perfetto.PinTracksByRegex", &rows));
            }
        }
        json!(commands).to_string()
    }

    /// A slice of a series has this interval.
    fn covers(&mut self, track: TrackIndex, prefix: Option<String>, (start, end): (Nanos, Nanos)) {
        let series = prefix.and_then(|prefix| self.series.get_mut(&(track, prefix)));
        if let Some(series) = series {
            series.nanos += end.0.saturating_sub(start.0);
        }
    }

    /// The row of the steps: the series that covers most time.
    fn steps(&self) -> Option<String> {
        let steps = self.series.iter().filter(|(_, series)| series.rises > 0);
        let ((track, _), _) =
            steps.max_by_key(|((track, _), series)| (series.nanos, std::cmp::Reverse(*track)))?;
        let (row, _) = self.tracks.get(track.0 as usize)?;
        Some(row.clone())
    }
}

impl Consumer for FirstView {
    gputrail_trace::leave_out!(
        clocks attributes counters call instant value counter_values samples stack stack_samples loss note
    );

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.agents.truncate(first.0 as usize);
        self.agents
            .extend(agents.iter().map(|agent| agent.title.clone()));
        Ok(())
    }

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        let rank = match process.rank {
            "" => String::new(),
            rank => format!(" ({rank})"),
        };
        self.processes
            .push(format!("{}{rank} {}", process.name, process.pid.0));
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let parent = match track.parent {
            Parent::Track(parent) => self.tracks.get(parent.0 as usize),
            _ => None,
        };
        let thread = match track.kind {
            TrackKind::Thread(_, thread) | TrackKind::ThreadRanges(_, thread) => Some(thread),
            _ => parent.and_then(|(_, thread)| *thread),
        };
        // The UI adds the number of the thread, in brackets or without.
        let number = thread.map(|thread| format!(" *\\(?{}\\)?", thread.0));
        let name = escaped(track.name) + &number.unwrap_or_default();
        self.tracks.push((name, thread));
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let title = self.agents.get(queue.agent.0 as usize);
        // Numbers have spaces before them.
        let name = escaped(queue.name).replace(' ', " +");
        let row = match title {
            // Between them, the process.
            Some(title) => format!("{} · +(.* · +)?{name}", escaped(title)),
            None => name,
        };
        self.queues.push((row, 0));
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let prefix = slice
            .name
            .trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = slice.name[prefix.len()..].parse().ok();
        let prefix = number.is_some().then(|| prefix.to_owned());
        if let (Some(number), Some(prefix)) = (number, &prefix) {
            let key = (slice.track, prefix.clone());
            if self.series.len() < MAX_SERIES || self.series.contains_key(&key) {
                let series = self.series.entry(key).or_default();
                series.rises += u64::from(series.latest.is_some_and(|latest| latest < number));
                series.latest = Some(number);
            }
        }
        match slice.end {
            _ if slice.open => self
                .open
                .entry(slice.track)
                .or_default()
                .push((slice.start, prefix)),
            Some(end) => self.covers(slice.track, prefix, (slice.start, end)),
            None => {}
        }
        Ok(())
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        if let Some((start, prefix)) = self.open.get_mut(&track).and_then(Vec::pop) {
            self.covers(track, prefix, (start, end));
        }
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        if let Some((_, nanos)) = self.queues.get_mut(work.queue.0 as usize) {
            *nanos += work.duration.unwrap_or(0);
        }
        Ok(())
    }
}

/// `text` as a regular expression of JavaScript that finds this text alone. Escapes of other letters, which a crate for Rust's
/// expressions writes, are errors in its strict mode.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if "\\^$.|?*+()[]{}/".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// `text` as it can stand in the fragment of a URL.
pub fn in_url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encoded = text.bytes().map(|byte| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_literally_and_stand_in_urls() {
        assert_eq!(escaped("gemm<float, 4>(a*)"), "gemm<float, 4>\\(a\\*\\)");
        assert_eq!(in_url("[\"a ·\"]"), "%5B%22a%20%C2%B7%22%5D");
    }
}
