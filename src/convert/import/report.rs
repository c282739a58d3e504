//! Counts and findings of an import.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use super::InputFormat;
use super::row::Damage;
use gputrail_record::{Nanos, printable};
use gputrail_trace::capture;

/// Maximum number of findings that are kept; further ones are counted.
const MAX_FINDINGS: usize = 100;
/// Maximum number of reasons that are told apart.
const MAX_REASONS: usize = 256;
/// Maximum number of offsets that are kept for each reason.
const MAX_OFFSETS: usize = 3;
/// Maximum number of files that are named because they were not read.
const MAX_UNREAD: usize = 1000;
/// The reason of events for which there were too many reasons.
const OTHER_REASONS: &str = "for other reasons";

/// Bytes of a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFinding {
    /// The file.
    pub file: PathBuf,
    /// Where, in bytes from the beginning (of the unpacked file), if that is known.
    pub offset: Option<u64>,
    /// The value that was found.
    pub found: String,
    /// A description of the expected value.
    pub expected: Cow<'static, str>,
}

impl fmt::Display for ImportFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", printable(&self.file.to_string_lossy()))?;
        if let Some(offset) = self.offset {
            write!(f, "at byte {offset}: ")?;
        }
        let (found, expected) = (printable(&self.found), printable(&self.expected));
        write!(f, "found {found}, expected {expected}")
    }
}

/// Events of the input that the stream does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrepresented {
    /// The first file that has such events.
    pub file: PathBuf,
    /// The number of files that have such events.
    pub files: u64,
    /// Why, in words.
    pub reason: Cow<'static, str>,
    /// How many.
    pub count: u64,
    /// Where the first ones stand in `file`, in bytes from the beginning (of the unpacked file).
    pub first: Vec<u64>,
}

impl fmt::Display for Unrepresented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.to_string_lossy();
        let file = printable(&file);
        match self.files {
            1 => write!(f, "{file}: ")?,
            files => write!(f, "{files} files: ")?,
        }
        write!(f, "{} x {}", self.count, printable(&self.reason))?;
        if self.files > 1 {
            write!(f, ", first in {file}")?;
        }
        for (index, offset) in self.first.iter().enumerate() {
            write!(
                f,
                "{}{offset}",
                if index == 0 { ", at byte " } else { ", " }
            )?;
        }
        let more = self.count > self.first.len() as u64 && !self.first.is_empty();
        f.write_str(if more { ", ..." } else { "" })
    }
}

/// Number of events of each family in the stream.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes.
    pub processes: u64,
    /// API calls.
    pub calls: u64,
    /// Kernels.
    pub kernels: u64,
    /// Copies.
    pub copies: u64,
    /// Fills.
    pub sets: u64,
    /// Other device work.
    pub other_work: u64,
    /// Slices that are no calls.
    pub slices: u64,
    /// Instants.
    pub instants: u64,
    /// Values of counters.
    pub values: u64,
    /// Samples of the program counter.
    pub samples: u64,
}

impl Counts {
    /// All events: everything but processes.
    pub fn events(&self) -> u64 {
        let work = self.kernels + self.copies + self.sets + self.other_work;
        self.calls + work + self.slices + self.instants + self.values + self.samples
    }
}

/// A file whose clock was aligned with those of the files before it, by collective operations of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// The file.
    pub file: PathBuf,
    /// Nanoseconds by which its times were moved.
    pub moved: i64,
    /// Half of the operations end within this distance of those of the other ranks.
    pub error: Nanos,
    /// The number of operations.
    pub operations: u64,
}

/// The outcome of an import.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The files, their formats, and their sizes as they lie on disk.
    pub files: Vec<(PathBuf, InputFormat, u64)>,
    /// Number of events in the stream.
    pub counts: Counts,
    /// Number of ends of arrows between calls and their device work. The stream has them as ids of the work.
    pub arrows: u64,
    /// Number of ends of arrows at calls that caused no device work. Profilers write them; there is nothing to draw.
    pub loose_arrows: u64,
    /// The report about the captures, if there were any.
    pub captures: Option<capture::Report>,
    /// Files whose clocks were aligned.
    pub aligned: Vec<Aligned>,
    /// Bytes that could not be read.
    pub findings: Vec<ImportFinding>,
    /// Number of findings beyond those kept in `findings`.
    pub further_findings: u64,
    /// Events that the stream does not hold.
    pub unrepresented: Vec<Unrepresented>,
    /// Facts for the reader of the summary: what was rounded, repaired, or put elsewhere.
    pub remarks: Vec<Unrepresented>,
    /// Files and folders in the folders of the command line that were not read, each with a description of its content.
    pub unread: Vec<(PathBuf, String)>,
    /// Number of these beyond those in `unread`.
    pub further_unread: u64,
}

impl Report {
    /// Adds a finding.
    pub fn finding(
        &mut self,
        file: &Path,
        offset: Option<u64>,
        found: impl Into<String>,
        expected: impl Into<Cow<'static, str>>,
    ) {
        if self.findings.len() >= MAX_FINDINGS {
            self.further_findings += 1;
            return;
        }
        self.findings.push(ImportFinding {
            file: file.to_owned(),
            offset,
            found: found.into(),
            expected: expected.into(),
        });
    }

    /// Adds the damage of a table as a finding.
    pub(super) fn damage(&mut self, file: &Path, damage: Damage) {
        self.finding(file, damage.offset, damage.found, damage.expected);
    }

    /// Counts an event that the stream does not hold.
    pub fn unrepresented(
        &mut self,
        file: &Path,
        reason: impl Into<Cow<'static, str>>,
        offset: Option<u64>,
    ) {
        count(&mut self.unrepresented, file, reason.into(), offset, 1);
    }

    /// Counts many of them, whose offsets are not known.
    pub(super) fn unrepresented_many(
        &mut self,
        file: &Path,
        reason: impl Into<Cow<'static, str>>,
        events: u64,
    ) {
        count(&mut self.unrepresented, file, reason.into(), None, events);
    }

    /// Counts `events` events that the stream does not hold, the first of which stand at `first`.
    pub(super) fn unrepresented_at(
        &mut self,
        file: &Path,
        reason: Cow<'static, str>,
        events: u64,
        first: impl Iterator<Item = u64>,
    ) {
        count_at(&mut self.unrepresented, file, reason, events, first);
    }

    /// Counts `events` events that the stream holds in another form than the file, the first of which stand at `first`.
    pub(super) fn remarks_at(
        &mut self,
        file: &Path,
        reason: Cow<'static, str>,
        events: u64,
        first: impl Iterator<Item = u64>,
    ) {
        count_at(&mut self.remarks, file, reason, events, first);
    }

    /// Counts an event that the stream holds in another form than the file.
    pub fn remark(
        &mut self,
        file: &Path,
        reason: impl Into<Cow<'static, str>>,
        offset: Option<u64>,
    ) {
        count(&mut self.remarks, file, reason.into(), offset, 1);
    }

    /// Counts many of them, whose offsets are not known.
    pub(super) fn remarks(&mut self, file: &Path, reason: &'static str, events: u64) {
        count(&mut self.remarks, file, reason.into(), None, events);
    }

    /// Adds the report of another recording. The files and counts are those of all recordings already.
    pub(super) fn append(&mut self, other: Report) {
        for finding in other.findings {
            if self.findings.len() < MAX_FINDINGS {
                self.findings.push(finding)
            } else {
                self.further_findings += 1
            }
        }
        self.further_findings += other.further_findings;
        self.arrows += other.arrows;
        self.loose_arrows += other.loose_arrows;
        for (list, others) in [
            (&mut self.unrepresented, other.unrepresented),
            (&mut self.remarks, other.remarks),
        ] {
            for one in others {
                append(list, one);
            }
        }
        self.captures = self.captures.take().or(other.captures);
    }

    /// Removes the counts of events of some files: the output has these files as they are.
    pub(crate) fn forget_events_of(&mut self, is_copied: impl Fn(&Path) -> bool) {
        for list in [&mut self.unrepresented, &mut self.remarks] {
            list.retain(|one| !is_copied(&one.file));
        }
    }

    /// Names a file or folder that was not read.
    pub(super) fn not_read(&mut self, path: PathBuf, found: String) {
        if self.unread.len() < MAX_UNREAD {
            self.unread.push((path, found))
        } else {
            self.further_unread += 1
        }
    }

    /// Whether the input could be read to its end and without damage.
    pub fn is_sound(&self) -> bool {
        let captures = self.captures.as_ref();
        self.findings.is_empty() && captures.is_none_or(|report| report.findings.is_empty())
    }
}

/// Adds the events of another recording. Those with the same reason have one entry, whatever the number of files.
fn append(list: &mut Vec<Unrepresented>, other: Unrepresented) {
    match list.iter_mut().find(|one| one.reason == other.reason) {
        Some(known) => {
            known.files += other.files;
            known.count = known.count.saturating_add(other.count);
        }
        None => add(list, other),
    }
}

/// Adds an entry, or its events to the last one if there are too many.
fn add(list: &mut Vec<Unrepresented>, new: Unrepresented) {
    let is_full = list.len() >= MAX_REASONS;
    match list.last_mut() {
        Some(last) if is_full => {
            last.reason = OTHER_REASONS.into();
            last.count = last.count.saturating_add(new.count);
        }
        _ => list.push(new),
    }
}

fn count_at(
    list: &mut Vec<Unrepresented>,
    file: &Path,
    reason: Cow<'static, str>,
    events: u64,
    first: impl Iterator<Item = u64>,
) {
    let mut further = events;
    for offset in first.take(MAX_OFFSETS) {
        count(list, file, reason.clone(), Some(offset), 1);
        further = further.saturating_sub(1);
    }
    count(list, file, reason, None, further);
}

fn count(
    list: &mut Vec<Unrepresented>,
    file: &Path,
    reason: Cow<'static, str>,
    offset: Option<u64>,
    events: u64,
) {
    if events == 0 {
        return;
    }
    let mut known = list.iter_mut();
    match known.find(|one| one.reason == reason && one.file == file) {
        Some(known) => {
            known.count = known.count.saturating_add(events);
            if known.first.len() < MAX_OFFSETS {
                known.first.extend(offset);
            }
        }
        None => add(
            list,
            Unrepresented {
                file: file.to_owned(),
                files: 1,
                reason,
                count: events,
                first: offset.into_iter().collect(),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_one_entry_whatever_the_number_of_files() {
        let mut report = Report::default();
        for rank in 0..1000 {
            let mut own = Report::default();
            let file = format!("rank{rank}.json");
            own.unrepresented(Path::new(&file), "event without a time (ts)", Some(7));
            own.unrepresented(Path::new(&file), "event without a time (ts)", Some(9));
            own.unrepresented(Path::new(&file), "metadata event \"x\"", Some(8));
            report.append(own);
        }
        let texts: Vec<String> = report
            .unrepresented
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "1000 files: 2000 x event without a time (ts), first in rank0.json, at byte 7, 9, ...",
                "1000 files: 1000 x metadata event \"x\", first in rank0.json, at byte 8, ..."
            ]
        );
    }

    #[test]
    fn events_for_too_many_reasons_are_counted_together() {
        let mut report = Report::default();
        for reason in 0..1000 {
            let reason = format!("event of phase {reason}");
            report.unrepresented(Path::new("a"), reason, None);
        }
        assert_eq!(report.unrepresented.len(), MAX_REASONS);
        let last = report.unrepresented.last().unwrap();
        assert_eq!((&*last.reason, last.count), (OTHER_REASONS, 745));
    }
}
