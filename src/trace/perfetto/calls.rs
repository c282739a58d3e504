//! Calls in the trace.

use std::io::{self, Write};

use super::events::{
    Annotation, EventFields, EventLabel, EventTrack, Heading, LinkedCall, WorkLink,
};
use super::names::{Name, NumberedNames, Words};
use super::packets::PacketWriter;
use super::schema::GpuApi;
use super::schema::track_event::Type;
use super::work::ContextApi;
use crate::model::{Call, EventId, Function, STACK, Value};
use gputrail_record::Domain;

/// Maximum number of bytes of call stacks that are interned.
const MAX_STACK_BYTES: usize = 64 << 20;

/// The API of a domain, as Perfetto names it.
fn gpu_api(domain: Domain) -> Option<GpuApi> {
    match domain {
        Domain::OPENCL => Some(GpuApi::OpenCl),
        Domain::CUDA_DRIVER | Domain::CUDA_RUNTIME => Some(GpuApi::Cuda),
        Domain::HIP | Domain::HIP_COMPILER | Domain::HSA => Some(GpuApi::Hip),
        _ => None,
    }
}

/// The API of a context, as Perfetto names it.
pub(super) fn context_api(domain: Domain) -> ContextApi {
    match gpu_api(domain) {
        Some(GpuApi::OpenCl) => ContextApi::OpenCl,
        Some(GpuApi::Cuda) => ContextApi::Cuda,
        Some(GpuApi::Hip) => ContextApi::Hip,
        _ => ContextApi::Undefined,
    }
}

/// A function whose names have been interned.
#[derive(Debug)]
struct KnownFunction {
    /// `None` if there are too many names: then its name is written in full.
    name: Option<Name>,
    category: Name,
    /// The constant fields of its calls; `None` if its name is written in full.
    heading: Option<Heading>,
    api: Option<GpuApi>,
    /// Names of its parameters.
    parameters: Vec<Option<Name>>,
    /// The place of the call stack among them.
    stack: Option<usize>,
}

/// The functions that have been called, by index.
#[derive(Debug)]
pub(super) struct SentFunctions {
    known: Vec<Option<KnownFunction>>,
    /// Bytes of call stacks that may still get a number; others are written in full.
    room_for_stacks: usize,
}

impl Default for SentFunctions {
    fn default() -> SentFunctions {
        SentFunctions {
            known: Vec::new(),
            room_for_stacks: MAX_STACK_BYTES,
        }
    }
}

impl SentFunctions {
    /// Writes a call.
    #[inline]
    pub fn write<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        (names, words): (&mut NumberedNames, &Words),
        track: &mut EventTrack,
        call: &Call<'_>,
    ) -> io::Result<()> {
        let place = call.function.index.0 as usize;
        if !matches!(self.known.get(place), Some(Some(_))) {
            self.add(names, words, call.function);
        }
        let function = self.known[place].as_ref().expect("it has been added");
        let bare = is_identified(call)
            && call.error.is_none()
            && !call.external.is_some()
            && call.arguments.is_empty()
            && call.flows.is_empty();
        let heading = function
            .heading
            .as_ref()
            .filter(|heading| bare && track.knows_heading(heading));
        let Some(heading) = heading else {
            let stack = function.stack.and_then(|place| call.arguments.get(place));
            let stack = stack.and_then(Value::as_text);
            let room = &mut self.room_for_stacks;
            let stack = stack.and_then(|text| names.intern_within(text, room));
            return function.write(packets, (names, words), track, call, stack);
        };
        let api = function.api;
        let (start, correlation) = (call.start.0, call.correlation.0);
        if let (false, Some(end)) = (call.open, call.end)
            && let Some(link) = only_link(call, api)
        {
            // Most calls have nothing else.
            return track.call(packets, (start, end.0), heading, correlation, link);
        }
        let linked = LinkedCall {
            correlation,
            submitted: call.submitted,
            waited: call.waited,
            api: api.filter(|_| is_tied(call)),
        };
        track.begin_call(packets, start, heading, &linked)?;
        end_call(packets, track, call)
    }

    #[cold]
    fn add(&mut self, names: &mut NumberedNames, words: &Words, function: &Function) {
        let parameters = function.parameters.iter();
        let stack = parameters
            .clone()
            .position(|parameter| &*parameter.name == STACK);
        let parameters = parameters
            .map(|parameter| names.intern(&parameter.name))
            .collect();
        let category = function.category.as_deref().or(function.domain.name());
        let category = category.and_then(|name| names.intern(name));
        let category = category.unwrap_or(words.other);
        let name = names.intern(&function.name);
        let place = function.index.0 as usize;
        if place >= self.known.len() {
            self.known.resize_with(place + 1, || None);
        }
        self.known[place] = Some(KnownFunction {
            name,
            category,
            heading: name.and_then(|name| Heading::new(category, name)),
            api: gpu_api(function.domain),
            parameters,
            stack,
        });
    }
}

impl KnownFunction {
    /// Writes a call with annotations, or of a function whose names have not been sent on its track.
    #[inline(never)]
    fn write<W: Write>(
        &self,
        packets: &mut PacketWriter<W>,
        (names, words): (&NumberedNames, &Words),
        track: &mut EventTrack,
        call: &Call<'_>,
        stack: Option<Name>,
    ) -> io::Result<()> {
        let error = call
            .error
            .map(|code| (words.error, Value::Int(code.into())));
        let external = call.external;
        let external = external
            .is_some()
            .then_some((words.external, Value::Uint(external.0)));
        let own = error.into_iter().chain(external);
        let mut annotations = Vec::with_capacity(call.arguments.len() + 2);
        annotations.extend(own.map(|(name, value)| Annotation {
            name: EventLabel::Name(name),
            value,
            shared: None,
        }));
        let arguments = self.parameters.iter().zip(call.arguments).enumerate();
        annotations.extend(arguments.map(|(place, (name, value))| Annotation {
            name: match name {
                Some(name) => EventLabel::Name(*name),
                None => EventLabel::Text(&call.function.parameters[place].name),
            },
            value: *value,
            shared: stack.filter(|_| self.stack == Some(place)),
        }));
        let event = EventFields {
            color: None,
            label: match self.name {
                Some(name) => EventLabel::Name(name),
                None => EventLabel::Text(&call.function.name),
            },
            category: self.category,
            correlation: is_identified(call).then_some(call.correlation.0),
            submitted: call.submitted,
            waited: call.waited,
            api: self.api.filter(|_| is_tied(call)),
            annotations: &annotations,
            flows: call.flows,
        };
        track.event(packets, names, Type::SliceBegin, call.start.0, &event)?;
        end_call(packets, track, call)
    }
}

fn end_call<W: Write>(
    packets: &mut PacketWriter<W>,
    track: &mut EventTrack,
    call: &Call<'_>,
) -> io::Result<()> {
    match call.end {
        Some(end) if !call.open => track.end(packets, end.0),
        _ => Ok(()),
    }
}

/// Whether the trace says that a slice is a call, by its correlation id. Slices of programs that know neither APIs nor ids
/// have none.
#[inline(always)]
fn is_identified(call: &Call<'_>) -> bool {
    call.correlation.is_some() || call.function.domain != Domain(0)
}

fn is_tied(call: &Call<'_>) -> bool {
    !(call.submitted.is_empty() && call.waited.is_empty())
}

/// The link of a call with at most one; `None` if it has more.
#[inline(always)]
fn only_link(call: &Call<'_>, api: Option<GpuApi>) -> Option<Option<WorkLink>> {
    let link = |event: EventId, waited| WorkLink { event, waited, api };
    match (call.submitted, call.waited) {
        ([], []) => Some(None),
        ([event], []) => Some(Some(link(*event, false))),
        ([], [event]) => Some(Some(link(*event, true))),
        _ => None,
    }
}
