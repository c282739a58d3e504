//! The moments at which a recording is switched on and off: by its scope, as the program's calls come to them; by the
//! program itself; and from outside, by the session's switch.
//!
//! The recording runs while nothing holds it. A call belongs to it if it is entered while it runs: its end, and the
//! completion of its work, are recorded even if the recording is off by then.

use super::Scope;
use crate::session_switch;
use crate::switchboard::ServiceError;
use crate::switchboard::{
    Buffers, ContextKey, Interest, KindSet, OperationSet, RecordSelection, ServiceConsumer,
    Switchboard,
};
use gputrail_buffer::clock::{self, SystemClock};
use gputrail_buffer::platform::sync::{QuietMutex, lock_std};
use gputrail_record::{
    Domain, ExternalId, ExternalKind, Kind, NoteKind, Operation, OperationName, Ticks,
};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wildmatch::WildMatch;

/// Reasons why a recording does not run, a bit each.
mod hold {
    /// The operations of the first source have no names yet.
    pub const UNPREPARED: u32 = 1;
    /// The scope begins with a time or a name that has not come.
    pub const WAITING: u32 = 2;
    /// The scope is over, until the session is switched on again.
    pub const OVER: u32 = 4;
    /// The program has paused the recording.
    pub const PAUSED: u32 = 8;
    /// The session is switched off.
    pub const STOPPED: u32 = 16;
    /// The recording has ended for good.
    pub const ENDED: u32 = 32;
    /// The reasons that this process notes in its capture. The owner of the session notes the others.
    pub const NOTED: u32 = WAITING | OVER | PAUSED;
}

/// Switches one recording on and off.
pub struct Gate {
    scope: Scope,
    board: Arc<Switchboard>,
    context: ContextKey,
    buffer: usize,
    /// The reasons that hold the recording, bits of [`hold`]. Changed while `switching` is locked.
    holds: AtomicU32,
    switching: QuietMutex<()>,
    /// Ticks before which the scope does not begin, 0 for none.
    not_before: u64,
    /// Ticks at which the scope is over, or 0 before it has begun.
    until: AtomicU64,
    /// The names that open and close it.
    names: ScopeNames,
    /// The operations that open and close it, of the sources that have attached so far; null before the first. Earlier
    /// lists stay: a thread may be reading one.
    named: AtomicPtr<NamedOperations>,
    /// External ids whose name is one of those that open or close it.
    externals: Mutex<Vec<(ExternalKind, ExternalId, Box<str>)>>,
}

/// The names of a scope, prepared for comparisons.
struct ScopeNames {
    start: Option<NamePattern>,
    stop: Option<NamePattern>,
    dump: Option<NamePattern>,
}

/// A name with wildcards, and the text before the first of them: most names that come differ there.
struct NamePattern {
    beginning: Box<[u8]>,
    whole: WildMatch,
}

impl NamePattern {
    fn new(text: &str) -> NamePattern {
        // Texts in C that are not UTF-8 are compared as they are read: with replacement characters.
        let end = text.find(['*', '?', char::REPLACEMENT_CHARACTER]);
        NamePattern {
            beginning: text.as_bytes()[..end.unwrap_or(text.len())].into(),
            whole: WildMatch::new(text),
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.whole.matches(name)
    }
}

/// Operations whose names are those that the scope waits for.
#[derive(Default)]
struct NamedOperations {
    start: OperationSet,
    stop: OperationSet,
    dump: OperationSet,
}

/// The actions that are due once the call or name at the gate has been recorded.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Due {
    /// The recording ends.
    pub close: bool,
    /// The flight recorder is dumped.
    pub dump: bool,
}

/// A call or name that comes to the gate.
enum PassingEvent<'a> {
    Call(Operation),
    Name(&'a str),
}

impl Gate {
    /// A gate for the recording that is `context`, into the buffer of slot `buffer`, which has not been started. A
    /// recording of everything begins now, unless the session is switched off.
    pub(crate) fn new(
        scope: Scope,
        board: &Arc<Switchboard>,
        context: ContextKey,
        buffer: usize,
        is_on: bool,
    ) -> Gate {
        let mut holds = 0;
        if !scope.is_everything() {
            holds |= hold::UNPREPARED;
        }
        if scope.waits() {
            holds |= hold::WAITING;
        }
        if !is_on {
            holds |= hold::STOPPED;
        }
        let from_now = scope.not_before.map(|time| {
            let now = SystemClock::Boottime.read().0;
            time.0.saturating_sub(now)
        });
        let pattern = |text: &Option<String>| text.as_deref().map(NamePattern::new);
        let gate = Gate {
            names: ScopeNames {
                start: pattern(&scope.start_on),
                stop: pattern(&scope.stop_on),
                dump: pattern(&scope.dump_on),
            },
            not_before: from_now.map_or(0, |nanos| after(nanos).0),
            scope,
            board: board.clone(),
            context,
            buffer,
            holds: AtomicU32::new(holds),
            switching: QuietMutex::default(),
            until: AtomicU64::new(0),
            named: AtomicPtr::new(std::ptr::null_mut()),
            externals: Mutex::default(),
        };
        gate.change(0, 0);
        gate
    }

    /// The operations of another source have their names: selects those that the scope asks for, and lets the recording
    /// begin if it waits for nothing.
    pub(crate) fn prepare(&self) {
        let scope = &self.scope;
        let names = self.board.names();
        let is_left_out = |known: &OperationName| {
            let name = names.text(known.name).unwrap_or_default();
            !scope.has_call(known.operation.domain, &name)
        };
        let all = names.all::<OperationName>().into_iter();
        let left_out: Vec<Operation> = all
            .filter(is_left_out)
            .map(|known| known.operation)
            .collect();
        if scope.is_everything() && left_out.is_empty() {
            return;
        }
        let select = |selection: &mut RecordSelection| {
            if !scope.kinds.is_empty() {
                // Kinds that a scope cannot name (completions, losses, samples, counters) go with those that it names.
                let not_named = selection.kinds.without(KindSet::of(&super::KINDS));
                selection.kinds = not_named.or(KindSet::of(&scope.kinds));
                if scope.environment_period.is_some() {
                    selection.kinds = selection.kinds.or(KindSet::of(&[Kind::ENVIRONMENT]));
                }
            }
            for operation in &left_out {
                selection.operations.set(*operation, false);
            }
        };
        let _ =
            self.board
                .change_service(self.context, ServiceConsumer::Buffer(self.buffer), select);
        if scope.is_everything() {
            return;
        }
        self.look_up();
        self.change(0, hold::UNPREPARED);
    }

    /// The operations that may switch the recording while these `holds` are there, or have it dumped.
    fn gated(&self, holds: u32) -> OperationSet {
        let (scope, Some(named)) = (&self.scope, self.named()) else {
            return OperationSet::default();
        };
        let (start, stop, dump) = (
            (&scope.start_on, &named.start),
            (&scope.stop_on, &named.stop),
            (&scope.dump_on, &named.dump),
        );
        let is_held_otherwise = holds & !hold::WAITING != 0;
        match holds & hold::WAITING != 0 {
            _ if holds & (hold::OVER | hold::ENDED) != 0 => OperationSet::default(),
            true if scope.start_on.is_some() => gated(&[start]),
            // Each call looks at the time.
            true if !is_held_otherwise => OperationSet::all(),
            false if scope.duration.is_some() && !is_held_otherwise => OperationSet::all(),
            true => OperationSet::default(),
            false => gated(&[stop, dump]),
        }
    }

    fn named(&self) -> Option<&NamedOperations> {
        // SAFETY: null or a leaked box.
        unsafe { self.named.load(Ordering::Acquire).as_ref() }
    }

    /// Looks up which operations have the names that the scope waits for.
    fn look_up(&self) {
        let names = self.board.names();
        let mut named = NamedOperations::default();
        for operation in names.all::<OperationName>() {
            let name = names.text(operation.name).unwrap_or_default();
            for (pattern, set) in [
                (&self.names.start, &mut named.start),
                (&self.names.stop, &mut named.stop),
                (&self.names.dump, &mut named.dump),
            ] {
                if pattern
                    .as_ref()
                    .is_some_and(|pattern| pattern.matches(&name))
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
        self.comes(PassingEvent::Call(operation))
    }

    /// Whether nothing happens when a marker comes of which `begins_with` tells whether its name begins with a text: no name
    /// that the scope waits for begins so, and no time is to be looked at.
    #[inline]
    pub(crate) fn ignores(&self, begins_with: impl Fn(&[u8]) -> bool) -> bool {
        let may_be = |pattern: &Option<NamePattern>| {
            let pattern = pattern.as_ref();
            pattern.is_some_and(|pattern| begins_with(&pattern.beginning))
        };
        let names = &self.names;
        if self.holds.load(Ordering::Acquire) & hold::WAITING != 0 {
            names.start.is_some() && !may_be(&names.start)
        } else {
            self.until.load(Ordering::Relaxed) == 0 && !may_be(&names.stop) && !may_be(&names.dump)
        }
    }

    /// A marker, a range or an external id with this name comes. As for [`Gate::pass`].
    #[cold]
    pub(crate) fn pass_name(&self, name: &str) -> Due {
        self.comes(PassingEvent::Name(name))
    }

    /// An external id gets its name.
    pub(crate) fn name_external(&self, kind: ExternalKind, id: ExternalId, name: &str) {
        const MAX_NAME_BYTES: usize = 4096;
        let names = &self.names;
        let wanted = [&names.start, &names.stop, &names.dump];
        let mut known = lock_std(&self.externals);
        if known.len() < MAX_NAME_BYTES
            && wanted
                .into_iter()
                .flatten()
                .any(|pattern| pattern.matches(name))
        {
            known.push((kind, id, name.into()));
        }
    }

    /// An external id is pushed. As for [`Gate::pass`].
    pub(crate) fn pass_external(&self, kind: ExternalKind, id: ExternalId) -> Due {
        if self.has_ended() {
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

    fn comes(&self, passing: PassingEvent<'_>) -> Due {
        let is = |pattern: &Option<NamePattern>, named: &OperationSet| {
            let pattern = pattern.as_ref()?;
            Some(match passing {
                PassingEvent::Name(name) => pattern.matches(name),
                PassingEvent::Call(operation) => named.has(operation),
            })
        };
        // Before that it does not open.
        let (names, Some(named)) = (&self.names, self.named()) else {
            return Due::default();
        };
        // The clock is read only where the scope has a time.
        let has_come = |time: u64| clock::now().0 >= time;
        let holds = || self.holds.load(Ordering::Acquire);
        // The name that opens it belongs to it, however short its duration.
        let until = self.until.load(Ordering::Relaxed);
        let opens = holds() & hold::WAITING != 0
            && is(&names.start, &named.start) != Some(false)
            && (self.not_before == 0 || has_come(self.not_before));
        if opens {
            self.change(0, hold::WAITING);
        }
        if holds() & (hold::WAITING | hold::OVER | hold::ENDED) != 0 {
            return Due::default();
        }
        if until != 0 && has_come(until) {
            self.change(hold::OVER, 0);
            return Due::default();
        }
        Due {
            // A name that starts and stops switches on, and off the next time.
            close: !(opens && names.start.is_some()) && is(&names.stop, &named.stop) == Some(true),
            dump: is(&names.dump, &named.dump) == Some(true),
        }
    }

    /// Whether the scope is over, or the recording has ended.
    fn has_ended(&self) -> bool {
        self.holds.load(Ordering::Acquire) & (hold::OVER | hold::ENDED) != 0
    }

    /// The name has come with which the scope stops. It begins again with the next name that starts it.
    pub(crate) fn close(&self) {
        match self.scope.start_on {
            Some(_) => self.change(hold::WAITING, 0),
            None => self.change(hold::OVER, 0),
        };
    }

    /// The program pauses the recording. `false`: it has done so before.
    pub(crate) fn pause(&self) -> bool {
        self.change(hold::PAUSED, 0) & hold::PAUSED == 0
    }

    /// The program lets the recording go on. `false`: it has not paused it.
    pub(crate) fn resume(&self) -> bool {
        self.change(0, hold::PAUSED) & hold::PAUSED != 0
    }

    /// Follows the switch of the session. Being switched on, a scope that is over begins again.
    #[cold]
    pub(crate) fn follow_session(&self) {
        let _switching = self.switching.lock();
        let position = session_switch::value();
        if !session_switch::is_on(position) {
            self.change_locked(hold::STOPPED, 0);
        } else {
            self.until.store(0, Ordering::Relaxed);
            let is_over = self.holds.load(Ordering::Relaxed) & hold::OVER != 0;
            let waits_again = is_over && self.scope.start_on.is_some();
            let add = u32::from(waits_again) * hold::WAITING;
            self.change_locked(add, hold::STOPPED | hold::OVER);
        }
        session_switch::followed(position);
    }

    /// Ends the recording for good. Calls in progress are still recorded.
    pub(crate) fn end(&self) {
        self.change(hold::ENDED, 0);
    }

    /// Adds and removes holds, and switches the recording accordingly. Returns the holds before.
    fn change(&self, add: u32, remove: u32) -> u32 {
        let _switching = self.switching.lock();
        self.change_locked(add, remove)
    }

    fn change_locked(&self, add: u32, remove: u32) -> u32 {
        let before = self.holds.load(Ordering::Relaxed);
        if before & hold::ENDED != 0 {
            return before;
        }
        let now = before & !remove | add;
        self.holds.store(now, Ordering::Release);
        if now == 0 {
            self.begin_duration();
        }
        if !self.scope.is_everything() {
            self.board.set_gated(self.gated(now));
        }
        self.switch(now == 0);
        self.note(before, now);
        before
    }

    /// The scope begins, unless it has begun before.
    fn begin_duration(&self) {
        if let Some(duration) = self.scope.duration
            && self.until.load(Ordering::Relaxed) == 0
        {
            let until = after(duration.as_nanos() as u64);
            self.until.store(until.0.max(1), Ordering::Relaxed);
        }
    }

    fn switch(&self, on: bool) {
        let (board, context) = (self.board.clone(), self.context);
        let switch = move || {
            if on {
                board.start_context(context)
            } else {
                board.stop_context(context)
            }
        };
        if switch() == Err(ServiceError::Busy) {
            // From within a buffer's callback: what sampling waits for may be this very thread.
            let _ = gputrail_buffer::platform::internal_thread::spawn(move || _ = switch());
        }
    }

    /// Notes in the capture from when to when the recording is off for reasons of this process.
    fn note(&self, before: u32, now: u32) {
        let is_off = |holds: u32| holds & hold::NOTED != 0 && holds & hold::UNPREPARED == 0;
        let names = self.board.names();
        match (is_off(before), is_off(now)) {
            (false, true) => names.note(NoteKind::PAUSED, self.reason(now)),
            (true, false) => names.note(NoteKind::RESUMED, ""),
            _ => {}
        }
    }

    fn reason(&self, holds: u32) -> &'static str {
        match holds {
            _ if holds & hold::PAUSED != 0 => "paused by the program",
            _ if holds & hold::OVER != 0 && self.scope.duration.is_some() => "after --duration",
            _ if holds & hold::OVER != 0 => "after --stop-on",
            _ if self.scope.start_on.is_some() => "before --start-on",
            _ => "before --delay",
        }
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
