//! The Callback API: one subscriber, which is a subscriber of gputrail.

use crate::domain::{self, CallbackDomain};
use crate::layout::{Layout, layout};
use crate::load::callee;
use crate::objects::within;
use crate::place::{Place, write_list};
use crate::result::{Answer, CUptiResult};
use crate::{callback_data, with_gputrail};
use core::ffi::{c_char, c_void};
use gputrail_abi::{Handles, kept, lock};
use gputrail_record::{Domain, Operation};
use gputrail_tool::{self as tool, Callback, Phase};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// `CUpti_CallbackFunc`
pub type CallbackFunction =
    unsafe extern "C-unwind" fn(*mut c_void, CallbackDomain, u32, cbdata: *const c_void);
/// `CUpti_SubscriberHandle`: a number that no other subscriber has had.
pub type SubscriberHandle = *mut c_void;

/// The program's function.
pub struct Client {
    function: CallbackFunction,
    data: *mut c_void,
    /// It has not been unsubscribed.
    is_alive: AtomicBool,
    /// The callbacks that are enabled.
    enabled: RwLock<HashSet<(u32, u32)>>,
}

// SAFETY: the pointer is passed on to the program's function alone.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// Whether a callback is enabled.
    pub fn is_enabled(&self, domain: CallbackDomain, id: u32) -> bool {
        let enabled = self.enabled.read().unwrap_or_else(PoisonError::into_inner);
        enabled.contains(&(domain.0, id))
    }

    /// Enables or disables callbacks. Returns those that were not so before.
    fn change(&self, domain: CallbackDomain, ids: &[u32], on: bool) -> Vec<u32> {
        let mut enabled = self.enabled.write().unwrap_or_else(PoisonError::into_inner);
        let changes = ids.iter().copied().filter(|id| {
            let callback = (domain.0, *id);
            if on {
                enabled.insert(callback)
            } else {
                enabled.remove(&callback)
            }
        });
        changes.collect()
    }

    /// Calls the function, unless it has been unsubscribed.
    pub fn call<T>(&self, domain: CallbackDomain, id: u32, data: &T) {
        if self.is_alive.load(Ordering::Acquire) {
            let data = core::ptr::from_ref(data).cast();
            // SAFETY: the program's function for this, with the data of its domain.
            let call = || unsafe { (self.function)(self.data, domain, id, data) };
            callee("cuptiSubscribe", self.function as *const ()).call(call);
        }
    }
}

struct Subscription {
    handle: usize,
    client: Arc<Client>,
    /// Held while callbacks are enabled or disabled.
    enabling: Mutex<()>,
    /// The name that the program has given to itself.
    name: String,
    subscriber: tool::Subscriber,
    _context: tool::Context,
}

static CURRENT: Mutex<Option<Arc<Subscription>>> = Mutex::new(None);

/// The subscription with this handle.
fn found(handle: SubscriberHandle) -> Answer<Arc<Subscription>> {
    let current = lock(&CURRENT).clone();
    let found = current.filter(|current| current.handle == handle.addr());
    found.ok_or(CUptiResult::INVALID_PARAMETER)
}

/// Ends the subscription, if there is one.
pub fn finish() {
    let current = lock(&CURRENT).take();
    if let Some(current) = current {
        current.client.is_alive.store(false, Ordering::Release);
    }
}

impl Subscription {
    fn new(client: Client, name: String) -> Answer<Subscription> {
        let client = Arc::new(client);
        let of_subscriber = client.clone();
        let context = tool::Context::new()?;
        let subscriber = context.call_back(&[], move |callback: Callback<'_>, number| {
            within(callback.runtime_context(), || {
                tell(&of_subscriber, callback, number)
            });
        })?;
        context.start()?;
        Ok(Subscription {
            handle: Handles::<Subscription>::number(),
            client,
            enabling: Mutex::default(),
            name,
            subscriber,
            _context: context,
        })
    }

    /// Enables or disables ids of a domain: what happens is told as long as one of its ids is enabled.
    fn enable(&self, domain: CallbackDomain, ids: &[u32], on: bool) -> Answer {
        let _enabling = lock(&self.enabling);
        let changed = self.client.change(domain, ids, on);
        self.enable_operations(domain, ids, on).inspect_err(|_| {
            self.client.change(domain, &changed, !on);
        })
    }

    /// Has gputrail call back for the operations that appear under these ids, or not.
    fn enable_operations(&self, domain: CallbackDomain, ids: &[u32], on: bool) -> Answer {
        let mut affected: Vec<Operation> = Vec::new();
        for id in ids {
            affected.extend(domain::operations(domain, *id));
        }
        affected.sort_unstable_by_key(|one| (one.domain.0, one.number));
        affected.dedup();
        for operation in affected {
            let mut ids = domain::ids_of(operation).into_iter();
            let on = on || ids.any(|(domain, id)| self.client.is_enabled(domain, id));
            self.subscriber.enable(operation, on)?;
        }
        Ok(())
    }

    fn enable_domain(&self, domain: CallbackDomain, on: bool) -> Answer {
        self.enable(domain, &domain::ids(domain)?, on)
    }
}

/// Tells the program's function of a callback of gputrail.
fn tell(client: &Client, callback: Callback<'_>, number: &mut u64) {
    let operation = callback.operation();
    match operation.domain {
        Domain::OPENCL | Domain::SIM => {
            let site = match callback.phase() {
                Some(Phase::Enter) => 0,
                Some(Phase::Exit) => 1,
                _ => return,
            };
            callback_data::call(client, callback, site, number);
        }
        Domain::RESOURCE => callback_data::resource(client, callback),
        // The wait has ended.
        Domain::SYNCHRONIZATION if !callback.is_enter() => {
            callback_data::synchronization(client, callback);
        }
        Domain::MARKER => callback_data::marker(client, callback),
        _ => {}
    }
}

/// Checks the handle of the subscriber.
pub fn check(handle: SubscriberHandle) -> Answer {
    found(handle).map(drop)
}

/// Whether there is a subscriber.
pub fn is_subscribed() -> bool {
    lock(&CURRENT).is_some()
}

/// The status where there is a subscriber already.
fn second() -> CUptiResult {
    match layout() {
        Layout::Cuda10 => CUptiResult::MAX_LIMIT_REACHED,
        _ => CUptiResult::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
    }
}

/// Subscribes a function, and gives it a name. The name of the subscriber that there is already goes to `refused`.
fn subscribe(
    place: Place<SubscriberHandle>,
    function: Option<CallbackFunction>,
    data: *mut c_void,
    name: String,
    refused: impl FnOnce(&str),
) -> Answer {
    let function = function.ok_or(CUptiResult::INVALID_PARAMETER)?;
    let mut current = lock(&CURRENT);
    if let Some(current) = &*current {
        refused(&current.name);
        return Err(second());
    }
    let client = Client {
        function,
        data,
        is_alive: AtomicBool::new(true),
        enabled: RwLock::default(),
    };
    let new = Subscription::new(client, name)?;
    place.put(std::ptr::without_provenance_mut(new.handle));
    *current = Some(Arc::new(new));
    Ok(())
}

/// Subscribes a function, which is not called before callbacks are enabled.
///
/// # Safety
///
/// `subscriber` is null or a place for a handle; `callback` does what its type says, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    subscriber: *mut SubscriberHandle,
    callback: Option<CallbackFunction>,
    data: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `subscriber` is null or a place for a handle.
        let place = unsafe { Place::new(subscriber) }?;
        subscribe(place, callback, data, String::new(), |_| {})
    })
}

/// `CUpti_SubscriberParams`, as of CUDA 13.0: a later field asks whether there may be other subscribers, and there is one in any case.
#[repr(C)]
pub struct SubscriberParams {
    size: usize,
    name: *const c_char,
    /// A place for the name of the subscriber that there is already, and its bytes.
    old_name: *mut c_char,
    old_bytes: usize,
}

/// The most letters of a subscriber's name (`CUPTI_SUBSCRIBER_NAME_MAX_LEN`).
const MAX_NAME: usize = 53;

/// As [`cuptiSubscribe`], with names of subscribers.
///
/// # Safety
///
/// As for [`cuptiSubscribe`]; `params` is null or leads to as many bytes as its first field says, its texts and places are null or are
/// what the structure says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe_v2(
    subscriber: *mut SubscriberHandle,
    callback: Option<CallbackFunction>,
    data: *mut c_void,
    params: *mut SubscriberParams,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `subscriber` is null or a place for a handle.
        let place = unsafe { Place::new(subscriber) }?;
        if params.is_null() {
            return subscribe(place, callback, data, String::new(), |_| {});
        }
        // SAFETY: `params` is not null, so that it leads to the field with its size.
        let is_whole =
            params.is_aligned() && unsafe { (*params).size } >= size_of::<SubscriberParams>();
        if !is_whole {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: the structure has these fields, as its size says.
        let params = unsafe { &*params };
        // SAFETY: the program gives a text that ends with a 0, or null.
        let name = unsafe { gputrail_abi::given(params.name) }.unwrap_or_default();
        let name = name.chars().take(MAX_NAME).collect();
        subscribe(place, callback, data, name, |old| {
            if params.old_name.is_null() || params.old_bytes == 0 {
                return;
            }
            let text = format!("CUPTI for {old}");
            let bytes = text.len().min(params.old_bytes - 1);
            // SAFETY: the place has as many bytes as its field says: those of the text, and a 0.
            unsafe {
                params
                    .old_name
                    .copy_from_nonoverlapping(text.as_ptr().cast(), bytes);
                params.old_name.add(bytes).write(0);
            }
        })
    })
}

/// The callbacks of a domain that are enabled.
///
/// # Safety
///
/// `room` is null or leads to the number of elements of `ids`, which is null or has as many; `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetEnabledCallbacks(
    subscriber: SubscriberHandle,
    domain: CallbackDomain,
    ids: *mut u32,
    room: *mut u32,
    count: *mut u32,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `count` is null or a place for a number.
        let count = unsafe { Place::new(count) }?;
        // Checks the domain.
        domain::ids(domain)?;
        let current = if subscriber.is_null() {
            lock(&CURRENT).clone()
        } else {
            Some(found(subscriber)?)
        };
        let mut enabled: Vec<u32> = Vec::new();
        if let Some(current) = current {
            let all = &current.client.enabled;
            let all = all.read().unwrap_or_else(PoisonError::into_inner);
            let of_domain = all.iter().filter(|(of, _)| *of == domain.0);
            enabled.extend(of_domain.map(|(_, id)| id));
        }
        enabled.sort_unstable();
        // SAFETY: `room` is null or leads to the number of elements at `ids`, which may be null.
        unsafe { write_list(&enabled, ids, room) }?;
        count.put(enabled.len() as u32);
        Ok(())
    })
}

/// Ends a subscription. Its function is not called any more; from within it, other threads may still be in it.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(subscriber: SubscriberHandle) -> CUptiResult {
    with_gputrail(|| {
        let found = found(subscriber)?;
        found.client.is_alive.store(false, Ordering::Release);
        let gone = {
            let mut current = lock(&CURRENT);
            let is_it = |one: &Arc<Subscription>| one.handle == found.handle;
            current.take_if(|one| is_it(one))
        };
        drop((gone, found));
        Ok(())
    })
}

/// Enables or disables one callback.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(
    enable: u32,
    subscriber: SubscriberHandle,
    domain: CallbackDomain,
    id: u32,
) -> CUptiResult {
    with_gputrail(|| {
        let found = found(subscriber)?;
        domain::check(domain, id)?;
        found.enable(domain, &[id], enable != 0)
    })
}

/// Enables or disables the callbacks of a domain.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableDomain(
    enable: u32,
    subscriber: SubscriberHandle,
    domain: CallbackDomain,
) -> CUptiResult {
    with_gputrail(|| found(subscriber)?.enable_domain(domain, enable != 0))
}

/// Enables or disables all callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableAllDomains(enable: u32, subscriber: SubscriberHandle) -> CUptiResult {
    with_gputrail(|| {
        let found = found(subscriber)?;
        let mut domains = domain::ALL.into_iter();
        domains.try_for_each(|domain| found.enable_domain(domain, enable != 0))
    })
}

/// Whether a callback is enabled.
///
/// # Safety
///
/// `enable` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackState(
    enable: *mut u32,
    subscriber: SubscriberHandle,
    domain: CallbackDomain,
    id: u32,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `enable` is null or a place for a number.
        let place = unsafe { Place::new(enable) }?;
        let found = found(subscriber)?;
        domain::check(domain, id)?;
        place.put(found.client.is_enabled(domain, id).into());
        Ok(())
    })
}

/// The name of the function of a callback, which lasts for ever; null if there is none.
///
/// # Safety
///
/// `name` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(
    domain: CallbackDomain,
    id: u32,
    name: *mut *const c_char,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `name` is null or a place for a pointer.
        let place = unsafe { Place::new(name) }?;
        match domain::name(domain, id) {
            Some(name) => {
                place.put(kept(name).as_ptr());
                Ok(())
            }
            None => {
                place.put(std::ptr::null());
                Err(CUptiResult::INVALID_PARAMETER)
            }
        }
    })
}

/// The domains of callbacks: an array that lasts for ever.
///
/// # Safety
///
/// `count` is null or a place for a number, `table` null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSupportedDomains(
    count: *mut usize,
    table: *mut *mut CallbackDomain,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `count` is null or a place for a number, and `table` is null or a place for a pointer.
        let (count, table) = unsafe { (Place::new(count)?, Place::new(table)?) };
        let domains = domain::table(layout());
        count.put(domains.len());
        table.put(domains.as_ptr().cast_mut());
        Ok(())
    })
}
