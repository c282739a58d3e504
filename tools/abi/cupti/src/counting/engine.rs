//! The counting of the events of enabled groups.
//!
//! One context of gputrail counts on all devices. For groups of a context, it asks for the counters of each
//! kernel, and the answer is what the enabled groups of the kernel's context need. For groups of a device that count all the time it
//! reads the device at a period that ends when a group is read.

use super::groups::{ChosenSets, EventGroup, Group, Mode, Table, table};
use crate::result::{Answer, CUptiResult};
use gputrail_abi::counting::{CounterSetHandle, Counts, Engine, Way, Ways, instance, name_of};
use gputrail_abi::lock;
use gputrail_record::{AgentId, ContextId, CounterInvalid, CounterValue, KernelDispatch};
use gputrail_tool::counting::CounterSet;
use gputrail_tool::{self as tool, Status};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The groups as those for whom gputrail counts.
#[derive(Clone)]
struct Groups;

impl Counts for Groups {
    fn choose(&self, agent: AgentId, kernel: &KernelDispatch) -> Option<CounterSetHandle> {
        let mut table = table();
        let work = &kernel.work;
        let set = table.chosen.get(&(agent, work.context))?.handle();
        let calls = &mut table.calls;
        calls.entry(work.correlation).or_insert((work.context, 0)).1 += 1;
        Some(set)
    }

    // In the place of those of the kernel before, or in the continuous mode beside them.
    fn kernel(&self, values: &[CounterValue]) {
        let Some(first) = values.first() else {
            return;
        };
        let mut table = table();
        let Some(context) = table.ended(first.correlation) else {
            return;
        };
        let mode = table.manner(context).mode;
        let of = |group: &&mut Group| {
            group.is_enabled
                && group.context == context
                && group.agent == first.agent
                && !group.is_of_device(mode)
        };
        if mode == Mode::Kernel {
            table.groups.values_mut().filter(of).for_each(Group::clear);
        }
        for value in values {
            count(value, table.groups.values_mut().filter(of));
        }
    }

    fn period(&self, value: &CounterValue) {
        let mut table = table();
        let table = &mut *table;
        let manners = &table.manners;
        let counts = |group: &&mut Group| {
            let manner = manners.get(&group.context).copied().unwrap_or_default();
            group.is_enabled && group.agent == value.agent && group.is_of_device(manner.mode)
        };
        count(value, table.groups.values_mut().filter(counts));
    }
}

/// The engine. It is locked during calls of gputrail's, and never by callbacks.
static ENGINE: Mutex<Engine<Groups>> = Mutex::new(Engine::new(Groups));

/// The status for an error of counting.
fn failed(error: tool::Error) -> CUptiResult {
    match error.status {
        Status::CONTEXT_CONFLICT | Status::BUSY => CUptiResult::HARDWARE_BUSY,
        Status::COUNTERS_NOT_AVAILABLE => CUptiResult::HARDWARE,
        // More passes than there can be.
        Status::INVALID_ARGUMENT => CUptiResult::NOT_COMPATIBLE,
        _ => error.into(),
    }
}

/// Adds a value to groups.
fn count<'g>(value: &CounterValue, groups: impl Iterator<Item = &'g mut Group>) {
    let Some(name) = name_of(value.counter) else {
        return;
    };
    let instance = instance(value) as usize;
    let number = (value.invalid == CounterInvalid::NO).then_some(value.value);
    for group in groups {
        if let Some(event) = group.family.event_named(&name) {
            group.count(event, instance, number);
        }
    }
}

/// The names of the events of these groups, each once.
fn names<'g>(groups: impl Iterator<Item = &'g Group>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for group in groups {
        for event in &group.events {
            let name = group.family.events[*event].name;
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// What is counted when these groups are enabled: the way of each device, and the counters of the kernels of each context.
struct Plan {
    ways: Ways,
    kernels: Vec<((AgentId, ContextId), Vec<&'static str>, bool)>,
}

impl Plan {
    fn new(table: &Table, is_enabled: impl Fn(usize, &Group) -> bool) -> Answer<Plan> {
        let enabled: Vec<&Group> = table
            .groups
            .iter()
            .filter(|(handle, group)| is_enabled(**handle, group))
            .map(|(_, group)| group)
            .collect();
        let mut plan = Plan {
            ways: Ways::new(),
            kernels: Vec::new(),
        };
        for group in &enabled {
            let (agent, context) = (group.agent, group.context);
            let manner = table.manner(context);
            let is_of_device = |one: &Group| one.is_of_device(table.manner(one.context).mode);
            let way = match is_of_device(group) {
                false => Way::Kernels,
                true => {
                    let of = |one: &&&Group| one.agent == agent && is_of_device(one);
                    Way::Always(names(enabled.iter().filter(of).copied()))
                }
            };
            if *plan.ways.entry(agent).or_insert_with(|| way.clone()) != way {
                return Err(CUptiResult::NOT_COMPATIBLE);
            }
            let is_new = plan.kernels.iter().all(|(of, ..)| *of != (agent, context));
            if !is_of_device(group) && is_new {
                let of = |one: &&&Group| one.agent == agent && one.context == context;
                let names = names(enabled.iter().filter(of).copied());
                plan.kernels
                    .push(((agent, context), names, manner.is_replaying));
            }
        }
        Ok(plan)
    }

    /// Has the engine count so, and returns the counters of each kernel. If they cannot be counted, the engine goes on.
    fn apply(&self, engine: &mut Engine<Groups>) -> Answer<ChosenSets> {
        let before = engine.ways();
        engine.change(&self.ways).map_err(failed)?;
        // A device that is read at a period takes no counters of kernels: the sets come after the change.
        self.sets().inspect_err(|_| {
            let _ = engine.change(&before);
        })
    }

    /// The counters of each kernel.
    fn sets(&self) -> Answer<ChosenSets> {
        let mut sets = HashMap::new();
        for (of, names, is_replaying) in &self.kernels {
            let set = CounterSet::of_each_instance(of.0, names).map_err(failed)?;
            if !is_replaying && set.passes()? > 1 {
                return Err(CUptiResult::NOT_COMPATIBLE);
            }
            sets.insert(*of, Arc::new(set));
        }
        Ok(sets)
    }
}

/// Has kernels counted with these sets from now on.
fn choose(mut table: MutexGuard<'_, Table>, sets: ChosenSets) {
    let before = std::mem::replace(&mut table.chosen, sets);
    drop(table);
    // Outside of the lock: dropping sets calls the library.
    drop(before);
}

/// Enables groups, whose values are 0 then.
pub fn enable(handles: &[EventGroup]) -> Answer {
    let mut engine = lock(&ENGINE);
    let plan = {
        let mut table = table();
        for handle in handles {
            if table.group(*handle)?.events.is_empty() {
                return Err(CUptiResult::NOT_READY);
            }
        }
        let is_new = |handle: usize| handles.iter().any(|new| new.addr() == handle);
        Plan::new(&table, |handle, group| group.is_enabled || is_new(handle))?
    };
    let sets = plan.apply(&mut engine)?;
    // What was counted before is not theirs.
    let _ = engine.flush();
    let mut table = table();
    for handle in handles {
        if let Ok(group) = table.group(*handle) {
            group.clear();
            group.is_enabled = true;
        }
    }
    choose(table, sets);
    Ok(())
}

/// Changes the table with `change`, which disables groups, and counts what is enabled then.
pub fn disable(change: impl FnOnce(&mut Table) -> Answer) -> Answer {
    let mut engine = lock(&ENGINE);
    let plan = {
        let mut table = table();
        change(&mut table)?;
        Plan::new(&table, |_, group| group.is_enabled)?
    };
    // Without sets no kernel is counted: the groups that are to be disabled are, in any case.
    let (sets, answer) = match plan.sets() {
        Ok(sets) => (sets, Ok(())),
        Err(status) => (ChosenSets::new(), Err(status)),
    };
    choose(table(), sets);
    if plan.ways.is_empty() {
        engine.stop();
        table().calls.clear();
    }
    answer
}

/// Changes how a context counts, and has its enabled groups count so.
pub fn change(context: ContextId, change: impl FnOnce(&mut super::groups::Manner)) -> Answer {
    let mut engine = lock(&ENGINE);
    let (before, plan) = {
        let mut table = table();
        let before = table.manner(context);
        let mut manner = before;
        change(&mut manner);
        table.manners.insert(context, manner);
        (before, Plan::new(&table, |_, group| group.is_enabled))
    };
    let changed = plan.and_then(|plan| plan.apply(&mut engine));
    let sets = changed.inspect_err(|_| {
        table().manners.insert(context, before);
    })?;
    choose(table(), sets);
    Ok(())
}

/// Has groups that count all the time have what has been counted until now. Within a callback, they have what was counted
/// until they were read last outside of one.
pub fn catch_up() {
    let _ = lock(&ENGINE).flush();
}

/// Ends counting, and forgets all groups and how contexts count.
pub fn finish() {
    let mut engine = lock(&ENGINE);
    engine.stop();
    let mut table = table();
    table.groups.clear();
    table.calls.clear();
    table.manners.clear();
    choose(table, ChosenSets::new());
}

/// Whether the events of a context are set up to be counted: the program has chosen how, or has enabled some.
pub fn is_set(context: ContextId) -> bool {
    let table = table();
    let manner = table.manner(context);
    let mut groups = table.groups.values();
    manner.was_set
        || manner.is_replaying
        || groups.any(|group| group.is_enabled && group.context == context)
}
