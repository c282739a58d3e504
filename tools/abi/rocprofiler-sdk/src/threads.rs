//! Threads that call the callbacks of buffers, and those who are told when the library makes one.
//!
//! A buffer whose program assigns no thread uses the first one, which all such buffers share. A forked child has none of its parent's
//! threads: what is given to them there is dropped.

use crate::buffer;
use crate::load;
use crate::place::place_of;
use crate::result::{Answer, api, failed};
use core::ffi::{c_int, c_void};
use gputrail_abi::{contained, lock};
use gputrail_buffer::platform::sync::with_signals_blocked;
use gputrail_rocprofiler::{BufferId, CallbackThread, RuntimeLibrary, Status, ThreadCallback};
use gputrail_tool::{InternalThread, InternalThreadWatch};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

/// Work for a thread.
type Job = Box<dyn FnOnce() + Send>;

/// A thread that does one piece of work after the other.
pub struct Worker {
    queue: Mutex<VecDeque<Job>>,
    arrived: Condvar,
    /// The process that has the thread.
    process: u32,
    thread: OnceLock<ThreadId>,
}

impl Worker {
    /// `OUT_OF_RESOURCES` where the system refuses a thread.
    fn new() -> Answer<Arc<Worker>> {
        let worker = Arc::new(Worker {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            process: std::process::id(),
            thread: OnceLock::new(),
        });
        tell(InternalThread::Before);
        let of_thread = worker.clone();
        let spawned = with_signals_blocked(|| {
            std::thread::Builder::new()
                .name("gputrail".into())
                .spawn(move || of_thread.work())
        });
        tell(InternalThread::After);
        let handle = spawned.map_err(|_| Status::ERROR_OUT_OF_RESOURCES)?;
        let _ = worker.thread.set(handle.thread().id());
        Ok(worker)
    }

    fn work(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let job = loop {
                match queue.pop_front() {
                    Some(job) => break job,
                    None => {
                        let waited = self.arrived.wait(queue);
                        queue = waited.unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(queue);
            contained(job);
        }
    }

    /// Whether the calling thread is this one.
    pub fn is_current(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// Has `job` done after what has been given before. `false` in a forked child, which does not have the thread.
    pub fn give(&self, job: impl FnOnce() + Send + 'static) -> bool {
        if std::process::id() != self.process {
            return false;
        }
        lock(&self.queue).push_back(Box::new(job));
        self.arrived.notify_one();
        true
    }

    /// [`Worker::give`], and waits until it is done. Not on the thread itself.
    pub fn do_now<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (done, answer) = std::sync::mpsc::channel();
        self.give(move || {
            let _ = done.send(job());
        });
        // Without the thread, or after a panic, nobody sends.
        answer.recv().ok()
    }
}

/// The threads of this process; the handle of one is its place. The first is that of buffers without one.
static THREADS: Mutex<Vec<Arc<Worker>>> = Mutex::new(Vec::new());

/// The thread of buffers without one. It is made when it is first asked for.
pub fn first() -> Answer<Arc<Worker>> {
    let made = lock(&THREADS).first().cloned();
    match made {
        Some(first) => Ok(first),
        None => {
            // Made without the lock: those who are told may make threads.
            let new = Worker::new()?;
            let mut threads = lock(&THREADS);
            if threads.is_empty() {
                threads.push(new);
            }
            threads.first().cloned().ok_or(Status::ERROR)
        }
    }
}

/// Makes a thread for callbacks.
///
/// # Safety
///
/// `thread` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_callback_thread(thread: *mut CallbackThread) -> Status {
    api(|| {
        if load::is_initialised() {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        // SAFETY: `thread` is null or a place for a handle.
        let place = unsafe { place_of(thread) }?;
        first()?;
        let new = Worker::new()?;
        let mut threads = lock(&THREADS);
        threads.push(new);
        place.put(CallbackThread {
            handle: threads.len() as u64 - 1,
        });
        Ok(())
    })
}

/// Has a buffer's callback called on a thread.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_assign_callback_thread(
    buffer: BufferId,
    thread: CallbackThread,
) -> Status {
    api(|| {
        if load::is_initialised() {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        let place = usize::try_from(thread.handle).unwrap_or(usize::MAX);
        let found = lock(&THREADS).get(place).cloned();
        let found = found.ok_or(Status::ERROR_THREAD_NOT_FOUND)?;
        buffer::found(buffer)?.assign(found);
        Ok(())
    })
}

/// Functions of a client that are told of new threads.
#[derive(Copy, Clone)]
struct Told {
    before: Option<ThreadCallback>,
    after: Option<ThreadCallback>,
    data: *mut c_void,
}

// SAFETY: the pointer is passed on to the client's functions alone.
unsafe impl Send for Told {}

static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());

fn tell(moment: InternalThread) {
    let told = lock(&TOLD).clone();
    for one in told {
        let function = match moment {
            InternalThread::Before => one.before,
            InternalThread::After => one.after,
        };
        if let Some(function) = function {
            // SAFETY: the client's function for this, with its data.
            unsafe { function(RuntimeLibrary::LIBRARY, one.data) };
        }
    }
}

/// Has functions called before and after the library makes a thread. `libraries` are bits; 0 is all. The threads of runtimes are not
/// told of.
///
/// # Safety
///
/// `before` and `after` take `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_at_internal_thread_create(
    before: Option<ThreadCallback>,
    after: Option<ThreadCallback>,
    libraries: c_int,
    data: *mut c_void,
) -> Status {
    api(|| {
        if libraries != 0 && libraries & RuntimeLibrary::LIBRARY.0 == 0 {
            return Ok(());
        }
        lock(&TOLD).push(Told {
            before,
            after,
            data,
        });
        watch_gputrail()
    })
}

/// Has the makers of threads told of gputrail's own threads, if it is in the process.
pub fn watch_gputrail() -> Answer {
    static WATCH: OnceLock<InternalThreadWatch> = OnceLock::new();
    if WATCH.get().is_some() || lock(&TOLD).is_empty() || !gputrail_abi::is_initialised() {
        return Ok(());
    }
    let _ = WATCH.set(InternalThreadWatch::new(tell).map_err(failed)?);
    Ok(())
}
