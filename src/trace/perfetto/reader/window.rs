//! A window on a stream: only the part in use is in memory.

use std::io::{self, Read};

/// Number of bytes that are read at once.
const STEP: usize = 256 << 10;

/// The bytes of a stream that have been read and not yet been skipped.
#[derive(Debug)]
pub(super) struct StreamWindow<R> {
    source: R,
    buffer: Vec<u8>,
    /// The index of the first remaining byte in the buffer.
    start: usize,
    /// The end of the read bytes in the buffer.
    end: usize,
    /// The offset in the stream of the first remaining byte.
    offset: u64,
    /// The reason why nothing more can be read: an error, or the end of the stream.
    over: Option<io::Result<()>>,
}

impl<R: Read> StreamWindow<R> {
    pub fn new(source: R) -> StreamWindow<R> {
        StreamWindow {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            over: None,
        }
    }

    /// The offset in the stream of [`StreamWindow::bytes`].
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes in memory.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads until `wanted` bytes are in memory or the stream ends, and returns whether they are. Memory grows with the
    /// bytes that are there, not with `wanted`.
    #[inline]
    pub fn fill(&mut self, wanted: usize) -> bool {
        self.end - self.start >= wanted || self.fill_more(wanted)
    }

    #[cold]
    fn fill_more(&mut self, wanted: usize) -> bool {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.is_empty() {
            self.buffer = vec![0; 2 * STEP];
        }
        while self.end < wanted && self.over.is_none() {
            if self.buffer.len() - self.end < STEP {
                let length = (self.buffer.len() * 2).clamp(2 * STEP, self.end + (64 << 20));
                self.buffer.resize(length.max(self.end + STEP), 0);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.over = Some(Ok(())),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.over = Some(Err(error)),
            }
        }
        self.end >= wanted
    }

    /// Skips the first `bytes` bytes in memory.
    #[inline]
    pub fn leave(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// The error that ended the stream early.
    pub fn error(&self) -> Option<&io::Error> {
        self.over.as_ref()?.as_ref().err()
    }
}
