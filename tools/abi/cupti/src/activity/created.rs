//! The calls that create streams, and queues of runtimes without streams: records of streams have their correlation ids.

use super::translate::correlation;
use crate::result::Answer;
use gputrail_abi::{Watch, lock};
use gputrail_record::{Queue, Stream};
use gputrail_tool::events::resource;
use std::collections::HashMap;
use std::sync::Mutex;

/// The most streams whose calls are kept.
const MAX_CALLS: usize = 1 << 16;

/// The calls by the handle of what they created.
static CALLS: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);
/// Is told of streams, once their kind has been enabled.
static WATCHING: Mutex<Option<Watch>> = Mutex::new(None);

/// Keeps the calls that create streams from now on.
pub fn watch() -> Answer {
    let mut watching = lock(&WATCHING);
    if watching.is_some() {
        return Ok(());
    }
    let created = [resource::STREAM_CREATED, resource::QUEUE_CREATED];
    let new = Watch::new(&created, |callback| {
        let of_stream = callback.record::<Stream>().map(|one| one.handle);
        let handle = of_stream.or_else(|| callback.record::<Queue>().map(|one| one.handle));
        let mut calls = lock(&CALLS);
        let calls = calls.get_or_insert_default();
        if let Some(handle) = handle
            && (calls.len() < MAX_CALLS || calls.contains_key(&handle))
        {
            calls.insert(handle, correlation(callback.correlation()));
        }
    })?;
    *watching = Some(new);
    Ok(())
}

/// Whether the call that created the stream with this handle is known.
pub fn has_call(handle: u64) -> bool {
    lock(&CALLS)
        .as_ref()
        .is_some_and(|calls| calls.contains_key(&handle))
}

/// The call that created the stream with this handle, which is forgotten; 0 if it is not known.
pub fn take_call(handle: u64) -> u32 {
    let mut calls = lock(&CALLS);
    let call = calls.as_mut().and_then(|calls| calls.remove(&handle));
    call.unwrap_or(0)
}

/// Forgets the calls.
pub fn finish() {
    let watching = lock(&WATCHING).take();
    drop(watching);
    *lock(&CALLS) = None;
}
