//! Opened files: their first bytes, and their content unpacked.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use rustix::fs::{AtFlags, CWD, linkat};
use ruzstd::decoding::StreamingDecoder;

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

    /// A file that is open, which messages call `name`.
    pub(in crate::trace) fn of(name: PathBuf, file: File) -> io::Result<Source> {
        Source::new(name, file, false)
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

    /// A file under whose path its unpacked content can be opened: itself, or a temporary copy.
    pub fn local_file(&self) -> io::Result<LocalFile> {
        if self.has_path && self.compression == Compression::None {
            return Ok(LocalFile::Own(self.name.clone()));
        }
        let mut copy = tempfile::tempfile()?;
        io::copy(&mut self.reader()?, &mut copy)?;
        Ok(LocalFile::Copy(copy))
    }
}

/// A file that can be opened by its path.
#[derive(Debug)]
pub enum LocalFile {
    /// The file itself.
    Own(PathBuf),
    /// A temporary copy without a name: it goes with this, and however the process ends.
    Copy(File),
}

impl LocalFile {
    /// The path, for as long as this lives.
    pub fn path(&self) -> Cow<'_, Path> {
        match self {
            LocalFile::Own(path) => Cow::Borrowed(path),
            LocalFile::Copy(file) => {
                Cow::Owned(PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd())))
            }
        }
    }

    /// Calls `open` with a path that is no link, as SQLite needs it. A copy has this name only until `open` returns.
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
    pub(super) fn with_plain_path<T>(&self, open: impl FnOnce(&Path) -> T) -> io::Result<T> {
        let LocalFile::Copy(_) = self else {
            return Ok(open(&self.path()));
        };
        let folder = tempfile::tempdir()?;
        let plain = folder.path().join("copy");
        let linked = linkat(CWD, &*self.path(), CWD, &plain, AtFlags::SYMLINK_FOLLOW);
        // Some file systems cannot give a name to a file that has none.
        if linked.is_err() {
            std::fs::copy(self.path(), &plain)?;
        }
        Ok(open(&plain))
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
    use tempfile::NamedTempFile;

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
    fn a_copy_has_a_name_only_while_it_is_opened() {
        let mut gzip = GzEncoder::new(Vec::new(), Level::fast());
        gzip.write_all(b"content").unwrap();
        let (_file, source) = source(&gzip.finish().unwrap());
        let copy = source.local_file().unwrap();
        let names = || {
            let LocalFile::Copy(file) = &copy else {
                panic!("an unpacked file is a copy");
            };
            std::os::unix::fs::MetadataExt::nlink(&file.metadata().unwrap())
        };
        assert_eq!(names(), 0);
        let (content, plain) = copy
            .with_plain_path(|path| {
                assert!(path.symlink_metadata().unwrap().is_file());
                (std::fs::read(path).unwrap(), path.to_owned())
            })
            .unwrap();
        assert_eq!(content, b"content");
        assert_eq!((plain.exists(), names()), (false, 0));
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
