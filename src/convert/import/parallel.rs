//! Recordings that are read at the same time. Readers take in a file before they pass its first event on: several do that at
//! once, and then pass their events on one after the other, in the order of the recordings.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::joined::Joined;
use super::{Recording, Report};
use gputrail_trace::forward;
use gputrail_trace::model::Consumer;

/// Passes `recordings` on to `joined`, with `jobs` threads, of which the caller's is one. `read` reads one of them; the result has their reports.
pub(super) fn pass_on<'a>(
    recordings: &[Recording],
    joined: Joined<'a>,
    jobs: usize,
    read: impl Fn(&Recording, &mut dyn Consumer, &mut Report) -> io::Result<()> + Sync,
) -> io::Result<(Joined<'a>, Vec<Report>)> {
    let turns = Turns {
        wants_calls: joined.wants_calls(),
        state: Mutex::new(TurnState {
            next: 0,
            joined: Some(joined),
            error: None,
        }),
        changed: Condvar::new(),
    };
    let reports: Vec<Mutex<Report>> = recordings.iter().map(|_| Mutex::default()).collect();
    let taken = AtomicUsize::new(0);
    let work = || {
        // The lowest recording that is not done is always taken, so that somebody's turn always comes.
        while let place = taken.fetch_add(1, Ordering::Relaxed)
            && let Some(recording) = recordings.get(place)
        {
            let mut turn = RecordingTurn {
                turns: &turns,
                place,
                joined: None,
            };
            let mut report = Report::default();
            let result = read(recording, &mut turn, &mut report);
            *reports[place]
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = report;
            if !turn.end(result) {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(recordings.len()) {
            // With fewer threads it takes longer.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let state = turns.state.into_inner();
    let state = state.unwrap_or_else(PoisonError::into_inner);
    match (state.joined, state.error) {
        (Some(joined), None) => {
            let reports = reports.into_iter().map(|report| {
                let report = report.into_inner();
                report.unwrap_or_else(PoisonError::into_inner)
            });
            Ok((joined, reports.collect()))
        }
        (_, error) => Err(error.unwrap_or_else(|| io::Error::other("a reader has failed"))),
    }
}

/// Whose turn it is.
struct Turns<'a> {
    wants_calls: bool,
    state: Mutex<TurnState<'a>>,
    changed: Condvar,
}

struct TurnState<'a> {
    /// The recording that passes its events on now.
    next: usize,
    /// Where they go; none while a turn has it.
    joined: Option<Joined<'a>>,
    /// The first error, after which nothing is passed on.
    error: Option<io::Error>,
}

impl<'a> Turns<'a> {
    fn state(&self) -> MutexGuard<'_, TurnState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The consumer of one recording. Its first event waits until its turn comes.
struct RecordingTurn<'t, 'a> {
    turns: &'t Turns<'a>,
    place: usize,
    joined: Option<Joined<'a>>,
}

impl<'a> RecordingTurn<'_, 'a> {
    #[inline]
    fn joined(&mut self) -> io::Result<&mut Joined<'a>> {
        if self.joined.is_none() {
            self.joined = Some(self.wait()?);
        }
        match &mut self.joined {
            Some(joined) => Ok(joined),
            None => Err(stopped()),
        }
    }

    #[cold]
    fn wait(&self) -> io::Result<Joined<'a>> {
        let mut state = self.turns.state();
        loop {
            if state.error.is_some() {
                return Err(stopped());
            }
            if state.next == self.place
                && let Some(joined) = state.joined.take()
            {
                return Ok(joined);
            }
            let waited = self.turns.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The recording has been passed on. Returns whether others are to follow.
    fn end(mut self, result: io::Result<()>) -> bool {
        let result = result.and_then(|()| self.joined().map(Joined::next_recording));
        let mut state = self.turns.state();
        match result {
            Ok(()) => {
                state.next = self.place + 1;
                state.joined = self.joined.take();
            }
            Err(error) => {
                state.error.get_or_insert(error);
            }
        }
        self.turns.changed.notify_all();
        state.error.is_none()
    }
}

impl Drop for RecordingTurn<'_, '_> {
    /// After a panic of its reader, others do not wait for ever.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.turns.state().error.get_or_insert_with(stopped);
            self.turns.changed.notify_all();
        }
    }
}

fn stopped() -> io::Error {
    io::Error::other("the conversion has been stopped")
}

impl Consumer for RecordingTurn<'_, '_> {
    forward!(self, (self.joined()?));

    fn wants_calls(&self) -> bool {
        self.turns.wants_calls
    }
}
