//! Callback threads: each serves the collectors that are assigned to it, one after the other.
//!
//! A tool creates them and assigns buffers to them. Buffers without one are served by a thread that all such buffers of
//! a process share, and that exists while there are such buffers. A callback that takes long delays the buffers of its
//! own thread only.

use super::collector::CollectorState;
use super::wake::Wake;
use crate::platform::sync::lock_std;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// Maximum number of callback threads of a process.
pub const CALLBACK_THREADS: usize = 64;

/// Maximum sleep of a thread without collectors.
const IDLE: Duration = Duration::from_millis(100);

/// The words on which the threads sleep. Never freed: a lane may use a number for a moment after its buffer has got
/// another thread, and then wakes a thread needlessly.
static WAKES: [Wake; CALLBACK_THREADS] = [const { Wake::new() }; CALLBACK_THREADS];

/// The numbers of the threads of one process.
struct Numbers {
    process: u32,
    /// Bit `n` is set if there is a thread with number `n`.
    taken: AtomicU64,
}

/// The numbers of the process that used them last: a forked child has none of its parent's threads. Never freed.
static NUMBERS: AtomicPtr<Numbers> = AtomicPtr::new(std::ptr::null_mut());

fn numbers() -> &'static Numbers {
    let process = std::process::id();
    loop {
        let there = NUMBERS.load(Ordering::Acquire);
        // SAFETY: null or a leaked box.
        if let Some(numbers) = unsafe { there.as_ref() }
            && numbers.process == process
        {
            return numbers;
        }
        let new = Box::into_raw(Box::new(Numbers {
            process,
            taken: AtomicU64::new(0),
        }));
        let stored = NUMBERS.compare_exchange(there, new, Ordering::AcqRel, Ordering::Relaxed);
        if stored.is_err() {
            // SAFETY: made just above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// The word on which callback thread `number` sleeps.
pub(super) fn wake_of(number: u32) -> &'static Wake {
    &WAKES[number as usize % CALLBACK_THREADS]
}

/// A thread of the library that calls tools back with records. Clones are handles to the same thread, which ends when
/// the last one is dropped and no buffer is assigned to it.
#[derive(Clone)]
pub struct CallbackThread {
    handle: Arc<ThreadHandle>,
}

/// A handle, which keeps the thread alive.
struct ThreadHandle {
    service: Arc<Service>,
}

/// The state that the thread and its handles share.
struct Service {
    number: u32,
    process: u32,
    serves: Mutex<Vec<Weak<CollectorState>>>,
    ended: AtomicBool,
}

impl CallbackThread {
    /// A thread without collectors.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::QuotaExceeded`] with [`CALLBACK_THREADS`] of them; else the system's.
    pub fn create() -> io::Result<CallbackThread> {
        let numbers = numbers();
        let take = |taken: u64| (taken != u64::MAX).then(|| taken | 1 << taken.trailing_ones());
        let taken = &numbers.taken;
        let taken = taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, take);
        let number = match taken {
            Ok(before) => before.trailing_ones(),
            Err(_) => return Err(io::ErrorKind::QuotaExceeded.into()),
        };
        let service = Arc::new(Service {
            number,
            process: numbers.process,
            serves: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        let runs = service.clone();
        // If the thread cannot be created, the drop releases the number.
        let handle = Arc::new(ThreadHandle { service });
        crate::platform::internal_thread::spawn(move || runs.run())?;
        Ok(CallbackThread { handle })
    }

    /// The thread in `shared`, or a new one that is stored there.
    pub fn shared(shared: &Mutex<SharedThread>) -> io::Result<CallbackThread> {
        let mut shared = lock_std(shared);
        if let Some(handle) = shared.0.upgrade() {
            return Ok(CallbackThread { handle });
        }
        let thread = CallbackThread::create()?;
        shared.0 = Arc::downgrade(&thread.handle);
        Ok(thread)
    }

    /// Serves `collector` from now on. [`CollectorState`] releases the thread that it had before.
    pub(super) fn serve(&self, collector: &Arc<CollectorState>) {
        let mut serves = lock_std(&self.handle.service.serves);
        serves.retain(|of| !std::ptr::eq(of.as_ptr(), Arc::as_ptr(collector)));
        serves.push(Arc::downgrade(collector));
        drop(serves);
        wake_of(self.number()).wake();
    }

    pub(super) fn number(&self) -> u32 {
        self.handle.service.number
    }
}

impl std::fmt::Debug for CallbackThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallbackThread({})", self.number())
    }
}

/// The thread for buffers without one of their own, while there are any.
#[derive(Default)]
pub struct SharedThread(Weak<ThreadHandle>);

impl Service {
    fn run(&self) {
        while !self.ended.load(Ordering::Acquire) {
            let mut pause = IDLE;
            for collector in self.served() {
                pause = pause.min(collector.look());
            }
            wake_of(self.number).sleep(pause);
        }
    }

    /// The collectors that have neither ended nor got another thread.
    fn served(&self) -> Vec<Arc<CollectorState>> {
        let mut served = Vec::new();
        lock_std(&self.serves).retain(|collector| {
            let collector = collector.upgrade();
            let is_ours = |collector: &Arc<CollectorState>| collector.is_served_by(self.number);
            let collector = collector.filter(is_ours);
            let stays = collector.is_some();
            served.extend(collector);
            stays
        });
        served
    }
}

impl Drop for ThreadHandle {
    fn drop(&mut self) {
        self.service.ended.store(true, Ordering::Release);
        wake_of(self.service.number).wake();
        // The thread may poll once more under this number, which another thread may have got: collectors admit one
        // thread at a time.
        let numbers = numbers();
        if numbers.process == self.service.process {
            let others = !(1 << self.service.number);
            numbers.taken.fetch_and(others, Ordering::AcqRel);
        }
    }
}
