//! Events of the machine that are open, and what they have counted.

use super::super::super::event::explain_machine;
use super::super::group::{GroupReading, PerfGroup};
use super::{MachineCounter, MachineCounters, UnitEvent, Zone};
use gputrail_buffer::platform::sysfs;
use gputrail_collect::counting::{CounterReading, CountingRequest};
use gputrail_counters::{Architecture, Counted};
use gputrail_record::{ALWAYS_SCHEDULED, CounterInvalid};
use std::io;
use std::path::Path;

/// The counters of a set that are of the whole machine, opened.
#[derive(Default)]
pub(in crate::perf::counters) struct MachineEvents {
    counters: Vec<(Counted, OpenCounter)>,
}

/// The sources of one counter's values, one for each instance.
enum OpenCounter {
    Events(Vec<OpenEvent>),
    Zones(Vec<OpenZone>),
}

struct OpenEvent {
    group: PerfGroup,
    factor: f64,
    latest: GroupReading,
    /// What was counted and is less than 1 in the unit of the counter.
    rest: f64,
}

struct OpenZone {
    zone: Zone,
    latest: Option<u64>,
}

impl MachineEvents {
    /// Opens the counters of `request` that are of the whole machine.
    ///
    /// # Errors
    ///
    /// As for [`MachineEvents::open`]; a request for values of dispatches.
    pub fn of(request: &CountingRequest) -> Result<MachineEvents, String> {
        let (machine, architecture) = (MachineCounters::this(), request.set.architecture());
        if !request.mode.is_of_dispatches() {
            return MachineEvents::open(machine, architecture, request.set.counted());
        }
        let name = |counted: Counted| &*architecture.counter(counted.0).name;
        let mut of_machine = request
            .set
            .counted()
            .filter_map(|counted| machine.counter(name(counted)));
        match of_machine.next() {
            Some(counter) => Err(format!(
                "{} counts the whole machine, whatever runs: use it at a period (--counters-mode device)",
                counter.name
            )),
            None => Ok(MachineEvents::default()),
        }
    }

    /// Opens those of `counted` that are of the whole machine.
    ///
    /// # Errors
    ///
    /// A sentence that says what is in the way, and the remedy.
    pub(super) fn open(
        machine: &MachineCounters,
        architecture: &Architecture,
        counted: impl Iterator<Item = Counted>,
    ) -> Result<MachineEvents, String> {
        let mut counters = Vec::new();
        for one in counted {
            let name = &architecture.counter(one.0).name;
            if let Some(counter) = machine.counter(name) {
                let open = counter
                    .open()
                    .map_err(|reason| format!("{name}: {reason}"))?;
                counters.push((one, open));
            }
        }
        Ok(MachineEvents { counters })
    }

    /// What has been counted since the reading before, or since the events were opened.
    pub fn read(&mut self) -> Vec<(Counted, CounterReading)> {
        let read = |(counted, open): &mut (Counted, OpenCounter)| (*counted, open.read());
        self.counters.iter_mut().map(read).collect()
    }
}

impl MachineCounter {
    /// Checks whether the system allows the counter.
    pub fn check(&self) -> Result<(), String> {
        self.open().map(drop)
    }

    /// Opens its events; where that fails, its zones, which take no permission for events.
    fn open(&self) -> Result<OpenCounter, String> {
        let open = |event: &UnitEvent| {
            let group = PerfGroup::open_on_processor(event.kind, event.cpu, event.config)?;
            let latest = group.read()?;
            Ok(OpenEvent {
                group,
                factor: event.factor,
                latest,
                rest: 0.0,
            })
        };
        let events: io::Result<Vec<OpenEvent>> = self.events.iter().map(open).collect();
        let refused = match events {
            Ok(events) if !events.is_empty() => return Ok(OpenCounter::Events(events)),
            Ok(_) => String::new(),
            Err(error) => explain_machine(&error),
        };
        let zones: io::Result<Vec<OpenZone>> = self.zones.iter().map(OpenZone::new).collect();
        match zones {
            Ok(zones) if !zones.is_empty() => Ok(OpenCounter::Zones(zones)),
            Ok(_) => Err(refused),
            Err(error) if refused.is_empty() => Err(error.to_string()),
            Err(error) => Err(format!("{refused}; and {error}")),
        }
    }
}

impl OpenCounter {
    fn read(&mut self) -> CounterReading {
        let mut reading = CounterReading {
            instances: Vec::new(),
            ..CounterReading::of(0)
        };
        match self {
            OpenCounter::Events(events) => {
                for event in events {
                    let Ok(now) = event.group.read() else {
                        return CounterReading::invalid(CounterInvalid::NOT_PERMITTED);
                    };
                    let Some((value, scheduled)) = event.advance(now) else {
                        return CounterReading::invalid(CounterInvalid::NOT_SCHEDULED);
                    };
                    reading.instances.push(value);
                    reading.scheduled = reading.scheduled.min(scheduled);
                }
            }
            OpenCounter::Zones(zones) => {
                for zone in zones {
                    let Some(used) = zone.advance() else {
                        return CounterReading::invalid(CounterInvalid::MISSING);
                    };
                    reading.instances.push(used);
                }
            }
        }
        reading
    }
}

impl OpenEvent {
    /// What was counted since the latest reading, scaled to the whole time, and the share of the time during which the event
    /// counted. `None` if it never did.
    fn advance(&mut self, now: GroupReading) -> Option<(u64, u16)> {
        let before = std::mem::replace(&mut self.latest, now);
        let count = now.values[0].wrapping_sub(before.values[0]) as f64;
        let enabled = now.enabled.saturating_sub(before.enabled);
        let running = now.running.saturating_sub(before.running);
        let (scale, scheduled) = match running {
            0 if enabled > 0 => return None,
            running if running >= enabled => (1.0, ALWAYS_SCHEDULED),
            running => {
                let share = running as f64 / enabled as f64;
                let thousandths = (share * f64::from(ALWAYS_SCHEDULED)) as u16;
                (1.0 / share, thousandths.min(ALWAYS_SCHEDULED - 1))
            }
        };
        let exact = count * self.factor * scale + self.rest;
        self.rest = exact.fract();
        // A number that is too large becomes the largest.
        Some((exact as u64, scheduled))
    }
}

impl OpenZone {
    fn new(zone: &Zone) -> io::Result<OpenZone> {
        let latest = zone.read()?;
        Ok(OpenZone {
            zone: zone.clone(),
            latest: Some(latest),
        })
    }

    /// The energy since the latest reading; `None` if it cannot be read.
    fn advance(&mut self) -> Option<u64> {
        let now = self.zone.read().ok();
        let before = std::mem::replace(&mut self.latest, now)?;
        let now = now?;
        if now >= before {
            Some(now - before)
        } else {
            Some(now.saturating_add(self.zone.wraps_after.checked_sub(before)?))
        }
    }
}

impl Zone {
    /// The energy now. Errors name the file, and the remedy.
    fn read(&self) -> io::Result<u64> {
        sysfs::number(&self.energy).map_err(|error| zone_error(&self.energy, &error))
    }
}

/// Why the energy of a zone cannot be read, and the remedy.
pub(super) fn zone_error(file: &Path, error: &io::Error) -> io::Error {
    let file = file.display();
    let text = match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "{file} is for administrators: allow it with `chmod a+r {file}`, or give the program CAP_DAC_READ_SEARCH"
        ),
        _ => format!("{file}: {error}"),
    };
    io::Error::new(error.kind(), text)
}
