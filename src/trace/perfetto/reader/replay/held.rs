//! Work that waits for its call, and calls that wait for their work.

use std::rc::Rc;

use super::limits::MAX_IDS;
use super::stages::{StageOfWork, launch_in};
use crate::arguments::StoredArguments;
use crate::model::{AgentIndex, EventId, Launch, ProcessIndex, QueueIndex, Value, WorkSamples};
use crate::perfetto::reader::{FieldValue, MessageFields, WorkEvent};
use crate::perfetto::schema::field::gpu_render_stage_event::{self as stage, extra_data};
use gputrail_record::{CorrelationId, Nanos, ThreadId};

/// The call that enqueued a piece of work.
#[derive(Copy, Clone, Debug)]
pub(super) struct Enqueuing {
    pub thread: ThreadId,
    pub start: Nanos,
    pub correlation: CorrelationId,
}

/// Properties that only some work has.
#[derive(Debug, Default)]
pub(super) struct WorkDetails {
    pub unfinished: Option<Box<str>>,
    pub samples: Option<WorkSamples>,
    pub waits: Vec<EventId>,
    pub arguments: StoredArguments,
    pub launch: Option<Launch>,
}

/// Work whose call has not come.
#[derive(Debug)]
pub(super) struct HeldWork {
    pub event: EventId,
    pub process: ProcessIndex,
    pub agent: AgentIndex,
    pub queue: QueueIndex,
    pub stage: Rc<StageOfWork>,
    pub submission: u64,
    pub start: Nanos,
    pub duration: Option<u64>,
    pub queued: Option<i64>,
    pub submitted: Option<i64>,
    pub bytes: u64,
    pub status: i32,
    pub details: Option<Box<WorkDetails>>,
}

impl WorkDetails {
    /// Bytes of memory that they take, approximately.
    pub fn bytes(&self) -> usize {
        let unfinished = self.unfinished.as_ref().map_or(0, |text| text.len());
        let leading = self.samples.as_ref().map_or(0, |one| one.leading.len());
        let texts = unfinished + leading + self.arguments.bytes();
        size_of::<WorkDetails>() + texts + size_of_val(&self.waits[..])
    }
}

impl HeldWork {
    /// Bytes of memory that its details take.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.details.as_ref().map_or(0, |details| details.bytes())
    }

    fn is_unfinished(&self) -> bool {
        let details = self.details.as_ref();
        self.duration.is_none() || details.is_some_and(|details| details.unfinished.is_some())
    }

    #[inline]
    pub fn interval(&self) -> Option<(Nanos, Nanos)> {
        let duration = self.duration.filter(|_| !self.is_unfinished())?;
        Some((self.start, Nanos(self.start.0.saturating_add(duration))))
    }

    /// Reads the fields that [`WorkEvent`] does not have. Returns the number of ids for which there is no room.
    pub fn read(&mut self, event: &WorkEvent<'_>) -> u64 {
        let mut leading = (None, 0, String::new());
        let mut left_out = 0;
        for field in MessageFields::new(event.bytes) {
            match (field.number, field.value) {
                (stage::EXTRA_DATA, FieldValue::Bytes(message)) => {
                    let (name, value) = extra(message);
                    let whole = value.parse::<i64>();
                    // Importers have arguments of these names without the unit.
                    let time = || value.strip_suffix("ns")?.parse().ok();
                    match (name, whole) {
                        ("queued", Err(_)) => self.queued = time(),
                        ("submit", Err(_)) => self.submitted = time(),
                        ("bytes", Ok(bytes)) if bytes > 0 => self.bytes = bytes as u64,
                        ("status", Ok(code)) if i32::try_from(code).is_ok() => {
                            self.status = code as i32
                        }
                        ("samples", Ok(count)) => leading.0 = Some(count as u64),
                        ("samples dropped", Ok(count)) => leading.1 = count as u64,
                        ("waves", _) => leading.2 = value.to_owned(),
                        ("unfinished", _) => self.details().unfinished = Some(value.into()),
                        // The ids are a field of their own, too.
                        ("waits_for", _) => {}
                        _ => self.details().arguments.push(name, Value::Text(value)),
                    }
                }
                (stage::EVENT_WAIT_IDS, _) => {
                    let waits = &mut self.details().waits;
                    for wait in field.numbers() {
                        if waits.len() < MAX_IDS {
                            waits.push(EventId(wait ^ event.part))
                        } else {
                            left_out += 1
                        }
                    }
                }
                (stage::LAUNCH, FieldValue::Bytes(launch)) if self.stage.launch.is_none() => {
                    self.details().launch = launch_in(launch)
                }
                _ => {}
            }
        }
        if let (Some(samples), dropped, leading) = leading {
            self.details().samples = Some(WorkSamples {
                samples,
                dropped,
                leading,
            });
        }
        left_out
    }

    #[inline]
    pub fn details(&mut self) -> &mut WorkDetails {
        self.details.get_or_insert_default()
    }
}

/// Name and value of a detail. A text that is not UTF-8 has been reported.
fn extra(message: &[u8]) -> (&str, &str) {
    let (mut name, mut value) = ("", "");
    for field in MessageFields::new(message) {
        match (field.number, field.value) {
            (extra_data::NAME, FieldValue::Bytes(text)) => {
                name = std::str::from_utf8(text).unwrap_or("")
            }
            (extra_data::VALUE, FieldValue::Bytes(text)) => {
                value = std::str::from_utf8(text).unwrap_or("")
            }
            _ => {}
        }
    }
    (name, value)
}
