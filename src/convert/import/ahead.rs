//! Content of a packed file, which a thread of its own unpacks ahead of its reader.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// Most pieces that wait for the reader.
const WAITING: usize = 4;

/// A reader of what the thread has unpacked.
pub(super) struct AheadReader {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl AheadReader {
    /// Begins to read `file`.
    ///
    /// # Errors
    ///
    /// No thread can be started: nothing of the file has been read.
    pub fn new(mut file: impl BufRead + Send + 'static) -> io::Result<AheadReader> {
        let (sender, pieces) = sync_channel(WAITING);
        // It ends with the file, or when its reader has gone.
        thread::Builder::new().spawn(move || {
            loop {
                let piece = match file.fill_buf() {
                    Ok([]) => return,
                    Ok(bytes) => Ok(bytes.to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let length = piece.as_ref().map_or(0, Vec::len);
                if sender.send(piece).is_err() || length == 0 {
                    return;
                }
                file.consume(length);
            }
        })?;
        Ok(AheadReader {
            pieces,
            piece: Vec::new(),
            at: 0,
        })
    }
}

impl BufRead for AheadReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len()
            && let Ok(piece) = self.pieces.recv()
        {
            self.piece = piece?;
            self.at = 0;
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl Read for AheadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Bytes, and then an error.
    struct CutFile(u64);

    impl Read for CutFile {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let count = io::repeat(b'x').take(self.0).read(buffer)?;
            self.0 -= count as u64;
            Ok(count)
        }
    }

    #[test]
    fn content_comes_whole() {
        let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let file = BufReader::with_capacity(1000, io::Cursor::new(content.clone()));
        let mut read = Vec::new();
        AheadReader::new(file)
            .unwrap()
            .read_to_end(&mut read)
            .unwrap();
        assert!(read == content);
    }

    #[test]
    fn an_error_comes_behind_the_bytes_before_it() {
        let mut reader = AheadReader::new(BufReader::with_capacity(1000, CutFile(5_500))).unwrap();
        let mut read = Vec::new();
        let error = reader.read_to_end(&mut read).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read.len(), 5_500);
        assert!(reader.fill_buf().unwrap().is_empty());
    }

    #[test]
    fn the_thread_ends_with_its_reader() {
        let (gone, ends) = sync_channel::<()>(0);
        struct Endless(
            #[expect(dead_code, reason = "its end is that of the thread")]
            std::sync::mpsc::SyncSender<()>,
        );
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                io::repeat(b'x').read(buffer)
            }
        }
        let mut reader = AheadReader::new(BufReader::new(Endless(gone))).unwrap();
        assert!(!reader.fill_buf().unwrap().is_empty());
        drop(reader);
        assert!(ends.recv().is_err());
    }
}
