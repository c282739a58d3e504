//! Files of lines with bytes gone or changed, for tests of readers: what is lost is never passed over without a word.

use std::fs;

use tempfile::TempDir;

use super::log::StreamLog;
use super::{Inputs, Report};
use gputrail_trace::model::Producer;

/// The number of variants of each file.
const VARIANTS: usize = 300;

/// The report on a file; `None` if it is refused, which is a message.
fn read(bytes: &[u8]) -> Option<Report> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("results");
    fs::write(&path, bytes).unwrap();
    let inputs = Inputs::open(&[path]).ok()?;
    Some(inputs.produce(&mut StreamLog::default()).unwrap())
}

/// Whether the summary says that something is wrong or left out, or that there are no events.
fn is_said(report: &Report) -> bool {
    !report.is_sound() || !report.unrepresented.is_empty() || report.counts.events() == 0
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Cuts and changes `text` in each of the variants, and returns those in which events are missing without a word. A reader refuses
/// the file, or says that something is wrong, or has as many events as the lines of the file are; of one that is cut, those of its
/// whole lines and one of the last. `may_join`: two lines without the bytes between them may be one, as a line of the format may end in
/// any text.
pub(super) fn unsaid(text: &str, may_join: bool) -> Vec<String> {
    let mut unsaid = Vec::new();
    let events = |bytes: &[u8]| read(bytes).map_or(0, |report| report.counts.events());
    let whole = events(text.as_bytes());
    for variant in 0..VARIANTS {
        let mut bytes = text.as_bytes().to_vec();
        let place = bytes.len() * (variant + 1) / (VARIANTS + 2);
        let mut wanted = whole;
        match variant % 5 {
            0 => {
                bytes.truncate(place);
                let line = bytes.iter().rposition(|byte| *byte == b'\n');
                let (before, last) = bytes.split_at(line.map_or(0, |end| end + 1));
                wanted = events(before) + u64::from(!last.trim_ascii().is_empty());
            }
            1 => bytes[place] = 0xff,
            2 => drop(bytes.drain(place..(place + 40).min(text.len()))),
            3 => bytes[place] = b'}',
            _ => bytes.insert(place, b'"'),
        }
        if may_join && variant % 5 != 0 {
            wanted = wanted.saturating_sub(line_ends(text.as_bytes()) - line_ends(&bytes));
        }
        let Some(report) = read(&bytes) else {
            continue;
        };
        let found = report.counts.events();
        if found < wanted && !is_said(&report) {
            let text = String::from_utf8_lossy(&bytes);
            unsaid.push(format!("variant {variant}: {found} of {wanted}: {text}"));
        }
    }
    unsaid
}
