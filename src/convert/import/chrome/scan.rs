//! The JSON of a file of trace events, read in windows: one event at a time, and what stands beside the events. Several objects or
//! arrays may follow each other: Proton writes one for each stream.
//!
//! Damage is contained. An event that is not JSON is repaired where that is possible without guessing (bytes that are no
//! UTF-8, control characters in strings, NaN), else skipped up to the next object that is an event or becomes one by repair, or to
//! the end of the events.

use std::io::{self, BufRead};

use serde_core::Deserialize;
use serde_json::value::RawValue;

use super::event::{self, ChromeEvent};
use super::repair::{ValueScan, repaired, repaired_value};
use crate::import::json_window::{JsonWindow, error_offset, is_cut, reason};
use gputrail_record::count;

/// Bytes of the file that are in memory at most: an event that is longer is damage.
const MAX_WINDOW: usize = 1 << 26;
/// Most bytes of a value beside the events that is passed on.
const MAX_FIELD: usize = 1 << 20;
/// Longest damaged event that is looked at for repair.
const MAX_REPAIR: usize = 1 << 20;

/// Takes what a file holds.
pub(in crate::import) trait ScanVisitor {
    /// The fields of the events that follow are parts of `text`.
    fn piece(&mut self, text: &str) -> io::Result<()> {
        let _ = text;
        Ok(())
    }
    /// An event at `offset`.
    fn event(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()>;
    /// A field beside the events: its name and its JSON.
    fn field(&mut self, name: &str, value: &str);
    /// A field beside the events that is too long to be passed on.
    fn long_field(&mut self, name: &str, offset: u64);
    /// Damage at `offset`.
    fn damage(&mut self, offset: u64, found: String, expected: &'static str);
    /// The array of the events of an object begins.
    fn array(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// A further object or array begins behind the first.
    fn document(&mut self) {}
}

/// Reads a whole file. Returns whether it ended where its content does: a file that was cut does not.
pub(in crate::import) fn scan(
    file: impl BufRead,
    visitor: &mut impl ScanVisitor,
) -> io::Result<bool> {
    let mut scanner = ChromeScanner {
        window: JsonWindow::new(file),
        is_inside: false,
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
    /// Whether an object with events among the events of another one is being read.
    is_inside: bool,
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

    /// The whole file: one object or array, or several.
    fn file(&mut self, visitor: &mut impl ScanVisitor) -> Result<(), ScanStop> {
        self.window.begin();
        let mut is_first = true;
        loop {
            match self.peek(visitor) {
                Some(b'[') => {
                    self.window.at += 1;
                    // The end of such an array may be missing: programs that die while they write leave it out.
                    self.events(visitor, EnclosingValue::File)?;
                }
                Some(b'{') => {
                    self.window.at += 1;
                    self.object(visitor)?;
                }
                None if !is_first => return Ok(()),
                Some(_) if !is_first => {
                    let found = self.window.describe();
                    let expected = "the end of the file, or another object or array";
                    let resumed = self.resume(visitor, 0, found, expected);
                    match resumed.and_then(|()| self.events(visitor, EnclosingValue::Damage)) {
                        // The events before the end are whole.
                        Err(ScanStop::End) => return Ok(()),
                        read => read?,
                    }
                }
                Some(_) | None => {
                    let found = self.window.describe();
                    visitor.damage(self.position(), found, "a JSON object or array");
                    return Ok(());
                }
            }
            is_first = false;
            if self.peek(visitor).is_some() {
                visitor.document();
            }
        }
    }

    /// The fields of the outermost object.
    fn object(&mut self, visitor: &mut impl ScanVisitor) -> Result<(), ScanStop> {
        let mut has_events = false;
        loop {
            match self.next(visitor, "a field, or `}`")? {
                b'}' => {
                    if !has_events {
                        let found = "an object without `traceEvents`".into();
                        visitor.damage(self.position(), found, "trace events");
                    }
                    self.window.at += 1;
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
                visitor.array()?;
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
            while self.whole_events(visitor)? {}
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

    /// Events without damage, up to the end of a piece of the window. Returns whether there are any.
    ///
    /// The piece is checked for UTF-8 once: in bytes, each name and each value of an event would be checked by itself.
    fn whole_events(&mut self, visitor: &mut impl ScanVisitor) -> io::Result<bool> {
        let text = self.window.text();
        let begin = self.window.position();
        let mut done = 0;
        loop {
            let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
            let space = text.as_bytes()[done..]
                .iter()
                .take_while(|byte| is_between(byte));
            let at = done + space.count();
            if text.as_bytes().get(at) != Some(&b'{') {
                break;
            }
            let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter();
            match stream.next() {
                Some(Ok(event)) if !is_document(&event) => {
                    if done == 0 {
                        visitor.piece(text)?;
                    }
                    visitor.event(begin + at as u64, &event)?;
                    done = at + stream.byte_offset();
                }
                _ => break,
            }
        }
        self.window.at += done;
        Ok(done > 0)
    }

    /// The event at `at`.
    fn event(&mut self, visitor: &mut impl ScanVisitor) -> Result<(), ScanStop> {
        loop {
            let mut event: Option<ChromeEvent<'_>> = None;
            let rest = self.window.rest();
            match Self::parse(rest, &mut event) {
                Ok(length) => {
                    let is_document = !self.is_inside && event.as_ref().is_some_and(is_document);
                    if let Some(event) = event.filter(|_| !is_document) {
                        // JSON that has been parsed is a text.
                        visitor.piece(std::str::from_utf8(&rest[..length]).unwrap_or_default())?;
                        visitor.event(self.position(), &event)?;
                    }
                    if !is_document {
                        self.window.at += length;
                        return Ok(());
                    }
                    // The end of the object before it is missing.
                    let found = "an object with `traceEvents`".into();
                    visitor.damage(self.position(), found, "an event, or `]`");
                    visitor.document();
                    self.window.at += 1;
                    self.is_inside = true;
                    let read = self.object(visitor);
                    self.is_inside = false;
                    return read;
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
        // The end of the event may be behind the window.
        while !self.window.ended
            && self.window.rest().len() < MAX_REPAIR
            && ValueScan::default().end(self.window.rest()).is_none()
        {
            self.fill(visitor);
        }
        let rest = self.window.rest();
        let rest = &rest[..rest.len().min(MAX_REPAIR)];
        if let Some((length, repaired)) = repaired_value(rest) {
            let mut event: Option<ChromeEvent<'_>> = None;
            if Self::parse(repaired.as_bytes(), &mut event).is_ok()
                && let Some(event) = event
                && event.ph.is_some()
            {
                let offset = self.position();
                let found = format!("{found}; repaired");
                visitor.damage(offset + error as u64, found, EXPECTED);
                visitor.piece(&repaired)?;
                visitor.event(offset, &event)?;
                self.window.at += length;
                return Ok(());
            }
        }
        self.resume(visitor, error, found, EXPECTED)
    }

    /// Reports damage `error` bytes behind `at`, and goes to the next event, or to the end of the events.
    fn resume(
        &mut self,
        visitor: &mut impl ScanVisitor,
        error: usize,
        found: String,
        expected: &'static str,
    ) -> Result<(), ScanStop> {
        let begin = self.position();
        let is_last = self.is_last(visitor);
        let end = loop {
            if is_last {
                break Some(self.position());
            }
            let has_more = self.window.skip_to_brace();
            if let Some((end, error)) = self.window.error.take() {
                visitor.damage(end, format!("an error: {error}"), "more of the file");
            }
            if !has_more {
                break None;
            }
            if self.is_event(visitor) || self.is_last(visitor) {
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

    /// Whether an event stands at `at`, or what becomes one by repair.
    fn is_event(&mut self, visitor: &mut impl ScanVisitor) -> bool {
        loop {
            let mut event: Option<ChromeEvent<'_>> = None;
            let rest = self.window.rest();
            let rest = &rest[..rest.len().min(MAX_REPAIR)];
            let may_grow = !self.window.ended && rest.len() < MAX_REPAIR;
            match Self::parse(rest, &mut event) {
                Ok(_) => return event.is_some_and(|event| event.ph.is_some()),
                Err(error) if is_cut(rest, &error) && may_grow => {
                    self.fill(visitor);
                }
                Err(error) => {
                    let parsed = error_offset(rest, &error);
                    let is_sought = !self.window.has_searched_too_much();
                    let end = is_sought.then(|| ValueScan::default().end(rest));
                    if end == Some(None) && may_grow {
                        self.fill(visitor);
                        continue;
                    }
                    let searched = end.map_or(0, |end| end.unwrap_or(rest.len()));
                    let is_repaired = end.flatten().is_some_and(|length| {
                        let mut event: Option<ChromeEvent<'_>> = None;
                        let text = repaired(&rest[..length]).unwrap_or_default();
                        let _ = Self::parse(text.as_bytes(), &mut event);
                        event.is_some_and(|event| event.ph.is_some())
                    });
                    self.window.parsed += parsed as u64;
                    self.window.searched += searched as u64;
                    if !is_repaired && self.window.has_parsed_too_much() {
                        // Objects in objects that end nowhere: those inside are not tried one by one.
                        self.window.at += parsed.saturating_sub(1);
                        self.window.skipped += parsed as u64;
                    }
                    return is_repaired;
                }
            }
        }
    }

    /// Whether the value at `at` is the last one in the array of events, so that only fields of the outermost object follow; if
    /// so, goes behind it. Looked for in the last bytes of a file only.
    fn is_last(&mut self, visitor: &mut impl ScanVisitor) -> bool {
        if self.window.rest().first() != Some(&b'{') || self.window.has_searched_too_much() {
            return false;
        }
        while !self.window.ended && self.window.rest().len() < MAX_REPAIR {
            self.fill(visitor);
        }
        let rest = self.window.rest();
        if !self.window.ended || rest.len() > MAX_REPAIR {
            return false;
        }
        let length = ValueScan::default().end(rest);
        let is_last = length.is_some_and(|length| is_behind_events(&rest[length..]));
        self.window.searched += length.unwrap_or(rest.len()) as u64;
        if is_last {
            self.window.at += length.unwrap_or(0);
        }
        is_last
    }
}

/// Whether an object has events, and is none.
fn is_document(event: &ChromeEvent<'_>) -> bool {
    let mut further = event.further.iter();
    event.ph.is_none()
        && further.any(|(name, value)| name == "traceEvents" && value.starts_with('['))
}

/// Whether the end of an array and the last fields of the outermost object follow, up to the end of the file.
fn is_behind_events(bytes: &[u8]) -> bool {
    let behind = |bytes: &'_ [u8], byte: u8| -> Option<usize> {
        let space = bytes.len() - bytes.trim_ascii_start().len();
        (bytes.get(space) == Some(&byte)).then_some(space + 1)
    };
    let Some(mut at) = behind(bytes, b']') else {
        return false;
    };
    while let Some(comma) = behind(&bytes[at..], b',') {
        at += comma;
        for end in [b':', 0] {
            let stream = serde_json::Deserializer::from_slice(&bytes[at..]);
            let mut stream = stream.into_iter::<&RawValue>();
            match stream.next() {
                Some(Ok(name)) if end == 0 || name.get().starts_with('"') => {
                    at += stream.byte_offset();
                }
                _ => return false,
            }
            if end != 0 {
                match behind(&bytes[at..], end) {
                    Some(colon) => at += colon,
                    None => return false,
                }
            }
        }
    }
    let at = at + behind(&bytes[at..], b'}').unwrap_or(0);
    bytes[at..].trim_ascii_start().is_empty()
}
