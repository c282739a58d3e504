//! A window on a JSON file: the bytes around the value that is being read.

use std::io::{self, BufRead};

/// Bytes that are in memory at first. A window grows with the value in it.
const WINDOW: usize = 1 << 18;
/// Bytes that are checked for UTF-8 in one piece. Behind damage they are checked again.
const MAX_TEXT: usize = 1 << 16;
/// Bytes that may be parsed or searched in vain behind damage, for each byte that is skipped, and once.
const MAX_WASTE: (u64, u64) = (8, 1 << 26);
/// Length of the longest word or number outside of strings whose end is looked for behind the window.
const LONGEST_TOKEN: usize = 16;

/// A file up to the end of its window.
pub(super) struct JsonWindow<R> {
    file: R,
    /// The window, and room behind it.
    buffer: Vec<u8>,
    /// The length of the window.
    length: usize,
    /// The place in the window up to which the file has been read.
    pub at: usize,
    /// Offset of the window in the file.
    pub offset: u64,
    /// Whether the window has the end of the file.
    pub ended: bool,
    /// The error that ended the file early, until it is reported.
    pub error: Option<(u64, io::Error)>,
    /// Bytes that were skipped while looking for values behind damage.
    pub skipped: u64,
    /// Bytes that were parsed in vain by then.
    pub parsed: u64,
    /// Bytes that were searched for the ends of values.
    pub searched: u64,
}

impl<R: BufRead> JsonWindow<R> {
    /// The beginning of a file.
    pub fn new(file: R) -> JsonWindow<R> {
        JsonWindow {
            file,
            buffer: Vec::new(),
            length: 0,
            at: 0,
            offset: 0,
            ended: false,
            error: None,
            skipped: 0,
            parsed: 0,
            searched: 0,
        }
    }

    /// The bytes in memory from `at` on.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.at..self.length]
    }

    /// The text at `at`, up to what is no UTF-8, and of bounded length.
    pub fn text(&self) -> &str {
        let rest = self.rest();
        let piece = &rest[..rest.len().min(MAX_TEXT)];
        match std::str::from_utf8(piece) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&piece[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// The offset of `at` in the file.
    pub fn position(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// Goes to the end of the window.
    pub fn skip_all(&mut self) {
        self.at = self.length;
    }

    /// Reads more; false at the end of the file. Bytes before `at` go.
    pub fn fill(&mut self) -> bool {
        self.buffer.copy_within(self.at..self.length, 0);
        self.length -= self.at;
        self.offset += self.at as u64;
        self.at = 0;
        // Doubled, so that a long value is parsed a few times only.
        let before = self.length;
        let wanted = before + WINDOW.max(before);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while !self.ended && self.length < wanted {
            // Straight into the window: readers have nothing in buffers of their own for as much.
            match self.file.read(&mut self.buffer[self.length..wanted]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let end = self.offset + self.length as u64;
                    self.error = Some((end, error));
                    self.ended = true;
                }
            }
        }
        self.length > before
    }

    /// Reads the first bytes, and goes behind a byte order mark.
    pub fn begin(&mut self) {
        self.fill();
        if self.rest().starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
    }

    /// The next byte that is not white space; none at the end of the file.
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            let space = self
                .rest()
                .iter()
                .position(|byte| !byte.is_ascii_whitespace());
            if let Some(space) = space {
                self.at += space;
                return Some(self.buffer[self.at]);
            }
            self.skip_all();
            if !self.fill() {
                return None;
            }
        }
    }

    /// Goes to the next `{` behind `at`; false at the end of the file.
    pub fn skip_to_brace(&mut self) -> bool {
        let mut from = 1.min(self.rest().len());
        loop {
            let brace = self.rest()[from..].iter().position(|byte| *byte == b'{');
            self.skipped += (from + brace.unwrap_or(self.rest().len() - from)) as u64;
            if let Some(brace) = brace {
                self.at += from + brace;
                return true;
            }
            self.skip_all();
            if !self.fill() {
                return false;
            }
            // The byte that comes first has not been looked at.
            from = 0;
        }
    }

    /// Whether so much has been parsed in vain that objects in objects are no longer tried one by one.
    pub fn has_parsed_too_much(&self) -> bool {
        self.is_too_much(self.parsed)
    }

    /// Whether so much has been searched that ends of values are no longer looked for.
    pub fn has_searched_too_much(&self) -> bool {
        self.is_too_much(self.searched)
    }

    fn is_too_much(&self, bytes: u64) -> bool {
        let (each, once) = MAX_WASTE;
        bytes > once + each * self.skipped
    }

    /// The byte at `at`, in words.
    pub fn describe(&self) -> String {
        match self.rest().first() {
            None => "the end of the file".into(),
            Some(byte @ 0x20..0x7f) => format!("`{}`", char::from(*byte)),
            Some(byte) => format!("the byte {byte:#04x}"),
        }
    }
}

/// Offset of an error in `bytes`.
pub(super) fn error_offset(bytes: &[u8], error: &serde_json::Error) -> usize {
    let lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1));
    let before: usize = lines.map(<[u8]>::len).sum();
    (before + error.column().saturating_sub(1)).min(bytes.len())
}

/// Whether an error may be due to the end of the window: a number that ends behind its point is an invalid number.
pub(super) fn is_cut(bytes: &[u8], error: &serde_json::Error) -> bool {
    error.is_eof() || error_offset(bytes, error) + LONGEST_TOKEN >= bytes.len()
}

/// An error without its place, which refers to the window.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
