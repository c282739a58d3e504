//! The flight recorder: keeps the latest records in memory, and writes them to a file on demand while the program
//! continues.
//!
//! Names are never overwritten: a dump starts with all names and clock readings. A dump is triggered by the tool
//! ([`FlightRecorder::dump`]), by a signal, or by a call that takes longer than a threshold. An internal thread writes
//! triggered dumps, not the thread of the call.

use super::{Context, ToolError, check_kinds};
use crate::process;
use crate::recorder::{DEFAULT_BLOCK_BYTES, DEFAULT_LANES, DEFAULT_POOL_BYTES, Recorder};
use crate::switchboard::{BufferKey, RecordSelection, ServiceConsumer, SlowCalls, Switchboard};
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::platform::system::{self, sleep_on, wake};
use gputrail_buffer::{BlockView, Buffer, Layout, Mapping, Policy};
use gputrail_capture::Writer;
use gputrail_record::{ClockSnapshot, KINDS, ProcessId, Ticks};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The options of a flight recorder.
#[derive(Clone, Debug)]
pub struct FlightOptions {
    /// The memory for records of all threads together, in bytes.
    pub keep_bytes: usize,
    /// The time span before a dump that is written, as far as the memory reaches; `None` for everything. Blocks are
    /// written completely, so a dump may begin somewhat earlier.
    pub keep_time: Option<Duration>,
    /// The size of a block in bytes, the unit of overwriting. A multiple of 4096.
    pub block_bytes: usize,
    /// The number of threads that may record at a time.
    pub threads: u32,
    /// The records to keep.
    pub selection: RecordSelection,
    /// The folder for triggered dumps, `flight-PROCESS-NUMBER.gputrail`.
    pub folder: PathBuf,
    /// The most triggered dumps.
    pub max_dumps: u32,
    /// The duration of a call that triggers a dump.
    pub slow_call: Option<Duration>,
    /// The signal that triggers a dump. The program must not have a handler for it.
    pub signal: Option<i32>,
}

impl Default for FlightOptions {
    fn default() -> Self {
        FlightOptions {
            keep_bytes: DEFAULT_POOL_BYTES,
            keep_time: None,
            block_bytes: DEFAULT_BLOCK_BYTES,
            threads: DEFAULT_LANES,
            selection: RecordSelection::all(),
            folder: PathBuf::from("."),
            max_dumps: 10,
            slow_call: None,
            signal: None,
        }
    }
}

/// A written dump.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dump {
    /// The capture.
    pub path: PathBuf,
    /// The number of records without names.
    pub records: u64,
    /// The number of records dropped so far because all blocks were being read, as reported in the capture.
    pub dropped: u64,
}

/// A running flight recorder. Dropping it ends recording without writing anything. In a forked child, one of its parent
/// keeps nothing, and dropping it does nothing.
#[derive(Debug)]
pub struct FlightRecorder {
    inner: Arc<RecorderState>,
    context: Context,
}

struct RecorderState {
    board: Arc<Switchboard>,
    key: BufferKey,
    buffer: Buffer,
    options: FlightOptions,
    began: ClockSnapshot,
    /// The triggered dumps. Locked while a dump is written.
    dumps: Mutex<Vec<Dump>>,
    /// The watch for slow calls.
    slow_calls: Option<SlowCalls>,
    ended: AtomicBool,
}

/// The futex of triggered dumps: changes with each trigger of any recorder.
static TRIGGERS: AtomicU32 = AtomicU32::new(0);

/// The number of signals, which is the size of the table of handled ones.
const SIGNALS: usize = 65;
/// How often each signal has been received.
static SIGNALLED: [AtomicU32; SIGNALS] = [const { AtomicU32::new(0) }; SIGNALS];

/// Wakes the recorders to look for triggers.
fn trigger() {
    TRIGGERS.fetch_add(1, Ordering::Release);
    wake(&TRIGGERS, u32::MAX >> 1);
}

extern "C" fn on_signal(signal: libc::c_int) {
    // Async-signal-safe: atomics and one system call.
    if let Some(count) = SIGNALLED.get(signal as usize) {
        count.fetch_add(1, Ordering::Release);
        let errno = system::errno();
        // SAFETY: errno of the interrupted thread, restored below.
        let before = unsafe { *errno };
        trigger();
        // SAFETY: as above.
        unsafe { *errno = before };
    }
}

/// Installs the handler for `signal`, unless the program has one.
fn handle(signal: i32) -> io::Result<()> {
    if !(1..SIGNALS as i32).contains(&signal) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: zeroed actions are valid, and `on_signal` is async-signal-safe.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut now) != 0 {
            return Err(io::Error::last_os_error());
        }
        let ours = on_signal as *const () as usize;
        if now.sa_sigaction == ours {
            return Ok(());
        }
        if ![libc::SIG_DFL, libc::SIG_IGN].contains(&now.sa_sigaction) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = ours;
        new.sa_flags = libc::SA_RESTART;
        match libc::sigaction(signal, &new, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl FlightRecorder {
    /// Starts recording this process.
    ///
    /// # Errors
    ///
    /// [`ToolError::Layout`], [`ToolError::Memory`], [`ToolError::Thread`], [`ToolError::TooMany`],
    /// [`ToolError::NotAvailable`] as for a buffer; [`ToolError::NotAlone`] for kinds that complement others;
    /// [`ToolError::Signal`].
    pub fn start(options: FlightOptions) -> Result<FlightRecorder, ToolError> {
        let board = process::begin_for_tool().ok_or(ToolError::NotAvailable)?;
        Self::start_on(board, options)
    }

    /// Like [`FlightRecorder::start`], for `board`.
    ///
    /// # Errors
    ///
    /// As for [`FlightRecorder::start`].
    pub fn start_on(
        board: &Arc<Switchboard>,
        options: FlightOptions,
    ) -> Result<FlightRecorder, ToolError> {
        check_kinds(options.selection.kinds)?;
        let layout = Layout::new(options.keep_bytes, options.block_bytes, options.threads)?;
        let mapping = Mapping::anonymous(layout)?;
        let _ = mapping.keep_from_children();
        clock::init();
        mapping.begin();
        let buffer = Buffer::new(mapping, Policy::Overwrite);
        if let Some(signal) = options.signal {
            handle(signal).map_err(|source| ToolError::Signal { signal, source })?;
        }
        let context = Context::on(board)?;
        let key = board.add_buffer(buffer.clone())?;
        let slow_calls = options
            .slow_call
            .map(|slow| board.watch_slow_calls(slow, trigger));
        let recorder = FlightRecorder {
            inner: Arc::new(RecorderState {
                board: board.clone(),
                key,
                buffer,
                began: clock::snapshot(),
                dumps: Mutex::default(),
                slow_calls,
                ended: AtomicBool::new(false),
                options,
            }),
            context,
        };
        let inner = &recorder.inner;
        board.add_service(
            recorder.context.key,
            ServiceConsumer::Buffer(key.slot),
            inner.options.selection.clone(),
        )?;
        if inner.options.slow_call.is_some() || inner.options.signal.is_some() {
            let runs = inner.clone();
            let seen = runs.triggers();
            gputrail_buffer::platform::internal_thread::spawn(move || runs.run(seen))
                .map_err(ToolError::Thread)?;
        }
        recorder.context.start()?;
        Ok(recorder)
    }

    /// Writes the kept records to a new capture at `path` while the program continues.
    ///
    /// # Errors
    ///
    /// Errors of the system, for example if the file exists.
    pub fn dump(&self, path: &Path) -> io::Result<Dump> {
        if self.inner.board.is_inherited() {
            return Err(io::Error::other(ToolError::NoSuchBuffer));
        }
        let _alone = lock_std(&self.inner.dumps);
        self.inner.dump(path)
    }

    /// The dumps triggered so far by signals and slow calls.
    pub fn triggered(&self) -> Vec<Dump> {
        if self.inner.board.is_inherited() {
            return Vec::new();
        }
        lock_std(&self.inner.dumps).clone()
    }
}

impl RecorderState {
    /// The number of trigger events so far: signals, and slow calls.
    fn triggers(&self) -> (u32, u32) {
        let signal = self.options.signal.unwrap_or(0) as usize;
        let signals = SIGNALLED[signal % SIGNALS].load(Ordering::Acquire);
        let slow = self.slow_calls.as_ref().map_or(0, SlowCalls::count);
        (signals, slow)
    }

    fn run(&self, mut known: (u32, u32)) {
        loop {
            let seen = TRIGGERS.load(Ordering::Acquire);
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            let now = self.triggers();
            if now != known {
                known = now;
                self.dump_triggered();
            }
            sleep_on(&TRIGGERS, seen, Duration::from_secs(1));
        }
    }

    fn dump_triggered(&self) {
        let mut dumps = lock_std(&self.dumps);
        let number = dumps.len() as u32 + 1;
        if number > self.options.max_dumps {
            return;
        }
        let name = format!("flight-{}-{number}.gputrail", std::process::id());
        // Errors are ignored: there is nobody to report them to on this thread.
        if let Ok(dump) = self.dump(&self.options.folder.join(name)) {
            dumps.push(dump);
        }
    }

    fn dump(&self, path: &Path) -> io::Result<Dump> {
        let ticks = clock::init();
        let process = ProcessId(std::process::id());
        let writer = Writer::create(path, &Recorder::file_header(ticks, process))?;
        let names = self.board.names();
        Recorder::describe(names, "flight recorder");
        names.write_all_to(&writer);
        let _ = writer.metadata_record(&self.began);
        let now = clock::snapshot();
        let since = self.options.keep_time.map_or(Ticks::NONE, |keep| {
            Ticks(clock::now().0.saturating_sub(clock::ticks_of(keep)))
        });
        let mut records = 0;
        self.buffer.dump(since, |view: &BlockView<'_>| {
            records += view.records().count() as u64;
            // The writer holds its error.
            let _ = writer.records(view);
        });
        // Once more: the records may refer to names added meanwhile.
        names.write_all_to(&writer);
        let _ = writer.metadata_record(&now);
        let _ = writer.end();
        if let Some((error, _)) = writer.error() {
            return Err(match error.errno {
                0 => io::Error::other(error),
                errno => io::Error::from_raw_os_error(errno),
            });
        }
        let dropped = self.buffer.dropped();
        Ok(Dump {
            path: path.to_owned(),
            records,
            dropped: (0..KINDS).map(|kind| dropped[kind]).sum(),
        })
    }
}

impl std::fmt::Debug for RecorderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        if self.inner.board.is_inherited() {
            // As with a buffer of the parent.
            std::mem::forget(self.inner.clone());
            return;
        }
        self.inner.ended.store(true, Ordering::Release);
        // The next step computes the interests again.
        self.inner.slow_calls.iter().for_each(SlowCalls::end);
        let _ = self.context.stop();
        self.inner.board.remove_buffer(self.inner.key);
        trigger();
    }
}
