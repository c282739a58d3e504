//! A stream, of which as much is in memory as is looked at.

use std::io::{self, Read};

/// Bytes that are read at once.
const STEP: usize = 256 << 10;

/// What has been read of a stream and not yet been left behind.
#[derive(Debug)]
pub(super) struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    /// What is left begins here in the buffer.
    start: usize,
    /// What has been read ends here in the buffer.
    end: usize,
    /// Where in the stream what is left begins.
    offset: u64,
    /// Why nothing more can be read, or that the stream has ended.
    over: Option<io::Result<()>>,
}

impl<R: Read> Window<R> {
    pub fn new(source: R) -> Window<R> {
        Window {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            over: None,
        }
    }

    /// Where in the stream [`Window::bytes`] begin.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is in memory.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads until `wanted` bytes are in memory, or the stream ends; tells whether they are. Memory grows with what is
    /// there, not with what is wanted.
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

    /// Leaves bytes behind that are in memory.
    #[inline]
    pub fn leave(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Why the stream ended before its end.
    pub fn error(&self) -> Option<&io::Error> {
        self.over.as_ref()?.as_ref().err()
    }
}
