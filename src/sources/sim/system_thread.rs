//! Threads of the system on which threads of a simulation run that takes place in a program: thread-local data, ids of
//! threads and stacks are what they are in any other program.
//!
//! The turn goes round: a thread runs while the executor waits for it, and waits while the executor or another thread runs.

use std::io;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Waker};
use std::thread::{Builder, JoinHandle};

/// The future of a thread.
pub(super) type Body = Pin<Box<dyn Future<Output = ()>>>;

/// Polls a future, and returns whether it has ended.
pub(super) fn poll(body: &mut Body) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    body.as_mut().poll(&mut context).is_ready()
}

/// A thread that polls one future, when it has the turn.
pub(super) struct SystemThread {
    /// Passes the turn to the thread. `None` at the end.
    turn: Option<SyncSender<()>>,
    /// Passes the turn back, and whether the future has ended.
    back: Receiver<bool>,
    handle: Option<JoinHandle<()>>,
    process: u32,
}

/// A future on its way to the thread that polls it.
struct Handed(Body);

// SAFETY: the future and what it shares with others (`Rc`, `Cell`) is used by one thread at a time: the executor moves the
// future before its first turn and does not run between `turn` and `back`, whose channels order the accesses. The thread
// drops the future after the last turn, while `SystemThread::drop` waits for its end. A future takes what belongs to a thread,
// its `Current`, anew at each use.
unsafe impl Send for Handed {}

impl SystemThread {
    /// Starts a thread called `name` that will poll `body`.
    pub fn start(name: &str, body: Body) -> io::Result<SystemThread> {
        let (turn, turns) = sync_channel::<()>(1);
        let (end_turn, back) = sync_channel(1);
        let (handed, process) = (Handed(body), std::process::id());
        let handle = Builder::new().name(name.into()).spawn(move || {
            let Handed(mut body) = { handed };
            while turns.recv().is_ok() {
                let has_ended = poll(&mut body);
                // In a child that was forked within, this is the only thread: its end is that of the process.
                if end_turn.send(has_ended).is_err() || std::process::id() != process {
                    return;
                }
            }
        })?;
        Ok(SystemThread {
            turn: Some(turn),
            back,
            handle: Some(handle),
            process,
        })
    }

    /// Gives the thread the turn, and returns whether its future has ended. `None` in a forked child, which does not have the
    /// thread.
    ///
    /// # Panics
    ///
    /// With what the future panics with.
    pub fn poll(&mut self) -> Option<bool> {
        if std::process::id() != self.process {
            return None;
        }
        let sent = self.turn.as_ref()?.send(());
        match sent.ok().and_then(|()| self.back.recv().ok()) {
            Some(has_ended) => Some(has_ended),
            None => match self.handle.take()?.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => Some(true),
            },
        }
    }
}

impl Drop for SystemThread {
    /// Waits until the thread has dropped its future and ended.
    fn drop(&mut self) {
        self.turn = None;
        if let Some(handle) = self.handle.take()
            && std::process::id() == self.process
        {
            let _ = handle.join();
        }
    }
}
