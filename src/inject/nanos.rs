//! The times of a record in nanoseconds of CLOCK_BOOTTIME, in place of those of the clocks that they were read from.

use gputrail_collect::times::TimeConverter;
use gputrail_interface::joined::WorkTimes;
use gputrail_record::layout::{Field, FieldClock, FieldValues, LAYOUTS};
use gputrail_record::{
    AgentId, CounterValue, DeviceTime, Header, Kind, Nanos, RecordRef, Ticks, flags,
};

/// The times of records of a kind: offsets in words, from 1 on.
#[derive(Copy, Clone)]
struct TimeFields {
    host: [u8; 2],
    agent: [u8; 4],
    /// The offset of the agent's id in bytes; 0 without times of an agent.
    agent_id: u16,
    /// Bytes of the record.
    bytes: u16,
}

/// By kind.
static FIELDS: [TimeFields; 256] = {
    let none = TimeFields {
        host: [0; 2],
        agent: [0; 4],
        agent_id: 0,
        bytes: 0,
    };
    let (mut all, mut place) = ([none; 256], 0);
    while place < LAYOUTS.len() {
        let layout = LAYOUTS[place];
        all[layout.kind.0 as usize] = match layout.kind {
            // Readings of clocks are what they are for.
            Kind::CLOCK_SNAPSHOT | Kind::CLOCK_PAIR => none,
            _ => with(none, layout.fields, 0, layout.bytes as u16),
        };
        place += 1;
    }
    all
};

/// `times`, and the times of `fields`, which begin at `base`.
const fn with(mut times: TimeFields, fields: &[Field], base: usize, bytes: u16) -> TimeFields {
    let mut place = 0;
    while place < fields.len() {
        let field = fields[place];
        let offset = base + field.offset;
        match (field.clock, field.values) {
            (Some(FieldClock::Host), _) => times.host[count(&times.host)] = (offset / 8) as u8,
            (Some(FieldClock::Agent), _) => times.agent[count(&times.agent)] = (offset / 8) as u8,
            (None, FieldValues::Fields(parts)) => times = with(times, parts, offset, bytes),
            (None, _) => {}
        }
        if base == 0 && matches!(field.name.as_bytes(), b"agent") {
            times.agent_id = offset as u16;
        }
        place += 1;
    }
    times.bytes = bytes;
    times
}

/// The number of offsets that are set.
const fn count(offsets: &[u8]) -> usize {
    let mut place = 0;
    while offsets[place] != 0 {
        place += 1;
    }
    place
}

/// The offset of the name of a counter value's range, in halves of words.
const RANGE: usize = std::mem::offset_of!(CounterValue, range) / 4;

/// Bytes of the longest record that has times.
pub(super) const MAX_BYTES: usize = {
    let (mut most, mut place) = (0, 0);
    while place < LAYOUTS.len() {
        if LAYOUTS[place].bytes > most {
            most = LAYOUTS[place].bytes;
        }
        place += 1;
    }
    most
};

/// Whether records of `kind` have times.
pub(super) fn has_times(kind: Kind) -> bool {
    let fields = &FIELDS[usize::from(kind.0)];
    fields.host[0] != 0 || fields.agent[0] != 0
}

/// Converts the times of `record`. A time of an agent whose clock has not been read yet becomes 0, and the record is flagged.
pub(super) fn convert(record: &mut [u64], times: &mut TimeConverter) {
    let Some(header) = record.first().copied() else {
        return;
    };
    let header: Header = bytemuck::cast(header);
    let fields = FIELDS[usize::from(header.kind.0)];
    if record.len() * 8 < usize::from(fields.bytes) {
        return;
    }
    // All times of a record by the same readings of clocks: their order is kept.
    times.read_clocks();
    for offset in fields.host.into_iter().filter(|offset| *offset != 0) {
        let time = &mut record[usize::from(offset)];
        *time = times.host_by_readings(Ticks(*time)).0;
    }
    if fields.agent[0] == 0 {
        return;
    }
    let ids: &[u32] = bytemuck::cast_slice(record);
    if header.kind == Kind::COUNTER_VALUE && ids[RANGE] != 0 {
        // The times of a range of markers are the host's.
        for offset in fields.agent.into_iter().filter(|offset| *offset != 0) {
            let time = &mut record[usize::from(offset)];
            *time = times.host_by_readings(Ticks(*time)).0;
        }
        return;
    }
    let clock = times.clock_of(AgentId(ids[usize::from(fields.agent_id) / 4]));
    for offset in fields.agent.into_iter().filter(|offset| *offset != 0) {
        let time = DeviceTime(record[usize::from(offset)]);
        let converted = clock.and_then(|clock| clock.to_boottime(time));
        let converted = converted.unwrap_or_default();
        record[usize::from(offset)] = converted.0;
        if time.is_some() && !converted.is_some() {
            record[0] = bytemuck::cast(header.with(flags::TIME_UNKNOWN));
        }
    }
}

/// The latest time in a record whose times have been converted; none if it has no times.
pub(super) fn latest_time(record: RecordRef<'_>) -> Nanos {
    if let Some(times) = WorkTimes::of(record) {
        let known = [times.enqueued, times.end, times.completed];
        return known.into_iter().max().unwrap_or_default();
    }
    let fields = &FIELDS[usize::from(record.kind().0)];
    let offsets = fields.host.iter().chain(&fields.agent);
    let times = offsets.filter(|offset| **offset != 0).filter_map(|offset| {
        let at = usize::from(*offset) * 8;
        let bytes = record.bytes().get(at..at + 8)?;
        Some(Nanos(bytemuck::pod_read_unaligned(bytes)))
    });
    times.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_buffer::clock;
    use gputrail_capture::names::Names;
    use gputrail_record::{Api, Completion, KernelDispatch, Loss, StringId};

    #[test]
    fn each_time_of_a_record_is_found_and_nothing_else() {
        let of = |kind: Kind| FIELDS[usize::from(kind.0)];
        let words = |offset: usize| (offset / 8) as u8;
        let api = of(Kind::API);
        let expected = [
            std::mem::offset_of!(Api, start),
            std::mem::offset_of!(Api, end),
        ];
        assert_eq!((api.host, api.agent), (expected.map(words), [0; 4]));
        let loss = [
            std::mem::offset_of!(Loss, first),
            std::mem::offset_of!(Loss, last),
        ];
        assert_eq!(of(Kind::LOSS).host, loss.map(words));
        let enqueued = std::mem::offset_of!(KernelDispatch, work.enqueued);
        assert_eq!(of(Kind::KERNEL_DISPATCH).host, [words(enqueued), 0]);
        let completion = of(Kind::COMPLETION);
        assert!(completion.agent.iter().all(|offset| *offset != 0) && completion.host[1] == 0);
        let agent = std::mem::offset_of!(CounterValue, agent);
        assert_eq!(usize::from(of(Kind::COUNTER_VALUE).agent_id), agent);
        assert!(!has_times(Kind::STRING) && !has_times(Kind::CLOCK_PAIR) && !has_times(Kind(200)));
        for layout in LAYOUTS {
            let fields = of(layout.kind);
            assert!(
                fields.agent[0] == 0 || fields.agent_id != 0,
                "{}",
                layout.name
            );
        }
    }

    #[test]
    fn times_become_nanoseconds_and_a_clock_that_is_not_known_is_flagged() {
        let mut times = TimeConverter::new(Names::new()).unwrap();
        let mut call = Api::blank();
        call.start = clock::now();
        let mut words: [u64; size_of::<Api>() / 8] = bytemuck::cast(call);
        convert(&mut words, &mut times);
        let converted: Api = bytemuck::cast(words);
        assert_eq!(converted.start.0, times.host(call.start).0);
        assert_eq!((converted.end, converted.header), (call.end, call.header));
        let mut done = Completion::blank();
        (done.agent, done.end) = (AgentId(7), DeviceTime(5));
        let mut words: [u64; size_of::<Completion>() / 8] = bytemuck::cast(done);
        convert(&mut words, &mut times);
        let converted: Completion = bytemuck::cast(words);
        assert_eq!(converted.end, DeviceTime::NONE);
        assert!(converted.header.has(flags::TIME_UNKNOWN));
        // The times of a range of markers are the host's.
        let mut value = CounterValue::blank();
        (value.agent, value.range) = (AgentId(7), StringId(1));
        value.start = DeviceTime(call.start.0);
        let mut words: [u64; size_of::<CounterValue>() / 8] = bytemuck::cast(value);
        convert(&mut words, &mut times);
        let converted: CounterValue = bytemuck::cast(words);
        assert_eq!(converted.start.0, times.host(call.start).0);
        assert!(!converted.header.has(flags::TIME_UNKNOWN));
    }
}
