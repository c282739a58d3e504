//! Records of a device's clocks, temperature, power and fan: one for all quantities of a kind that were read at a time.

use super::record::{ActivityRecord, Environment as Record};
use super::sink;
use crate::objects;
use gputrail_record::{AgentId, Environment, EnvironmentKind, Ticks};

/// The readings of one agent at one time.
struct Readings {
    agent: AgentId,
    time: Ticks,
    /// The device and the time in records: gputrail may have ended when they are put.
    device: u32,
    nanos: u64,
    /// The values by kind of data (`CUpti_ActivityEnvironmentKind`, minus 1), if any was read.
    values: [Option<[u32; 5]>; 4],
}

/// The readings that are not complete.
#[derive(Default)]
pub struct Environments(Option<Readings>);

/// The kind of data (`CUpti_ActivityEnvironmentKind`) and the place of a quantity in it.
fn place(what: EnvironmentKind) -> Option<(u32, usize)> {
    Some(match what {
        EnvironmentKind::CLOCK => (1, 0),
        EnvironmentKind::MEMORY_CLOCK => (1, 1),
        EnvironmentKind::PCIE_GENERATION => (1, 2),
        EnvironmentKind::PCIE_WIDTH => (1, 3),
        EnvironmentKind::THROTTLE_REASONS => (1, 4),
        EnvironmentKind::TEMPERATURE => (2, 0),
        EnvironmentKind::POWER => (3, 0),
        EnvironmentKind::POWER_LIMIT => (3, 1),
        EnvironmentKind::FAN_SPEED => (4, 0),
        _ => return None,
    })
}

impl Environments {
    /// Takes a reading.
    pub fn add(&mut self, reading: &Environment) {
        let Some((kind, place)) = place(reading.what) else {
            return;
        };
        let same = |one: &Readings| (one.agent, one.time) == (reading.agent, reading.time);
        if !self.0.as_ref().is_some_and(same) {
            self.finish();
        }
        let readings = self.0.get_or_insert_with(|| Readings {
            agent: reading.agent,
            time: reading.time,
            device: objects::device_of(reading.agent).unwrap_or(u32::MAX),
            nanos: reading.time.0,
            values: [None; 4],
        });
        let values = readings.values[kind as usize - 1].get_or_insert([0; 5]);
        values[place] = reading.value.try_into().unwrap_or(u32::MAX);
    }

    /// Puts the records of what was read.
    pub fn finish(&mut self) {
        let Some(readings) = self.0.take() else {
            return;
        };
        for (kind, values) in (1..).zip(readings.values) {
            let Some(values) = values else {
                continue;
            };
            let mut record = Record::blank();
            (record.device_id, record.timestamp) = (readings.device, readings.nanos);
            record.environment_kind = kind;
            record.data = values;
            sink::put(&record);
        }
    }
}
