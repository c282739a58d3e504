//! The architecture that the events of threads and the counters of the machine make.

use super::group::PerfGroup;
use super::host_event::{EVENTS, PerfEvent};
use super::machine::{MachineCounter, MachineCounters};
use gputrail_counters::{
    Architecture, Catalogue, Defined, DefinedFrom, DefinitionPlace, Definitions, Dialect,
    Expression, HardwareBlock, Sources, Usage, with_added,
};
use std::sync::{Arc, OnceLock};

/// The metrics: name, unit, formula, description.
const METRICS: [(&str, Usage, &str, &str); 4] = [
    (
        "CPUS_UTILIZED",
        Usage::Ratio,
        "TASK_CLOCK/KERNEL_TIME",
        "Processors in use while the kernel ran",
    ),
    (
        "IPC",
        Usage::Ratio,
        "INSTRUCTIONS/CPU_CYCLES",
        "Instructions per cycle",
    ),
    (
        "CACHE_MISS_PERCENT",
        Usage::Percentage,
        "100*CACHE_MISSES/CACHE_REFERENCES",
        "Share of the accesses to the last level of cache that missed",
    ),
    (
        "BRANCH_MISS_PERCENT",
        Usage::Percentage,
        "100*BRANCH_MISSES/BRANCH_INSTRUCTIONS",
        "Share of the branches that were predicted wrongly",
    ),
];

/// The counters and metrics of agents whose kernels run on threads of the process, with those of the whole machine.
pub(super) fn architecture() -> Arc<Architecture> {
    static ARCHITECTURE: OnceLock<Arc<Architecture>> = OnceLock::new();
    let own = ARCHITECTURE
        .get_or_init(|| Arc::new(define(MachineCounters::this())))
        .clone();
    with_added(HOST, own)
}

/// The name of the architecture.
const HOST: &str = "host";

pub(super) fn define(machine: &MachineCounters) -> Architecture {
    let at = DefinitionPlace {
        file: "gputrail".into(),
        line: 1,
        column: 1,
    };
    let block = |(name, capacity): (&str, u32)| HardwareBlock {
        name: name.to_owned(),
        instances: Some(1),
        capacity: Some(capacity),
    };
    let event = |event: &PerfEvent| Defined {
        name: event.name.to_owned(),
        description: event.description.to_owned(),
        usage: event.usage,
        from: DefinedFrom::Event {
            block: block_of(event).to_owned(),
            event: event.config as u32,
            instance: None,
        },
        at: at.clone(),
    };
    let metric = |(name, usage, formula, description): (&str, Usage, &str, &str)| {
        let expression = Expression::parse(formula).ok()?;
        Some(Defined {
            name: name.to_owned(),
            description: description.to_owned(),
            usage,
            from: DefinedFrom::Expression(expression, at.clone()),
            at: at.clone(),
        })
    };
    let of_machine = |counter: &MachineCounter| Defined {
        name: counter.name.clone(),
        description: counter.description.clone(),
        usage: counter.usage,
        from: DefinedFrom::Event {
            block: counter.block.clone(),
            event: counter
                .events
                .first()
                .map_or(0, |event| event.config[0] as u32),
            instance: None,
        },
        at: at.clone(),
    };
    // A name that a thread's event has stands for that event.
    let is_new = |counter: &&MachineCounter| EVENTS.iter().all(|event| event.name != counter.name);
    let mut blocks: Vec<HardwareBlock> =
        [("SOFTWARE", u32::MAX), ("HARDWARE", hardware_capacity())]
            .map(block)
            .into();
    for counter in &machine.counters {
        let instances = counter.instances();
        match blocks.iter_mut().find(|block| block.name == counter.block) {
            Some(block) => block.instances = block.instances.max(Some(instances)),
            // Events that do not fit the unit take turns, which their share of the time tells.
            None => blocks.push(HardwareBlock {
                name: counter.block.clone(),
                instances: Some(instances),
                capacity: Some(u32::MAX),
            }),
        }
    }
    let mut sources = Sources::default();
    let definitions = Definitions {
        dialect: Dialect::Sum,
        blocks,
        counters: EVENTS
            .iter()
            .map(event)
            .chain(machine.counters.iter().filter(is_new).map(of_machine))
            .chain(METRICS.into_iter().filter_map(metric))
            .collect(),
    };
    sources.architectures.insert(HOST.to_owned(), definitions);
    let mut catalogue = Catalogue::from(sources);
    catalogue.architectures.remove(HOST).unwrap_or_default()
}

/// The number of hardware events that the processor counts at a time; any number where it has none, which is said when they
/// are asked for.
fn hardware_capacity() -> u32 {
    let events: Vec<&PerfEvent> = EVENTS.iter().filter(|event| event.is_hardware).collect();
    let counts = |number: &usize| {
        let group = PerfGroup::open(0, &events[..*number]);
        // A group that does not fit the processor is refused, or has no time in which it ran.
        let read = group.and_then(|group| group.read());
        read.is_ok_and(|reading| reading.running > 0)
    };
    let most = (1..=events.len()).rev().find(counts);
    most.map_or(u32::MAX, |number| number as u32)
}

fn block_of(event: &PerfEvent) -> &'static str {
    if event.is_hardware {
        "HARDWARE"
    } else {
        "SOFTWARE"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_counters::Definition;

    #[test]
    fn all_events_and_metrics_are_defined_and_software_events_need_one_pass() {
        let architecture = define(&MachineCounters::default());
        assert_eq!(architecture.counters().len(), EVENTS.len() + METRICS.len());
        let all: Vec<_> = architecture
            .counters()
            .iter()
            .map(|counter| architecture.find(&counter.name).unwrap())
            .collect();
        let plan = gputrail_counters::plan(&architecture, &all).unwrap();
        let is_software = |block: u32| architecture.blocks()[block as usize].name == "SOFTWARE";
        let mut needed = plan.needed.iter();
        let software = needed.find(|(block, _)| is_software(block.0));
        assert_eq!(software.map(|(_, passes)| *passes), Some(1));
        for counted in plan.passes.iter().flatten() {
            let definition = &architecture.counter(counted.0).definition;
            assert!(matches!(definition, Definition::Basic { .. }));
            assert!(PerfEvent::of(&architecture, *counted).is_some());
        }
    }
}
