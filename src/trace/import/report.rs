//! Counts and findings of an import.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Format;
use super::row::Damage;
use crate::trace::capture;

/// Most findings that are kept; further ones are counted.
const MAX_FINDINGS: usize = 100;
/// Most reasons that are told apart.
const MAX_REASONS: usize = 256;
/// How many offsets are kept for each reason.
const MAX_OFFSETS: usize = 3;

/// Bytes of a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Where, in bytes from the beginning (of the unpacked file), if that is known.
    pub offset: Option<u64>,
    /// The value that was found.
    pub found: String,
    /// A description of the expected value.
    pub expected: Cow<'static, str>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if let Some(offset) = self.offset {
            write!(f, "at byte {offset}: ")?;
        }
        write!(f, "found {}, expected {}", self.found, self.expected)
    }
}

/// Events of the input that the stream does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrepresented {
    /// The file.
    pub file: PathBuf,
    /// Why, in words.
    pub reason: Cow<'static, str>,
    /// How many.
    pub count: u64,
    /// Where the first ones stand, in bytes from the beginning (of the unpacked file).
    pub first: Vec<u64>,
}

impl fmt::Display for Unrepresented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} x {}",
            self.file.display(),
            self.count,
            self.reason
        )?;
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
        self.calls + work + self.slices + self.instants + self.values
    }
}

/// The outcome of an import.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The files, their formats, and their sizes as they lie on disk.
    pub files: Vec<(PathBuf, Format, u64)>,
    /// Number of events in the stream.
    pub counts: Counts,
    /// The report about the captures, if there were any.
    pub captures: Option<capture::Report>,
    /// Bytes that could not be read.
    pub findings: Vec<Finding>,
    /// Number of findings beyond those kept in `findings`.
    pub further_findings: u64,
    /// Events that the stream does not hold.
    pub unrepresented: Vec<Unrepresented>,
    /// Facts for the reader of the summary: what was rounded, repaired, or put elsewhere.
    pub remarks: Vec<Unrepresented>,
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
        self.findings.push(Finding {
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
            match self.findings.len() < MAX_FINDINGS {
                true => self.findings.push(finding),
                false => self.further_findings += 1,
            }
        }
        self.further_findings += other.further_findings;
        self.unrepresented.extend(other.unrepresented);
        self.unrepresented.truncate(MAX_REASONS);
        self.remarks.extend(other.remarks);
        self.remarks.truncate(MAX_REASONS);
        self.captures = self.captures.take().or(other.captures);
    }

    /// Whether the input could be read to its end and without damage.
    pub fn is_sound(&self) -> bool {
        let captures = self.captures.as_ref();
        self.findings.is_empty() && captures.is_none_or(|report| report.findings.is_empty())
    }
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
    let known = list
        .iter()
        .position(|one| one.reason == reason && one.file == file);
    let place = known.unwrap_or_else(|| {
        if list.len() < MAX_REASONS {
            list.push(Unrepresented {
                file: file.to_owned(),
                reason,
                count: 0,
                first: Vec::new(),
            });
        }
        list.len() - 1
    });
    let one = &mut list[place];
    one.count = one.count.saturating_add(events);
    if one.first.len() < MAX_OFFSETS {
        one.first.extend(offset);
    }
}
