//! Planes: their names, the names of their events, and their lines.

use std::collections::HashMap;
use std::io;

use super::messages::{Span, SpanFields, SpanValue};
use super::{ENVIRONMENT, PROGRAMS, Space, field};
use crate::import::tables::{
    AgentHandle, AgentRow, ArgumentValue, HostLane, QueueHandle, QueueRow, TextHandle,
};
use gputrail_record::Domain;
use gputrail_trace::model::Agent;
use gputrail_trace::perfetto::reader::{FieldValue, MessageFields};

/// The beginnings of the names of planes.
const DEVICE: &str = "/device:";
const HOST: &str = "/host:";
/// The beginning of the names of lines that are streams.
const STREAM: &str = "Stream #";
/// The line of operations of a device without streams.
const OPERATIONS: &str = "XLA Ops";

/// The metadata of events with one name.
#[derive(Default)]
pub(super) struct EventDescription {
    /// The full name, and a shorter one if there is one.
    pub name: TextHandle,
    pub display: TextHandle,
    pub statistics: Vec<(TextHandle, ArgumentValue)>,
}

/// The metadata of a plane.
#[derive(Default)]
pub(super) struct PlaneDetails {
    pub name: String,
    pub events: HashMap<i64, EventDescription>,
    /// Names of statistics.
    pub statistics: HashMap<i64, TextHandle>,
    /// Statistics of the plane itself.
    pub own: Vec<(TextHandle, ArgumentValue)>,
    has_streams: bool,
}

/// The destination of the events of a line.
#[derive(Copy, Clone)]
pub(super) enum Destination {
    /// A track with the category of its slices.
    Track(HostLane, TextHandle),
    /// A queue of a device.
    Queue(QueueHandle),
    /// The operations of a device without streams: work, or slices around it.
    Operations(QueueHandle, HostLane, TextHandle),
}

/// A line.
#[derive(Copy, Clone)]
pub(super) struct Line {
    pub destination: Destination,
    /// The start, ns, as the file has it.
    pub start: i64,
}

impl Space<'_> {
    /// Reads what a plane says about its events.
    pub(super) fn describe(&mut self, plane: Span) -> io::Result<PlaneDetails> {
        let mut details = PlaneDetails::default();
        // Names of statistics stand behind the events that use them.
        let mut fields = SpanFields::new(plane);
        while let Some(field) = self.next(&mut fields)? {
            let SpanValue::Bytes(span) = field.value else {
                continue;
            };
            match field.number {
                field::plane::NAME => details.name = self.text_at(span)?,
                field::plane::STATISTICS => {
                    if let Some((id, named)) = self.entry(span, None)? {
                        details.statistics.insert(id, named.name);
                    }
                }
                field::plane::LINES if !details.has_streams => {
                    details.has_streams = self.line_name(span)?.starts_with(STREAM);
                }
                _ => {}
            }
        }
        let mut fields = SpanFields::new(plane);
        let mut buffer = Vec::new();
        while let Some(field) = self.next_again(&mut fields)? {
            match (field.number, field.value) {
                (field::plane::EVENTS, SpanValue::Bytes(span)) => {
                    let names = Some(&details.statistics);
                    if let Some((id, described)) = self.entry(span, names)? {
                        details.events.insert(id, described);
                    }
                }
                (field::plane::OWN_STATISTICS, SpanValue::Bytes(span)) => {
                    if !self.message(span, &mut buffer)? {
                        continue;
                    }
                    let own = self.statistic(&buffer, &details.statistics);
                    details.own.extend(own);
                }
                _ => {}
            }
        }
        Ok(details)
    }

    /// The name of a line.
    fn line_name(&mut self, line: Span) -> io::Result<String> {
        let mut fields = SpanFields::new(line);
        while let Some(field) = self.next_again(&mut fields)? {
            if let (field::line::NAME, SpanValue::Bytes(name)) = (field.number, field.value) {
                return self.text_at(name);
            }
        }
        Ok(String::new())
    }

    /// An entry of a table of descriptions: of events, whose statistics have `names`, or of statistics.
    fn entry(
        &mut self,
        span: Span,
        names: Option<&HashMap<i64, TextHandle>>,
    ) -> io::Result<Option<(i64, EventDescription)>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = self.message(span, &mut buffer);
        let entry = match &read {
            Ok(true) => Some(self.parse_entry(span.from, &buffer, names)),
            _ => None,
        };
        self.buffer = buffer;
        read.map(|_| entry)
    }

    fn parse_entry(
        &mut self,
        at: u64,
        bytes: &[u8],
        names: Option<&HashMap<i64, TextHandle>>,
    ) -> (i64, EventDescription) {
        let (mut id, mut described) = (0, EventDescription::default());
        let mut fields = MessageFields::new(bytes);
        for entry in fields.by_ref() {
            match (entry.number, entry.value) {
                (field::entry::KEY, FieldValue::Number(key)) => id = key as i64,
                (field::entry::VALUE, FieldValue::Bytes(value)) => {
                    self.description(at, value, names, &mut described);
                }
                _ => {}
            }
        }
        self.malformed(at, &fields);
        (id, described)
    }

    fn description(
        &mut self,
        at: u64,
        bytes: &[u8],
        names: Option<&HashMap<i64, TextHandle>>,
        described: &mut EventDescription,
    ) {
        let mut fields = MessageFields::new(bytes);
        for own in fields.by_ref() {
            let FieldValue::Bytes(bytes) = own.value else {
                continue;
            };
            match (own.number, names) {
                (field::description::NAME, _) => described.name = self.lossy(bytes),
                (field::description::DISPLAY_NAME, _) => described.display = self.lossy(bytes),
                (field::description::METADATA, Some(_)) => {
                    let reason = "descriptions of events that are bytes";
                    self.report.unrepresented(self.name, reason, Some(at));
                }
                (field::description::STATISTICS, Some(names)) => {
                    let statistic = self.statistic(bytes, names);
                    described.statistics.extend(statistic);
                }
                _ => {}
            }
        }
        self.malformed(at, &fields);
    }

    /// Whether the fields of a message, which is part of what stands at `at`, ended early. That is reported.
    pub(super) fn malformed(&mut self, at: u64, fields: &MessageFields<'_>) -> bool {
        if let Some(found) = fields.malformed() {
            let expected = "an event or a name of an XPlane file";
            self.report.finding(self.name, Some(at), found, expected);
        }
        fields.malformed().is_some()
    }

    /// A text, with U+FFFD in place of bytes that are not UTF-8.
    pub(super) fn lossy(&mut self, bytes: &[u8]) -> TextHandle {
        self.tables.text(&String::from_utf8_lossy(bytes))
    }

    /// A statistic: its name and its value. Bytes, which no row can show, are counted.
    pub(super) fn statistic(
        &mut self,
        bytes: &[u8],
        names: &HashMap<i64, TextHandle>,
    ) -> Option<(TextHandle, ArgumentValue)> {
        let (mut id, mut value) = (0, None);
        for own in MessageFields::new(bytes) {
            value = match (own.number, own.value) {
                (field::statistic::NAME, FieldValue::Number(number)) => {
                    id = number as i64;
                    continue;
                }
                (field::statistic::DOUBLE, FieldValue::Fixed64(bits)) => {
                    Some(ArgumentValue::Double(f64::from_bits(bits)))
                }
                (field::statistic::UNSIGNED, FieldValue::Number(number)) => {
                    Some(ArgumentValue::Uint(number))
                }
                (field::statistic::SIGNED, FieldValue::Number(number)) => {
                    Some(ArgumentValue::Int(number as i64))
                }
                (field::statistic::TEXT, FieldValue::Bytes(text)) => {
                    Some(ArgumentValue::Text(self.lossy(text)))
                }
                (field::statistic::BYTES, FieldValue::Bytes(_)) => {
                    let reason = "statistics whose value is bytes";
                    self.report.unrepresented(self.name, reason, None);
                    return None;
                }
                (field::statistic::NAMED_TEXT, FieldValue::Number(text)) => {
                    let text = names.get(&(text as i64)).copied();
                    Some(ArgumentValue::Text(text.unwrap_or_default()))
                }
                _ => continue,
            };
        }
        let name = match names.get(&id) {
            Some(name) => *name,
            None => self.tables.text(&format!("statistic {id}")),
        };
        Some((name, value?))
    }

    /// Reads a plane.
    pub(super) fn plane(&mut self, span: Span) -> io::Result<()> {
        let name = self.plane_name(span)?;
        if name == ENVIRONMENT || name == PROGRAMS {
            return self.lines_are_counted(span, &name);
        }
        let details = self.describe(span)?;
        let device = name.strip_prefix(DEVICE);
        let device = device.map(|device| self.device(device, &details));
        let mut fields = SpanFields::new(span);
        while let Some(field) = self.next_again(&mut fields)? {
            if let (field::plane::LINES, SpanValue::Bytes(line)) = (field.number, field.value) {
                let known = self.line(line, &details, device.as_ref())?;
                self.events(line, known, &details)?;
            }
        }
        Ok(())
    }

    /// Counts the lines of a plane that should have none.
    fn lines_are_counted(&mut self, plane: Span, name: &str) -> io::Result<()> {
        let mut fields = SpanFields::new(plane);
        while let Some(field) = self.next_again(&mut fields)? {
            if let (field::plane::LINES, SpanValue::Bytes(line)) = (field.number, field.value) {
                let reason = format!("lines of the plane {name}");
                self.report
                    .unrepresented(self.name, reason, Some(line.from));
            }
        }
        Ok(())
    }

    /// The device of a plane.
    fn device(&mut self, name: &str, details: &PlaneDetails) -> Device {
        let title = match name.strip_prefix("CUSTOM:") {
            Some(name) => name.to_owned(),
            None => name.replace(':', " "),
        };
        let mut agent = AgentRow {
            agent: Agent {
                title: title.clone(),
                ..Agent::default()
            },
            compute_units: 0,
        };
        let mut capability = (None, 0);
        for (name, value) in &details.own {
            let name = self.tables.texts.get(*name).to_owned();
            let (number, text) = match *value {
                ArgumentValue::Uint(value) | ArgumentValue::Pointer(value) => {
                    (Some(value), value.to_string())
                }
                ArgumentValue::Int(value) => (u64::try_from(value).ok(), value.to_string()),
                ArgumentValue::Double(value) => (None, value.to_string()),
                ArgumentValue::Text(text) => (None, self.tables.texts.get(text).to_owned()),
            };
            match &name[..] {
                "device_vendor" => agent.agent.vendor = text.clone(),
                "device_type_string" => agent.agent.name = text.clone(),
                "core_count" => {
                    let count = number.and_then(|count| u32::try_from(count).ok());
                    agent.compute_units = count.unwrap_or(0);
                }
                "compute_cap_major" => capability.0 = number,
                "compute_cap_minor" => capability.1 = number.unwrap_or(0),
                _ => {}
            }
            agent.agent.attributes.push((name, text));
        }
        let is_nvidia = agent.agent.vendor.eq_ignore_ascii_case("nvidia");
        if let (Some(major), true) = (capability.0, is_nvidia) {
            agent.agent.architecture = format!("sm_{major}{}", capability.1);
        }
        let is_amd = agent.agent.vendor.eq_ignore_ascii_case("amd");
        Device {
            handle: self.tables.agent(agent),
            domain: if is_amd {
                Domain::HIP
            } else {
                Domain::CUDA_RUNTIME
            },
            title,
        }
    }

    /// The name, the start and the destination of a line.
    fn line(
        &mut self,
        span: Span,
        details: &PlaneDetails,
        device: Option<&Device>,
    ) -> io::Result<Line> {
        let (mut id, mut start, mut name, mut display) = (0, 0, String::new(), String::new());
        let mut fields = SpanFields::new(span);
        while let Some(field) = self.next(&mut fields)? {
            match (field.number, field.value) {
                (field::line::ID, SpanValue::Number(number)) => id = number,
                (field::line::START, SpanValue::Number(number)) => start = number as i64,
                (field::line::NAME, SpanValue::Bytes(span)) => name = self.text_at(span)?,
                (field::line::DISPLAY_NAME, SpanValue::Bytes(span)) => {
                    display = self.text_at(span)?;
                }
                _ => {}
            }
        }
        let shown = if display.is_empty() { &name } else { &display };
        let destination = match device {
            Some(device) if name.starts_with(STREAM) => {
                Destination::Queue(self.stream(&name, device))
            }
            Some(device) => {
                let category = self.tables.text(&name);
                let track = self.track(&format!("{} {shown}", device.title));
                match !details.has_streams && name == OPERATIONS {
                    true => {
                        let queue = self.queue(device, 0, &name);
                        Destination::Operations(queue, track, category)
                    }
                    false => Destination::Track(track, category),
                }
            }
            None => self.host_line(id, shown, &details.name),
        };
        Ok(Line { destination, start })
    }

    /// The queue of a stream, whose line is called `Stream #7(Compute)`.
    fn stream(&mut self, name: &str, device: &Device) -> QueueHandle {
        let digits = name[STREAM.len()..].split('(').next().unwrap_or_default();
        match digits.parse() {
            Ok(stream) => self.queue(device, stream, &format!("stream {stream}")),
            Err(_) => self.queue(device, 0, name),
        }
    }

    fn queue(&mut self, device: &Device, stream: u32, name: &str) -> QueueHandle {
        let name = self.tables.text(name);
        self.tables.queue(QueueRow {
            process: self.process,
            agent: device.handle,
            context: 0,
            domain: device.domain,
            stream,
            name,
        })
    }

    /// The destination of a line of the host: a thread, if its number can be that of one.
    fn host_line(&mut self, id: u64, name: &str, plane: &str) -> Destination {
        let category = self.tables.text("host");
        let lane = match u32::try_from(id) {
            Ok(thread) if thread != 0 && plane.starts_with(HOST) => {
                let key = (self.process, thread);
                let names = &mut self.tables.threads;
                names.entry(key).or_insert_with(|| name.to_owned());
                HostLane::Thread(self.process, thread)
            }
            _ if plane.starts_with(HOST) => self.track(name),
            _ => self.track(&format!("{plane} {name}")),
        };
        Destination::Track(lane, category)
    }

    /// A track of its own. A name that has been used gets a number.
    fn track(&mut self, name: &str) -> HostLane {
        let count = self.tracks.entry(name.to_owned()).or_default();
        *count += 1;
        let name = match *count {
            1 => self.tables.text(name),
            count => self.tables.text(&format!("{name} ({count})")),
        };
        HostLane::Process(self.process, name)
    }
}

/// The device of a plane.
struct Device {
    handle: AgentHandle,
    domain: Domain,
    title: String,
}
