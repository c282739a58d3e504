//! Counters of the whole machine: energy (RAPL) and the units outside of the processors' cores, such as memory controllers
//! and caches that processors share. They count whatever runs, so they have values at a period only.
//!
//! The kernel describes its units in `/sys/bus/event_source/devices`, and energy also in `/sys/class/powercap`
//! ([`MachineCounters::find`]); `terms` reads the descriptions of events, `reading` opens and reads them.
//!
//! The units are RAPL (`power`), `uncore_*`, `amd_df`, `amd_l3` and `amd_umc`; a value is the sum over all units of a kind.
//! `ENERGY_PKG`, `ENERGY_CORES`, `ENERGY_GPU`, `ENERGY_RAM` and `ENERGY_PSYS` are in microjoules; the hardware counts in steps of
//! 15 to 61 uJ, usually once a millisecond. Other counters are named by unit and event (`UNCORE_IMC_CAS_COUNT_READ`), and are in
//! bytes if the kernel says so.

mod reading;
mod terms;

use gputrail_buffer::platform::sysfs;
use gputrail_counters::Usage;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use terms::{EventConfig, configuration, is_name};

pub(super) use reading::MachineEvents;

/// The units of the kernel that are read, by the begin of their names: energy; Intel's and AMD's units.
const UNITS: [&str; 5] = ["power", "uncore_", "amd_df", "amd_l3", "amd_umc"];
/// The folder of units, and that of energy, in `/sys`.
const UNIT_FOLDER: &str = "bus/event_source/devices";
const ENERGY_FOLDER: &str = "class/powercap";
/// Units of this kind have energies, whose names are used without the unit's.
const ENERGY_UNIT: &str = "power";
/// The counters of energy: names of zones in [`ENERGY_FOLDER`], without a number at their end, and of counters.
const ZONES: [(&str, &str); 5] = [
    ("package", "ENERGY_PKG"),
    ("core", "ENERGY_CORES"),
    ("uncore", "ENERGY_GPU"),
    ("dram", "ENERGY_RAM"),
    ("psys", "ENERGY_PSYS"),
];
/// The block of energies that only [`ENERGY_FOLDER`] has.
const ENERGY_BLOCK: &str = "POWER";
/// Ends of names of files beside an event that are none themselves.
const BESIDE: [&str; 4] = [".scale", ".unit", ".per-pkg", ".snapshot"];
/// The most units, counters, instances of a counter, and problems that are named.
const MAX_UNITS: usize = 1024;
const MAX_COUNTERS: usize = 4096;
const MAX_INSTANCES: usize = 1024;
const MAX_PROBLEMS: usize = 16;

/// The counters of this machine.
#[derive(Debug, Default)]
pub(super) struct MachineCounters {
    pub counters: Vec<MachineCounter>,
    /// Descriptions that could not be read.
    problems: Vec<String>,
    /// The number of further ones.
    more_problems: usize,
}

/// A counter of the whole machine.
#[derive(Debug)]
pub(super) struct MachineCounter {
    /// Its name, in capitals: the unit's and the event's.
    pub name: String,
    /// The kind of unit.
    pub block: String,
    pub description: String,
    pub usage: Usage,
    /// Its events: one of each unit of this kind, and of each of the unit's processors, such as one of each socket.
    pub events: Vec<UnitEvent>,
    /// Energies in microjoules, where they can be read without events.
    zones: Vec<Zone>,
}

/// An event of one unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnitEvent {
    /// The type of the unit's events.
    kind: u32,
    /// The processor that reads the unit.
    cpu: u32,
    pub config: EventConfig,
    /// A count of 1 in the unit of the counter.
    factor: f64,
}

/// A counter of energy in [`ENERGY_FOLDER`].
#[derive(Clone, Debug, PartialEq)]
struct Zone {
    /// Microjoules.
    energy: PathBuf,
    /// The counter begins again at 0 after this value.
    wraps_after: u64,
}

/// The description of an event, as the files of its unit have it.
struct EventDescription {
    config: EventConfig,
    factor: f64,
    usage: Usage,
    /// Its unit in words; empty if it counts things.
    unit: String,
}

impl MachineCounters {
    /// The counters of this machine.
    pub fn this() -> &'static MachineCounters {
        static THIS: OnceLock<MachineCounters> = OnceLock::new();
        THIS.get_or_init(|| MachineCounters::find(&sysfs::root()))
    }

    /// Finds the counters that are described below `root`, which is `/sys`.
    pub fn find(root: &Path) -> MachineCounters {
        let mut machine = MachineCounters::default();
        let folder = root.join(UNIT_FOLDER);
        let mut units: Vec<(String, u64, PathBuf)> = UNITS
            .iter()
            .flat_map(|begin| sysfs::entries(&folder, begin))
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?;
                let (base, number) = base_and_number(name);
                Some((base.to_owned(), number, path.clone()))
            })
            .collect();
        units.sort();
        if units.len() > MAX_UNITS {
            machine.problem(format!("{}: more than {MAX_UNITS} units", folder.display()));
            units.truncate(MAX_UNITS);
        }
        for (base, _, unit) in units {
            if let Err(problem) = machine.add_unit(&base, &unit) {
                machine.problem(format!("{}: {problem}", unit.display()));
            }
        }
        machine.add_zones(&root.join(ENERGY_FOLDER));
        machine
    }

    /// The counter with this name.
    pub fn counter(&self, name: &str) -> Option<&MachineCounter> {
        self.counters.iter().find(|counter| counter.name == name)
    }

    /// What people who look for counters of the machine want to know: that there are none, descriptions that cannot be read,
    /// and what the system does not allow.
    pub fn notes(&self, root: &Path) -> Vec<String> {
        let mut notes = Vec::new();
        if self.counters.is_empty() {
            notes.push(format!(
                "this machine has no counters of energy and of units outside of the cores (uncore), as most virtual machines \
                 have none: nothing in {} begins with {}, and no zone in {} is readable or known",
                root.join(UNIT_FOLDER).display(),
                UNITS.join(", "),
                root.join(ENERGY_FOLDER).display()
            ));
        }
        notes.extend(self.problems.iter().cloned());
        if self.more_problems > 0 {
            notes.push(format!(
                "{} further descriptions are wrong",
                self.more_problems
            ));
        }
        let mut blocks: Vec<&str> = self.counters.iter().map(|one| &*one.block).collect();
        blocks.dedup();
        for block in blocks {
            // What holds for one counter of a block holds for all.
            let first = self.counters.iter().find(|counter| counter.block == block);
            if let Some(counter) = first
                && let Err(reason) = counter.check()
            {
                notes.push(format!("{block}: {reason}"));
            }
        }
        notes
    }

    fn problem(&mut self, text: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(text)
        } else {
            self.more_problems += 1
        }
    }

    /// Adds the events of one unit, whose name without its number is `base`.
    fn add_unit(&mut self, base: &str, unit: &Path) -> Result<(), String> {
        if !is_name(base) {
            return Err("expected a name of letters, digits, _, - and .".to_owned());
        }
        let read = |file: &str| {
            let text = sysfs::text(&unit.join(file));
            text.map_err(|error| format!("{file}: {error}"))
        };
        let kind = read("type")?;
        let kind = kind
            .parse()
            .map_err(|_| format!("type: expected a number, found {kind:?}"))?;
        let cpus = read("cpumask")?;
        let cpus = processors(&cpus)
            .ok_or_else(|| format!("cpumask: expected processors such as 0,18, found {cpus:?}"))?;
        for file in sysfs::entries(&unit.join("events"), "") {
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if BESIDE.iter().any(|end| name.ends_with(end)) {
                continue;
            }
            match described(unit, &file, name) {
                Ok(described) => self.add_event(base, name, (kind, &cpus), &described),
                Err(problem) => self.problem(format!("{}: {problem}", file.display())),
            }
        }
        Ok(())
    }

    fn add_event(
        &mut self,
        base: &str,
        event: &str,
        (kind, cpus): (u32, &[u32]),
        described: &EventDescription,
    ) {
        let block = capitals(base);
        let name = if base.starts_with(ENERGY_UNIT) {
            capitals(event)
        } else {
            format!("{block}_{}", capitals(event))
        };
        let events = cpus.iter().map(|cpu| UnitEvent {
            kind,
            cpu: *cpu,
            config: described.config,
            factor: described.factor,
        });
        let count = self.counters.len();
        let known = self.counters.iter_mut().find(|known| known.name == name);
        match known {
            Some(known) if known.block == block && known.usage == described.usage => {
                known.events.extend(events);
                known.events.truncate(MAX_INSTANCES);
            }
            Some(_) => self.problem(format!("{base}/{event}/: another counter is called {name}")),
            None if count == MAX_COUNTERS => {
                self.problem(format!(
                    "{base}/{event}/: there are {MAX_COUNTERS} counters already"
                ));
            }
            None => self.counters.push(MachineCounter {
                description: format!(
                    "{base}/{event}/ of the whole machine{}, at a period only",
                    described.unit
                ),
                usage: described.usage,
                events: events.take(MAX_INSTANCES).collect(),
                zones: Vec::new(),
                block,
                name,
            }),
        }
    }

    /// Adds the energies of `folder`: to the counters of the same energy, or as counters of their own.
    fn add_zones(&mut self, folder: &Path) {
        for path in sysfs::entries(folder, "intel-rapl:") {
            let Ok(zone) = sysfs::text(&path.join("name")) else {
                continue;
            };
            let (base, _) = base_and_number(&zone);
            let Some((_, name)) = ZONES.iter().find(|(zone, _)| *zone == base) else {
                continue;
            };
            let energy = path.join("energy_uj");
            let wraps_after = sysfs::number(&path.join("max_energy_range_uj")).unwrap_or(u64::MAX);
            let zone = Zone {
                energy,
                wraps_after,
            };
            match self.counters.iter_mut().find(|known| known.name == *name) {
                Some(known) if known.usage == Usage::Microjoules => {
                    known.zones.push(zone);
                    known.zones.truncate(MAX_INSTANCES);
                }
                Some(_) => {}
                None => self.counters.push(MachineCounter {
                    name: (*name).to_owned(),
                    block: ENERGY_BLOCK.to_owned(),
                    description: format!(
                        "Energy of the zones {base} of the whole machine, in uJ, at a period only"
                    ),
                    usage: Usage::Microjoules,
                    events: Vec::new(),
                    zones: vec![zone],
                }),
            }
        }
    }
}

impl MachineCounter {
    /// The number of its instances.
    pub fn instances(&self) -> u32 {
        self.events.len().max(self.zones.len()) as u32
    }
}

/// Reads the description of an event of `unit`.
fn described(unit: &Path, file: &Path, name: &str) -> Result<EventDescription, String> {
    if !is_name(name) {
        return Err("expected a name of letters, digits, _, - and .".to_owned());
    }
    let terms = sysfs::text(file).map_err(|error| error.to_string())?;
    let config = configuration(&terms, &unit.join("format"))?;
    let beside = |end: &str| sysfs::text(&file.with_file_name(format!("{name}{end}"))).ok();
    let scale = match beside(".scale") {
        None => 1.0,
        Some(text) => text
            .parse()
            .ok()
            .filter(|scale: &f64| scale.is_finite() && *scale > 0.0)
            .ok_or_else(|| format!("scale: expected a positive number, found {text:?}"))?,
    };
    let (usage, factor, unit) = match beside(".unit").as_deref() {
        Some("Joules") => (Usage::Microjoules, scale * 1e6, ", in uJ".to_owned()),
        Some("Bytes") => (Usage::Bytes, scale, ", in bytes".to_owned()),
        Some("KiB") => (Usage::Bytes, scale * 1024.0, ", in bytes".to_owned()),
        Some("MiB") => (Usage::Bytes, scale * 1_048_576.0, ", in bytes".to_owned()),
        Some(unit) if is_name(unit) => (Usage::Items, 1.0, format!(", in units of {scale} {unit}")),
        _ if scale != 1.0 => (Usage::Items, 1.0, format!(", in units of {scale}")),
        _ => (Usage::Items, 1.0, String::new()),
    };
    Ok(EventDescription {
        config,
        factor,
        usage,
        unit,
    })
}

/// The name of a unit without the number at its end, and the number: `uncore_imc_0`, `package-1`.
fn base_and_number(name: &str) -> (&str, u64) {
    let digits = name.trim_end_matches(|last: char| last.is_ascii_digit());
    let base = digits.strip_suffix(['_', '-']);
    match (base, name[digits.len()..].parse()) {
        (Some(base), Ok(number)) if !base.is_empty() => (base, number),
        _ => (name, 0),
    }
}

/// A name in capitals, with _ in place of other signs.
fn capitals(name: &str) -> String {
    name.to_ascii_uppercase().replace(['-', '.'], "_")
}

/// A list of processors, such as `0,18` or `0-3`, each once.
fn processors(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last - first >= MAX_INSTANCES as u32 || last > i32::MAX as u32 {
            return None;
        }
        all.extend(
            (first..=last)
                .filter(|cpu| !all.contains(cpu))
                .collect::<Vec<_>>(),
        );
        if all.len() > MAX_INSTANCES {
            return None;
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests;
