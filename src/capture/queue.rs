//! Chunks on their way to the process that writes the capture, in memory that both processes have mapped.
//!
//! A recorded process has no open file of its capture: whatever it does to its descriptors, its names reach the capture,
//! and no write of ours reaches a file of the program. It puts chunks of metadata into a ring, from which
//! `gputrail record` takes them, also after the death of the process.
//!
//! The program may write over this memory. Each side therefore keeps its position to itself and publishes it again and
//! again, and a chunk counts only with its number and its checksums.

use super::format::{CHUNK_MAGIC, ChunkHeader, ChunkKind};
use super::writer::Writer;
use gputrail_buffer::platform::system;
use gputrail_buffer::{Buffer, SessionState};
use memmap2::{MmapAsRawDesc, MmapOptions, MmapRaw};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of the ring: twice the largest metadata record.
const RING: u64 = 1 << 20;
/// Bytes in front of the ring.
const HEADER: usize = 4096;
/// Bytes of a queue.
pub const QUEUE_BYTES: usize = HEADER + RING as usize;

/// Longest wait for room in the ring while the reader shows no sign of life.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval at which a waiting writer checks whether the reader has ended.
const CHECK: Duration = Duration::from_millis(50);
/// Interval at which a waiting writer looks for room.
const PAUSE: Duration = Duration::from_micros(200);

/// The memory of a queue. All accesses are atomic: the other process may be at it.
///
/// ```text
///    0  bytes put so far, which the recorded process writes
///    8  bytes taken so far, which the other process writes
///   16  chunks that found no room, which the recorded process counts
/// 4096  the ring
/// ```
pub struct ChunkQueue(MmapRaw);

impl ChunkQueue {
    /// The queue at `offset` in `file`, whose memory was zeros at first.
    pub fn map(file: impl MmapAsRawDesc, offset: u64) -> io::Result<ChunkQueue> {
        let mut options = MmapOptions::new();
        let memory = options.offset(offset).len(QUEUE_BYTES).map_raw(file)?;
        Ok(ChunkQueue(memory))
    }

    /// Keeps the memory out of children made by fork.
    pub fn keep_from_children(&self) -> io::Result<()> {
        system::keep_from_children(&self.0)
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped for as long as `self`, page aligned, and any bytes are valid.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), QUEUE_BYTES / 8) }
    }

    fn put(&self) -> &AtomicU64 {
        &self.words()[0]
    }

    fn taken(&self) -> &AtomicU64 {
        &self.words()[1]
    }

    fn lost(&self) -> &AtomicU64 {
        &self.words()[2]
    }

    /// The word of the ring at `position`, which counts bytes since the beginning.
    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words()[(HEADER as u64 + position % RING) as usize / 8]
    }

    fn write(&self, position: u64, bytes: &[u8]) {
        for (place, word) in (position..).step_by(8).zip(bytes.as_chunks::<8>().0) {
            self.word(place)
                .store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
    }

    fn read(&self, position: u64, words: &mut [u64]) {
        for (place, word) in (position..).step_by(8).zip(words) {
            *word = self.word(place).load(Ordering::Relaxed);
        }
    }
}

/// The recorded process's end of a queue.
pub struct QueueWriter {
    queue: ChunkQueue,
    /// Bytes put so far.
    put: u64,
    /// Number of the next chunk.
    number: u32,
    /// The reader's position at which a wait for it failed. While it is there, nobody waits again.
    stalled_at: Option<u64>,
    /// The buffer whose collector is the reader.
    buffer: Buffer,
}

impl QueueWriter {
    /// A writer to a queue to which nothing has been written. The collector of `buffer` reads it.
    pub fn new(queue: ChunkQueue, buffer: Buffer) -> QueueWriter {
        QueueWriter {
            queue,
            put: 0,
            number: 0,
            stalled_at: None,
            buffer,
        }
    }

    /// Puts a chunk of metadata. Waits for room while the reader lives; the error says that there was none, and the
    /// chunk is counted as lost.
    pub fn metadata(&mut self, payload: &[u8]) -> io::Result<()> {
        let bytes = (ChunkHeader::BYTES + payload.len()) as u64;
        if bytes > RING || !self.has_room(bytes) {
            self.queue.lost().fetch_add(1, Ordering::Relaxed);
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut header = ChunkHeader::new(ChunkKind::METADATA, payload);
        header.sequence = self.number;
        self.queue
            .write(self.put, bytemuck::bytes_of(&header.sealed()));
        self.queue
            .write(self.put + ChunkHeader::BYTES as u64, payload);
        self.number = self.number.wrapping_add(1);
        self.put += bytes;
        // Release: whoever sees the position sees the chunk.
        self.queue.put().store(self.put, Ordering::Release);
        Ok(())
    }

    /// Waits until the ring has room for `bytes`.
    fn has_room(&mut self, bytes: u64) -> bool {
        let (mut since, mut checks) = (Instant::now(), 1);
        let mut seen = self.queue.taken().load(Ordering::Acquire);
        loop {
            let used = self.put.wrapping_sub(seen);
            if used <= RING - bytes {
                return true;
            }
            let over = self.buffer.mapping().state() == SessionState::Abandoned;
            if over || self.stalled_at == Some(seen) {
                return false;
            }
            if since.elapsed() > CHECK * checks {
                checks += 1;
                if since.elapsed() > PATIENCE || self.buffer.collector_has_ended() {
                    self.stalled_at = Some(seen);
                    return false;
                }
            }
            self.buffer.wake_collector();
            std::thread::sleep(PAUSE);
            let taken = self.queue.taken().load(Ordering::Acquire);
            if taken != seen {
                (seen, since, checks) = (taken, Instant::now(), 1);
            }
        }
    }
}

/// The end of a queue in the process that writes the capture.
pub struct QueueReader {
    queue: ChunkQueue,
    /// Bytes taken so far.
    taken: u64,
    /// Number of the next chunk.
    number: u32,
    /// Places where the ring had been overwritten.
    damaged: u64,
    /// Whether the latest call of [`QueueReader::drain`] found no sound chunk before the writer's position.
    is_stuck: bool,
    chunk: Vec<u64>,
}

impl QueueReader {
    /// A reader of a queue from which nothing has been taken.
    pub fn new(queue: ChunkQueue) -> QueueReader {
        QueueReader {
            queue,
            taken: 0,
            number: 0,
            damaged: 0,
            is_stuck: false,
            chunk: Vec::new(),
        }
    }

    /// Appends all chunks that have been put to `writer`.
    pub fn drain(&mut self, writer: &Writer) {
        // Acquire: the chunks before it are there.
        let put = self.queue.put().load(Ordering::Acquire);
        while put != self.taken && (self.take(self.taken) || self.take_behind_damage(put)) {
            // The writer holds its error.
            let _ = writer.chunk(bytemuck::cast_slice(&self.chunk));
        }
        self.is_stuck = put != self.taken;
        self.queue.taken().store(self.taken, Ordering::Release);
    }

    /// Whether nothing had been put when the queue was drained.
    pub fn is_unused(&self) -> bool {
        self.taken == 0 && !self.is_stuck
    }

    /// Chunks that did not reach the capture, at least.
    pub fn lost(&self) -> u64 {
        let lost = self.queue.lost().load(Ordering::Relaxed);
        lost.saturating_add(self.damaged + u64::from(self.is_stuck))
    }

    /// Moves the chunk at `position` to `self.chunk`. `false`: no chunk begins there that was not taken before.
    fn take(&mut self, position: u64) -> bool {
        let mut raw = [0; ChunkHeader::BYTES / 8];
        self.queue.read(position, &mut raw);
        let header: ChunkHeader = bytemuck::cast(raw);
        let bytes = ChunkHeader::BYTES as u64 + u64::from(header.payload_bytes);
        let is_later = (header.sequence.wrapping_sub(self.number) as i32) >= 0;
        if !header.is_sound() || header.kind != ChunkKind::METADATA || !is_later || bytes > RING {
            return false;
        }
        self.chunk.clear();
        self.chunk.resize(bytes as usize / 8, 0);
        self.queue.read(position, &mut self.chunk);
        let chunk: &[u8] = bytemuck::cast_slice(&self.chunk);
        if chunk[..ChunkHeader::BYTES] != *bytemuck::bytes_of(&header)
            || crc32fast::hash(&chunk[ChunkHeader::BYTES..]) != header.payload_checksum
        {
            return false;
        }
        self.taken = position + bytes;
        self.number = header.sequence.wrapping_add(1);
        true
    }

    /// Takes the first sound chunk between the reader's position, where there is none, and `put`. `false`: there is none.
    fn take_behind_damage(&mut self, put: u64) -> bool {
        /// Places that are tried, since each may cost a checksum.
        const MAX_TRIES: usize = 64;
        let left = put.wrapping_sub(self.taken);
        if left > RING {
            return false;
        }
        let begins = |position: &u64| {
            let word = self.queue.word(*position).load(Ordering::Relaxed);
            word.to_ne_bytes()[..4] == CHUNK_MAGIC
        };
        let places = (self.taken..put).step_by(8).skip(1).filter(begins);
        let places: Vec<u64> = places.take(MAX_TRIES).collect();
        let found = places.into_iter().any(|place| self.take(place));
        self.damaged += u64::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;
    use crate::{FileHeader, Reader};
    use gputrail_buffer::{Layout, Mapping, Policy};
    use gputrail_record::{ProcessId, StringId};
    use std::sync::Arc;
    use std::sync::Mutex;

    /// Both ends of a queue, and the capture behind it.
    struct Ends {
        names: Names,
        reader: QueueReader,
        capture: Writer,
        buffer: Buffer,
        /// The queue's memory, as the program could write over it.
        memory: ChunkQueue,
        directory: tempfile::TempDir,
    }

    fn ends() -> Ends {
        let file = tempfile::tempfile().unwrap();
        file.set_len(QUEUE_BYTES as u64).unwrap();
        let [writer, reader, memory] = [(); 3].map(|()| ChunkQueue::map(&file, 0).unwrap());
        let layout = Layout::new(2 * 4096, 4096, 1).unwrap();
        let buffer = Buffer::new(Mapping::anonymous(layout).unwrap(), Policy::Discard);
        let writer = Writer::to_queue(QueueWriter::new(writer, buffer.clone()));
        let directory = tempfile::tempdir().unwrap();
        let header = FileHeader::new(2, ProcessId(1), 1_000_000_000, 0, [0; 16]);
        Ends {
            names: Names::writing_to(writer),
            reader: QueueReader::new(reader),
            capture: Writer::create(&directory.path().join("capture"), &header).unwrap(),
            buffer,
            memory,
            directory,
        }
    }

    impl Ends {
        fn drain(&mut self) {
            self.reader.drain(&self.capture);
        }

        /// Whether the capture has the text of each id, and no damage.
        fn has(&self, texts: &[(StringId, String)]) -> bool {
            let reader = Reader::open(&self.directory.path().join("capture")).unwrap();
            assert_eq!(reader.findings(), []);
            let metadata = reader.metadata();
            texts.iter().all(|(id, text)| metadata.string(*id) == text)
        }
    }

    fn name(names: &Names, number: usize, bytes: usize) -> (StringId, String) {
        let text = number.to_string() + &"x".repeat(bytes);
        (names.string(&text), text)
    }

    #[test]
    fn names_of_several_laps_of_the_ring_come_in_order() {
        let mut ends = ends();
        assert!(ends.reader.is_unused());
        let mut all = Vec::new();
        for number in 0..100 {
            all.push(name(&ends.names, number, 40_000 + 8 * number));
            ends.drain();
        }
        assert!(ends.has(&all));
        assert_eq!((ends.reader.lost(), ends.reader.is_unused()), (0, false));
    }

    #[test]
    fn who_names_more_than_the_ring_holds_waits_for_the_reader() {
        let mut ends = ends();
        let names = ends.names.clone();
        let naming = std::thread::spawn(move || {
            let all = (0..10).map(|number| name(&names, number, 500_000));
            all.collect::<Vec<_>>()
        });
        while !naming.is_finished() {
            ends.drain();
            std::thread::yield_now();
        }
        ends.drain();
        assert!(ends.has(&naming.join().unwrap()));
        assert_eq!(ends.reader.lost(), 0);
    }

    #[test]
    fn names_for_which_there_is_no_room_are_counted_when_the_reader_has_ended() {
        let mut ends = ends();
        let ended = Arc::new(Mutex::new(0));
        let asked = ended.clone();
        ends.buffer.collector_ends_when(move || {
            *asked.lock().unwrap() += 1;
            true
        });
        let all: Vec<_> = (0..5).map(|n| name(&ends.names, n, 400_000)).collect();
        // The first wait fails; the others do not wait.
        assert_eq!(*ended.lock().unwrap(), 1);
        ends.drain();
        assert!(ends.has(&all[..2]) && !ends.has(&all[2..3]));
        assert_eq!(ends.reader.lost(), 3);
        // The reader lives all the same.
        let later = name(&ends.names, 9, 400_000);
        ends.drain();
        assert!(ends.has(&[later]));
    }

    #[test]
    fn a_word_of_the_header_that_is_overwritten_costs_no_name() {
        for word in 0..2 {
            for value in [0, 8, 4096, u64::MAX, 0x5a5a_5a5a_5a5a_5a58] {
                let mut ends = ends();
                let mut all: Vec<_> = (0..5).map(|n| name(&ends.names, n, 1000)).collect();
                ends.drain();
                all.extend((5..10).map(|n| name(&ends.names, n, 2000)));
                ends.memory.words()[word].store(value, Ordering::Relaxed);
                ends.drain();
                all.push(name(&ends.names, 10, 3000));
                ends.drain();
                assert!(ends.has(&all), "word {word} = {value}");
                assert_eq!(ends.reader.lost(), 0, "word {word} = {value}");
            }
        }
    }

    #[test]
    fn a_chunk_that_is_overwritten_costs_itself_alone_and_is_counted() {
        for word in 0..8 {
            let mut ends = ends();
            let mut all = vec![name(&ends.names, 0, 8)];
            ends.drain();
            let place = ends.reader.taken;
            let hit = name(&ends.names, 1, 8);
            all.push(name(&ends.names, 2, 8));
            let word = ends.memory.word(place + 8 * word);
            word.fetch_xor(1 << 63 | 1, Ordering::Relaxed);
            ends.drain();
            assert!(ends.has(&all) && !ends.has(&[hit]));
            assert_eq!(ends.reader.lost(), 1);
        }
    }

    #[test]
    fn a_ring_that_is_overwritten_as_a_whole_is_a_loss() {
        for put in [0x5a5a, 1 << 40] {
            let mut ends = ends();
            let all: Vec<_> = (0..5).map(|n| name(&ends.names, n, 1000)).collect();
            let words = ends.memory.words();
            words[HEADER / 8..]
                .iter()
                .for_each(|word| word.store(0x5a5a, Ordering::Relaxed));
            words[0].store(put, Ordering::Relaxed);
            ends.drain();
            assert!(!ends.has(&all[..1]));
            assert_eq!((ends.reader.lost(), ends.reader.is_unused()), (1, false));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_in_a_sound_capture(
            noise in proptest::collection::vec((0..QUEUE_BYTES / 8, proptest::arbitrary::any::<u64>()), 0..50),
            names in 0..20usize,
        ) {
            let mut ends = ends();
            (0..names).for_each(|n| drop(name(&ends.names, n, 1000)));
            for (word, value) in noise {
                ends.memory.words()[word].store(value, Ordering::Relaxed);
            }
            ends.drain();
            ends.has(&[]);
        }
    }
}
