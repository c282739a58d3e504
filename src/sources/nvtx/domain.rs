//! The domains of programs, and markers in them.

use super::handles;
use core::ffi::c_int;
use gputrail_collect::marker::{
    KeptText, MarkerDomain, MarkerEvent, MarkerText, NoLevel, Registry, end_event, start_event,
};
use gputrail_interface::marker::RangeId;
use std::borrow::Cow;

/// A push or pop whose level is not counted.
pub(super) const NO_PUSH_POP_TRACKING: c_int = -2;
/// A pop without a push.
const NOTHING_PUSHED: c_int = -1;

/// The domain of calls that name none.
pub(super) static DEFAULT: MarkerDomain = MarkerDomain::built_in("NVTX", 0);
static DOMAINS: Registry<Box<str>, MarkerDomain> = Registry::new();
/// Names of categories, by the number of the domain and the id.
static CATEGORIES: Registry<(u32, u32), KeptText> = Registry::new();

/// The handle of a domain.
pub(super) type DomainHandle = *const MarkerDomain;

/// The domain with this handle.
#[inline]
pub(super) fn domain(handle: DomainHandle) -> &'static MarkerDomain {
    // SAFETY: null, or a domain that was created, which lives for ever.
    unsafe { handles::DOMAINS.ours(handle).as_ref() }.unwrap_or(&DEFAULT)
}

/// The domain with this name: domains with equal names are one.
pub(super) fn create(name: MarkerText<'_>) -> DomainHandle {
    let name = name.read();
    if name == DEFAULT.name().text() {
        return &DEFAULT;
    }
    let new = || MarkerDomain::new(name.clone().into_owned());
    let domain = DOMAINS.get_or_put((*name).into(), new);
    domain.map_or(std::ptr::null(), std::ptr::from_ref)
}

/// The name of a category, or its number.
#[inline]
pub(super) fn category(domain: &MarkerDomain, id: u32) -> MarkerText<'static> {
    let unnamed = || KeptText::new(Cow::Owned(id.to_string()));
    let name = CATEGORIES.get_or_put((domain.number(), id), unnamed);
    name.map_or(MarkerText::None, MarkerText::Kept)
}

pub(super) fn name_category(domain: &MarkerDomain, id: u32, name: MarkerText<'_>) {
    let (key, name) = ((domain.number(), id), name.read());
    let known = CATEGORIES.get(&key);
    if !name.is_empty() && known.is_none_or(|known| known.text() != name) {
        CATEGORIES.put(key, KeptText::new(Cow::Owned(name.into_owned())));
    }
}

fn level(level: Result<u32, NoLevel>) -> c_int {
    match level {
        Ok(level) => c_int::try_from(level).unwrap_or(c_int::MAX),
        Err(NoLevel::Uncounted) => NO_PUSH_POP_TRACKING,
        Err(NoLevel::Empty) => NOTHING_PUSHED,
    }
}

/// A marker that has only a name.
pub(super) fn named(name: MarkerText<'_>) -> MarkerEvent<'_> {
    MarkerEvent {
        name,
        ..MarkerEvent::default()
    }
}

pub(super) fn pushed(domain: &MarkerDomain, event: &MarkerEvent<'_>) -> c_int {
    level(domain.push(event))
}

pub(super) fn popped(domain: &MarkerDomain, event: &MarkerEvent<'_>) -> c_int {
    level(domain.pop(event))
}

pub(super) fn started(domain: &MarkerDomain, event: &MarkerEvent<'_>) -> u64 {
    let domain = MarkerText::Kept(domain.name());
    handles::own_range(start_event(&MarkerEvent { domain, ..*event }).number())
}

pub(super) fn ended(domain: &MarkerDomain, range: u64, event: &MarkerEvent<'_>) {
    let domain = MarkerText::Kept(domain.name());
    let range = RangeId::from_number(handles::ended_range(range));
    // NVTX has no status for an unknown range; the record is counted where it is read.
    let _ = end_event(range, &MarkerEvent { domain, ..*event });
}
