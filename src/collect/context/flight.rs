//! The flight recorder: keeps what was recorded last, and writes it out when something happens, while the
//! program goes on.
//!
//! Names never fall out of it: a dump begins with everything that has been named, and with the readings of the
//! clocks. What triggers a dump, besides the tool itself ([`FlightRecorder::dump`]): a signal, or a call that was slower
//! than a threshold. Triggered dumps are written by a thread of ours, never by the thread that made the call.

use super::{Context, ToolError, check_kinds};
use crate::buffer::{BlockView, Buffer, Layout, Mapping, Policy};
use crate::capture::Writer;
use crate::clock;
use crate::collect::process;
use crate::collect::recorder::{DEFAULT_BLOCK_BYTES, DEFAULT_LANES, DEFAULT_POOL_BYTES, Recorder};
use crate::collect::switchboard::{BufferKey, Consumer, Selection, SlowCalls, Switchboard};
use crate::platform::sync::lock_std;
use crate::platform::system::{self, sleep_on, wake};
use crate::record::{ClockSnapshot, KINDS, ProcessId, Ticks};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How a flight recorder works.
#[derive(Clone, Debug)]
pub struct FlightOptions {
    /// Bytes that are kept, of all threads together.
    pub keep_bytes: usize,
    /// Time that is written out, counted back from the dump, as far as the memory reaches; `None` for all of it. Blocks
    /// are written as a whole: a dump may begin somewhat earlier.
    pub keep_time: Option<Duration>,
    /// Bytes of a block: the smallest piece that is overwritten. A multiple of 4096.
    pub block_bytes: usize,
    /// Threads that may record at a time.
    pub threads: u32,
    /// What is recorded.
    pub selection: Selection,
    /// Where triggered dumps go, as `flight-PROCESS-NUMBER.gputrail`.
    pub folder: PathBuf,
    /// Triggered dumps, at most.
    pub most_dumps: u32,
    /// A call that takes at least as long triggers a dump.
    pub slow_call: Option<Duration>,
    /// This signal triggers a dump. It must be one that the program has no handler for.
    pub signal: Option<i32>,
}

impl Default for FlightOptions {
    fn default() -> Self {
        FlightOptions {
            keep_bytes: DEFAULT_POOL_BYTES,
            keep_time: None,
            block_bytes: DEFAULT_BLOCK_BYTES,
            threads: DEFAULT_LANES,
            selection: Selection::all(),
            folder: PathBuf::from("."),
            most_dumps: 10,
            slow_call: None,
            signal: None,
        }
    }
}

/// A dump that has been written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dump {
    /// The capture.
    pub path: PathBuf,
    /// Records in it, without names.
    pub records: u64,
    /// Records that were dropped so far, since all blocks were being read: the capture has reports of them.
    pub dropped: u64,
}

/// Records into memory that it goes over again and again. Dropping it ends it, and writes nothing.
#[derive(Debug)]
pub struct FlightRecorder {
    inner: Arc<Inner>,
    context: Context,
}

struct Inner {
    board: Arc<Switchboard>,
    key: BufferKey,
    buffer: Buffer,
    options: FlightOptions,
    began: ClockSnapshot,
    /// Held while a dump is written; the dumps that were triggered.
    dumps: Mutex<Vec<Dump>>,
    /// Calls that were slow.
    slow_calls: Option<SlowCalls>,
    ended: AtomicBool,
}

/// What triggered dumps wait for: changes with each trigger, of any recorder.
static TRIGGERS: AtomicU32 = AtomicU32::new(0);

/// Signals that a recorder has a handler for.
const SIGNALS: usize = 65;
/// How often each signal has come.
static SIGNALLED: [AtomicU32; SIGNALS] = [const { AtomicU32::new(0) }; SIGNALS];

/// Something has happened: those that wait look what.
fn trigger() {
    TRIGGERS.fetch_add(1, Ordering::Release);
    wake(&TRIGGERS, u32::MAX >> 1);
}

extern "C" fn on_signal(signal: libc::c_int) {
    // Nothing here but atomics and one system call: both are allowed in handlers.
    if let Some(count) = SIGNALLED.get(signal as usize) {
        count.fetch_add(1, Ordering::Release);
        let errno = system::errno();
        // SAFETY: errno is the interrupted thread's; it is put back.
        let before = unsafe { *errno };
        trigger();
        // SAFETY: as above.
        unsafe { *errno = before };
    }
}

/// Lets `signal` count, unless the program has a handler for it.
fn handle(signal: i32) -> io::Result<()> {
    if !(1..SIGNALS as i32).contains(&signal) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: zeroed actions are valid memory, and `on_signal` does only what handlers may.
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
    /// Begins to record this process.
    ///
    /// # Errors
    ///
    /// [`ToolError::Layout`], [`ToolError::Memory`], [`ToolError::Thread`], [`ToolError::TooMany`],
    /// [`ToolError::NotAvailable`] as for a buffer; [`ToolError::NotAlone`] for kinds that need others;
    /// [`ToolError::Signal`] for a signal that cannot be had.
    pub fn start(options: FlightOptions) -> Result<FlightRecorder, ToolError> {
        let board = process::begin_for_tool().ok_or(ToolError::NotAvailable)?;
        Self::start_on(board, options)
    }

    /// Begins to record what comes by way of `board`.
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
            inner: Arc::new(Inner {
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
            Consumer::Buffer(key.slot),
            inner.options.selection.clone(),
        )?;
        if inner.options.slow_call.is_some() || inner.options.signal.is_some() {
            let runs = inner.clone();
            let seen = runs.triggers();
            crate::platform::internal_thread::spawn(move || runs.run(seen))
                .map_err(ToolError::Thread)?;
        }
        recorder.context.start()?;
        Ok(recorder)
    }

    /// Writes what is kept now to a new capture at `path`, while the program goes on.
    ///
    /// # Errors
    ///
    /// The system's: among others where there is such a file already.
    pub fn dump(&self, path: &Path) -> io::Result<Dump> {
        let _alone = lock_std(&self.inner.dumps);
        self.inner.dump(path)
    }

    /// The dumps that signals and slow calls have triggered so far.
    pub fn triggered(&self) -> Vec<Dump> {
        lock_std(&self.inner.dumps).clone()
    }
}

impl Inner {
    /// How often what triggers dumps has happened: signals, and slow calls.
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
        if number > self.options.most_dumps {
            return;
        }
        let name = format!("flight-{}-{number}.gputrail", std::process::id());
        // What cannot be written is not there: nobody is to be told on this thread.
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
            // An error stays with the writer.
            let _ = writer.records(view);
        });
        // Once more: what was named meanwhile may be referred to.
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

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        self.inner.ended.store(true, Ordering::Release);
        // What follows computes the interests anew.
        self.inner.slow_calls.iter().for_each(SlowCalls::end);
        let _ = self.context.stop();
        self.inner.board.remove_buffer(self.inner.key);
        trigger();
    }
}
