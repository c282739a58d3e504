//! Sorting of more entries than fit in memory.
//!
//! Entries collect in memory. When the budget is used up they are sorted and written to a temporary file as a run; at the end
//! the runs are merged. So memory is bounded by the budget and by a small buffer for each run, whatever the number of entries.
//!
//! A sorter with threads writes each run but the first while the next one collects, both in half of the budget, and sorts and merges
//! ahead of what takes the entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::ahead::{Batch, BatchSender, ahead};

/// Bytes of entries that are passed to another thread at once. Fewer are not worth a thread.
const BATCH: usize = 1 << 17;
/// Bytes that are read from a run at a time.
const RUN_BUFFER: usize = 1 << 16;

/// The key by which entries are sorted. Entries with equal keys keep their order.
pub type SortKey = (i64, u64);

/// An entry in memory: its key, and its place and length in the bytes.
type Entry = (SortKey, usize, u32);

/// Collects entries.
#[derive(Debug, Default)]
pub struct Sorter {
    budget: usize,
    has_threads: bool,
    memory: Memory,
    /// Memory that has been written, for the next entries.
    spare: Memory,
    runs: Runs,
}

/// Entries in memory.
#[derive(Debug, Default)]
struct Memory {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Runs in a temporary file: each from one offset to the next.
#[derive(Debug, Default)]
struct Runs {
    file: Option<Arc<File>>,
    ends: Vec<u64>,
    /// The run that a thread writes behind the last one. The thread returns its end and its memory.
    writing: Option<JoinHandle<io::Result<(u64, Memory)>>>,
}

impl Memory {
    fn sort(&mut self) {
        if !self.entries.is_sorted_by_key(|(key, ..)| *key) {
            // By place too, so that the fast sort that takes no further memory keeps the order.
            self.entries
                .sort_unstable_by_key(|(key, place, _)| (*key, *place));
        }
    }

    /// The bytes of an entry.
    fn of(&self, (_, place, length): &Entry) -> &[u8] {
        &self.bytes[*place..*place + *length as usize]
    }

    fn used(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Writes the entries behind the end of `file`, and returns the new end. There are none then.
    fn write(&mut self, file: &File) -> io::Result<u64> {
        self.write_to(file).map_err(in_temporary_file)
    }

    fn write_to(&mut self, mut file: &File) -> io::Result<u64> {
        self.sort();
        file.seek(SeekFrom::End(0))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        for entry in &self.entries {
            let ((first, second), _, length) = entry;
            out.write_all(&first.to_le_bytes())?;
            out.write_all(&second.to_le_bytes())?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(self.of(entry))?;
        }
        out.flush()?;
        drop(out);
        self.entries.clear();
        self.bytes.clear();
        file.stream_position()
    }
}

/// An error with the directory of the runs.
fn in_temporary_file(error: io::Error) -> io::Error {
    let place = std::env::temp_dir();
    io::Error::new(
        error.kind(),
        format!("a temporary file in {}: {error}", place.display()),
    )
}

impl Sorter {
    /// A sorter that keeps about `budget` bytes in memory.
    pub fn new(budget: usize) -> Sorter {
        Sorter {
            budget,
            ..Sorter::default()
        }
    }

    /// As [`Sorter::new`], with threads of its own if `has_threads`.
    pub fn with_threads(budget: usize, has_threads: bool) -> Sorter {
        Sorter {
            budget,
            has_threads,
            ..Sorter::default()
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.memory.entries.is_empty() && self.runs.file.is_none()
    }

    /// Adds an entry that consists of several parts.
    pub fn add(&mut self, key: SortKey, parts: &[&[u8]]) -> io::Result<()> {
        let Memory { bytes, entries } = &mut self.memory;
        let begin = bytes.len();
        for part in parts {
            bytes.extend_from_slice(part);
        }
        let length = (bytes.len() - begin) as u32;
        entries.push((key, begin, length));
        if self.memory.used() >= self.budget {
            self.write_run()?;
        }
        Ok(())
    }

    /// Writes what is in memory as a run.
    fn write_run(&mut self) -> io::Result<()> {
        self.end_run()?;
        let file = match &self.runs.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(
                self.runs
                    .file
                    .insert(Arc::new(tempfile::tempfile().map_err(in_temporary_file)?)),
            ),
        };
        if !self.has_threads {
            let end = self.memory.write(&file)?;
            self.runs.ends.push(end);
            return Ok(());
        }
        if self.runs.ends.is_empty() {
            // From now on two runs are in memory.
            let end = std::mem::take(&mut self.memory).write(&file)?;
            self.runs.ends.push(end);
            self.budget /= 2;
            return Ok(());
        }
        let mut full = std::mem::replace(&mut self.memory, std::mem::take(&mut self.spare));
        let thread = std::thread::Builder::new();
        let write = move || Ok((full.write(&file)?, full));
        self.runs.writing = Some(thread.spawn(write)?);
        Ok(())
    }

    /// Waits for the run that a thread writes.
    fn end_run(&mut self) -> io::Result<()> {
        match self.runs.writing.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(written)) => {
                let (end, memory) = written?;
                self.runs.ends.push(end);
                self.spare = memory;
                Ok(())
            }
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
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
        let is_small = self.runs.file.is_none() && self.memory.used() < BATCH;
        if !self.has_threads || is_small {
            return self.pass_here(take);
        }
        ahead(
            |sender: &mut BatchSender<SortedBatch>| {
                let mut batch = SortedBatch::default();
                self.pass_here(|key, bytes| {
                    batch.entries.push((key, bytes.len()));
                    batch.bytes.extend_from_slice(bytes);
                    match batch.bytes.len() < BATCH {
                        true => Ok(()),
                        false => sender.send(&mut batch),
                    }
                })?;
                sender.send(&mut batch)
            },
            |batch| {
                let mut rest = &batch.bytes[..];
                for (key, length) in &batch.entries {
                    let (bytes, behind) = rest.split_at(*length);
                    take(*key, bytes)?;
                    rest = behind;
                }
                Ok(())
            },
        )
    }

    /// As [`pass`](Self::pass), on this thread.
    fn pass_here(
        &mut self,
        mut take: impl FnMut(SortKey, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.runs.file.is_some() && !self.memory.entries.is_empty() {
            self.write_run()?;
        }
        self.end_run()?;
        let Some(file) = &self.runs.file else {
            self.memory.sort();
            for entry in &self.memory.entries {
                take(entry.0, self.memory.of(entry))?;
            }
            return Ok(());
        };
        (self.memory, self.spare) = Default::default();
        let begins = std::iter::once(0).chain(self.runs.ends.iter().copied());
        let mut merged = BinaryHeap::new();
        let mut open = Vec::new();
        for (begin, end) in begins.zip(&self.runs.ends) {
            let part = FilePart {
                file: Arc::clone(file),
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
            take(key, run.entry())?;
            if let Some(key) = run.next()? {
                merged.push(Reverse((key, index)));
            }
        }
        Ok(())
    }
}

/// Entries in their order.
#[derive(Default)]
struct SortedBatch {
    /// Keys and lengths.
    entries: Vec<(SortKey, usize)>,
    bytes: Vec<u8>,
}

impl Batch for SortedBatch {
    fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }
}

/// A part of a file.
struct FilePart {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl FilePart {
    /// Reads up to `buffer`'s length; 0 at the end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.end - self.at).min(buffer.len() as u64) as usize;
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A run that is being read.
struct SortedRun {
    part: FilePart,
    /// Bytes of the run.
    bytes: Vec<u8>,
    /// The entry in `bytes`, and behind it what comes next.
    entry: Range<usize>,
}

impl SortedRun {
    fn new(part: FilePart) -> SortedRun {
        SortedRun {
            part,
            bytes: Vec::new(),
            entry: 0..0,
        }
    }

    fn entry(&self) -> &[u8] {
        &self.bytes[self.entry.clone()]
    }

    /// Goes to the next entry, and returns its key.
    fn next(&mut self) -> io::Result<Option<SortKey>> {
        self.entry.start = self.entry.end;
        if self.entry.start == self.bytes.len() && self.part.at == self.part.end {
            return Ok(None);
        }
        let head: [u8; 20] = self.read()?;
        let (first, rest) = head.split_at(8);
        let (second, length) = rest.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let length = u32::from_le_bytes(length.try_into().expect("4 bytes"));
        self.entry.start = self.entry.end;
        self.hold(length as usize)?;
        Ok(Some((number(first) as i64, number(second))))
    }

    /// The bytes that come next.
    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.hold(N)?;
        Ok(self.entry().try_into().expect("as many bytes"))
    }

    /// Makes the next `length` bytes the entry.
    fn hold(&mut self, length: usize) -> io::Result<()> {
        while self.bytes.len() - self.entry.start < length {
            self.bytes.drain(..self.entry.start);
            self.entry.start = 0;
            let before = self.bytes.len();
            self.bytes.resize(length.max(RUN_BUFFER), 0);
            let count = self.part.read(&mut self.bytes[before..]);
            self.bytes.truncate(before + *count.as_ref().unwrap_or(&0));
            if count? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.entry.end = self.entry.start + length;
        Ok(())
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
            has_threads in any::<bool>(),
        ) {
            let mut sorter = Sorter::with_threads(budget, has_threads);
            for (number, key) in (0u32..).zip(&keys) {
                sorter.add(*key, &[&number.to_le_bytes(), &[7; 1000]]).unwrap();
            }
            let mut expected: Vec<_> = keys.into_iter().zip(0u32..).collect();
            expected.sort();
            for _ in 0..2 {
                let mut sorted = Vec::new();
                sorter.pass(|key, bytes| {
                    let (number, rest) = bytes.split_at(4);
                    assert_eq!(rest, [7; 1000]);
                    sorted.push((key, u32::from_le_bytes(number.try_into().unwrap())));
                    Ok(())
                }).unwrap();
                prop_assert_eq!(&sorted, &expected);
            }
        }
    }
}
