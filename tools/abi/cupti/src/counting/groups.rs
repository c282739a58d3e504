//! Event groups: their events, attributes and values.
//!
//! The table of groups is locked for as long as it is looked at, and never during a call of gputrail's, which may wait for a
//! callback that needs the table.

use super::catalogue::{self, Family};
use crate::objects::{self, CUcontext};
use crate::result::{Answer, CUptiResult};
use core::ffi::c_void;
use gputrail_abi::lock;
use gputrail_record::{AgentId, ContextId, CorrelationId};
use gputrail_tool::counting::CounterSet;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// `CUpti_EventGroup`: the handle of a group, which no other group ever gets.
pub type EventGroup = *mut c_void;

/// The value of an event that could not be counted.
pub const INVALID: u64 = u64::MAX - 1;

/// When the groups of a context count.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All the time: values add up until they are read.
    Continuous,
    /// Each kernel of the context from 0.
    #[default]
    Kernel,
}

/// How a context counts.
#[derive(Copy, Clone, Debug, Default)]
pub struct Manner {
    pub mode: Mode,
    /// Whether a kernel runs as many times as its events need.
    pub is_replaying: bool,
    /// Whether the program has set the mode.
    pub was_set: bool,
}

/// The extent of what a group counts (`CUpti_EventProfilingScope`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Scope {
    /// The kernels of its context.
    #[default]
    Context = 0,
    /// In the continuous mode all that its device does; otherwise as above.
    Device = 1,
}

/// A group.
#[derive(Debug)]
pub struct Group {
    pub context: ContextId,
    pub agent: AgentId,
    pub family: Arc<Family>,
    /// Its events, which belong to one domain.
    pub events: Vec<usize>,
    /// Whether the values of all instances of the domain are read, in the place of those of the first one.
    pub all_instances: bool,
    pub user_data: usize,
    pub scope: Scope,
    pub is_enabled: bool,
    /// Of each event the values of all instances.
    values: Vec<Vec<u64>>,
}

impl Group {
    /// Whether it counts all that its device does, where its context counts in `mode`.
    pub fn is_of_device(&self, mode: Mode) -> bool {
        mode == Mode::Continuous && self.scope == Scope::Device
    }

    /// The place of the domain of its events, if it has any.
    pub fn domain(&self) -> Option<usize> {
        self.events
            .first()
            .map(|event| self.family.events[*event].domain)
    }

    /// The number of instances that are read.
    pub fn instances(&self) -> u32 {
        match self.domain() {
            Some(domain) if self.all_instances => self.family.domains[domain].instances,
            Some(_) => 1,
            None => 0,
        }
    }

    /// Adds an event.
    pub fn add(&mut self, event: usize) -> Answer {
        let family = self.family.clone();
        let domain = family.domain_of(event);
        if self
            .domain()
            .is_some_and(|own| own != family.events[event].domain)
        {
            return Err(CUptiResult::NOT_COMPATIBLE);
        }
        if self.events.contains(&event) {
            return Ok(());
        }
        if self.events.len() >= domain.capacity {
            return Err(CUptiResult::MAX_LIMIT_REACHED);
        }
        self.events.push(event);
        self.clear();
        Ok(())
    }

    /// Sets the values to 0.
    pub fn clear(&mut self) {
        let zeros = |event: &usize| vec![0; self.family.domain_of(*event).instances as usize];
        self.values = self.events.iter().map(zeros).collect();
    }

    /// Adds the value of an instance of an event, if the group has that. `None` makes all its instances invalid.
    pub fn count(&mut self, event: usize, instance: usize, value: Option<u64>) {
        let Some(place) = self.events.iter().position(|own| *own == event) else {
            return;
        };
        let Some(values) = self.values.get_mut(place) else {
            return;
        };
        let Some(value) = value else {
            values.fill(INVALID);
            return;
        };
        let last = values.len().saturating_sub(1);
        if let Some(own) = values.get_mut(instance.min(last))
            && *own < INVALID
        {
            *own = own.saturating_add(value);
        }
    }

    /// The values of the event at a place of the group, which are 0 from now on.
    pub fn take(&mut self, place: usize) -> Vec<u64> {
        let count = self.instances() as usize;
        let values = &mut self.values[place];
        let taken = values.iter().copied().take(count).collect();
        values.fill(0);
        taken
    }
}

/// The counters of kernels, by their device and context.
pub type ChosenSets = HashMap<(AgentId, ContextId), Arc<CounterSet>>;

/// All groups, and how contexts count.
#[derive(Default)]
pub struct Table {
    pub groups: BTreeMap<usize, Group>,
    pub manners: HashMap<ContextId, Manner>,
    pub chosen: ChosenSets,
    /// The contexts of calls, with the number of their kernels that are being counted: values have the call alone.
    pub calls: HashMap<CorrelationId, (ContextId, u32)>,
    made: usize,
}

/// Locks the table.
pub fn table() -> MutexGuard<'static, Table> {
    static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
    lock(&TABLE)
}

impl Table {
    /// How a context counts.
    pub fn manner(&self, context: ContextId) -> Manner {
        self.manners.get(&context).copied().unwrap_or_default()
    }

    /// A kernel of `call` has ended: its context.
    pub fn ended(&mut self, call: CorrelationId) -> Option<ContextId> {
        let (context, kernels) = self.calls.get_mut(&call)?;
        let context = *context;
        *kernels -= 1;
        if *kernels == 0 {
            self.calls.remove(&call);
        }
        Some(context)
    }

    /// The group with this handle.
    pub fn group(&mut self, handle: EventGroup) -> Answer<&mut Group> {
        let found = self.groups.get_mut(&handle.addr());
        found.ok_or(CUptiResult::INVALID_PARAMETER)
    }

    /// The group with this handle, which has to be disabled.
    pub fn disabled(&mut self, handle: EventGroup) -> Answer<&mut Group> {
        let group = self.group(handle)?;
        if group.is_enabled {
            Err(CUptiResult::INVALID_OPERATION)
        } else {
            Ok(group)
        }
    }

    /// Adds a group without events.
    pub fn create(
        &mut self,
        context: ContextId,
        agent: AgentId,
        family: Arc<Family>,
    ) -> EventGroup {
        /// Handles are no addresses of anything.
        const STEP: usize = 16;
        self.made += 1;
        let handle = self.made * STEP;
        let group = Group {
            context,
            agent,
            family,
            events: Vec::new(),
            all_instances: false,
            user_data: 0,
            scope: Scope::default(),
            is_enabled: false,
            values: Vec::new(),
        };
        self.groups.insert(handle, group);
        std::ptr::without_provenance_mut(handle)
    }
}

/// A context that groups are made for: its id, its device, and what that counts.
pub fn of_context(context: CUcontext) -> Answer<(ContextId, AgentId, Arc<Family>)> {
    let context = objects::context(context)?;
    let family = catalogue::of_agent(context.agent)?;
    Ok((context.id, context.agent, family))
}
