//! Everything that is written is read back, and damage stays local.

use super::format::ChunkHeader;
use super::*;
use crate::names::Names;
use gputrail_buffer::clock::TickSource;
use gputrail_buffer::{BlockView, Buffer, Layout, Mapping, Policy};
use gputrail_record::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

struct File {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn capture() -> (File, Writer) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.gputrail");
    let header = FileHeader::new(
        TickSource::Monotonic.code(),
        ProcessId(1),
        1_000_000_000,
        0,
        [0; 16],
    );
    let writer = Writer::create(&path, &header).unwrap();
    let file = File {
        _directory: directory,
        path,
    };
    (file, writer)
}

fn run(first: u64, count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in first..first + count {
        let mut api = Api::blank();
        api.correlation = CorrelationId(n);
        bytes.extend_from_slice(bytemuck::bytes_of(&api));
    }
    bytes
}

fn view(lane: u32, sequence: u32, offset: u32, bytes: &[u8]) -> BlockView<'_> {
    BlockView {
        lane,
        thread: ThreadId(7),
        sequence,
        offset,
        first_record: 0,
        bytes,
    }
}

/// The correlation ids of all API records, and all findings.
fn read(path: &Path) -> (Vec<u64>, Vec<String>) {
    let reader = Reader::open(path).unwrap();
    let mut chunks = reader.chunks();
    let mut ids = Vec::new();
    while let Some(chunk) = chunks.next() {
        ids.extend(
            chunk
                .records()
                .filter_map(|record| record.read::<Api>())
                .map(|api| api.correlation.0),
        );
    }
    (
        ids,
        chunks
            .findings()
            .iter()
            .map(|finding| finding.to_string())
            .collect(),
    )
}

#[test]
fn records_and_names_are_read_back() {
    let (file, writer) = capture();
    let names = Names::writing_to(writer.clone());
    let hello = names.string("hello");
    assert_eq!(names.string("hello"), hello);
    let mut agent = Agent::blank();
    agent.name = names.string("GPU");
    let agent = names.agent(agent);
    writer.records(&view(1, 0, 0, &run(0, 3))).unwrap();
    names.thread(ThreadId(7), "worker");
    writer.records(&view(1, 0, 192, &run(3, 2))).unwrap();
    writer.end().unwrap();
    let reader = Reader::open(&file.path).unwrap();
    let metadata = reader.metadata();
    assert_eq!(metadata.string(hello), "hello");
    assert_eq!(metadata.string(metadata.agents[&agent].name), "GPU");
    assert_eq!(
        metadata.string(metadata.threads[&ThreadId(7)].name),
        "worker"
    );
    assert!(reader.ended());
    assert_eq!(read(&file.path), (vec![0, 1, 2, 3, 4], vec![]));
}

#[test]
fn a_name_is_in_the_capture_when_its_id_is_known_whatever_other_threads_name() {
    let (file, writer) = capture();
    let names = Names::writing_to(writer);
    names.batch(2, |many| {
        many.string("pending");
        let other = many.clone();
        let named = std::thread::spawn(move || other.string("named"))
            .join()
            .unwrap();
        let reader = Reader::open(&file.path).unwrap();
        assert_eq!(reader.metadata().string(named), "named");
    });
}

#[test]
fn runs_that_were_written_twice_come_once() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 0, &run(0, 2))).unwrap();
    writer.records(&view(1, 1, 0, &run(2, 2))).unwrap();
    // Recovery finds a block whose length was not yet marked as consumed.
    writer.records(&view(1, 1, 0, &run(2, 2))).unwrap();
    writer.records(&view(1, 1, 128, &run(4, 1))).unwrap();
    assert_eq!(read(&file.path), (vec![0, 1, 2, 3, 4], vec![]));
}

#[test]
fn a_run_that_was_written_again_and_had_grown_meanwhile_comes_once() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 64, &run(0, 2))).unwrap();
    // Other lanes went on when the process died: recovery finds more than was written.
    writer.records(&view(1, 0, 64, &run(0, 5))).unwrap();
    writer.records(&view(1, 1, 0, &run(5, 1))).unwrap();
    assert_eq!(read(&file.path), (vec![0, 1, 2, 3, 4, 5], vec![]));
}

#[test]
fn a_damaged_chunk_costs_itself_alone() {
    let (file, writer) = capture();
    let places: Vec<u64> = (0..5)
        .map(|n| {
            let at = writer.bytes();
            writer
                .records(&view(1, n, 0, &run(u64::from(n) * 10, 2)))
                .unwrap();
            at
        })
        .collect();
    let whole = std::fs::read(&file.path).unwrap();

    let mut payload_hit = whole.clone();
    payload_hit[places[2] as usize + 60] ^= 1;
    std::fs::write(&file.path, &payload_hit).unwrap();
    let (ids, findings) = read(&file.path);
    assert_eq!(ids, [0, 1, 10, 11, 30, 31, 40, 41]);
    assert!(findings[0].starts_with(&format!(
        "at byte {}: records of 128 bytes have checksum",
        places[2] + 48
    )));

    let mut header_hit = whole.clone();
    header_hit[places[2] as usize + 9] ^= 0xff;
    std::fs::write(&file.path, &header_hit).unwrap();
    let (ids, findings) = read(&file.path);
    assert_eq!(ids, [0, 1, 10, 11, 30, 31, 40, 41]);
    assert_eq!(
        findings,
        [format!(
            "at byte {}: 176 bytes outside of chunks",
            places[2]
        )]
    );
}

#[test]
fn a_reader_knows_how_many_bytes_of_records_there_are_without_reading_them() {
    let (file, writer) = capture();
    let names = Names::writing_to(writer.clone());
    let damaged = writer.bytes();
    writer.records(&view(1, 0, 0, &run(0, 3))).unwrap();
    names.string("between");
    writer.records(&view(1, 1, 0, &run(3, 2))).unwrap();
    writer.end().unwrap();
    let mut bytes = std::fs::read(&file.path).unwrap();
    bytes[damaged as usize + 60] ^= 1;
    std::fs::write(&file.path, &bytes).unwrap();
    let reader = Reader::open(&file.path).unwrap();
    assert_eq!(reader.record_bytes(), 5 * size_of::<Api>() as u64);
    // A payload that is not read is not found to be damaged.
    assert_eq!(reader.findings(), []);
    assert!(reader.ended());
    assert_eq!(read(&file.path).0, [3, 4]);
}

#[test]
fn a_capture_that_was_cut_anywhere_is_read_up_to_there() {
    let (file, writer) = capture();
    (0..4).for_each(|n| {
        writer
            .records(&view(1, n, 0, &run(u64::from(n), 1)))
            .unwrap()
    });
    let whole = std::fs::read(&file.path).unwrap();
    for length in 64..whole.len() {
        std::fs::write(&file.path, &whole[..length]).unwrap();
        let (ids, findings) = read(&file.path);
        assert_eq!(ids.len(), (length - 64) / 112);
        assert_eq!(
            findings.is_empty(),
            (length - 64) % 112 == 0,
            "{length}: {findings:?}"
        );
    }
}

#[test]
fn files_that_are_no_captures_are_refused_by_name() {
    let (file, _) = capture();
    let whole = std::fs::read(&file.path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&file.path, bytes).unwrap();
        Reader::open(&file.path).unwrap_err().to_string()
    };
    assert!(
        refused(b"")
            .ends_with("run.gputrail: not a gputrail capture: 0 bytes, expected at least 64")
    );
    assert!(refused(&[b'x'; 100]).contains("expected \"GPUTRAIL\""));
    let mut newer = whole.clone();
    newer[8] = 99;
    assert!(refused(&newer).contains("capture of format version 99"));
    let mut damaged = whole.clone();
    damaged[30] ^= 1;
    assert!(refused(&damaged).contains("it is damaged"));
    assert!(
        Reader::open(Path::new("/nonexistent"))
            .unwrap_err()
            .to_string()
            .starts_with("/nonexistent: ")
    );
}

#[test]
fn a_capture_is_private_and_never_replaces_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let (file, _) = capture();
    assert_eq!(
        std::fs::metadata(&file.path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let header = FileHeader::new(0, ProcessId(1), 1, 0, [0; 16]);
    assert_eq!(
        Writer::create(&file.path, &header).err().unwrap().kind(),
        std::io::ErrorKind::AlreadyExists
    );
    let link = file.path.with_extension("link");
    std::os::unix::fs::symlink("/tmp/elsewhere", &link).unwrap();
    assert!(Writer::create(&link, &header).is_err());
}

#[test]
fn a_device_without_space_ends_the_capture_and_says_where() {
    let full = std::fs::OpenOptions::new()
        .read(true)
        .append(true)
        .open("/dev/full")
        .unwrap();
    let writer = Writer::resume(full.into()).unwrap();
    let error = writer.records(&view(1, 0, 0, &run(0, 3))).unwrap_err();
    assert_eq!((error.errno, error.bytes), (28, 0));
    writer.records(&view(1, 1, 0, &run(0, 4))).unwrap_err();
    assert_eq!(
        writer.error().unwrap().1,
        7,
        "records that came after the end are counted"
    );
}

#[test]
fn a_capture_whose_descriptor_became_another_file_is_not_continued_there() {
    use std::os::fd::{AsRawFd, OwnedFd};
    let (file, _) = capture();
    let capture = std::fs::File::options()
        .append(true)
        .open(&file.path)
        .unwrap();
    let number = capture.as_raw_fd();
    let writer = Writer::resume(OwnedFd::from(capture)).unwrap();
    writer.records(&view(1, 0, 0, &run(0, 1))).unwrap();
    let of_the_program = replace(number);
    let error = writer.records(&view(1, 0, 64, &run(1, 1))).unwrap_err();
    assert_eq!(error.errno, libc::EBADF);
    assert_eq!(of_the_program.metadata().unwrap().len(), 0);
    assert_eq!(read(&file.path), (vec![0], vec![]));
}

/// The descriptor under which this process has the file at `path` open.
fn descriptor_of(path: &Path) -> i32 {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut open =
        entries.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|of| of == path));
    let entry = open.next().unwrap();
    entry.file_name().to_str().unwrap().parse().unwrap()
}

/// Has the descriptor `number` refer to a new file of the program's own.
fn replace(number: i32) -> std::fs::File {
    use std::os::fd::AsRawFd;
    let of_the_program = tempfile::tempfile().unwrap();
    // SAFETY: two open descriptors; the writer keeps the number, and what is behind it changes.
    let replaced = unsafe { libc::dup2(of_the_program.as_raw_fd(), number) };
    assert_eq!(replaced, number);
    of_the_program
}

#[test]
fn a_capture_whose_descriptor_was_closed_is_opened_again_by_its_path() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 0, &run(0, 1))).unwrap();
    let of_the_program = replace(descriptor_of(&file.path));
    writer.records(&view(1, 0, 64, &run(1, 1))).unwrap();
    writer.records(&view(1, 0, 128, &run(2, 1))).unwrap();
    writer.end().unwrap();
    assert_eq!(of_the_program.metadata().unwrap().len(), 0);
    assert_eq!(read(&file.path), (vec![0, 1, 2], vec![]));
}

#[test]
fn a_capture_whose_path_leads_to_another_file_is_not_continued_there() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 0, &run(0, 1))).unwrap();
    let of_the_program = replace(descriptor_of(&file.path));
    let moved = file.path.with_extension("moved");
    std::fs::rename(&file.path, &moved).unwrap();
    std::fs::write(&file.path, "another file").unwrap();
    let error = writer.records(&view(1, 0, 64, &run(1, 1))).unwrap_err();
    assert_eq!(error.errno, libc::EBADF);
    assert_eq!(of_the_program.metadata().unwrap().len(), 0);
    assert_eq!(std::fs::read(&file.path).unwrap(), b"another file");
    assert_eq!(read(&moved), (vec![0], vec![]));
}

/// Begins a call at nesting depth `depth`.
fn begin_call(lane: &gputrail_buffer::Lane, depth: u32, start: u64, correlation: u64) {
    let open = lane.open_calls();
    open.prepare(depth, CorrelationId(correlation), Operation::default());
    open.enter(depth, Ticks(start));
}

#[test]
fn records_that_a_dead_process_had_committed_are_recovered() {
    let (file, writer) = capture();
    let layout = Layout::new(1 << 16, 4096, 4).unwrap();
    let pool = tempfile::tempfile().unwrap();
    pool.set_len(layout.total_bytes() as u64).unwrap();
    let buffer = Buffer::new(Mapping::create(&pool, layout).unwrap(), Policy::Discard);
    let mut lane = buffer.lane(ThreadId(7)).unwrap();
    for n in 0..100 {
        let mut api = Api::blank();
        api.correlation = CorrelationId(n);
        lane.write(api);
    }
    buffer.count_unlaned(Kind::API);
    begin_call(&lane, 0, 5, 1000);
    begin_call(&lane, 1, 6, 1001);
    // The process is dead: none of its own code runs any more.
    std::mem::forget(lane);
    let left = Mapping::open(&pool, layout.total_bytes()).unwrap();
    let cause = Cause {
        kind: NoteKind::DIED,
        text: "killed by signal 9".into(),
    };
    let recovered = recover(&left, &writer, &cause);
    assert_eq!(
        recovered,
        Recovered {
            records: 100,
            open_calls: 2,
            dropped: 1
        }
    );
    let (ids, findings) = read(&file.path);
    assert_eq!(ids, (0..100).chain([1000, 1001]).collect::<Vec<_>>());
    assert!(findings.is_empty());
    let reader = Reader::open(&file.path).unwrap();
    assert!(!reader.ended());
    assert_eq!(
        reader.metadata().string(reader.metadata().notes[0].text),
        "killed by signal 9"
    );
}

#[test]
fn a_block_that_the_dying_process_damaged_is_recovered_up_to_there() {
    let (file, writer) = capture();
    let layout = Layout::new(1 << 16, 4096, 4).unwrap();
    let pool = tempfile::tempfile().unwrap();
    pool.set_len(layout.total_bytes() as u64).unwrap();
    let buffer = Buffer::new(Mapping::create(&pool, layout).unwrap(), Policy::Discard);
    let mut lane = buffer.lane(ThreadId(7)).unwrap();
    for n in 0..100 {
        let mut api = Api::blank();
        api.correlation = CorrelationId(n);
        if n == 30 {
            // A size that reaches beyond the block.
            api.header.words = u16::MAX;
        }
        lane.write(api);
    }
    std::mem::forget(lane);
    let left = Mapping::open(&pool, layout.total_bytes()).unwrap();
    let cause = Cause {
        kind: NoteKind::DIED,
        text: "killed by signal 11".into(),
    };
    let recovered = recover(&left, &writer, &cause);
    let in_a_block = (4096 / size_of::<Api>()) as u64;
    assert_eq!(recovered.records, 30 + 100 - in_a_block);
    let undamaged: Vec<u64> = (0..30).chain(in_a_block..100).collect();
    assert_eq!(read(&file.path), (undamaged, vec![]));
}

/// A full pool in memory that is mapped twice, as two processes map it.
struct SharedPool {
    buffer: Buffer,
    lane: gputrail_buffer::Lane,
    file: std::fs::File,
    bytes: usize,
}

/// The thread that overwrites a [`SharedPool`].
#[derive(Default)]
struct Overwriting {
    has_begun: AtomicBool,
    /// The number of words that it has written.
    words: AtomicU64,
    is_over: AtomicBool,
}

impl Overwriting {
    /// Has the thread begin, and waits until it has written as many words as the memory has. It may write for any length of time
    /// before the caller goes on: nothing sound need be left in the memory then.
    fn go_on(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
        let words = Layout::new(1 << 16, 4096, 4).unwrap().total_bytes() / 8;
        let until = self.words.load(Ordering::Relaxed) + words as u64;
        while self.words.load(Ordering::Relaxed) < until {
            std::thread::yield_now();
        }
    }
}

impl SharedPool {
    fn full(policy: Policy) -> SharedPool {
        let layout = Layout::new(1 << 16, 4096, 4).unwrap();
        let bytes = layout.total_bytes();
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes as u64).unwrap();
        let buffer = Buffer::new(Mapping::create(&file, layout).unwrap(), policy);
        let mut lane = buffer.lane(ThreadId(7)).unwrap();
        for _ in 0..2 * bytes / size_of::<Api>() {
            lane.write(Api::blank());
        }
        SharedPool {
            buffer,
            lane,
            file,
            bytes,
        }
    }

    /// Runs `meanwhile`, beside which another thread overwrites the memory at random once it is told to.
    fn overwritten(
        mut self,
        mut meanwhile: impl FnMut(&Buffer, &mut gputrail_buffer::Lane, &Overwriting),
    ) {
        let memory = memmap2::MmapOptions::new()
            .len(self.bytes)
            .map_raw(&self.file)
            .unwrap();
        // SAFETY: mapped for as long as `memory`, aligned to 8; all accesses to it are atomic.
        let words: &[AtomicU64] =
            unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), self.bytes / 8) };
        /// Ends the other thread, also when `meanwhile` panics.
        struct Over<'a>(&'a Overwriting);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.is_over.store(true, Ordering::Relaxed);
            }
        }
        let overwriting = Overwriting::default();
        std::thread::scope(|scope| {
            let _over = Over(&overwriting);
            scope.spawn(|| {
                let header: u64 =
                    bytemuck::pod_read_unaligned(&bytemuck::bytes_of(&Api::blank())[..8]);
                let mut random = 0x9e37_79b9_7f4a_7c15_u64;
                while !overwriting.is_over.load(Ordering::Relaxed) {
                    if !overwriting.has_begun.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                        continue;
                    }
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    // Headers of records, and small numbers: states of blocks, and lengths.
                    let value = match random >> 62 {
                        0 => random,
                        1 => random & 0xfff8,
                        2 => random & 7,
                        _ => header,
                    };
                    words[(random >> 20) as usize % words.len()].store(value, Ordering::Relaxed);
                    overwriting.words.fetch_add(1, Ordering::Relaxed);
                }
            });
            meanwhile(&self.buffer, &mut self.lane, &overwriting);
        });
    }
}

#[test]
fn memory_that_a_live_process_changes_meanwhile_is_recovered_to_a_sound_capture() {
    let pool = SharedPool::full(Policy::Discard);
    let left = Mapping::open(&pool.file, pool.bytes).unwrap();
    let (mut records, mut findings) = (0, Vec::new());
    let cause = Cause {
        kind: NoteKind::DIED,
        text: "killed".into(),
    };
    pool.overwritten(|_, _, overwriting| {
        for _ in 0..100 {
            let (file, writer) = capture();
            records += recover(&left, &writer, &cause).records;
            findings.extend(read(&file.path).1);
            overwriting.go_on();
        }
    });
    assert_eq!(findings, [""; 0]);
    assert!(records > 0);
}

#[test]
fn a_dump_shows_bytes_that_stay_as_they_are_while_a_live_process_changes_its_memory() {
    let pool = SharedPool::full(Policy::Overwrite);
    let (mut bytes, mut changed) = (0, 0);
    pool.overwritten(|buffer, _, overwriting| {
        for _ in 0..1000 {
            buffer.dump(Ticks::NONE, |view| {
                let first = view.bytes.to_vec();
                // From the first view on.
                overwriting.go_on();
                changed += u32::from(std::hint::black_box(view.bytes) != first);
                bytes += first.len();
            });
        }
    });
    assert!(bytes > 0);
    assert_eq!(changed, 0);
}

#[test]
fn a_lane_goes_on_when_the_program_overwrites_its_memory() {
    for policy in [Policy::Discard, Policy::Overwrite] {
        SharedPool::full(policy).overwritten(|buffer, lane, overwriting| {
            for number in 0..1000 {
                if number % 100 == 0 {
                    overwriting.go_on();
                }
                for _ in 0..100 {
                    lane.write(Api::blank());
                }
                if number % 10 == 0 {
                    buffer.dump(Ticks::NONE, |_| {});
                }
            }
        });
    }
}

#[test]
fn chunks_appended_behind_a_torn_chunk_are_read() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 0, &run(0, 2))).unwrap();
    let at = writer.bytes();
    writer.records(&view(1, 1, 0, &run(2, 40))).unwrap();
    drop(writer);
    let whole = std::fs::read(&file.path).unwrap();
    for length in (at + 1..whole.len() as u64).step_by(24) {
        std::fs::write(&file.path, &whole[..length as usize]).unwrap();
        // The process died in its write; recovery writes the complete block again.
        let resumed = std::fs::File::options().append(true).open(&file.path);
        let writer = Writer::resume(resumed.unwrap().into()).unwrap();
        writer.records(&view(1, 1, 0, &run(2, 40))).unwrap();
        note(&writer, NoteKind::DIED, "killed");
        writer.records(&view(2, 0, 0, &run(42, 1))).unwrap();
        let (ids, findings) = read(&file.path);
        assert_eq!(ids, (0..43).collect::<Vec<_>>(), "cut at {length}");
        assert_eq!(findings.len(), 1, "cut at {length}: {findings:?}");
        assert!(
            findings[0].starts_with(&format!("at byte {at}"))
                || findings[0].starts_with(&format!("at byte {}: records", at + 48)),
            "{findings:?}"
        );
        let reader = Reader::open(&file.path).unwrap();
        assert_eq!(reader.metadata().notes.len(), 1, "cut at {length}");
    }
}

#[test]
fn a_call_that_died_between_its_record_and_its_place_on_the_stack_is_recovered_once() {
    let (file, writer) = capture();
    let layout = Layout::new(1 << 16, 4096, 4).unwrap();
    let pool = tempfile::tempfile().unwrap();
    pool.set_len(layout.total_bytes() as u64).unwrap();
    let buffer = Buffer::new(Mapping::create(&pool, layout).unwrap(), Policy::Discard);
    let mut lane = buffer.lane(ThreadId(7)).unwrap();
    begin_call(&lane, 0, 5, 1);
    begin_call(&lane, 1, 6, 2);
    let mut api = Api::blank();
    api.correlation = CorrelationId(2);
    lane.write(api);
    std::mem::forget(lane);
    let left = Mapping::open(&pool, layout.total_bytes()).unwrap();
    let cause = Cause {
        kind: NoteKind::DIED,
        text: "killed by signal 9".into(),
    };
    assert_eq!(recover(&left, &writer, &cause).open_calls, 1);
    assert_eq!(read(&file.path), (vec![2, 1], vec![]));
}

#[test]
fn calls_in_progress_when_a_process_ended_are_added_to_its_capture() {
    let (file, writer) = capture();
    let layout = Layout::new(1 << 16, 4096, 4).unwrap();
    let buffer = Buffer::new(Mapping::anonymous(layout).unwrap(), Policy::Discard);
    let mut lane = buffer.lane(ThreadId(7)).unwrap();
    begin_call(&lane, 0, 5, 1);
    begin_call(&lane, 1, 6, 2);
    let mut api = Api::blank();
    api.correlation = CorrelationId(2);
    lane.write(api);
    recover::write_open_calls(buffer.mapping(), &writer);
    // The record of call 2 is in the block, from where the collector takes it.
    assert_eq!(read(&file.path), (vec![1], vec![]));
}

#[test]
fn a_capture_that_grows_is_followed_as_far_as_it_has_been_written() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 0, &run(0, 3))).unwrap();
    Names::writing_to(writer.clone()).string("hello");
    writer.records(&view(1, 0, 192, &run(3, 2))).unwrap();
    let whole = std::fs::read(&file.path).unwrap();
    let growing = file.path.with_extension("growing");
    // Each byte arrives alone.
    let mut follower = None;
    let (mut ids, mut names) = (Vec::new(), 0);
    for length in 0..=whole.len() {
        std::fs::write(&growing, &whole[..length]).unwrap();
        if follower.is_none() {
            follower = Follower::open(&growing).unwrap();
        }
        let Some(follower) = &mut follower else {
            assert!(length < size_of::<FileHeader>());
            continue;
        };
        loop {
            match follower.step().unwrap() {
                Step::Records(chunk) => ids.extend(
                    chunk
                        .records()
                        .filter_map(|record| record.read::<Api>())
                        .map(|api| api.correlation.0),
                ),
                Step::Metadata(records) => names += records.count(),
                Step::Nothing => break,
            }
        }
    }
    assert_eq!((ids, names), (vec![0, 1, 2, 3, 4], 1));
    // Damage is found where it is.
    let second = size_of::<FileHeader>() + size_of::<ChunkHeader>() + 3 * size_of::<Api>();
    let mut damaged = whole;
    damaged[second] ^= 1;
    std::fs::write(&growing, &damaged).unwrap();
    let mut follower = Follower::open(&growing).unwrap().unwrap();
    assert!(matches!(follower.step(), Ok(Step::Records(_))));
    let finding = follower.step().unwrap_err();
    assert_eq!(finding.offset, second as u64);
}

proptest::proptest! {
    #[test]
    fn a_capture_of_arbitrary_bytes_never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
        let (file, _) = capture();
        let mut contents = std::fs::read(&file.path).unwrap();
        contents.extend(bytes);
        std::fs::write(&file.path, contents).unwrap();
        read(&file.path);
    }
}

#[test]
fn bytes_that_look_like_chunks_everywhere_are_stepped_over_in_one_pass() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 0, &run(0, 2))).unwrap();
    let mut bytes = std::fs::read(&file.path).unwrap();
    let sound = bytes.len() as u64;
    // 8 MiB of magic numbers: reading a window for each of them would take minutes.
    bytes.extend(b"GTCK\0\0\0\0".repeat(1 << 20));
    let chunk = bytes[size_of::<FileHeader>()..sound as usize].to_vec();
    bytes.extend(&chunk);
    std::fs::write(&file.path, bytes).unwrap();
    let (ids, findings) = read(&file.path);
    assert_eq!(ids, [0, 1], "the same run twice counts once");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains("8 388 608 bytes outside of chunks"));
}

#[test]
fn chunks_that_all_claim_the_rest_of_the_file_cost_no_more_than_reading_it_a_few_times() {
    let (file, writer) = capture();
    writer.records(&view(1, 0, 0, &run(0, 2))).unwrap();
    let mut bytes = std::fs::read(&file.path).unwrap();
    const CHUNKS: usize = 1 << 16;
    for left in (0..CHUNKS).rev() {
        // Reading the claimed length of each would be 100 GB.
        let mut header = ChunkHeader::new(ChunkKind::RECORDS, &[]);
        header.payload_bytes = (left * ChunkHeader::BYTES) as u32;
        header.payload_checksum = 1;
        bytes.extend_from_slice(bytemuck::bytes_of(&header.sealed()));
    }
    std::fs::write(&file.path, bytes).unwrap();
    let (ids, findings) = read(&file.path);
    assert_eq!(ids, [0, 1]);
    assert!(!findings.is_empty());
}
