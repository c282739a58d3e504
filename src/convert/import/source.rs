//! Opened files: their first bytes, and their content unpacked.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::InputFormat;
use super::ahead::AheadReader;
use flate2::bufread::MultiGzDecoder;
use rustix::fs::{AtFlags, CWD, linkat};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// Bytes of the beginning that decide on the format.
const HEAD: u64 = 1 << 16;
/// Bytes that are read from a file at a time.
const BUFFER: usize = 1 << 18;
/// Maximum window of a zstd frame, which the decoder keeps in memory: the default limit of the program `zstd`.
const MAX_WINDOW: u64 = 128 << 20;
/// Maximum length of the header of a zstd frame, with the magic number.
const MAX_HEADER: usize = 18;

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
pub struct InputFile {
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

impl InputFile {
    /// Opens a file; `-` is standard input. A pipe or a device is copied to a temporary file, unless its first bytes have no known
    /// format: then nothing else of it is read.
    pub fn open(path: &Path) -> io::Result<InputFile> {
        match path.to_str() {
            Some("-") => {
                let file = File::open("/dev/stdin")?;
                InputFile::new("standard input".into(), file, false)
            }
            _ => InputFile::new(path.to_owned(), File::open(path)?, true),
        }
    }

    /// A file that is open, which messages call `name`.
    pub(crate) fn of(name: PathBuf, file: File) -> io::Result<InputFile> {
        InputFile::new(name, file, false)
    }

    fn new(name: PathBuf, mut file: File, has_path: bool) -> io::Result<InputFile> {
        if file.metadata()?.is_file() {
            return InputFile::of_file(name, file, has_path);
        }
        let mut copy = tempfile::tempfile()?;
        io::copy(&mut (&file).take(HEAD), &mut copy)?;
        let beginning = InputFile::of_file(name.clone(), copy.try_clone()?, false)?;
        if InputFormat::recognise(beginning.head()).is_none() {
            return Ok(beginning);
        }
        io::copy(&mut file, &mut copy).map_err(|error| {
            let place = std::env::temp_dir();
            io::Error::new(
                error.kind(),
                format!("it is copied to {}: {error}", place.display()),
            )
        })?;
        InputFile::of_file(name, copy, false)
    }

    fn of_file(name: PathBuf, file: File, has_path: bool) -> io::Result<InputFile> {
        let length = file.metadata()?.len();
        let mut magic = [0; 4];
        let count = file.read_at(&mut magic, 0)?;
        let compression = match &magic[..count] {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
            _ => Compression::None,
        };
        let mut source = InputFile {
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

    /// The open file, packed as it is; of a pipe, its copy.
    pub fn file(&self) -> &File {
        &self.file
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

    /// As [`reader`](Self::reader), unpacked by a thread of its own if the file is packed.
    pub(super) fn reader_ahead(&self) -> io::Result<Box<dyn BufRead + Send>> {
        let reader = self.reader()?;
        if self.compression == Compression::None {
            return Ok(reader);
        }
        match AheadReader::new(reader) {
            Ok(reader) => Ok(Box::new(reader)),
            // With fewer threads it takes longer.
            Err(_) => self.reader(),
        }
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
    state: Option<ZstdFrame<R>>,
}

enum ZstdFrame<R: BufRead> {
    Between(R),
    Inside(Box<FrameReader<R>>),
}

/// Reads the content of one frame.
type FrameReader<R> = StreamingDecoder<Noted<R>, FrameDecoder>;

impl<R: BufRead> Frames<R> {
    fn new(file: R) -> Frames<R> {
        Frames {
            state: Some(ZstdFrame::Between(file)),
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
                Some(ZstdFrame::Between(mut file)) => {
                    if file.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder = begin_frame(file)?;
                    self.state = Some(ZstdFrame::Inside(Box::new(decoder)));
                }
                Some(ZstdFrame::Inside(mut decoder)) => match decoder.read(buffer)? {
                    0 => self.state = Some(ZstdFrame::Between(decoder.into_inner().file)),
                    count => {
                        self.state = Some(ZstdFrame::Inside(decoder));
                        return Ok(count);
                    }
                },
            }
        }
    }
}

/// Begins to decode the frame at the beginning of `file`. A frame whose window is too large is refused, since the decoder
/// keeps as many bytes as the frame's header says.
fn begin_frame<R: BufRead>(file: R) -> io::Result<FrameReader<R>> {
    let header = Vec::with_capacity(MAX_HEADER);
    let noted = Noted { file, header };
    let decoder = StreamingDecoder::new(noted).map_err(io::Error::other)?;
    let window = window_of(&decoder.get_ref().header).unwrap_or(u64::MAX);
    if window > MAX_WINDOW {
        let text = format!(
            "a zstd frame with a window of {} MiB; expected at most {} MiB (`zstd -d --long=31` unpacks it)",
            window >> 20,
            MAX_WINDOW >> 20,
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(decoder)
}

/// The window of a zstd frame with this header, in bytes (RFC 8878, section 3.1.1.1); `None` if the header is cut.
fn window_of(header: &[u8]) -> Option<u64> {
    let descriptor = *header.get(4)?;
    let is_single_segment = descriptor & 1 << 5 != 0;
    if !is_single_segment {
        let window = *header.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window is the content, whose size follows the identifier of the dictionary.
    let at = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (length, offset) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(descriptor >> 6)];
    let mut size = [0; 8];
    size[..length].copy_from_slice(header.get(at..at + length)?);
    Some(u64::from_le_bytes(size).saturating_add(offset))
}

/// A file of which the header of a frame is kept.
struct Noted<R> {
    file: R,
    /// The first bytes that were read.
    header: Vec<u8>,
}

impl<R: Read> Read for Noted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        let room = MAX_HEADER - self.header.len();
        self.header.extend_from_slice(&buffer[..count.min(room)]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression as Level;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use tempfile::NamedTempFile;

    fn source(bytes: &[u8]) -> (NamedTempFile, InputFile) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let source = InputFile::open(file.path()).unwrap();
        (file, source)
    }

    fn content(source: &InputFile) -> Vec<u8> {
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

    #[test]
    fn a_zstd_frame_with_a_huge_window_is_refused_before_it_takes_memory() {
        // A block of one byte, the last one.
        let block = [0x09, 0, 0, b'x'];
        let frame = |header: &[u8]| [&[0x28, 0xb5, 0x2f, 0xfd], header, &block].concat();
        let window = |exponent: u8| frame(&[0, exponent << 3]);
        let (_file, of_zstd) = source(&window(17));
        assert_eq!(of_zstd.head(), b"x", "a window of 128 MiB");
        let single = frame(&[&[0xe0][..], &(1_u64 << 40).to_le_bytes()].concat());
        for bytes in [window(18), window(31), single] {
            let mut file = NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            let error = InputFile::open(file.path()).unwrap_err().to_string();
            assert!(error.contains("expected at most 128 MiB"), "{error}");
        }
    }

    #[test]
    fn the_window_of_a_frame_is_as_the_format_says() {
        let window = |header: &[u8]| window_of(&[&[0x28, 0xb5, 0x2f, 0xfd], header].concat());
        assert_eq!(window(&[0, 0]), Some(1 << 10));
        assert_eq!(window(&[0, 0xff]), Some((1 << 41) + 7 * (1 << 38)));
        assert_eq!(window(&[0x20, 7]), Some(7));
        assert_eq!(
            window(&[0x61, 9, 1, 2]),
            Some(0x201 + 256),
            "behind a dictionary"
        );
        assert_eq!(window(&[0xa3, 1, 2, 3, 4, 1, 0, 0, 0]), Some(1));
        assert_eq!(window(&[0xe0, 1, 2]), None);
    }
}
