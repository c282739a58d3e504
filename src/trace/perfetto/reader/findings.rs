//! The defects found in a trace, and their positions.

use std::collections::HashMap;
use std::fmt;

use gputrail_record::printable;

/// Maximum number of kinds of findings.
const MAX_FINDINGS: usize = 1000;
/// Number of further positions that are kept of one kind.
const MAX_PLACES: usize = 3;

/// The position of a packet in a trace.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketPosition {
    /// Offset in the trace; after decompression, if the trace is gzipped as a whole.
    pub offset: u64,
    /// Number of the packet in the compressed group that begins there, from 1; 0 outside of groups.
    pub inner: u32,
}

impl fmt::Display for PacketPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner {
            0 => write!(f, "at byte {}", self.offset),
            inner => write!(f, "at byte {}, packet {inner} of the group", self.offset),
        }
    }
}

/// A kind of defect of a trace, and its positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The position of the first.
    pub position: PacketPosition,
    /// The defect, and the expected content.
    pub what: String,
    /// The number of findings that differ from `what` in numbers alone.
    pub count: u64,
    /// The positions of the next findings.
    pub more: Vec<PacketPosition>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.what)?;
        if self.count == 1 {
            return Ok(());
        }
        write!(f, "; {} findings like this, the next ", self.count)?;
        for (index, position) in self.more.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{position}")?;
        }
        Ok(())
    }
}

/// The findings of one trace, by kind: the kind of a finding is its text without numbers. Memory is bounded: kinds and
/// positions beyond the maximum are only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    /// The index of each kind in the list.
    kinds: HashMap<String, usize>,
    count: u64,
}

impl Findings {
    /// Adds a finding. `what` is a closure, since most traces have no findings.
    #[cold]
    pub fn add(&mut self, position: PacketPosition, what: impl FnOnce() -> String) {
        self.count += 1;
        let what = what();
        // It may hold names of the trace.
        let what = printable(&what).into_owned();
        let kind = without_numbers(&what);
        if let Some(index) = self.kinds.get(&kind) {
            let known = &mut self.list[*index];
            known.count += 1;
            if known.more.len() < MAX_PLACES {
                known.more.push(position);
            }
        } else if self.list.len() < MAX_FINDINGS {
            self.kinds.insert(kind, self.list.len());
            self.list.push(Finding {
                position,
                what,
                count: 1,
                more: Vec::new(),
            });
        }
    }

    /// The findings, one of each kind, in the order of their first occurrence.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// Number of all findings.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of findings of kinds that are not in the list.
    pub fn unlisted(&self) -> u64 {
        let listed = self.list.iter().map(|finding| finding.count);
        self.count - listed.sum::<u64>()
    }
}

/// `text` with `#` in place of each decimal or hexadecimal number.
fn without_numbers(text: &str) -> String {
    let mut kind = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        kind.push_str(&rest[..start]);
        kind.push('#');
        let number = &rest[start..];
        let hexadecimal = number.strip_prefix("0x");
        let digits = hexadecimal.unwrap_or(number);
        let radix = if hexadecimal.is_some() { 16 } else { 10 };
        rest = digits.trim_start_matches(|letter: char| letter.is_digit(radix));
    }
    kind.push_str(rest);
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> PacketPosition {
        PacketPosition { offset, inner: 0 }
    }

    #[test]
    fn findings_of_one_kind_are_one_line_with_a_count_and_the_first_offsets() {
        let mut findings = Findings::default();
        for offset in 10..20u64 {
            findings.add(at(offset), || format!("no call names {:#x}", offset * 77));
        }
        findings.add(at(30), || "a second kind".into());
        let lines: Vec<String> = findings.list().iter().map(Finding::to_string).collect();
        assert_eq!(
            lines,
            [
                "at byte 10: no call names 0x302; 10 findings like this, the next at byte 11, at byte 12, at byte 13",
                "at byte 30: a second kind",
            ]
        );
        assert_eq!((findings.count(), findings.unlisted()), (11, 0));
    }

    #[test]
    fn kinds_beyond_the_limit_are_counted() {
        let mut findings = Findings::default();
        let name = |number: usize| "x".repeat(number);
        (0..MAX_FINDINGS + 5).for_each(|number| findings.add(at(0), || name(number)));
        assert_eq!(findings.list().len(), MAX_FINDINGS);
        assert_eq!(findings.unlisted(), 5);
    }
}
