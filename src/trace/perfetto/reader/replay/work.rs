//! Work of devices, joined with the calls that submitted it.

use std::io;

use super::held::{Enqueuing, HeldWork, WorkDetails};
use super::limits::{MAX_DETAIL_BYTES, MAX_EVENT_BYTES, MAX_GPUS, TOO_MANY_ARGUMENTS};
use super::replaying::Replaying;
use crate::model::{
    self, Agent, AgentIndex, EventArgument, EventId, ProcessIndex, Queue, QueueIndex, Stage,
    UNKNOWN_DEVICE, Work,
};
use crate::perfetto::reader::WorkEvent;
use crate::perfetto::reader::fields::{MessageFields, number_of};
use crate::perfetto::rows::RowName;
use crate::perfetto::schema::field::{
    interned_gpu_render_stage_specification as specification, interned_graphics_context as context,
};
use gputrail_record::{ContextId, CorrelationId, Domain, Nanos, ThreadId};

/// Maximum number of calls whose work has not come, and of pieces of work whose call has not come.
const MAX_WAITING: usize = 1 << 20;
/// Maximum number of queues.
const MAX_QUEUES: usize = 1 << 16;
/// Event ids for work without one count from here.
const FIRST_OWN_EVENT: u64 = 1 << 62;

impl Replaying<'_> {
    pub(super) fn read_work(&mut self, event: &WorkEvent<'_>) -> io::Result<()> {
        self.begin(event.start)?;
        let process = self.process(event.process)?;
        let (agent, queue) = self.queue(process, event)?;
        if self.stages.are_full() {
            self.pass_on_held()?;
            self.stages.clear();
        }
        let own_event = EventId(FIRST_OWN_EVENT + self.untied);
        let mut held = HeldWork {
            event: event.event.map_or(own_event, EventId),
            process,
            agent,
            queue,
            stage: self.stages.of(event),
            submission: event.submission,
            start: event.start,
            duration: event.duration,
            queued: None,
            submitted: None,
            bytes: 0,
            status: 0,
            details: None,
        };
        let ids = held.read(event);
        if ids > 0 {
            self.leave_out(
                "id of work that it waited for beyond 1,048,576 of them",
                ids,
            );
        }
        let mut left_out = 0;
        for (name, value) in &event.properties {
            let arguments = &mut held.details().arguments;
            left_out += u64::from(!arguments.push_within(MAX_EVENT_BYTES, name, *value));
        }
        if left_out > 0 {
            self.leave_out(TOO_MANY_ARGUMENTS, left_out);
        }
        if event.event.is_none() {
            self.untied += 1;
            return self.pass_on_work(&held, None);
        }
        self.place_work(held)
    }

    /// Passes on work if its call has come, and else keeps it until then.
    pub(super) fn place_work(&mut self, held: HeldWork) -> io::Result<()> {
        let id = held.event.0;
        if let Some(call) = self.calls.remove(&id) {
            return self.pass_on_work(&held, Some(call));
        }
        if self.held.len() >= MAX_WAITING || self.held_bytes + held.bytes() > MAX_DETAIL_BYTES {
            self.pass_on_held()?;
        }
        self.held_bytes += held.bytes();
        if let Some(other) = self.held.insert(id, held) {
            self.held_bytes -= other.bytes();
            self.untied += 1;
            self.pass_on_work(&other, None)?;
        }
        Ok(())
    }

    /// A call has submitted the work with this id.
    pub(super) fn submitted(&mut self, id: u64, call: Enqueuing) -> io::Result<()> {
        match self.held.remove(&id) {
            Some(held) => {
                self.held_bytes -= held.bytes();
                self.pass_on_work(&held, Some(call))
            }
            None if self.calls.len() < MAX_WAITING => {
                self.calls.insert(id, call);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The agent with this number; agents that the trace does not describe are declared.
    pub(super) fn agent(&mut self, gpu: u32) -> io::Result<AgentIndex> {
        let count = self.titles.len() as u32;
        if gpu < MAX_GPUS && gpu >= count {
            let missing = (count..=gpu).map(|index| Agent {
                title: model::agent_title("", AgentIndex(index)),
                ..Agent::default()
            });
            let missing: Vec<_> = missing.collect();
            self.stream.consumer.agents(AgentIndex(count), &missing)?;
            self.titles
                .extend(missing.into_iter().map(|agent| agent.title));
        }
        Ok(AgentIndex(gpu))
    }

    /// The agent and queue of work.
    fn queue(
        &mut self,
        process: ProcessIndex,
        event: &WorkEvent<'_>,
    ) -> io::Result<(AgentIndex, QueueIndex)> {
        let key = (process, event.gpu, event.queue.id);
        if let Some((known, place)) = self.latest_queue
            && known == key
        {
            return Ok(place);
        }
        let place = match self.queues.get(&key) {
            Some(place) => *place,
            None => {
                let of_unknown = format!("{UNKNOWN_DEVICE} · ");
                let agent = if event.queue.text.starts_with(&of_unknown) {
                    AgentIndex::UNKNOWN
                } else {
                    self.agent(event.gpu)?
                };
                if self.queues.len() >= MAX_QUEUES {
                    return Ok((agent, QueueIndex(0)));
                }
                let place = (agent, self.declare_queue(process, agent, event)?);
                self.queues.insert(key, place);
                place
            }
        };
        self.latest_queue = Some((key, place));
        Ok(place)
    }

    fn declare_queue(
        &mut self,
        process: ProcessIndex,
        agent: AgentIndex,
        event: &WorkEvent<'_>,
    ) -> io::Result<QueueIndex> {
        let number = |entry, wanted| number_of(entry, wanted).unwrap_or(0);
        let mut described = MessageFields::new(event.queue_entry);
        let described = described.find(|field| field.number == specification::DESCRIPTION);
        let title = self.titles.get(agent.0 as usize);
        let title = title.map_or(UNKNOWN_DEVICE, |title| title);
        // Rows of other programs keep their names.
        let row = RowName::of(event.queue.text).filter(|row| row.device == title);
        let name = row.as_ref().map_or(event.queue.text, |row| &row.queue);
        self.stream.new_queue(&Queue {
            process,
            agent,
            context: ContextId(number(event.context_entry, context::IID) as u32),
            domain: match number(event.context_entry, context::API) {
                3 => Domain::OPENCL,
                4 => Domain::CUDA_RUNTIME,
                5 => Domain::HIP,
                _ => Domain(0),
            },
            name,
            out_of_order: described.and_then(|field| field.bytes()) == Some(b"out of order"),
        })
    }

    fn pass_on_work(&mut self, held: &HeldWork, call: Option<Enqueuing>) -> io::Result<()> {
        let none = WorkDetails::default();
        let details = held.details.as_deref().unwrap_or(&none);
        let stage = &*held.stage;
        let arguments = stage.arguments.iter().chain(details.arguments.iter());
        let arguments: Vec<EventArgument<'_>> = arguments.collect();
        let unfinished = match (&details.unfinished, held.duration) {
            (Some(why), _) => Some(&**why),
            (None, None) => Some("not finished"),
            (None, Some(_)) => None,
        };
        // Work has the lower half of the id of its call.
        let of_call = call.map(|call| call.correlation);
        let of_call = of_call.filter(|id| id.0 & 0xffff_ffff == held.submission);
        let since_start = |time: i64| Nanos(held.start.0.wrapping_add_signed(time));
        self.stream.consumer.work(&Work {
            process: held.process,
            thread: call.map_or(ThreadId::NONE, |call| call.thread),
            correlation: of_call.unwrap_or(CorrelationId(held.submission)),
            event: Some(held.event),
            agent: held.agent,
            queue: held.queue,
            stream: stage.stream,
            stage: Stage {
                id: stage.id,
                kind: stage.kind,
                name: &stage.name,
                demangled: &stage.demangled,
                architecture: &stage.architecture,
            },
            enqueued: call.map(|call| call.start),
            queued: held.queued.map(since_start),
            submitted: held.submitted.map(since_start),
            interval: held.interval(),
            start: Some(held.start),
            duration: held.duration,
            unfinished,
            launch: stage.launch.or(details.launch),
            resources: stage.resources,
            bytes: held.bytes,
            status: held.status,
            waits: &details.waits,
            samples: details.samples.as_ref(),
            arguments: &arguments,
        })
    }

    /// Passes on the work that waits for a call, in the order in which it ran.
    pub(super) fn pass_on_held(&mut self) -> io::Result<()> {
        self.held_bytes = 0;
        let mut held: Vec<_> = std::mem::take(&mut self.held).into_values().collect();
        held.sort_by_key(|held| (held.interval(), held.event));
        self.untied += held.len() as u64;
        held.iter()
            .try_for_each(|held| self.pass_on_work(held, None))
    }
}
