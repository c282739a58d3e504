//! The map that Python (`-X perf`) and JITs write for perf, `/tmp/perf-PID.map`: the address, size and name of each function.
//!
//! Lines are added while the program runs, and a later one stands for its addresses from then on. The file lies where
//! everybody can write: one of another user, or of an earlier process, is not read.

use gputrail_capture::Metadata;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The most bytes of a map that are read.
const MAX_BYTES: u64 = 256 << 20;
/// The most functions.
const MAX_FUNCTIONS: usize = 1 << 20;
/// The longest line.
const MAX_LINE: u64 = 8192;

/// The functions of one map.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    path: Option<PathBuf>,
    /// When the recording began, in seconds since 1970.
    began: i64,
    /// Bytes that were read.
    read: u64,
    /// The end and the name of each function, by its begin.
    functions: BTreeMap<u64, (u64, Box<str>)>,
}

impl PerfMap {
    /// The map of a recorded process.
    pub fn of(metadata: &Metadata) -> PerfMap {
        let began = metadata.snapshots.first();
        let began = began.map_or(0, |snapshot| snapshot.realtime.0 / 1_000_000_000);
        PerfMap {
            path: metadata
                .process
                .map(|process| PathBuf::from(format!("/tmp/perf-{}.map", process.id))),
            began: i64::try_from(began).unwrap_or(i64::MAX),
            ..PerfMap::default()
        }
    }

    /// The name of the function at `address`. What was added to the map is read if the address is in no known function.
    pub fn name(&mut self, address: u64) -> Option<&str> {
        if self.find(address).is_none() && self.has_grown() {
            self.read_on();
        }
        self.find(address)
    }

    /// Whether there is more in the map than was read.
    pub fn has_grown(&self) -> bool {
        let path = self.path.as_ref();
        path.and_then(|path| std::fs::metadata(path).ok())
            .is_some_and(|file| file.len() > self.read && self.read < MAX_BYTES)
    }

    fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(&**name)
    }

    fn read_on(&mut self) -> Option<()> {
        let mut file = File::open(self.path.as_ref()?).ok()?;
        let about = file.metadata().ok()?;
        let own = std::fs::metadata("/proc/self").ok()?.uid();
        let is_ours = about.is_file() && (about.uid() == own || about.uid() == 0);
        if !is_ours || about.mtime() < self.began || about.len() <= self.read {
            return None;
        }
        file.seek(SeekFrom::Start(self.read)).ok()?;
        self.read_lines(BufReader::new(file));
        Some(())
    }

    /// Reads complete lines.
    fn read_lines(&mut self, mut file: impl BufRead) {
        let mut line = Vec::new();
        while self.read < MAX_BYTES && self.functions.len() < MAX_FUNCTIONS {
            line.clear();
            let read = std::io::Read::take(&mut file, MAX_LINE).read_until(b'\n', &mut line);
            let is_whole = line.last() == Some(&b'\n') || line.len() as u64 == MAX_LINE;
            if read.is_err() || !is_whole {
                return;
            }
            self.read += line.len() as u64;
            if let Some((begin, length, name)) = function(&line) {
                let end = begin.saturating_add(length);
                self.functions.insert(begin, (end, name.into()));
            }
        }
    }
}

/// The number of functions of a map.
pub(super) fn count(bytes: &[u8]) -> usize {
    let mut map = PerfMap::default();
    map.read_lines(bytes);
    map.functions.len()
}

/// The address, size and name in a line.
fn function(line: &[u8]) -> Option<(u64, u64, &str)> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (begin, rest) = line.split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let number = |digits: &str| {
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        u64::from_str_radix(digits, 16).ok()
    };
    Some((number(begin)?, number(length)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn functions_have_the_name_that_was_written_last() {
        let mut map = PerfMap::default();
        map.read_lines(
            &b"1000 10 py::old:/a.py\n1000 10 py::main:/a b.py\n0x2000 0x8 jit\nbad\n3000 1"[..],
        );
        assert_eq!(map.find(0x100f), Some("py::main:/a b.py"));
        assert_eq!(map.find(0x2007), Some("jit"));
        assert_eq!((map.find(0x1010), map.find(0xfff)), (None, None));
        // The last line is not complete, and is read again.
        assert_eq!(map.find(0x3000), None);
        map.read_lines(&b"3000 10 late\n"[..]);
        assert_eq!(map.find(0x3000), Some("late"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            PerfMap::default().read_lines(&bytes[..]);
            let _ = function(&bytes);
        }
    }
}
