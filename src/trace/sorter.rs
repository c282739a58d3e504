//! Sorting of more entries than fit in memory.
//!
//! Entries collect in memory. When the budget is used up they are sorted and written to a temporary file as a run; at the end
//! the runs are merged. So memory is bounded by the budget and by a small buffer for each run, whatever the number of entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes that are read from a run at a time.
const RUN_BUFFER: usize = 1 << 16;

/// The key by which entries are sorted. Entries with equal keys keep their order.
pub type SortKey = (i64, u64);

/// An entry in memory: its key, and its place and length in the bytes.
type Entry = (SortKey, usize, u32);

/// Collects entries.
#[derive(Debug)]
pub struct Sorter {
    budget: usize,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    runs: Option<Runs>,
}

/// Runs in a temporary file: each from one offset to the next.
#[derive(Debug)]
struct Runs {
    file: Arc<File>,
    ends: Vec<u64>,
}

impl Sorter {
    /// A sorter that keeps about `budget` bytes in memory.
    pub fn new(budget: usize) -> Sorter {
        Sorter {
            budget,
            bytes: Vec::new(),
            entries: Vec::new(),
            runs: None,
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.runs.is_none()
    }

    /// Adds an entry that consists of several parts.
    pub fn add(&mut self, key: SortKey, parts: &[&[u8]]) -> io::Result<()> {
        let begin = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let length = (self.bytes.len() - begin) as u32;
        self.entries.push((key, begin, length));
        let used = self.bytes.len() + self.entries.len() * size_of::<Entry>();
        if used >= self.budget {
            self.write_run()?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        if !self.entries.is_sorted_by_key(|(key, ..)| *key) {
            // By place too, so that the fast sort that takes no further memory keeps the order.
            self.entries
                .sort_unstable_by_key(|(key, place, _)| (*key, *place));
        }
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.sort();
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => self.runs.insert(Runs {
                file: Arc::new(tempfile::tempfile()?),
                ends: Vec::new(),
            }),
        };
        let mut file: &File = &runs.file;
        file.seek(SeekFrom::End(0))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        for ((first, second), place, length) in &self.entries {
            out.write_all(&first.to_le_bytes())?;
            out.write_all(&second.to_le_bytes())?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(&self.bytes[*place..*place + *length as usize])?;
        }
        out.flush()?;
        drop(out);
        runs.ends.push(file.stream_position()?);
        self.entries.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Passes all entries on in the order of their keys.
    pub fn drain(mut self, take: impl FnMut(SortKey, &[u8]) -> io::Result<()>) -> io::Result<()> {
        self.pass(take)
    }

    /// As [`drain`](Self::drain), and keeps the entries.
    pub fn pass(
        &mut self,
        mut take: impl FnMut(SortKey, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.runs.is_some() && !self.entries.is_empty() {
            self.write_run()?;
        }
        self.sort();
        let Some(runs) = &self.runs else {
            for (key, place, length) in &self.entries {
                take(*key, &self.bytes[*place..*place + *length as usize])?;
            }
            return Ok(());
        };
        self.bytes = Vec::new();
        let file = Arc::clone(&runs.file);
        let begins = std::iter::once(0).chain(runs.ends.iter().copied());
        let mut merged = BinaryHeap::new();
        let mut open = Vec::new();
        for (begin, end) in begins.zip(&runs.ends) {
            let part = FilePart {
                file: Arc::clone(&file),
                at: begin,
                end: *end,
            };
            let mut run = SortedRun::new(part);
            if let Some(key) = run.next()? {
                merged.push(Reverse((key, open.len())));
            }
            open.push(run);
        }
        while let Some(Reverse((key, index))) = merged.pop() {
            let run = &mut open[index];
            take(key, &run.entry)?;
            if let Some(key) = run.next()? {
                merged.push(Reverse((key, index)));
            }
        }
        Ok(())
    }
}

/// A part of a file.
struct FilePart {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.end - self.at).min(buffer.len() as u64) as usize;
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A run that is being read.
struct SortedRun {
    part: BufReader<FilePart>,
    entry: Vec<u8>,
}

impl SortedRun {
    fn new(part: FilePart) -> SortedRun {
        SortedRun {
            part: BufReader::with_capacity(RUN_BUFFER, part),
            entry: Vec::new(),
        }
    }

    /// Reads the next entry, and returns its key.
    fn next(&mut self) -> io::Result<Option<SortKey>> {
        let mut head = [0; 20];
        if self.part.buffer().is_empty() {
            let inner = self.part.get_ref();
            if inner.at == inner.end {
                return Ok(None);
            }
        }
        self.part.read_exact(&mut head)?;
        let (first, rest) = head.split_at(8);
        let (second, length) = rest.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let length = u32::from_le_bytes(length.try_into().expect("4 bytes"));
        self.entry.resize(length as usize, 0);
        self.part.read_exact(&mut self.entry)?;
        Ok(Some((number(first) as i64, number(second))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_come_out_by_key_and_then_in_their_order(
            keys in prop::collection::vec((-3i64..3, 0u64..2), 0..200),
            budget in prop_oneof![Just(1usize), Just(300), Just(1 << 20)],
        ) {
            let mut sorter = Sorter::new(budget);
            for (number, key) in (0u32..).zip(&keys) {
                sorter.add(*key, &[&number.to_le_bytes(), b"rest"]).unwrap();
            }
            let mut expected: Vec<_> = keys.into_iter().zip(0u32..).collect();
            expected.sort();
            for _ in 0..2 {
                let mut sorted = Vec::new();
                sorter.pass(|key, bytes| {
                    let (number, rest) = bytes.split_at(4);
                    assert_eq!(rest, b"rest");
                    sorted.push((key, u32::from_le_bytes(number.try_into().unwrap())));
                    Ok(())
                }).unwrap();
                prop_assert_eq!(&sorted, &expected);
            }
        }
    }
}
