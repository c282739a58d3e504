//! The JSON of a file of trace events, read in windows: one event at a time, and what stands beside the events.
//!
//! Damage is contained. An event that is not JSON is repaired where that is possible without guessing (bytes that are no
//! UTF-8, control characters in strings, NaN), else skipped up to the next object that is an event.

use std::borrow::Cow;
use std::io::{self, BufRead};

use serde_core::Deserialize;
use serde_json::value::RawValue;

use super::event::{self, ChromeEvent};
use crate::import::json_window::{JsonWindow, error_offset, is_cut, reason};
use gputrail_record::count;

/// Bytes of the file that are in memory at most: an event that is longer is damage.
const MAX_WINDOW: usize = 1 << 26;
/// Most bytes of a value beside the events that is passed on.
const MAX_FIELD: usize = 1 << 20;
/// Longest damaged event that is looked at for repair.
const MAX_REPAIR: usize = 1 << 20;

/// Takes what a file holds.
pub(super) trait ScanVisitor {
    /// An event at `offset`.
    fn event(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()>;
    /// A field beside the events: its name and its JSON.
    fn field(&mut self, name: &str, value: &str);
    /// A field beside the events that is too long to be passed on.
    fn long_field(&mut self, name: &str, offset: u64);
    /// Damage at `offset`.
    fn damage(&mut self, offset: u64, found: String, expected: &'static str);
}

/// Reads a whole file. Returns whether it ended where its content does: a file that was cut does not.
pub(super) fn scan(file: impl BufRead, visitor: &mut impl ScanVisitor) -> io::Result<bool> {
    let mut scanner = ChromeScanner {
        window: JsonWindow::new(file),
    };
    match scanner.file(visitor) {
        Err(ScanStop::Write(error)) => Err(error),
        Err(ScanStop::End) => Ok(false),
        Ok(()) => Ok(true),
    }
}

/// Why reading ends before the end of the content.
enum ScanStop {
    /// No more bytes: reported already.
    End,
    /// The consumer failed.
    Write(io::Error),
}

impl From<io::Error> for ScanStop {
    fn from(error: io::Error) -> ScanStop {
        ScanStop::Write(error)
    }
}

/// The value that contains an array of events.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum EnclosingValue {
    /// The file: nothing is around it, and its end may be missing.
    File,
    /// A field of the outermost object.
    Field,
    /// Damage: fields of the outermost object may follow.
    Damage,
}

/// The outcome of parsing one value.
enum ParseOutcome {
    /// A whole value of this length.
    Whole(usize),
    /// No value: the offset of the error behind the value's beginning, and what it is.
    Wrong(usize, String),
}

struct ChromeScanner<R> {
    window: JsonWindow<R>,
}

impl<R: BufRead> ChromeScanner<R> {
    fn position(&self) -> u64 {
        self.window.position()
    }

    /// Reads more; false at the end of the file.
    fn fill(&mut self, visitor: &mut impl ScanVisitor) -> bool {
        let has_more = self.window.fill();
        if let Some((end, error)) = self.window.error.take() {
            visitor.damage(end, format!("an error: {error}"), "more of the file");
        }
        has_more
    }

    /// The next byte that is not white space; none at the end of the file.
    fn peek(&mut self, visitor: &mut impl ScanVisitor) -> Option<u8> {
        let next = self.window.peek();
        if let Some((end, error)) = self.window.error.take() {
            visitor.damage(end, format!("an error: {error}"), "more of the file");
        }
        next
    }

    /// As [`peek`](Self::peek), where more has to come.
    fn next(
        &mut self,
        visitor: &mut impl ScanVisitor,
        expected: &'static str,
    ) -> Result<u8, ScanStop> {
        match self.peek(visitor) {
            Some(byte) => Ok(byte),
            None => {
                visitor.damage(self.position(), "the end of the file".into(), expected);
                Err(ScanStop::End)
            }
        }
    }

    /// Parses a value at `at`, which stays there. At most `limit` bytes are read for it.
    fn parse<'a, T: Deserialize<'a>>(
        bytes: &'a [u8],
        value: &mut Option<T>,
    ) -> Result<usize, serde_json::Error> {
        let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<T>();
        match stream.next() {
            Some(Ok(found)) => {
                *value = Some(found);
                Ok(stream.byte_offset())
            }
            Some(Err(error)) => Err(error),
            None => Ok(0),
        }
    }

    /// The length of the value at `at`, of at most `limit` bytes.
    fn length(&mut self, limit: usize, visitor: &mut impl ScanVisitor) -> ParseOutcome {
        loop {
            let rest = self.window.rest();
            let is_all = self.window.ended || rest.len() > limit;
            match Self::parse::<&RawValue>(rest, &mut None) {
                // A number may go on behind the window.
                Ok(length) if is_all || length < rest.len() => return ParseOutcome::Whole(length),
                Err(error) if is_all || !is_cut(rest, &error) => {
                    return ParseOutcome::Wrong(error_offset(rest, &error), reason(&error));
                }
                _ => {}
            }
            self.fill(visitor);
        }
    }

    /// The whole file.
    fn file(&mut self, visitor: &mut impl ScanVisitor) -> Result<(), ScanStop> {
        self.window.begin();
        match self.peek(visitor) {
            Some(b'[') => {
                self.window.at += 1;
                // The end of such an array may be missing: programs that die while they write leave it out.
                self.events(visitor, EnclosingValue::File)
            }
            Some(b'{') => {
                self.window.at += 1;
                self.object(visitor)
            }
            Some(_) | None => {
                let found = self.window.describe();
                visitor.damage(self.position(), found, "a JSON object or array");
                Ok(())
            }
        }
    }

    /// The fields of the outermost object.
    fn object(&mut self, visitor: &mut impl ScanVisitor) -> Result<(), ScanStop> {
        let mut has_events = false;
        loop {
            match self.next(visitor, "a field, or `}`")? {
                b'}' if has_events => return Ok(()),
                b'}' => {
                    let found = "an object without `traceEvents`".into();
                    visitor.damage(self.position(), found, "trace events");
                    return Ok(());
                }
                b',' => {
                    self.window.at += 1;
                    continue;
                }
                b'"' => {}
                b'{' => {
                    // The events' array ended too early, or its beginning is gone.
                    let found = self.window.describe();
                    visitor.damage(self.position(), found, "a field, or `}`");
                    has_events = true;
                    self.events(visitor, EnclosingValue::Damage)?;
                    continue;
                }
                _ => {
                    self.resume(visitor, 0, self.window.describe(), "a field, or `}`")?;
                    self.events(visitor, EnclosingValue::Damage)?;
                    continue;
                }
            }
            let name = match self.length(MAX_FIELD, visitor) {
                ParseOutcome::Whole(length) => {
                    let raw = String::from_utf8_lossy(&self.window.rest()[..length]);
                    let name = event::text(&raw).into_owned();
                    self.window.at += length;
                    name
                }
                ParseOutcome::Wrong(error, found) => {
                    self.resume(visitor, error, found, "the name of a field")?;
                    self.events(visitor, EnclosingValue::Damage)?;
                    continue;
                }
            };
            if self.next(visitor, "`:`")? == b':' {
                self.window.at += 1;
            }
            let first = self.next(visitor, "a value")?;
            if name == "traceEvents" && first == b'[' {
                self.window.at += 1;
                has_events = true;
                self.events(visitor, EnclosingValue::Field)?;
                continue;
            }
            match self.length(MAX_FIELD, visitor) {
                ParseOutcome::Whole(length) => {
                    let value = &self.window.rest()[..length];
                    visitor.field(&name, &String::from_utf8_lossy(value));
                    self.window.at += length;
                }
                ParseOutcome::Wrong(..) if self.window.rest().len() > MAX_FIELD => {
                    visitor.long_field(&name, self.position());
                    self.skip_value(visitor)?;
                }
                ParseOutcome::Wrong(error, found) => {
                    self.resume(visitor, error, found, "a value")?;
                    self.events(visitor, EnclosingValue::Damage)?;
                }
            }
        }
    }

    /// Skips a value of any length.
    fn skip_value(&mut self, visitor: &mut impl ScanVisitor) -> Result<(), ScanStop> {
        let mut span = ValueScan::default();
        loop {
            if let Some(length) = span.end(self.window.rest()) {
                self.window.at += length;
                return Ok(());
            }
            self.window.skip_all();
            if !self.fill(visitor) {
                visitor.damage(
                    self.position(),
                    "the end of the file".into(),
                    "the end of a value",
                );
                return Err(ScanStop::End);
            }
        }
    }

    /// Events up to the end of their array.
    fn events(
        &mut self,
        visitor: &mut impl ScanVisitor,
        within: EnclosingValue,
    ) -> Result<(), ScanStop> {
        loop {
            let byte = match self.peek(visitor) {
                Some(byte) => byte,
                None if within != EnclosingValue::Field => return Err(ScanStop::End),
                None => {
                    let found = "the end of the file".into();
                    visitor.damage(self.position(), found, "an event, or `]`");
                    return Err(ScanStop::End);
                }
            };
            match byte {
                b'{' => self.event(visitor)?,
                b',' => self.window.at += 1,
                b']' => {
                    self.window.at += 1;
                    return Ok(());
                }
                b'"' | b'}' if within == EnclosingValue::Damage => {
                    // Back in the fields of the outermost object.
                    return Ok(());
                }
                _ => match self.length(MAX_FIELD, visitor) {
                    // A value that is no event, as `null`.
                    ParseOutcome::Whole(length) if length > 0 => {
                        visitor.damage(self.position(), self.window.describe(), "an event");
                        self.window.at += length;
                    }
                    _ => self.resume(visitor, 0, self.window.describe(), "an event, or `]`")?,
                },
            }
        }
    }

    /// The event at `at`.
    fn event(&mut self, visitor: &mut impl ScanVisitor) -> Result<(), ScanStop> {
        loop {
            let mut event: Option<ChromeEvent<'_>> = None;
            let rest = self.window.rest();
            match Self::parse(rest, &mut event) {
                Ok(length) => {
                    if let Some(event) = event {
                        visitor.event(self.position(), &event)?;
                    }
                    self.window.at += length;
                    return Ok(());
                }
                Err(error)
                    if is_cut(rest, &error) && !self.window.ended && rest.len() < MAX_WINDOW =>
                {
                    self.fill(visitor);
                }
                Err(error) => {
                    let (at, found) = (error_offset(rest, &error), reason(&error));
                    return self.repair(visitor, at, found);
                }
            }
        }
    }

    /// Repairs the event at `at`, or skips it.
    fn repair(
        &mut self,
        visitor: &mut impl ScanVisitor,
        error: usize,
        found: String,
    ) -> Result<(), ScanStop> {
        const EXPECTED: &str = "an event in JSON";
        let rest = self.window.rest();
        let rest = &rest[..rest.len().min(MAX_REPAIR)];
        if let Some(length) = ValueScan::default().end(rest)
            && let Some(repaired) = repaired(&rest[..length])
        {
            let mut event: Option<ChromeEvent<'_>> = None;
            if Self::parse(repaired.as_bytes(), &mut event).is_ok()
                && let Some(event) = event
                && event.ph.is_some()
            {
                let offset = self.position();
                let found = format!("{found}; repaired");
                visitor.damage(offset + error as u64, found, EXPECTED);
                visitor.event(offset, &event)?;
                self.window.at += length;
                return Ok(());
            }
        }
        self.resume(visitor, error, found, EXPECTED)
    }

    /// Reports damage `error` bytes behind `at`, and goes to the next event.
    fn resume(
        &mut self,
        visitor: &mut impl ScanVisitor,
        error: usize,
        found: String,
        expected: &'static str,
    ) -> Result<(), ScanStop> {
        let begin = self.position();
        let end = loop {
            let has_more = self.window.skip_to_brace();
            if let Some((end, error)) = self.window.error.take() {
                visitor.damage(end, format!("an error: {error}"), "more of the file");
            }
            if !has_more {
                break None;
            }
            if self.is_event(visitor) {
                break Some(self.position());
            }
        };
        let at = begin + error as u64;
        match end {
            Some(end) => {
                let found = format!("{found}; {} skipped", count(end - begin, "byte"));
                visitor.damage(at, found, expected);
                Ok(())
            }
            None => {
                let found = format!(
                    "{found}; the rest, {}, skipped",
                    count(self.position() - begin, "byte")
                );
                visitor.damage(at, found, expected);
                Err(ScanStop::End)
            }
        }
    }

    /// Whether an event stands at `at`.
    fn is_event(&mut self, visitor: &mut impl ScanVisitor) -> bool {
        loop {
            let mut event: Option<ChromeEvent<'_>> = None;
            let rest = self.window.rest();
            let rest = &rest[..rest.len().min(MAX_REPAIR)];
            match Self::parse(rest, &mut event) {
                Ok(_) => return event.is_some_and(|event| event.ph.is_some()),
                Err(error)
                    if is_cut(rest, &error) && !self.window.ended && rest.len() < MAX_REPAIR =>
                {
                    self.fill(visitor);
                }
                Err(error) => {
                    let parsed = error_offset(rest, &error);
                    self.window.wasted += parsed as u64;
                    if self.window.has_wasted_too_much() {
                        // Objects in objects that end nowhere: those inside are not tried one by one.
                        self.window.at += parsed.saturating_sub(1);
                        self.window.skipped += parsed as u64;
                    }
                    return false;
                }
            }
        }
    }
}

/// Finds the end of a value by its brackets and quotes, over several windows.
#[derive(Default)]
struct ValueScan {
    depth: u64,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl ValueScan {
    /// The number of bytes up to the end of the value, or none if it goes on.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (place, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => continue,
                }
                if !self.in_string && self.depth == 0 {
                    return Some(place + 1);
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth <= 1 => {
                    // The bracket of a scalar belongs to what the scalar is in.
                    return Some(place + usize::from(self.depth == 1));
                }
                b'}' | b']' => self.depth -= 1,
                b',' if self.depth == 0 && self.begun => return Some(place),
                _ => {}
            }
            self.begun = true;
        }
        None
    }
}

/// The text of an event with what can be repaired without guessing; none if nothing needs it.
fn repaired(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut changed = matches!(text, Cow::Owned(_));
    let mut repaired = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = &*text;
    while let Some(letter) = rest.chars().next() {
        let mut length = letter.len_utf8();
        if in_string {
            match letter {
                '\0'..=' ' if letter != ' ' => {
                    changed = true;
                    escaped = false;
                    repaired.push_str(&format!("\\u{:04x}", u32::from(letter)));
                }
                _ => {
                    in_string = letter != '"' || escaped;
                    escaped = letter == '\\' && !escaped;
                    repaired.push(letter);
                }
            }
        } else {
            const NO_NUMBERS: [&str; 6] = ["-Infinity", "Infinity", "-inf", "inf", "NaN", "nan"];
            match NO_NUMBERS.iter().find(|word| rest.starts_with(**word)) {
                Some(word) => {
                    changed = true;
                    length = word.len();
                    repaired.push_str(&format!("\"{word}\""));
                }
                None => {
                    in_string = letter == '"';
                    repaired.push(letter);
                }
            }
        }
        rest = &rest[length..];
    }
    changed.then_some(repaired)
}
