//! The buffer of gputrail that activity records are made from, and which kinds of its records are on.

use super::kind::ActivityKind;
use super::translate::{self, Translator};
use super::{announce, created, directives, extension, selected, sink, wanted};
use crate::objects;
use crate::result::{Answer, CUptiResult};
use gputrail_abi::activity::Reader;
use gputrail_abi::lock;
use gputrail_buffer::QueuePlace;
use gputrail_record::{ContextId, Kind};
use gputrail_tool::{self as tool, Batch, Buffer, BufferOptions, Policy};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often records are looked for, in milliseconds, where the program does not say so.
const PERIOD: u32 = 100;
/// How often the program wants it, in milliseconds; 0 if it has not said so. It holds for the buffer that is made next.
static WANTED_PERIOD: AtomicU32 = AtomicU32::new(0);

/// Says how often records are looked for, in milliseconds.
pub fn set_period(milliseconds: u32) {
    WANTED_PERIOD.store(milliseconds, Ordering::Relaxed);
}

fn period() -> Duration {
    let milliseconds = match WANTED_PERIOD.load(Ordering::Relaxed) {
        0 => PERIOD,
        wanted => wanted,
    };
    Duration::from_millis(milliseconds.into())
}

/// The kinds of gputrail's records, each with the kinds of CUPTI's that are made from it. Those of calls come first: external
/// ids need them.
const SOURCES: [(Kind, &[ActivityKind]); 14] = [
    (Kind::API, &[ActivityKind::DRIVER, ActivityKind::RUNTIME]),
    (
        Kind::KERNEL_DISPATCH,
        &[ActivityKind::KERNEL, ActivityKind::CONCURRENT_KERNEL],
    ),
    (
        Kind::CHILD_KERNEL,
        &[ActivityKind::KERNEL, ActivityKind::CONCURRENT_KERNEL],
    ),
    (
        Kind::MEMORY_COPY,
        &[
            ActivityKind::MEMCPY,
            ActivityKind::MEMCPY2,
            ActivityKind::UNIFIED_MEMORY_COUNTER,
        ],
    ),
    (Kind::MEMORY_SET, &[ActivityKind::MEMSET]),
    (
        Kind::MEMORY_ALLOCATION,
        &[ActivityKind::MEMORY, ActivityKind::MEMORY2],
    ),
    (
        Kind::SYNCHRONIZATION,
        &[ActivityKind::SYNCHRONIZATION, ActivityKind::CUDA_EVENT],
    ),
    (Kind::OVERHEAD, &[ActivityKind::OVERHEAD, ActivityKind::JIT]),
    (
        Kind::MARKER,
        &[ActivityKind::MARKER, ActivityKind::MARKER_DATA],
    ),
    (Kind::ENVIRONMENT, &[ActivityKind::ENVIRONMENT]),
    (
        Kind::UNIFIED_MEMORY_COUNTER,
        &[ActivityKind::UNIFIED_MEMORY_COUNTER],
    ),
    (Kind::PREEMPTION, &[ActivityKind::PREEMPTION]),
    // Whether a call of OpenCL waits for its work decides as which one of the runtime it appears.
    (Kind::ARGUMENTS, &[ActivityKind::RUNTIME]),
    (
        Kind::EXTERNAL_CORRELATION,
        &[ActivityKind::EXTERNAL_CORRELATION],
    ),
];

/// Kinds of calls, which belong to no context.
const CALLS: [ActivityKind; 3] = [
    ActivityKind::DRIVER,
    ActivityKind::RUNTIME,
    ActivityKind::EXTERNAL_CORRELATION,
];

/// Kinds whose records are made from what the process knows, without records of gputrail's.
const OBJECTS: [ActivityKind; 9] = [
    ActivityKind::DEVICE,
    ActivityKind::DEVICE_ATTRIBUTE,
    ActivityKind::CONTEXT,
    ActivityKind::NAME,
    ActivityKind::STREAM,
    ActivityKind::MODULE,
    ActivityKind::FUNCTION,
    ActivityKind::PCIE,
    ActivityKind::NVLINK,
];

/// The buffer, and the context that fills it.
pub struct Service {
    context: tool::Context,
    buffer: Buffer,
    reader: Arc<Mutex<Reader<Translator>>>,
    /// Held while kinds are enabled or disabled.
    enabling: Mutex<()>,
}

static SERVICE: Mutex<Option<Arc<Service>>> = Mutex::new(None);

/// The service; it is made when the first kind is enabled.
fn service() -> Answer<Arc<Service>> {
    let mut service = lock(&SERVICE);
    if let Some(service) = &*service {
        return Ok(service.clone());
    }
    let new = Arc::new(Service::new()?);
    *service = Some(new.clone());
    Ok(new)
}

/// The service, if there is one.
pub fn existing() -> Option<Arc<Service>> {
    lock(&SERVICE).clone()
}

/// Ends the service. What has been recorded is delivered.
pub fn finish() {
    let service = lock(&SERVICE).take();
    if let Some(service) = service {
        let reader = service.reader.clone();
        drop(service);
        lock(&reader).to.flush(false);
    }
    set_period(0);
    wanted::forget();
    announce::forget();
    created::finish();
}

/// Enables or disables a kind, in one context or in all.
pub fn enable(kind: ActivityKind, within: Option<ContextId>, on: bool) -> Answer {
    if extension::has(kind) {
        return extension::enable(kind, within, on);
    }
    let is_made = |(_, of): &(Kind, &[ActivityKind])| of.contains(&kind);
    let of_context = SOURCES
        .iter()
        .any(|source| is_made(source) && !CALLS.contains(&kind));
    let has_records =
        SOURCES.iter().any(is_made) || OBJECTS.contains(&kind) || directives::KINDS.contains(&kind);
    let has_records = has_records || kind.never_happens();
    let possible = match within {
        Some(_) => of_context,
        None => has_records && (kind != ActivityKind::NVLINK || !on || announce::has_peers()),
    };
    if !possible {
        return match (on, within) {
            (true, _) => Err(CUptiResult::NOT_COMPATIBLE),
            (false, Some(_)) => Err(CUptiResult::INVALID_KIND),
            // What cannot be enabled is disabled.
            (false, None) => Ok(()),
        };
    }
    if !on && existing().is_none() {
        return Ok(());
    }
    service()?.enable(kind, within, on)
}

/// Changes with `change` what is recorded of calls.
pub fn update(change: impl FnOnce()) -> Answer {
    let service = service()?;
    let _enabling = lock(&service.enabling);
    change();
    service.apply(&wanted::enabled().unwrap_or_default())
}

impl Service {
    fn new() -> Answer<Service> {
        let options = BufferOptions {
            policy: Policy::Discard,
            watermark: Some(0),
            period: period(),
            ..BufferOptions::default()
        };
        let reader = Arc::new(Mutex::<Reader<Translator>>::default());
        let of_buffer = reader.clone();
        let buffer = Buffer::new(options, move |batch: Batch<'_>| {
            translate::add(&mut lock(&of_buffer), batch);
        })?;
        let context = tool::Context::new()?;
        let mut kinds = SOURCES.map(|(kind, _)| kind).to_vec();
        kinds.push(Kind::COMPLETION);
        context.trace_to(&buffer, &kinds)?;
        kinds.retain(|kind| *kind != Kind::COMPLETION && *kind != Kind::API);
        for kind in kinds.into_iter().chain([Kind::API]) {
            context.enable_kind(&buffer, kind, false)?;
        }
        context.start()?;
        Ok(Service {
            context,
            buffer,
            reader,
            enabling: Mutex::default(),
        })
    }

    fn enable(&self, kind: ActivityKind, within: Option<ContextId>, on: bool) -> Answer {
        if !on && wanted::is_anywhere(kind) {
            if sink::is_within() {
                // The reader that has called the program's function is in use.
                return Err(CUptiResult::INVALID_OPERATION);
            }
            // What has been recorded is told as long as its kind is wanted.
            let _ = self.buffer.flush();
            lock(&self.reader).to.flush(false);
        }
        if on && kind == ActivityKind::STREAM {
            created::watch()?;
        }
        let _enabling = lock(&self.enabling);
        if within.is_none() {
            selected::forget(kind);
        }
        // A kind is wanted before records of it come.
        let (enabled, _) = wanted::set(kind, within, Some(on));
        self.apply(&enabled)?;
        if let Some(context) = within {
            let of_contexts = |(source, of): &(Kind, &[ActivityKind])| {
                let has_contexts =
                    !matches!(*source, Kind::CHILD_KERNEL | Kind::UNIFIED_MEMORY_COUNTER);
                has_contexts && of.contains(&kind)
            };
            for (source, of) in SOURCES.into_iter().filter(of_contexts) {
                let on = of.iter().any(|kind| enabled.has_in(*kind, context));
                self.context
                    .enable_kind_in(&self.buffer, context, source, Some(on))?;
            }
        }
        Ok(())
    }

    /// Switches the kinds of gputrail's records.
    fn apply(&self, enabled: &wanted::Enabled) -> Answer {
        let is_on = |kinds: &[ActivityKind]| kinds.iter().any(|kind| enabled.has(*kind));
        let wanted = SOURCES.map(|(kind, of)| {
            let on = match kind {
                Kind::API => selected::has_calls(),
                Kind::ARGUMENTS => is_on(of) || selected::has_functions(),
                // Records of these are told apart by the records that they belong to.
                Kind::CHILD_KERNEL => of.iter().any(|kind| wanted::is_anywhere(*kind)),
                Kind::EXTERNAL_CORRELATION => selected::has_calls() && is_on(of),
                _ => is_on(of),
            };
            (kind, on)
        });
        // Arguments and external ids are those of calls, which are on as long as they are.
        let off = wanted.iter().rev().filter(|(_, on)| !on);
        for (kind, on) in off.chain(wanted.iter().filter(|(_, on)| *on)) {
            self.context.enable_kind(&self.buffer, *kind, *on)?;
        }
        Ok(())
    }

    /// Delivers what has been recorded to the sink. `forced` delivers allocations that live, too; otherwise the queues of
    /// OpenCL are waited for.
    pub fn flush(&self, forced: bool) -> Answer {
        let flushed = if forced {
            self.buffer.flush_forced()
        } else {
            self.buffer.flush_synchronized(QueuePlace::default())
        };
        match flushed.map_err(|error| error.status) {
            Ok(()) => {}
            // A tool of gputrail that has ended has had its records delivered; the program flushes when it ends.
            Err(tool::Status::NO_SUCH_BUFFER | tool::Status::NOT_INITIALISED) => {}
            Err(tool::Status::BUSY) => return Err(CUptiResult::INVALID_OPERATION),
            Err(_) => return Err(CUptiResult::UNKNOWN),
        }
        lock(&self.reader).to.flush(forced);
        Ok(())
    }

    /// The records that gputrail has dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        self.buffer.dropped().map_or(0, |drops| drops.total())
    }
}

/// Gives all records to the program.
pub fn flush(forced: bool) -> Answer {
    if let Some(service) = existing() {
        service.flush(forced)?;
    }
    extension::flush(forced);
    if wanted::is_anywhere(ActivityKind::DEVICE) {
        // Devices are there before the program has used one. At the end of the program gputrail may have ended.
        let _ = objects::any_agents();
    }
    announce::new_objects(wanted::anywhere(), true);
    sink::flush();
    Ok(())
}

/// Puts what only gputrail knows into the program's buffer, which the program flushes: gputrail ends before.
pub fn last_words() {
    if sink::is_registered() {
        if let Some(service) = existing() {
            lock(&service.reader).to.flush(false);
        }
        extension::flush(false);
        announce::new_objects(wanted::anywhere(), true);
    }
}
