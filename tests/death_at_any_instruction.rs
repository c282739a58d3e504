//! A process that dies at any instruction of its drops, reports and ends: recovery finds every record once, written or
//! counted as dropped.
//!
//! The parent single-steps a child through the code, and recovers copies of its pool and capture after each instruction
//! that changed one of them.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    stepped::main();
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod stepped {
    use gputrail_buffer::{Buffer, Collector, CollectorOptions, Layout, Mapping, Policy};
    use gputrail_capture::{CaptureSink, Cause, FileHeader, Reader, Writer, recover};
    use gputrail_record::*;
    use std::fs::{File, OpenOptions};
    use std::path::Path;
    use std::process::Command;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The environment variable with the directory of the child and the name of its task.
    const CHILD: &str = "GPUTRAIL_TEST_STEPPED";
    const RECORDS_PER_BLOCK: u64 = 4096 / 64;

    /// The number of records that the child has begun to write, and of those that it has written or dropped.
    #[repr(C)]
    struct Counts {
        begun: AtomicU64,
        done: AtomicU64,
    }

    fn layout() -> Layout {
        Layout::new(2 * 4096, 4096, 2).unwrap()
    }

    /// The file's memory, which stays mapped.
    fn map(path: &Path) -> &'static memmap2::MmapRaw {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(path).unwrap();
        let memory = memmap2::MmapOptions::new().map_raw(&file);
        Box::leak(Box::new(memory.unwrap()))
    }

    fn counts(directory: &Path) -> &'static Counts {
        let memory = map(&directory.join("counts"));
        // SAFETY: a page that stays mapped, shared with the other process, of atomics for which all bytes are valid.
        unsafe { &*memory.as_ptr().cast() }
    }

    pub fn main() {
        if let Some(task) = std::env::var_os(CHILD) {
            let task = task.into_string().unwrap();
            let (name, directory) = task.split_once(':').unwrap();
            return child(name, Path::new(directory));
        }
        for name in ["next block", "next lane", "end of the session"] {
            step(name);
        }
    }

    fn child(name: &str, directory: &Path) {
        let mut options = OpenOptions::new();
        let pool = options.read(true).write(true).open(directory.join("pool"));
        let mapping = Mapping::create(&pool.unwrap(), layout()).unwrap();
        let buffer = Buffer::new(mapping, Policy::Discard);
        let header = FileHeader::new(2, ProcessId(1), 1_000_000_000, 0, [0; 16]);
        let writer = Writer::create(&directory.join("capture"), &header).unwrap();
        let sink = CaptureSink::new(writer);
        let options = CollectorOptions::default();
        let collector = Collector::without_thread(buffer.clone(), vec![Box::new(sink)], options);
        let mut lane = buffer.lane(ThreadId(7)).unwrap();
        let counts = counts(directory);
        let mut number = 0;
        let mut write = |lane: &mut gputrail_buffer::Lane, records: u64| {
            for _ in 0..records {
                number += 1;
                counts.begun.store(number, Ordering::SeqCst);
                lane.write(Api::blank());
                counts.done.store(number, Ordering::SeqCst);
            }
        };
        write(&mut lane, 2 * RECORDS_PER_BLOCK - 1);
        // SAFETY: the parent expects both.
        unsafe {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
        }
        // The last record that fits, and three that do not.
        write(&mut lane, 4);
        match name {
            "next block" => {
                collector.flush();
                write(&mut lane, 2);
            }
            "next lane" => {
                drop(lane);
                collector.flush();
                // Both slots of drops are in use: one has the drops of the lane that has ended.
                let mut lanes = [8, 9].map(|thread| buffer.lane(ThreadId(thread)).unwrap());
                lanes.iter_mut().for_each(|lane| write(lane, 2));
            }
            _ => {
                buffer.count_unlaned(Kind::CLOCK_PAIR);
                collector.finish();
            }
        }
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }

    fn step(name: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let pool = File::create(path("pool")).unwrap();
        pool.set_len(layout().total_bytes() as u64).unwrap();
        File::create(path("counts")).unwrap().set_len(4096).unwrap();
        let counts = counts(directory.path());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(CHILD, format!("{name}:{}", directory.path().display()));
        // The loop below waits for the child, by its id.
        #[allow(clippy::zombie_processes)]
        let child = command.spawn().unwrap();
        let pid = child.id() as libc::pid_t;
        let memory = map(&path("pool"));
        let (mut pool, mut bytes, mut states, mut steps) = (Vec::new(), 0, 0, 0);
        loop {
            let mut status = 0;
            // SAFETY: the child is ours, and `status` is writable.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            if !libc::WIFSTOPPED(status) {
                assert!(
                    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
                    "{name}"
                );
                break;
            }
            // SAFETY: the memory stays mapped, and the only process that writes it is stopped.
            let now = unsafe { std::slice::from_raw_parts(memory.as_ptr(), memory.len()) };
            let bytes_now = std::fs::metadata(path("capture")).unwrap().len();
            if bytes_now != bytes || *now != pool[..] {
                (pool, bytes) = (now.to_vec(), bytes_now);
                let capture = std::fs::read(path("capture")).unwrap();
                let found = found(directory.path(), &pool, &capture);
                let begun = counts.begun.load(Ordering::SeqCst);
                let done = counts.done.load(Ordering::SeqCst);
                assert!(
                    (done..=begun).contains(&found),
                    "{name}, instruction {steps}: {found} records found, {done} to {begun} made"
                );
                states += 1;
            }
            steps += 1;
            // SAFETY: the child is stopped.
            let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, pid, 0, 0) };
            assert_eq!(stepped, 0);
        }
        println!("{name}: {steps} instructions, {states} states");
        assert!(states > 20, "{name}: only {states} states were seen");
    }

    /// The number of API records that a recovery of these contents finds, written or counted as dropped.
    fn found(directory: &Path, pool: &[u8], capture: &[u8]) -> u64 {
        let path = |name: &str| directory.join(name);
        std::fs::write(path("pool copy"), pool).unwrap();
        std::fs::write(path("capture copy"), capture).unwrap();
        let mut options = OpenOptions::new();
        let pool_file = options.read(true).write(true).open(path("pool copy"));
        let mapping = Mapping::open(&pool_file.unwrap(), pool.len()).unwrap();
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).open(path("capture copy"));
        let writer = Writer::resume(file.unwrap().into()).unwrap();
        let cause = Cause {
            kind: NoteKind::DIED,
            text: "stepped".into(),
        };
        recover(&mapping, &writer, &cause);
        let reader = Reader::open(&path("capture copy")).unwrap();
        let (mut found, mut chunks) = (0, reader.chunks());
        while let Some(chunk) = chunks.next() {
            for record in chunk.records() {
                if let Some(loss) = record.read::<Loss>().filter(|loss| loss.lost == Kind::API) {
                    found += loss.count;
                }
                let api = record.read::<Api>();
                found += u64::from(api.is_some_and(|api| !api.header.has(flags::RECOVERED)));
            }
        }
        found
    }
}
