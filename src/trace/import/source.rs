//! Opened files: their first bytes, and their content unpacked.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use tempfile::NamedTempFile;

/// Bytes of the beginning that decide on the format.
const HEAD: u64 = 1 << 16;
/// Bytes that are read from a file at a time.
const BUFFER: usize = 1 << 18;

/// How a file is packed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of one or several members.
    Gzip,
    /// zstd, of one or several frames.
    Zstd,
}

/// An opened file.
#[derive(Clone, Debug)]
pub struct Source {
    name: PathBuf,
    file: Arc<File>,
    /// Whether `name` is the path of `file`.
    has_path: bool,
    length: u64,
    compression: Compression,
    head: Vec<u8>,
    /// Bytes of the file that have been read.
    read: Arc<AtomicU64>,
}

impl Source {
    /// Opens a file; `-` is standard input. A pipe is copied to a temporary file first.
    pub fn open(path: &Path) -> io::Result<Source> {
        match path.to_str() {
            Some("-") => {
                let file = File::open("/dev/stdin")?;
                Source::new("standard input".into(), file, false)
            }
            _ => Source::new(path.to_owned(), File::open(path)?, true),
        }
    }

    fn new(name: PathBuf, mut file: File, mut has_path: bool) -> io::Result<Source> {
        if !file.metadata()?.is_file() {
            let mut copy = tempfile::tempfile()?;
            io::copy(&mut file, &mut copy)?;
            (file, has_path) = (copy, false);
        }
        let length = file.metadata()?.len();
        let mut magic = [0; 4];
        let count = file.read_at(&mut magic, 0)?;
        let compression = match &magic[..count] {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
            _ => Compression::None,
        };
        let mut source = Source {
            name,
            file: Arc::new(file),
            has_path,
            length,
            compression,
            head: Vec::new(),
            read: Arc::default(),
        };
        let mut head = Vec::new();
        // A damaged archive is a finding of its reader: it is recognised by what comes out of it.
        let result = source.reader()?.take(HEAD).read_to_end(&mut head);
        if head.is_empty() {
            result?;
        }
        source.read.store(0, Ordering::Relaxed);
        source.head = head;
        Ok(source)
    }

    /// Its name, for messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Its length on disk.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// How it is packed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Its first bytes, unpacked.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Bytes on disk that its readers have gone through. Another thread may ask.
    pub fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// Its content from the beginning, unpacked.
    pub fn reader(&self) -> io::Result<Box<dyn BufRead + Send>> {
        let file = BufReader::with_capacity(
            BUFFER,
            Sequential {
                file: Arc::clone(&self.file),
                offset: 0,
                read: Arc::clone(&self.read),
            },
        );
        Ok(match self.compression {
            Compression::None => Box::new(file),
            Compression::Gzip => {
                Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
            }
            Compression::Zstd => Box::new(BufReader::with_capacity(BUFFER, Frames::new(file))),
        })
    }

    /// A path under which its unpacked content can be opened: its own, or that of a temporary copy.
    pub fn local_file(&self) -> io::Result<LocalFile> {
        if self.has_path && self.compression == Compression::None {
            return Ok(LocalFile::Own(self.name.clone()));
        }
        let mut copy = NamedTempFile::new()?;
        io::copy(&mut self.reader()?, &mut copy)?;
        Ok(LocalFile::Copy(copy))
    }
}

/// A file that can be opened by its path.
#[derive(Debug)]
pub enum LocalFile {
    /// The file itself.
    Own(PathBuf),
    /// A temporary copy, removed when this is dropped.
    Copy(NamedTempFile),
}

impl LocalFile {
    /// The path.
    pub fn path(&self) -> &Path {
        match self {
            LocalFile::Own(path) => path,
            LocalFile::Copy(file) => file.path(),
        }
    }
}

/// Reads a file from its beginning, without a position that others share.
struct Sequential {
    file: Arc<File>,
    offset: u64,
    read: Arc<AtomicU64>,
}

impl Read for Sequential {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        self.read.fetch_max(self.offset, Ordering::Relaxed);
        Ok(count)
    }
}

/// The frames of a zstd file, one after the other.
struct Frames<R: BufRead> {
    /// None: all frames have been read.
    state: Option<Frame<R>>,
}

enum Frame<R: BufRead> {
    Between(R),
    Inside(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
}

impl<R: BufRead> Frames<R> {
    fn new(file: R) -> Frames<R> {
        Frames {
            state: Some(Frame::Between(file)),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state.take() {
                None => return Ok(0),
                Some(Frame::Between(mut file)) => {
                    if file.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder = StreamingDecoder::new(file).map_err(io::Error::other)?;
                    self.state = Some(Frame::Inside(Box::new(decoder)));
                }
                Some(Frame::Inside(mut decoder)) => match decoder.read(buffer)? {
                    0 => self.state = Some(Frame::Between(decoder.into_inner())),
                    count => {
                        self.state = Some(Frame::Inside(decoder));
                        return Ok(count);
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression as Level;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn source(bytes: &[u8]) -> (NamedTempFile, Source) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let source = Source::open(file.path()).unwrap();
        (file, source)
    }

    fn content(source: &Source) -> Vec<u8> {
        let mut bytes = Vec::new();
        source.reader().unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn members_of_a_gzip_file_are_one_content() {
        let member = |text: &str| {
            let mut gzip = GzEncoder::new(Vec::new(), Level::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            gzip.finish().unwrap()
        };
        let (_file, source) = source(&[member("one "), member("two")].concat());
        assert_eq!(source.compression(), Compression::Gzip);
        assert_eq!(source.head(), b"one two");
        assert_eq!(content(&source), b"one two");
        assert_eq!(
            std::fs::read(source.local_file().unwrap().path()).unwrap(),
            b"one two"
        );
    }

    #[test]
    fn frames_of_a_zstd_file_are_one_content() {
        let frame = |text: &str| {
            ruzstd::encoding::compress_to_vec(
                text.as_bytes(),
                ruzstd::encoding::CompressionLevel::Fastest,
            )
        };
        let (_file, source) = source(&[frame("one "), frame("two")].concat());
        assert_eq!(source.compression(), Compression::Zstd);
        assert_eq!(content(&source), b"one two");
        assert_eq!(content(&source), b"one two", "it can be read again");
        assert_eq!(source.progress().load(Ordering::Relaxed), source.length());
    }
}
