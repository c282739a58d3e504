//! Groups of events, and their sets.

use crate::counting::catalogue;
use crate::counting::engine;
use crate::counting::groups::{EventGroup, Group, Scope, of_context, table};
use crate::counting::sets::{self, EventGroupSet, EventGroupSets};
use crate::counting::values::{read_array, write_whole};
use crate::objects::CUcontext;
use crate::place::{Place, write_attribute};
use crate::result::{Answer, CUptiResult};
use crate::with_gputrail;
use core::ffi::{c_int, c_void};

/// Creates a group of a context, without events.
///
/// # Safety
///
/// `group` is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupCreate(
    context: CUcontext,
    group: *mut EventGroup,
    flags: u32,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `group` is null or a place for a handle.
        let place = unsafe { Place::new(group) }?;
        if flags != 0 {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        let (id, agent, family) = of_context(context)?;
        place.put(table().create(id, agent, family));
        Ok(())
    })
}

/// Changes a group, which is disabled.
fn on_disabled(group: EventGroup, change: impl FnOnce(&mut Group) -> Answer) -> CUptiResult {
    with_gputrail(|| change(table().disabled(group)?))
}

/// Destroys a group, which is disabled.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEventGroupDestroy(group: EventGroup) -> CUptiResult {
    with_gputrail(|| {
        let mut table = table();
        table.disabled(group)?;
        table.groups.remove(&group.addr());
        Ok(())
    })
}

/// Reads an attribute of a group.
///
/// # Safety
///
/// `size` is null or leads to a number; `value` is null or leads to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupGetAttribute(
    group: EventGroup,
    attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| {
        let mut table = table();
        let group = table.group(group)?;
        let value = value.cast::<u8>();
        // SAFETY: `size` is null or leads to a number; `value` is null or leads to that many bytes.
        unsafe {
            match attribute {
                // CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID
                0 => {
                    let domain = group.domain().map_or(0, |domain| group.family.id(domain));
                    write_attribute(size, value, domain)
                }
                // _PROFILE_ALL_DOMAIN_INSTANCES
                1 => write_attribute(size, value, u32::from(group.all_instances)),
                // _USER_DATA
                2 => write_attribute(size, value, group.user_data),
                // _NUM_EVENTS
                3 => write_attribute(size, value, group.events.len() as u32),
                // _EVENTS
                4 => {
                    let ids = group.events.iter().map(|event| group.family.id(*event));
                    write_whole(size, value.cast(), &ids.collect::<Vec<u32>>())
                }
                // _INSTANCE_COUNT
                5 => write_attribute(size, value, group.instances()),
                // _PROFILING_SCOPE
                6 => write_attribute(size, value, group.scope as u32),
                _ => Err(CUptiResult::INVALID_PARAMETER),
            }
        }
    })
}

/// A value of the caller's memory.
///
/// # Safety
///
/// `value` leads to `size` bytes, of which any are a `T`.
unsafe fn attribute<T: Copy>(size: usize, value: *const c_void) -> Answer<T> {
    match size < size_of::<T>() {
        true => Err(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT),
        // SAFETY: `value` leads to `size` bytes, which are enough, and any bytes are a `T`.
        false => Ok(unsafe { value.cast::<T>().read_unaligned() }),
    }
}

/// Writes an attribute of a group.
///
/// # Safety
///
/// `value` is null or leads to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupSetAttribute(
    group: EventGroup,
    attribute_of: c_int,
    size: usize,
    value: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| {
        let mut table = table();
        let group = table.group(group)?;
        if value.is_null() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: `value` is not null, so that it leads to `size` bytes; any bytes are a number.
        let number = || unsafe { attribute::<u32>(size, value) };
        match attribute_of {
            // CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES
            1 => group.all_instances = number()? != 0,
            // _USER_DATA
            // SAFETY: as above.
            2 => group.user_data = unsafe { attribute::<usize>(size, value) }?,
            // _PROFILING_SCOPE: that of all events is both
            6 => {
                let scope = match number()? {
                    0 => Scope::Context,
                    1 => Scope::Device,
                    _ => return Err(CUptiResult::INVALID_PARAMETER),
                };
                if !group.events.is_empty() {
                    return Err(CUptiResult::INVALID_OPERATION);
                }
                group.scope = scope;
            }
            _ => return Err(CUptiResult::INVALID_PARAMETER),
        }
        Ok(())
    })
}

/// Adds an event to a group.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEventGroupAddEvent(group: EventGroup, event: u32) -> CUptiResult {
    on_disabled(group, |group| {
        let (family, event) = catalogue::event(event)?;
        if family.is_same(&group.family) {
            group.add(event)
        } else {
            Err(CUptiResult::INVALID_EVENT_ID)
        }
    })
}

/// Removes an event from a group.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEventGroupRemoveEvent(group: EventGroup, event: u32) -> CUptiResult {
    on_disabled(group, |group| {
        let place = place_of(group, event)?;
        group.events.remove(place);
        group.clear();
        Ok(())
    })
}

/// The place of an event in a group.
fn place_of(group: &Group, event: u32) -> Answer<usize> {
    let (family, event) = catalogue::event(event)?;
    let place = group.events.iter().position(|own| *own == event);
    place
        .filter(|_| family.is_same(&group.family))
        .ok_or(CUptiResult::INVALID_EVENT_ID)
}

/// Removes all events from a group.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEventGroupRemoveAllEvents(group: EventGroup) -> CUptiResult {
    on_disabled(group, |group| {
        group.events.clear();
        group.clear();
        Ok(())
    })
}

/// Sets the values of a group to 0.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEventGroupResetAllEvents(group: EventGroup) -> CUptiResult {
    with_gputrail(|| {
        table().group(group)?;
        engine::catch_up();
        table().group(group)?.clear();
        Ok(())
    })
}

/// Has the events of a group counted, from 0.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEventGroupEnable(group: EventGroup) -> CUptiResult {
    with_gputrail(|| engine::enable(&[group]))
}

/// Ends counting the events of a group.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEventGroupDisable(group: EventGroup) -> CUptiResult {
    with_gputrail(|| disable(&[group]))
}

fn disable(groups: &[EventGroup]) -> Answer {
    engine::disable(|table| {
        for group in groups {
            table.group(*group)?;
        }
        for group in groups {
            table.group(*group)?.is_enabled = false;
        }
        Ok(())
    })
}

/// Takes the values of events of a group: of those at `places`, or all.
fn take(
    group: EventGroup,
    flags: c_int,
    room: impl FnOnce(&Group) -> Answer<Vec<usize>>,
) -> Answer<Vec<Vec<u64>>> {
    /// `CUPTI_EVENT_READ_FLAG_NONE`
    const NO_FLAGS: c_int = 0;
    if flags != NO_FLAGS {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    if !table().group(group)?.is_enabled {
        return Err(CUptiResult::INVALID_OPERATION);
    }
    engine::catch_up();
    let mut table = table();
    let group = table.group(group)?;
    let places = room(group)?;
    Ok(places.into_iter().map(|place| group.take(place)).collect())
}

/// Reads the value of an event, or those of all instances of its domain, which are 0 then.
///
/// # Safety
///
/// `size` is null or leads to a number; `values` is null or leads to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupReadEvent(
    group: EventGroup,
    flags: c_int,
    event: u32,
    size: *mut usize,
    values: *mut u64,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `size` is null or leads to a number; `values` is null or leads to that many bytes, none of which is read.
        let (room, _) = unsafe { (Place::new(size)?.get(), Place::new(values)?) };
        let taken = take(group, flags, |group| {
            let place = place_of(group, event)?;
            if room < group.instances() as usize * size_of::<u64>() {
                Err(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT)
            } else {
                Ok(vec![place])
            }
        })?;
        // SAFETY: `size` still leads to the number of bytes at `values`.
        unsafe { write_whole(size, values, &taken.concat()) }
    })
}

/// Reads the values of all events of a group, one instance of its domain after the other, which are 0 then.
///
/// # Safety
///
/// `size` and `id_size` are null or lead to a number; `values` and `ids` are null or lead to that many bytes; `count` is null
/// or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupReadAllEvents(
    group: EventGroup,
    flags: c_int,
    size: *mut usize,
    values: *mut u64,
    id_size: *mut usize,
    ids: *mut u32,
    count: *mut usize,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `size` and `id_size` are null or lead to a number, `values` and `ids` are null or lead to that many bytes,
        // none of which is read. `count` is null or a place for a number.
        let (room, _) = unsafe { (Place::new(size)?.get(), Place::new(values)?) };
        // SAFETY: as above.
        let (id_room, _) = unsafe { (Place::new(id_size)?.get(), Place::new(ids)?) };
        // SAFETY: as above.
        let count = unsafe { Place::new(count) }?;
        let mut of = Vec::new();
        let taken = take(group, flags, |group| {
            let all = group.events.len();
            let fits = room >= all * group.instances() as usize * size_of::<u64>()
                && id_room >= all * size_of::<u32>();
            if !fits {
                return Err(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT);
            }
            of = group
                .events
                .iter()
                .map(|event| group.family.id(*event))
                .collect();
            Ok((0..all).collect())
        })?;
        let instances = taken.first().map_or(0, Vec::len);
        let by_instance: Vec<u64> = (0..instances)
            .flat_map(|instance| taken.iter().map(move |values| values[instance]))
            .collect();
        // SAFETY: `size` and `id_size` still lead to the numbers of bytes at `values` and `ids`.
        unsafe {
            write_whole(size, values, &by_instance)?;
            write_whole(id_size, ids, &of)?;
        }
        count.put(of.len());
        Ok(())
    })
}

/// Makes the groups that count events, and says which of them go together: one set for each pass.
///
/// # Safety
///
/// `ids` is null or leads to `size` bytes; `passes` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupSetsCreate(
    context: CUcontext,
    size: usize,
    ids: *mut u32,
    passes: *mut *mut EventGroupSets,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `passes` is null or a place for a pointer, and `ids` is null or leads to `size` bytes.
        let (place, ids) = unsafe { (Place::new(passes)?, read_array(ids, size)?) };
        let (.., family) = of_context(context)?;
        place.put(sets::create(context, &sets::events_of(&family, &ids)?)?);
        Ok(())
    })
}

/// Destroys sets with their groups, which are disabled.
///
/// # Safety
///
/// `sets` is null, or nobody uses what it leads to any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupSetsDestroy(sets: *mut EventGroupSets) -> CUptiResult {
    // SAFETY: nobody uses any more what `sets` leads to, which `destroy` asks for.
    with_gputrail(|| unsafe { sets::destroy(sets) })
}

/// Has the events of all groups of a set counted, from 0.
///
/// # Safety
///
/// `set` is null or leads to a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupSetEnable(set: *mut EventGroupSet) -> CUptiResult {
    // SAFETY: `set` is null or leads to a set.
    with_gputrail(|| engine::enable(&unsafe { sets::groups_of(set) }?))
}

/// Ends counting the events of all groups of a set.
///
/// # Safety
///
/// `set` is null or leads to a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGroupSetDisable(set: *mut EventGroupSet) -> CUptiResult {
    // SAFETY: `set` is null or leads to a set.
    with_gputrail(|| disable(&unsafe { sets::groups_of(set) }?))
}
