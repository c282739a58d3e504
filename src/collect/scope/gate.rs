//! The moment when a recording begins, and the one when it ends, as the program's calls come to them.

use super::{Scope, matches};
use crate::clock::{self, SystemClock};
use crate::collect::switchboard::{
    Buffers, Consumer, ContextKey, Interest, KindSet, OperationSet, Selection, Switchboard,
};
use crate::platform::sync::lock_std;
use crate::record::{Domain, ExternalId, ExternalKind, Kind, Operation, OperationName, Ticks};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WAITING: u32 = 0;
const RUNNING: u32 = 1;
const OVER: u32 = 2;

/// Opens and closes one recording.
pub struct Gate {
    scope: Scope,
    board: Arc<Switchboard>,
    context: ContextKey,
    buffer: usize,
    state: AtomicU32,
    /// Ticks before which it does not open, 0 for none.
    not_before: u64,
    /// Ticks at which it closes, or 0 before it has opened.
    until: AtomicU64,
    /// The operations that open and close it, of the sources that have attached so far; null before the first. Earlier
    /// lists stay: a thread may be reading one.
    named: AtomicPtr<Named>,
    /// External ids whose name is one of those that open or close it.
    externals: Mutex<Vec<(ExternalKind, ExternalId, Box<str>)>>,
}

/// Operations whose names are those that the scope waits for.
#[derive(Default)]
struct Named {
    start: OperationSet,
    stop: OperationSet,
    dump: OperationSet,
}

/// The actions that are due once the call or name at the gate has been recorded.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    /// The recording ends.
    pub close: bool,
    /// The flight recorder is dumped.
    pub dump: bool,
}

/// A call or name that comes to the gate.
enum Passing<'a> {
    Call(Operation),
    Name(&'a str),
}

impl Gate {
    /// A gate for the recording that is `context`, into the buffer of slot `buffer`, which has not been started.
    pub(crate) fn new(
        scope: Scope,
        board: &Arc<Switchboard>,
        context: ContextKey,
        buffer: usize,
    ) -> Gate {
        let from_now = scope.not_before.map(|time| {
            let now = SystemClock::Boottime.read().0;
            time.0.saturating_sub(now)
        });
        Gate {
            not_before: from_now.map_or(0, |nanos| after(nanos).0),
            scope,
            board: board.clone(),
            context,
            buffer,
            state: AtomicU32::new(WAITING),
            until: AtomicU64::new(0),
            named: AtomicPtr::new(std::ptr::null_mut()),
            externals: Mutex::default(),
        }
    }

    /// The operations of another source have their names: selects those that the scope asks for, and lets the recording
    /// begin if it waits for nothing.
    pub(crate) fn prepare(&self) {
        let scope = &self.scope;
        let names = self.board.names();
        let select = |selection: &mut Selection| {
            if !scope.kinds.is_empty() {
                // Losses are always recorded.
                selection.kinds = KindSet::of(&scope.kinds).or(KindSet::of(&[Kind::LOSS]));
            }
            for operation in names.all::<OperationName>() {
                let name = names.text(operation.name).unwrap_or_default();
                if !scope.has_call(&name) {
                    selection.operations.set(operation.operation, false);
                }
            }
        };
        let _ = self
            .board
            .change_service(self.context, Consumer::Buffer(self.buffer), select);
        self.look_up();
        match self.state.load(Ordering::Acquire) {
            WAITING if !scope.waits() => self.open(),
            WAITING => self.board.set_gated(match (&scope.start_on, self.named()) {
                (Some(_), Some(named)) => gated(&[(&scope.start_on, &named.start)]),
                _ => OperationSet::all(),
            }),
            RUNNING => self.gate_the_end(),
            _ => {}
        }
    }

    /// Has those operations gated that may end the recording, or have it written out.
    fn gate_the_end(&self) {
        let Some(named) = self.named() else {
            return;
        };
        let waited_for = [
            (&self.scope.stop_on, &named.stop),
            (&self.scope.dump_on, &named.dump),
        ];
        self.board.set_gated(match self.scope.duration {
            Some(_) => OperationSet::all(),
            None => gated(&waited_for),
        });
    }

    fn named(&self) -> Option<&Named> {
        // SAFETY: null or a leaked box.
        unsafe { self.named.load(Ordering::Acquire).as_ref() }
    }

    /// Looks up which operations have the names that the scope waits for.
    fn look_up(&self) {
        let names = self.board.names();
        let mut named = Named::default();
        for operation in names.all::<OperationName>() {
            let name = names.text(operation.name).unwrap_or_default();
            for (pattern, set) in [
                (&self.scope.start_on, &mut named.start),
                (&self.scope.stop_on, &mut named.stop),
                (&self.scope.dump_on, &mut named.dump),
            ] {
                if pattern
                    .as_ref()
                    .is_some_and(|pattern| matches(pattern, &name))
                {
                    set.set(operation.operation, true);
                }
            }
        }
        let named = Box::into_raw(Box::new(named));
        self.named.store(named, Ordering::Release);
    }

    /// A call of `operation` comes. The recording may begin before it.
    #[cold]
    pub(crate) fn pass(&self, operation: Operation) -> Due {
        self.comes(Passing::Call(operation))
    }

    /// A marker, a range or an external id with this name comes. As for [`Gate::pass`].
    #[cold]
    pub(crate) fn pass_name(&self, name: &str) -> Due {
        self.comes(Passing::Name(name))
    }

    /// An external id gets its name.
    pub(crate) fn name_external(&self, kind: ExternalKind, id: ExternalId, name: &str) {
        const MAX_NAME_BYTES: usize = 4096;
        let scope = &self.scope;
        let wanted = [&scope.start_on, &scope.stop_on, &scope.dump_on];
        let mut known = lock_std(&self.externals);
        if known.len() < MAX_NAME_BYTES
            && wanted
                .into_iter()
                .flatten()
                .any(|pattern| matches(pattern, name))
        {
            known.push((kind, id, name.into()));
        }
    }

    /// An external id is pushed. As for [`Gate::pass`].
    pub(crate) fn pass_external(&self, kind: ExternalKind, id: ExternalId) -> Due {
        if self.state.load(Ordering::Acquire) == OVER {
            return Due::default();
        }
        let known = lock_std(&self.externals);
        let name = known
            .iter()
            .rfind(|(of, which, _)| (*of, *which) == (kind, id));
        let name = name.map(|(_, _, name)| name.clone());
        drop(known);
        name.map_or_else(Due::default, |name| self.pass_name(&name))
    }

    fn comes(&self, passing: Passing<'_>) -> Due {
        let now = clock::now().0;
        let is = |pattern: &Option<String>, named: &OperationSet| {
            let pattern = pattern.as_ref()?;
            Some(match passing {
                Passing::Name(name) => matches(pattern, name),
                Passing::Call(operation) => named.has(operation),
            })
        };
        // Before that it does not open.
        let (scope, Some(named)) = (&self.scope, self.named()) else {
            return Due::default();
        };
        if self.state.load(Ordering::Acquire) == WAITING
            && now >= self.not_before
            && is(&scope.start_on, &named.start) != Some(false)
        {
            self.open();
        }
        if self.state.load(Ordering::Acquire) != RUNNING {
            return Due::default();
        }
        let until = self.until.load(Ordering::Relaxed);
        if until != 0 && now >= until {
            self.close();
            return Due::default();
        }
        Due {
            close: is(&scope.stop_on, &named.stop) == Some(true),
            dump: is(&scope.dump_on, &named.dump) == Some(true),
        }
    }

    fn open(&self) {
        if self
            .state
            .compare_exchange(WAITING, RUNNING, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        let duration = self.scope.duration;
        if let Some(duration) = duration {
            let until = after(duration.as_nanos() as u64);
            self.until.store(until.0.max(1), Ordering::Relaxed);
        }
        self.gate_the_end();
        // The recording may have been ended in the meantime.
        let _ = self.board.start_context(self.context);
        if self.state.load(Ordering::Acquire) == OVER {
            // By another thread, which found nothing yet to stop.
            self.shut();
        }
    }

    /// Ends the recording for good. Calls in progress are still recorded.
    pub(crate) fn close(&self) {
        if self.state.swap(OVER, Ordering::AcqRel) != OVER {
            self.shut();
        }
    }

    fn shut(&self) {
        self.board.set_gated(OperationSet::default());
        // The context may be stopped already.
        let _ = self.board.stop_context(self.context);
    }

    /// The buffer of the recording.
    pub(crate) fn buffer(&self) -> Buffers {
        Interest::buffer(self.buffer).buffers()
    }

    /// The scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// The operations that may be what is waited for by one of these patterns, each with the operations that have such a
/// name.
fn gated(waited_for: &[(&Option<String>, &OperationSet)]) -> OperationSet {
    let mut gated = OperationSet::default();
    for (pattern, named) in waited_for {
        if pattern.is_some() {
            gated.add(named);
            gated.set_domain(Domain::MARKER, true);
        }
    }
    gated
}

/// The ticks so many nanoseconds from now.
fn after(nanos: u64) -> Ticks {
    let ticks = clock::ticks_of(Duration::from_nanos(nanos));
    Ticks(clock::now().0.saturating_add(ticks))
}
