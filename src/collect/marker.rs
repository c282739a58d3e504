//! Markers and ranges made by the program, and names for its threads, queues and devices.
//!
//! ```
//! use gputrail_collect::marker;
//! use gputrail_interface::marker::Mark;
//!
//! gputrail_collect::range!("load the model");
//! marker::mark(Mark::named("first batch").payload(64_u64));
//! {
//!     gputrail_collect::range!("step", domain: "training", color: 0xff30_80c0);
//! } // the step ends here
//! let copy = marker::start("upload");
//! // ... perhaps on another thread:
//! marker::end(copy).unwrap();
//! ```
//!
//! A marker that nobody records costs a load and a branch. The semantics are those of CUPTI's marker records and of
//! NVTX: pushed ranges nest on their thread, started ranges may overlap and end on any thread. A push that was not
//! recorded is not added later.

mod c_text;
mod domain;
mod following;
pub(crate) mod ids;
pub mod nesting;
mod registry;
mod text;

pub use c_text::CText;
pub use text::MarkerText;

// The sources of markers.
pub use {
    c_text::WideText,
    domain::{MarkerDomain, NoLevel},
    registry::Registry,
    text::KeptText,
};

use crate::correlation::HostThread;
use crate::counting::ranges;
use crate::operations::of_marker;
use crate::process::{self, Current};
use crate::scope::{Due, Gate};
use crate::switchboard::{Buffers, Interest};
use gputrail_buffer::clock;
use gputrail_interface::marker::{Mark, RangeId, Value};
use gputrail_record::{
    Agent, AgentId, Domain, Kind, LockStep, Marker, MarkerKind, PayloadKind, Process, ProcessId,
    Queue, QueueId, ThreadId, Ticks,
};
use nesting::PushedRanges;
use std::sync::atomic::{AtomicU64, Ordering};

/// A marker as its record has it.
#[derive(Copy, Clone, Debug, Default)]
pub struct MarkerEvent<'a> {
    /// The text.
    pub name: MarkerText<'a>,
    /// The domain; empty for the default one.
    pub domain: MarkerText<'a>,
    /// The category; empty for none.
    pub category: MarkerText<'a>,
    /// The colour as ARGB; 0 for none.
    pub color: u32,
    /// A value.
    pub payload: EventValue<'a>,
    /// Further values, each with its name.
    pub fields: &'a [(String, EventValue<'a>)],
    /// The time; [`Ticks::NONE`] stands for the present.
    pub time: Ticks,
    /// Of a range of a lock: the step.
    pub lock: LockStep,
}

/// The payload of a marker, or a named value beside it.
#[derive(Copy, Clone, Debug, Default)]
pub enum EventValue<'a> {
    /// No value.
    #[default]
    None,
    /// A number of a kind, as its bits.
    Number(PayloadKind, u64),
    /// A text.
    Text(MarkerText<'a>),
}

impl From<Value> for EventValue<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Unsigned(value) => EventValue::Number(PayloadKind::UNSIGNED, value),
            Value::Signed(value) => EventValue::Number(PayloadKind::SIGNED, value as u64),
            Value::Float(value) => EventValue::Number(PayloadKind::FLOAT, value.to_bits()),
        }
    }
}

impl<'a> From<Mark<'a>> for MarkerEvent<'a> {
    fn from(mark: Mark<'a>) -> MarkerEvent<'a> {
        MarkerEvent {
            name: MarkerText::Plain(mark.name),
            domain: MarkerText::Plain(mark.domain),
            category: MarkerText::Plain(mark.category),
            color: mark.color,
            payload: mark.payload.map_or(EventValue::None, EventValue::from),
            ..MarkerEvent::default()
        }
    }
}

/// The end of a range that is not open.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unbalanced {
    /// No range is pushed on the calling thread.
    #[error("no range is pushed on this thread")]
    Pop,
    /// No such range has been started.
    #[error("range {0} has not been started")]
    End(u64),
}

/// The id of a pop without a push, and of the end of a range that was never started: they are recorded to be counted.
const UNBALANCED: u64 = u64::MAX;

/// The last number given to a range.
static RANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The ranges pushed on this thread.
    static PUSHED: PushedRanges = const { PushedRanges::new() };
}

/// Marks a moment.
pub fn mark<'a>(mark: impl Into<Mark<'a>>) {
    report(MarkerKind::INSTANT, 0, &mark.into().into());
}

/// Begins a range on the calling thread, nested in its open ranges. Returns the number of open ranges.
pub fn push<'a>(mark: impl Into<Mark<'a>>) -> u32 {
    let pushed = PUSHED.with(PushedRanges::push);
    report(
        MarkerKind::PUSH,
        pushed.id_in_all_domains(),
        &mark.into().into(),
    );
    pushed.level.saturating_add(1)
}

/// Ends the innermost range of the calling thread. Returns the number of ranges still open.
///
/// # Errors
///
/// [`Unbalanced::Pop`] if no range is open.
pub fn pop() -> Result<u32, Unbalanced> {
    let Some(popped) = PUSHED.with(PushedRanges::pop) else {
        report(MarkerKind::POP, UNBALANCED, &MarkerEvent::default());
        return Err(Unbalanced::Pop);
    };
    report(
        MarkerKind::POP,
        popped.id_in_all_domains(),
        &MarkerEvent::default(),
    );
    Ok(popped.level)
}

/// Starts a range that may overlap others and end on any thread.
pub fn start<'a>(mark: impl Into<Mark<'a>>) -> RangeId {
    start_event(&mark.into().into())
}

/// [`start`] for sources of markers.
pub fn start_event(event: &MarkerEvent<'_>) -> RangeId {
    let range = RANGES.fetch_add(1, Ordering::Relaxed) + 1;
    report(MarkerKind::START, range, event);
    RangeId::from_number(range)
}

/// Ends a started range.
///
/// # Errors
///
/// [`Unbalanced::End`] if no range with that number was started. A second end is not detected; readers count it.
pub fn end(range: RangeId) -> Result<(), Unbalanced> {
    end_event(range, &MarkerEvent::default())
}

/// [`end`] for sources of markers.
pub fn end_event(range: RangeId, event: &MarkerEvent<'_>) -> Result<(), Unbalanced> {
    match range.number() {
        // No range has this number, so that programs use it where they have started none.
        0 => Err(Unbalanced::End(0)),
        number if number > RANGES.load(Ordering::Relaxed) => {
            report(MarkerKind::END, UNBALANCED, event);
            Err(Unbalanced::End(number))
        }
        number => {
            report(MarkerKind::END, number, event);
            Ok(())
        }
    }
}

/// Ends its range when dropped. Created by [`range!`](crate::range!) and [`range`].
#[must_use = "the range ends when this is dropped"]
#[derive(Debug)]
pub struct Range {
    /// Not `Send`: a range belongs to its thread.
    thread: std::marker::PhantomData<*const ()>,
}

/// Begins a range of the calling thread that ends when the value is dropped.
pub fn range<'a>(mark: impl Into<Mark<'a>>) -> Range {
    push(mark);
    Range {
        thread: std::marker::PhantomData,
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // Fails only if the program popped too often itself.
        let _ = pop();
    }
}

/// The mark of [`range!`](crate::range!).
#[doc(hidden)]
pub const fn named(name: &str) -> Mark<'_> {
    Mark::named(name)
}

/// Begins a range that ends with the enclosing block. Takes a name and optionally `domain`, `category`, `color` and
/// `payload`.
#[macro_export]
macro_rules! range {
    ($name:expr $(, $what:ident : $value:expr)* $(,)?) => {
        let _range = $crate::marker::range($crate::marker::named($name)$(.$what($value))*);
    };
}

/// Records a marker and calls back its subscribers.
#[inline]
pub(crate) fn report(what: MarkerKind, id: u64, event: &MarkerEvent<'_>) {
    report_in(event.domain, what, id, event);
}

/// [`report`] of a marker in `domain` instead of that of `event`.
#[inline]
fn report_in(domain: MarkerText<'_>, what: MarkerKind, id: u64, event: &MarkerEvent<'_>) {
    let interest = process::interest(of_marker(what));
    let buffers = process::buffers_for(Kind::MARKER);
    if interest.is_gated() && !is_ignored_at_gate(&event.name) {
        return report_at_gate(domain, what, id, event);
    }
    if buffers.is_none() && !interest.has_subscribers() {
        return;
    }
    if let Some(thread) = process::current().filter(|thread| !thread.state().is_in_callback()) {
        write(thread, interest, buffers, domain, (what, id), event);
    }
}

/// Whether a marker of this name neither begins nor ends a recording, as far as the beginning of the name tells.
#[inline]
fn is_ignored_at_gate(name: &MarkerText<'_>) -> bool {
    let ignores = |gate: &Gate| gate.ignores(|beginning| name.may_begin_with(beginning));
    matches!(name, MarkerText::None) || process::gate().is_none_or(ignores)
}

/// [`report_in`] where the marker may begin or end a recording.
#[cold]
#[inline(never)]
fn report_at_gate(domain: MarkerText<'_>, what: MarkerKind, id: u64, event: &MarkerEvent<'_>) {
    let name = event.name.read();
    let gate = process::gate().filter(|_| !name.is_empty());
    let due = gate.map_or_else(Due::default, |gate| gate.pass_name(&name));
    let interest = process::interest(of_marker(what)).without_gate();
    let buffers = process::buffers_for(Kind::MARKER);
    let thread = process::current().filter(|thread| !thread.state().is_in_callback());
    if let Some(thread) = thread
        && (!buffers.is_none() || interest.has_subscribers())
    {
        write(thread, interest, buffers, domain, (what, id), event);
    }
    if due != Due::default() {
        process::flush_due(due);
    }
}

#[inline]
fn write(
    thread: Current,
    interest: Interest,
    buffers: Buffers,
    domain: MarkerText<'_>,
    (what, id): (MarkerKind, u64),
    event: &MarkerEvent<'_>,
) {
    let now = if event.time.is_some() {
        event.time
    } else {
        clock::now()
    };
    let is_followed = interest.has_subscribers() || ranges::are_counted();
    let marker = thread.with(|host| {
        for (name, value) in event.fields {
            let mut field = Marker::blank();
            (field.time, field.what) = (now, MarkerKind::FIELD);
            (field.name, field.thread) = (host.string(name), host.thread());
            (field.payload_kind, field.payload) = bits(host, value);
            host.write_to(buffers, field);
        }
        let (name, domain) = (event.name.id(host), domain.id(host));
        let category = event.category.id(host);
        let (payload_kind, payload) = bits(host, &event.payload);
        let thread = host.thread();
        let fill = |marker: &mut Marker| {
            *marker = Marker::blank();
            (marker.time, marker.id, marker.what) = (now, id, what);
            (marker.name, marker.domain) = (name, domain);
            (marker.category, marker.color) = (category, event.color);
            (marker.payload_kind, marker.payload) = (payload_kind, payload);
            (marker.thread, marker.external_kind) = (thread, event.lock as u16);
        };
        host.fill(buffers, fill);
        let copy = || {
            let mut marker = Marker::blank();
            fill(&mut marker);
            marker
        };
        if ids::are_given() {
            following::give_id(host, &copy());
        }
        is_followed.then(copy)
    });
    if let Some(marker) = marker.flatten() {
        following::follow(thread, interest, &marker);
    }
}

/// The kind and the bits of a value.
#[inline]
fn bits(host: &mut HostThread, value: &EventValue<'_>) -> (PayloadKind, u64) {
    match value {
        EventValue::None => (PayloadKind::NONE, 0),
        EventValue::Number(kind, bits) => (*kind, *bits),
        EventValue::Text(text) => (PayloadKind::TEXT, u64::from(text.id(host).0)),
    }
}

/// Names the calling thread in traces. Its name in the system is unchanged.
pub fn name_thread(name: &str) {
    let thread = ThreadId(gputrail_buffer::platform::system::thread_id());
    if let Some(board) = process::begin() {
        // Registers the thread first, so that its name in the system does not replace this one.
        process::current();
        board.names().thread(thread, name);
    }
}

/// Names any thread of this process, by its id in the system.
pub fn name_thread_of(id: u32, name: &str) {
    if id == gputrail_buffer::platform::system::thread_id() {
        return name_thread(name);
    }
    if let Some(board) = process::board() {
        process::give_thread_name(ThreadId(id), name);
        board.names().thread(ThreadId(id), name);
    }
}

/// Names a queue by its runtime handle, such as a `cl_command_queue`. Returns `None` if the queue is unknown.
pub fn name_queue(handle: u64, name: &str) -> Option<QueueId> {
    let names = process::board()?.names();
    let mut queue = names
        .all::<Queue>()
        .into_iter()
        .rfind(|queue| queue.handle == handle)?;
    queue.name = names.string(name);
    Some(names.queue(queue))
}

/// Names this process in traces, which otherwise call it by its executable.
pub fn name_process(name: &str) {
    let Some(board) = process::begin() else {
        return;
    };
    let (names, id) = (board.names(), ProcessId(std::process::id()));
    let mut process: Process = names.get(id.0).unwrap_or_else(Process::blank);
    (process.id, process.name) = (id, names.string(name));
    names.process(process);
}

/// Names a device by its runtime and its handle there, such as a `cl_device_id` or a number of CUDA's.
pub fn name_agent_of(runtime: Domain, handle: u64, name: &str) {
    let agents = process::board().map(|board| board.names().all::<Agent>());
    let mut known = agents.into_iter().flatten();
    let agent = known.rfind(|agent| (agent.domain, agent.handle) == (runtime, handle));
    if let Some(agent) = agent {
        name_agent(agent.id, name);
    }
}

/// Names a device. Returns `false` if the device is unknown.
pub fn name_agent(agent: AgentId, name: &str) -> bool {
    let Some(names) = process::board().map(|board| board.names()) else {
        return false;
    };
    let Some(mut known) = names.get::<Agent>(agent.0) else {
        return false;
    };
    known.name = names.string(name);
    names.agent(known);
    true
}
