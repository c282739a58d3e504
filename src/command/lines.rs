//! Lines of a name and a text each, which describe a file.

use crate::figures::{count, grouped, time};
use gputrail_record::{Nanos, printable};
use gputrail_trace::model::Work;
use std::fmt::{Display, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Width of the names before the lines.
const NAMES: usize = 15;
/// Maximum number of findings, processes, devices and notes in a list.
const MAX_LINES: usize = 20;

/// Lines of a name and a text each.
pub struct Lines {
    pub text: String,
}

impl Lines {
    /// Lines that begin with the path of a file.
    pub fn title(path: &Path, what: &str) -> Lines {
        Lines {
            text: format!("{}\n", printable(&format!("{}: {what}", path.display()))),
        }
    }

    /// Writes a line.
    pub fn line(&mut self, name: &str, text: impl Display) {
        let text = text.to_string();
        let _ = writeln!(self.text, "  {name:NAMES$}{}", printable(&text));
    }

    /// Writes how many instructions were executed, if they were counted.
    pub fn executed(&mut self, instructions: u64) {
        if instructions > 0 {
            let number = count(instructions, "instruction");
            self.line("executed", format!("{number} of waves, counted exactly"));
        }
    }

    /// Writes of how much work the times are not known, and why.
    pub fn without_times(&mut self, untimed: u64, unrecorded: u64) {
        let reasons = [
            (untimed, "the runtime gave none"),
            (unrecorded, Work::UNRECORDED),
        ];
        let some = reasons.iter().filter(|(number, _)| *number > 0);
        let lines = some.map(|(number, why)| format!("{}: {why}", count(*number, "operation")));
        self.list("without times", lines);
    }

    /// Writes a list; the name is before its first line only.
    pub fn list(&mut self, name: &str, list: impl IntoIterator<Item = impl Display>) {
        let mut name = name;
        let mut list = list.into_iter();
        for text in list.by_ref().take(MAX_LINES) {
            self.line(std::mem::take(&mut name), text);
        }
        match list.count() {
            0 => {}
            rest => self.line("", format!("and {} more", grouped(rest as u64))),
        }
    }
}

/// Times behind this one are times of day: no machine runs for 31 years.
const TIMES_OF_DAY: Nanos = Nanos(1_000_000_000_000_000_000);

/// The interval from `first` to `last`.
pub fn span(first: Nanos, last: Nanos) -> String {
    let length = time(Nanos(last.0.saturating_sub(first.0)));
    if first >= TIMES_OF_DAY {
        let first = UNIX_EPOCH + Duration::from_nanos(first.0);
        return format!(
            "{length} of recording, from {}",
            httpdate::fmt_http_date(first)
        );
    }
    format!(
        "{length} of recording, from {} to {} after the machine was started",
        time(first),
        time(last)
    )
}
