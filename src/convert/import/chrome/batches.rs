//! Events that one thread reads from the file and another one collects.

use std::borrow::Cow;
use std::io::{self, BufRead};

use super::event::{ChromeEvent, FIELDS};
use super::scan::{self, ScanVisitor};
use gputrail_trace::ahead::{Batch, BatchSender, ahead};

/// Bytes of text beyond which a batch is passed on.
const TEXT: usize = 1 << 18;
/// Entries beyond which it is passed on.
const ENTRIES: usize = 1 << 14;

/// Reads a whole file on another thread; `visitor` gets what it holds on this one. Returns what [`scan`](scan::scan) does.
pub(super) fn scan_ahead(
    file: impl BufRead + Send,
    visitor: &mut impl ScanVisitor,
) -> io::Result<bool> {
    ahead(
        |sender| {
            let mut batcher = Batcher {
                batch: ScannedBatch::default(),
                piece: Piece::default(),
                sender,
                error: None,
            };
            let is_whole = scan::scan(file, &mut batcher)?;
            batcher.send()?;
            Ok(is_whole)
        },
        |batch: &mut ScannedBatch| batch.pass_on(visitor),
    )
}

/// A part of the text of a batch.
#[derive(Copy, Clone)]
struct Text {
    begin: u32,
    length: u32,
}

impl Text {
    /// The part of `text`.
    fn of(self, text: &str) -> &str {
        let begin = self.begin as usize;
        &text[begin..begin + self.length as usize]
    }
}

/// An event, or what stands beside the events.
enum Entry {
    Event {
        offset: u64,
        /// The fields that it has, a bit for each. Their texts are the next ones of the batch.
        fields: u16,
        /// The number of further fields, whose names and values are the next texts.
        further: u32,
    },
    Other(PassOn),
}

/// Passes what stands beside the events on.
type PassOn = Box<dyn FnOnce(&mut dyn ScanVisitor) + Send>;

/// A part of a file.
#[derive(Default)]
struct ScannedBatch {
    text: String,
    entries: Vec<Entry>,
    texts: Vec<Text>,
}

impl Batch for ScannedBatch {
    fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.texts.clear();
    }
}

impl ScannedBatch {
    fn keep(&mut self, text: &str) -> Text {
        let begin = self.text.len() as u32;
        self.text.push_str(text);
        Text {
            begin,
            length: text.len() as u32,
        }
    }

    fn pass_on(&mut self, visitor: &mut impl ScanVisitor) -> io::Result<()> {
        let mut texts = self.texts.iter();
        let mut next = || texts.next().map(|text| text.of(&self.text));
        for entry in self.entries.drain(..) {
            match entry {
                Entry::Event {
                    offset,
                    fields,
                    further,
                } => {
                    let mut all = [None; FIELDS];
                    for (place, field) in all.iter_mut().enumerate() {
                        if fields & 1 << place != 0 {
                            *field = next();
                        }
                    }
                    let further = (0..further).map_while(|_| Some((next()?.into(), next()?)));
                    let event = ChromeEvent::of_fields(all, further.collect());
                    visitor.event(offset, &event)?;
                }
                Entry::Other(pass_on) => pass_on(visitor),
            }
        }
        Ok(())
    }
}

/// The text that the next events are parts of.
#[derive(Copy, Clone, Default)]
struct Piece {
    /// Where it stands in memory.
    address: usize,
    /// Where its copy begins in the batch.
    begin: usize,
}

impl Piece {
    /// A part of the piece, as a part of the batch.
    fn place(self, part: &str) -> Text {
        let at = part.as_ptr().addr().wrapping_sub(self.address);
        Text {
            begin: self.begin.wrapping_add(at) as u32,
            length: part.len() as u32,
        }
    }
}

/// Puts what a file holds into batches.
struct Batcher<'s> {
    batch: ScannedBatch,
    piece: Piece,
    sender: &'s mut BatchSender<ScannedBatch>,
    /// Why the visitor takes nothing more.
    error: Option<io::Error>,
}

impl Batcher<'_> {
    fn send(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.sender.send(&mut self.batch)
    }

    fn send_full(&mut self) -> io::Result<()> {
        let is_full = self.batch.text.len() >= TEXT || self.batch.entries.len() >= ENTRIES;
        match is_full || self.error.is_some() {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// An error is that of the event that comes next.
    fn other(&mut self, pass_on: impl FnOnce(&mut dyn ScanVisitor) + Send + 'static) {
        self.batch.entries.push(Entry::Other(Box::new(pass_on)));
        if let Err(error) = self.send_full() {
            self.error = Some(error);
        }
    }
}

impl ScanVisitor for Batcher<'_> {
    fn piece(&mut self, text: &str) -> io::Result<()> {
        self.send_full()?;
        self.piece = Piece {
            address: text.as_ptr().addr(),
            begin: self.batch.text.len(),
        };
        self.batch.text.push_str(text);
        Ok(())
    }

    fn event(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        let mut fields = 0;
        for (place, field) in event.fields().iter().enumerate() {
            if let Some(field) = field {
                fields |= 1 << place;
                self.batch.texts.push(self.piece.place(field));
            }
        }
        for (name, value) in &event.further {
            let name = match name {
                Cow::Borrowed(name) => self.piece.place(name),
                Cow::Owned(name) => self.batch.keep(name),
            };
            self.batch.texts.extend([name, self.piece.place(value)]);
        }
        self.batch.entries.push(Entry::Event {
            offset,
            fields,
            further: event.further.len() as u32,
        });
        Ok(())
    }

    fn field(&mut self, name: &str, value: &str) {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.other(move |visitor| visitor.field(&name, &value));
    }

    fn long_field(&mut self, name: &str, offset: u64) {
        let name = name.to_owned();
        self.other(move |visitor| visitor.long_field(&name, offset));
    }

    fn damage(&mut self, offset: u64, found: String, expected: &'static str) {
        self.other(move |visitor| visitor.damage(offset, found, expected));
    }

    fn document(&mut self) {
        self.other(|visitor| visitor.document());
    }
}
