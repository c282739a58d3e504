//! Calls in the trace.

use std::io;

use super::{Exporter, declared};
use crate::model::Value;
use crate::model::{Call, EventId, Function};
use crate::perfetto::events::{Annotation, Event, Heading, Label, Link, LinkedCall};
use crate::perfetto::names::Name;
use crate::perfetto::schema::GpuApi;
use gputrail_record::Domain;

/// The API of a domain, as Perfetto names it.
pub(super) fn gpu_api(domain: Domain) -> Option<GpuApi> {
    match domain {
        Domain::OPENCL => Some(GpuApi::OpenCl),
        Domain::CUDA_DRIVER | Domain::CUDA_RUNTIME => Some(GpuApi::Cuda),
        Domain::HIP | Domain::HSA => Some(GpuApi::Hip),
        _ => None,
    }
}

/// A function whose names have been interned.
pub(super) struct KnownFunction {
    /// `None` if there are too many names: then its name is written in full.
    name: Option<Name>,
    category: Name,
    /// The constant fields of its calls; `None` if its name is written in full.
    heading: Option<Heading>,
    api: Option<GpuApi>,
    /// Names of its parameters.
    parameters: Vec<Option<Name>>,
}

impl Exporter<'_> {
    #[inline]
    pub(super) fn write_call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let track = self.events(call.track)?;
        let place = call.function.index.0 as usize;
        if !matches!(self.functions.get(place), Some(Some(_))) {
            self.add_function(call.function)?;
        }
        let function = declared(self.functions[place].as_ref())?;
        let bare = is_identified(call)
            && call.error.is_none()
            && !call.external.is_some()
            && call.arguments.is_empty()
            && call.flows.is_empty();
        let heading = function
            .heading
            .as_ref()
            .filter(|heading| bare && self.writer.knows_heading(track, heading));
        let Some(heading) = heading else {
            return self.write_any_call(call);
        };
        let api = function.api;
        let (start, correlation) = (call.start.0, call.correlation.0);
        if let (false, Some(end)) = (call.open, call.end)
            && let Some(link) = only_link(call, api)
        {
            // Most calls have nothing else.
            let times = (start, end.0);
            return self.writer.call(track, times, heading, correlation, link);
        }
        let linked = LinkedCall {
            correlation,
            submitted: call.submitted,
            waited: call.waited,
            api: api.filter(|_| is_tied(call)),
        };
        self.writer.begin_call(track, start, heading, &linked)?;
        self.end_call(call)
    }

    fn end_call(&mut self, call: &Call<'_>) -> io::Result<()> {
        match call.end {
            Some(end) if !call.open => {
                let track = self.events(call.track)?;
                self.writer.end(track, end.0)
            }
            _ => Ok(()),
        }
    }

    /// Writes a call with annotations, or of a function whose names have not been sent on its track.
    #[inline(never)]
    fn write_any_call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let track = self.events(call.track)?;
        let words = declared(self.words.as_ref())?;
        let function = declared(self.functions[call.function.index.0 as usize].as_ref())?;
        let error = call
            .error
            .map(|code| (words.error, Value::Int(code.into())));
        let external = call.external;
        let external = external
            .is_some()
            .then_some((words.external, Value::Uint(external.0)));
        let arguments = function.parameters.iter().zip(call.arguments);
        let arguments = arguments.filter_map(|(name, value)| Some(((*name)?, *value)));
        let all = error.into_iter().chain(external).chain(arguments);
        let annotations: Vec<_> = all
            .map(|(name, value)| Annotation { name, value })
            .collect();
        let event = Event {
            label: match function.name {
                Some(name) => Label::Name(name),
                None => Label::Text(&call.function.name),
            },
            category: function.category,
            correlation: is_identified(call).then_some(call.correlation.0),
            submitted: call.submitted,
            waited: call.waited,
            api: function.api.filter(|_| is_tied(call)),
            annotations: &annotations,
            flows: call.flows,
        };
        self.writer.begin(track, call.start.0, &event)?;
        self.end_call(call)
    }

    #[cold]
    fn add_function(&mut self, function: &Function) -> io::Result<()> {
        let words = declared(self.words.as_ref())?;
        let writer = &mut self.writer;
        let parameters = function.parameters.iter();
        let parameters = parameters
            .map(|parameter| writer.name(&parameter.name))
            .collect();
        let category = function.category.as_deref().or(function.domain.name());
        let category = category.and_then(|name| writer.name(name));
        let category = category.unwrap_or(words.other);
        let name = writer.name(&function.name);
        let place = function.index.0 as usize;
        if place >= self.functions.len() {
            self.functions.resize_with(place + 1, || None);
        }
        self.functions[place] = Some(KnownFunction {
            name,
            category,
            heading: name.and_then(|name| Heading::new(category, name)),
            api: gpu_api(function.domain),
            parameters,
        });
        Ok(())
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
fn only_link(call: &Call<'_>, api: Option<GpuApi>) -> Option<Option<Link>> {
    let link = |event: EventId, waited| Link { event, waited, api };
    match (call.submitted, call.waited) {
        ([], []) => Some(None),
        ([event], []) => Some(Some(link(*event, false))),
        ([], [event]) => Some(Some(link(*event, true))),
        _ => None,
    }
}
