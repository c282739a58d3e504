//! Sets of groups: what is counted in each pass.

use super::catalogue::{self, Family};
use super::groups::{EventGroup, of_context, table};
use crate::objects::CUcontext;
use crate::place::Place;
use crate::result::{Answer, CUptiResult};
use gputrail_abi::lock;
use std::collections::HashMap;
use std::sync::Mutex;

/// `CUpti_EventGroupSet`: groups that can be enabled at the same time.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct EventGroupSet {
    count: u32,
    groups: *mut EventGroup,
}

/// `CUpti_EventGroupSets`: a set for each pass.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct EventGroupSets {
    count: u32,
    sets: *mut EventGroupSet,
}

/// The sets of one call, which belong to the program until it destroys them.
struct Made {
    sets: Box<[EventGroupSet]>,
    groups: Vec<Box<[EventGroup]>>,
}

// SAFETY: pointers into the boxes themselves, and handles.
unsafe impl Send for Made {}

/// Those that are not destroyed, by the address of their head.
static MADE: Mutex<Option<HashMap<usize, Made>>> = Mutex::new(None);

/// The events of each pass, which are those of one domain in each group: as many at a time as its hardware counts.
fn passes(family: &Family, events: &[usize]) -> Vec<Vec<Vec<usize>>> {
    let mut passes: Vec<Vec<Vec<usize>>> = Vec::new();
    for (place, domain) in family.domains.iter().enumerate() {
        let of = events.iter().copied();
        let own: Vec<usize> = of
            .filter(|event| family.events[*event].domain == place)
            .collect();
        for (pass, group) in own.chunks(domain.capacity).enumerate() {
            if passes.len() == pass {
                passes.push(Vec::new());
            }
            passes[pass].push(group.to_vec());
        }
    }
    passes
}

/// The number of passes of these events.
pub fn pass_count(family: &Family, events: &[usize]) -> usize {
    passes(family, events).len()
}

/// Makes the groups of a context that count these events of its device, and their sets.
pub fn create(context: CUcontext, events: &[usize]) -> Answer<*mut EventGroupSets> {
    let (id, agent, family) = of_context(context)?;
    let mut groups: Vec<Box<[EventGroup]>> = Vec::new();
    {
        let mut table = table();
        for pass in passes(&family, events) {
            let mut of_pass = Vec::new();
            for events in pass {
                let handle = table.create(id, agent, family.clone());
                let group = table.group(handle)?;
                events.iter().try_for_each(|event| group.add(*event))?;
                of_pass.push(handle);
            }
            groups.push(of_pass.into());
        }
    }
    let set = |groups: &mut Box<[EventGroup]>| EventGroupSet {
        count: groups.len() as u32,
        groups: groups.as_mut_ptr(),
    };
    let mut sets: Box<[EventGroupSet]> = groups.iter_mut().map(set).collect();
    let head = Box::into_raw(Box::new(EventGroupSets {
        count: sets.len() as u32,
        sets: sets.as_mut_ptr(),
    }));
    let made = Made { sets, groups };
    lock(&MADE)
        .get_or_insert_default()
        .insert(head.addr(), made);
    Ok(head)
}

/// Destroys sets and their groups.
///
/// # Safety
///
/// `sets` is null, or nobody uses what it leads to any more.
pub unsafe fn destroy(sets: *mut EventGroupSets) -> Answer {
    let mut made = lock(&MADE);
    let known = made.as_mut().and_then(|made| made.get(&sets.addr()));
    let known = known.ok_or(CUptiResult::INVALID_PARAMETER)?;
    {
        let mut table = table();
        let handles = || known.groups.iter().flatten();
        // A group that the program has destroyed itself is gone.
        let mut all = handles();
        let is_enabled = |handle: &EventGroup| {
            table
                .groups
                .get(&handle.addr())
                .is_some_and(|group| group.is_enabled)
        };
        if all.any(is_enabled) {
            return Err(CUptiResult::INVALID_OPERATION);
        }
        for handle in handles() {
            table.groups.remove(&handle.addr());
        }
    }
    let gone = made.as_mut().and_then(|made| made.remove(&sets.addr()));
    drop(made);
    if let Some(gone) = gone {
        // SAFETY: the head of these sets, which `create` has made a pointer of.
        drop(unsafe { Box::from_raw(sets) });
        drop((gone.sets, gone.groups));
    }
    Ok(())
}

/// The groups of a set.
///
/// # Safety
///
/// `set` is null or leads to a set: its `groups` is null or leads to `count` handles.
pub unsafe fn groups_of(set: *mut EventGroupSet) -> Answer<Vec<EventGroup>> {
    // SAFETY: `set` is null or leads to a set.
    let set = unsafe { Place::new(set) }?.get();
    let bytes = set.count as usize * size_of::<EventGroup>();
    // SAFETY: `set.groups` is null or leads to `set.count` handles.
    unsafe { super::values::read_array(set.groups, bytes) }
}

/// Places of the events with these ids, each once, in `family`.
pub fn events_of(family: &Family, ids: &[u32]) -> Answer<Vec<usize>> {
    let mut events = Vec::new();
    for id in ids {
        let (of, event) = catalogue::event(*id)?;
        if !of.is_same(family) {
            return Err(CUptiResult::INVALID_EVENT_ID);
        }
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Ok(events)
}
