//! What the driver's functions do inside of calls, for subscribers: kernels, copies, fills, allocations. It follows from
//! the arguments; the functions of the runtime API call those of the driver.
//!
//! Work is told at the enter and the exit of the call that enqueues it, and when CUPTI's record of it arrives
//! ([`TOLD`]). Work whose record never arrives is told at the end of the recording as unfinished. A launch of a graph is
//! told as a change of the graph: its arguments do not say what it executes.

use super::ffi::CallData;
use super::functions::{CudaFunction, Effect, MAX_ARGUMENTS, arguments};
use super::inside::InsideCupti;
use super::objects::OBJECTS;
use super::recent::RECENT;
use super::session::current_session;
use core::ffi::c_void;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::names::Names;
use gputrail_collect::correlation::{CallInProgress, HostThread};
use gputrail_collect::notify::{self, Followers, Notifier};
use gputrail_collect::process::Current;
use gputrail_collect::switchboard::{ContextSet, Payload, ReportedPart};
use gputrail_interface::operations::{kernel_dispatch, memory_allocation, memory_copy};
use gputrail_record::{
    Allocation, AllocationOperation, Completion, KernelDispatch, KernelId, MemoryCopy, MemoryKind,
    MemorySet, Operation, RecordRef, TransferKind, Unfinished, WorkHeader, WorkId, flags,
};
use std::collections::HashMap;

/// The most pieces of work that are followed at a time.
const MAX_FOLLOWED: usize = 1 << 16;

/// What a call does, as the record that subscribers get.
enum Deed {
    Kernel(KernelDispatch),
    Copy(MemoryCopy),
    Fill(MemorySet),
    Allocation(Allocation),
}

impl Deed {
    fn record(&self) -> RecordRef<'_> {
        match self {
            Deed::Kernel(record) => RecordRef::of(record),
            Deed::Copy(record) => RecordRef::of(record),
            Deed::Fill(record) => RecordRef::of(record),
            Deed::Allocation(record) => RecordRef::of(record),
        }
    }

    fn kernel(&self) -> KernelId {
        match self {
            Deed::Kernel(record) => record.kernel,
            _ => KernelId::NONE,
        }
    }

    /// The operation under which it is told in the call.
    fn operation(&self) -> Operation {
        match self {
            Deed::Kernel(_) => kernel_dispatch::ENQUEUE,
            Deed::Copy(_) => memory_copy::COPY_ENQUEUE,
            Deed::Fill(_) => memory_copy::FILL_ENQUEUE,
            Deed::Allocation(record) if record.operation == AllocationOperation::FREE => {
                memory_allocation::FREE
            }
            Deed::Allocation(_) => memory_allocation::ALLOCATE,
        }
    }

    /// The operation under which its completion is told, if it is work.
    fn completion(&self) -> Option<Operation> {
        match self {
            Deed::Kernel(_) => Some(kernel_dispatch::COMPLETE),
            Deed::Copy(_) => Some(memory_copy::COPY_COMPLETE),
            Deed::Fill(_) => Some(memory_copy::FILL_COMPLETE),
            Deed::Allocation(_) => None,
        }
    }
}

/// A call in which something happens.
struct EnclosingCall<'a> {
    thread: Current,
    call: &'a CallInProgress,
    data: &'a CallData,
    work: WorkId,
}

impl EnclosingCall<'_> {
    fn notifier(&self) -> Option<Notifier<'_>> {
        Some(Notifier {
            board: self.thread.board()?,
            state: self.thread.state(),
            correlation: self.call.correlation,
            depth: self.call.depth,
        })
    }

    /// The fields that all work has. `stream` is the program's handle.
    fn header(&self, names: &Names, stream: u64) -> WorkHeader {
        let mut header = WorkHeader {
            id: self.work,
            correlation: self.call.correlation,
            enqueued: self.call.start,
            thread: self.thread.state().thread(),
            ..WorkHeader::default()
        };
        let Some(session) = current_session() else {
            return header;
        };
        let (context, stream) = (self.data.context, stream as *mut c_void);
        let inside = InsideCupti::begin();
        // SAFETY: the context of the call in progress, and the stream that the program passes to the driver in it.
        let (device, number) = unsafe {
            (
                session.cupti.device_of(context).unwrap_or(0),
                session.cupti.stream_number(context, stream).unwrap_or(0),
            )
        };
        drop(inside);
        let mut objects = OBJECTS.lock();
        header.agent = objects.agent(names, device);
        header.context = objects.context(names, self.data.context_uid, header.agent);
        header.stream = objects.stream_of(names, header.agent, (self.data.context_uid, number));
        header
    }

    /// What the call does, or has done successfully if it `is_over`.
    ///
    /// # Safety
    ///
    /// `self.data` is CUPTI's description of a call of `function`, which has returned 0 if it `is_over`.
    unsafe fn deed(&self, function: &CudaFunction, names: &Names, is_over: bool) -> Option<Deed> {
        let mut values = [0; MAX_ARGUMENTS];
        // SAFETY: `self.data` describes a call of `function`, so that its `parameters` are null or that function's
        // structure.
        let count = unsafe { arguments(function, self.data.parameters, &mut values) };
        let named = |name: &str| {
            let mut all = function.info.arguments[..count].iter();
            all.position(|one| one.name == name).map(|at| values[at])
        };
        let one_of = |names: &[&str]| names.iter().find_map(|name| named(name)).unwrap_or(0);
        let stream = one_of(&["hStream"]);
        Some(match function.effect {
            Effect::None | Effect::LaunchGraph => return None,
            Effect::Launch | Effect::LaunchByConfiguration => {
                let launch = match function.effect {
                    Effect::Launch => LaunchConfig {
                        grid: ["gridDimX", "gridDimY", "gridDimZ"].map(|one| one_of(&[one]) as u32),
                        block: ["blockDimX", "blockDimY", "blockDimZ"]
                            .map(|one| one_of(&[one]) as u32),
                        shared: one_of(&["sharedMemBytes"]) as u32,
                        stream,
                    },
                    // SAFETY: null, or the program's structure, which the driver reads in this call.
                    _ => *unsafe { (one_of(&["config"]) as *const LaunchConfig).as_ref() }?,
                };
                let mut dispatch = KernelDispatch::blank();
                dispatch.header = dispatch.header.with(flags::ASYNCHRONOUS);
                dispatch.work = self.header(names, launch.stream);
                // SAFETY: null, or CUPTI's text, which is valid during the callback.
                dispatch.kernel = unsafe {
                    let name = self.data.symbol_name as u64;
                    OBJECTS.lock().kernel(names, name)
                };
                dispatch.workgroup = launch.block;
                dispatch.grid =
                    [0, 1, 2].map(|at| u64::from(launch.grid[at]) * u64::from(launch.block[at]));
                dispatch.dynamic_local_memory = launch.shared;
                dispatch.dimensions = 3;
                Deed::Kernel(dispatch)
            }
            Effect::Copy(transfer) => {
                let mut copy = MemoryCopy::blank();
                copy.work = self.header(names, stream);
                (copy.bytes, copy.transfer) = (one_of(&["ByteCount"]), transfer);
                copy.source_address = one_of(&["src", "srcHost", "srcDevice"]);
                copy.destination_address = one_of(&["dst", "dstDevice", "dstHost"]);
                let agent = copy.work.agent;
                if matches!(
                    transfer,
                    TransferKind::DEVICE_TO_HOST | TransferKind::DEVICE_TO_DEVICE
                ) {
                    (copy.source_agent, copy.source_memory) = (agent, MemoryKind::DEVICE);
                }
                if matches!(
                    transfer,
                    TransferKind::HOST_TO_DEVICE | TransferKind::DEVICE_TO_DEVICE
                ) {
                    (copy.destination_agent, copy.destination_memory) = (agent, MemoryKind::DEVICE);
                }
                Deed::Copy(copy)
            }
            Effect::Fill(bytes) => {
                let mut set = MemorySet::blank();
                set.work = self.header(names, stream);
                set.bytes = one_of(&["N"]).saturating_mul(bytes.into());
                set.address = one_of(&["dstDevice"]);
                (set.value, set.pattern_bytes) = (one_of(&["uc", "ui"]) as u32, bytes);
                set.memory = MemoryKind::DEVICE;
                Deed::Fill(set)
            }
            Effect::Allocate(memory) | Effect::Free(memory) => {
                let mut allocation = Allocation::blank();
                let header = self.header(names, stream);
                allocation.correlation = header.correlation;
                (allocation.thread, allocation.start) = (header.thread, header.enqueued);
                allocation.memory = memory;
                if memory != MemoryKind::PINNED {
                    allocation.agent = header.agent;
                }
                match function.effect {
                    Effect::Free(_) => {
                        allocation.operation = AllocationOperation::FREE;
                        allocation.address = one_of(&["dptr", "p"]);
                    }
                    _ => {
                        allocation.operation = AllocationOperation::ALLOCATE;
                        allocation.bytes = one_of(&["bytesize"]);
                        let place = one_of(&["dptr", "pp"]) as *const u64;
                        if is_over {
                            // SAFETY: null, or the program's place for the address, which the driver has filled.
                            allocation.address =
                                unsafe { place.as_ref() }.copied().unwrap_or_default();
                        }
                    }
                }
                Deed::Allocation(allocation)
            }
        })
    }
}

/// The beginning of `CUlaunchConfig`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(super) struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: u64,
}

/// The handle of the stream that a call launches a kernel into.
///
/// # Safety
///
/// `data` is CUPTI's description of a call of `function`, which the driver has not left yet.
pub(super) unsafe fn launch_stream(function: &CudaFunction, data: &CallData) -> u64 {
    let mut values = [0; MAX_ARGUMENTS];
    // SAFETY: `data` describes a call of `function`, so that its `parameters` are null or that function's structure.
    let count = unsafe { arguments(function, data.parameters, &mut values) };
    let named = |name: &str| {
        let mut all = function.info.arguments[..count].iter();
        all.position(|one| one.name == name).map(|at| values[at])
    };
    // SAFETY: null, or the program's structure, which the driver reads in this call.
    let launch = named("config").and_then(|at| unsafe { (at as *const LaunchConfig).as_ref() });
    let stream = launch.map(|launch| launch.stream);
    stream.or_else(|| named("hStream")).unwrap_or(0)
}

/// Tells subscribers what a call is going to do.
///
/// # Safety
///
/// `data` is CUPTI's description of a call of `function`, at its enter. `around` is CUPTI's id of the call around it, or 0.
#[cold]
pub(super) unsafe fn begin(
    thread: Current,
    function: &CudaFunction,
    call: &CallInProgress,
    (data, around): (&CallData, u32),
    work: WorkId,
) {
    let site = EnclosingCall {
        thread,
        call,
        data,
        work,
    };
    let Some(notifier) = site.notifier() else {
        return;
    };
    // SAFETY: `site.data` is CUPTI's description of a call of `function`, which has only begun.
    let Some(deed) = (unsafe { site.deed(function, notifier.board.names(), false) }) else {
        return;
    };
    notifier.begin(ReportedPart::Work, work);
    notifier.enter(
        ReportedPart::Work,
        deed.operation(),
        deed.record(),
        deed.kernel(),
    );
    let external = thread
        .with(|host: &mut HostThread| host.external_of(ContextSet::default(), ReportedPart::Work));
    if let Some(external) = external {
        RECENT.set_external(data.correlation_id, external);
    }
    // CUPTI's record may arrive before the call returns.
    if deed
        .completion()
        .is_some_and(|one| !notifier.subscribers(one).is_none())
    {
        TOLD.lock().begin(data.correlation_id, around);
    }
}

/// Tells subscribers what a call has done, which returned `status`.
///
/// # Safety
///
/// `data` is CUPTI's description of a call of `function`, at its exit; the call returned `status`.
#[cold]
pub(super) unsafe fn end(
    thread: Current,
    function: &CudaFunction,
    call: &CallInProgress,
    data: &CallData,
    status: i32,
) {
    if function.effect == Effect::None {
        return;
    }
    let mut site = EnclosingCall {
        thread,
        call,
        data,
        work: WorkId::NONE,
    };
    let Some(notifier) = site.notifier() else {
        return;
    };
    let left = notifier.user_data(ReportedPart::Work);
    if status != 0 {
        if left.is_open() {
            let (operation, none) = (left.operation(), Payload::None);
            notifier.exit(ReportedPart::Work, operation, none, KernelId::NONE, status);
        }
        notifier.end(ReportedPart::Work);
        TOLD.lock().forget(data.correlation_id);
        return;
    }
    site.work = left.work();
    let Some(notifier) = site.notifier() else {
        return;
    };
    // SAFETY: `site.data` is CUPTI's description of a call of `function`, which has returned 0: the driver has filled its
    // places for results.
    let Some(deed) = (unsafe { site.deed(function, notifier.board.names(), true) }) else {
        return;
    };
    let payload = Payload::Record(deed.record());
    notifier.exit(
        ReportedPart::Work,
        deed.operation(),
        payload,
        deed.kernel(),
        0,
    );
    let followers = deed
        .completion()
        .and_then(|operation| notifier.followers(operation, deed.kernel()));
    let user_data = notifier.end(ReportedPart::Work);
    let id = data.correlation_id;
    match followers {
        Some(followers) => {
            let mut unfinished = Completion::blank();
            (unfinished.work, unfinished.correlation) = (site.work, call.correlation);
            unfinished.unfinished = Unfinished::AT_END;
            let followers = Box::new(followers.with_user_data(user_data));
            TOLD.lock().follow(id, followers, unfinished);
        }
        None => TOLD.lock().forget(id),
    }
    tell_completed(thread);
}

/// The work that subscribers follow, by CUPTI's correlation id.
pub(super) static TOLD: PerProcess<Told> = PerProcess::new();

#[derive(Default)]
pub(super) struct Told {
    followed: HashMap<u32, FollowedWork>,
    /// Work of the runtime's functions may have the id of their call, or that of the driver's call inside of it: the
    /// latter, by the former.
    inside: HashMap<u32, u32>,
    /// Work that has completed and is not yet told.
    completed: Vec<(Box<Followers>, Completion)>,
}

enum FollowedWork {
    /// The call has not returned. The completion has arrived already if there is one.
    InCall(Option<Completion>),
    /// The call has returned. The completion is that of work whose record never arrives.
    Enqueued(Box<Followers>, Completion),
}

impl Told {
    fn begin(&mut self, id: u32, around: u32) {
        if self.followed.len() < MAX_FOLLOWED {
            self.followed.insert(id, FollowedWork::InCall(None));
            if around != 0 && around != id {
                self.inside.insert(around, id);
            }
        }
    }

    fn forget(&mut self, id: u32) {
        self.take(id);
    }

    fn take(&mut self, id: u32) -> Option<FollowedWork> {
        let taken = self.followed.remove(&id);
        if self.followed.is_empty() {
            self.inside.clear();
        }
        taken
    }

    fn follow(&mut self, id: u32, followers: Box<Followers>, unfinished: Completion) {
        match self.take(id) {
            Some(FollowedWork::InCall(Some(completion))) => {
                self.completed.push((followers, completion));
            }
            Some(_) => {
                let enqueued = FollowedWork::Enqueued(followers, unfinished);
                self.followed.insert(id, enqueued);
            }
            None => {}
        }
    }

    /// CUPTI's record of the work has arrived.
    pub fn complete(&mut self, id: u32, completion: &Completion) {
        let id = if self.followed.contains_key(&id) {
            id
        } else {
            self.inside.remove(&id).unwrap_or(id)
        };
        match self.take(id) {
            Some(FollowedWork::Enqueued(followers, _)) => {
                self.completed.push((followers, *completion))
            }
            Some(FollowedWork::InCall(_)) => {
                let arrived = FollowedWork::InCall(Some(*completion));
                self.followed.insert(id, arrived);
            }
            None => {}
        }
    }

    /// Whether any work is followed.
    pub fn follows_any(&self) -> bool {
        !self.followed.is_empty()
    }

    /// The records of the work that is left will not arrive any more.
    fn give_up(&mut self) {
        for (_, followed) in self.followed.drain() {
            if let FollowedWork::Enqueued(followers, unfinished) = followed {
                self.completed.push((followers, unfinished));
            }
        }
    }
}

/// Calls back the followers of work that has completed, unless `thread` is in a callback: then a later call of this does.
pub(super) fn tell_completed(thread: Current) {
    if thread.state().is_in_callback() {
        return;
    }
    let completed = std::mem::take(&mut TOLD.lock().completed);
    let Some(board) = thread.board() else {
        return;
    };
    for (mut followers, completion) in completed {
        notify::completed(board, thread.state(), &mut followers, &completion);
    }
}

/// Calls back the followers of work that has not completed when the recording ends.
pub(super) fn give_up(thread: Current) {
    TOLD.lock().give_up();
    tell_completed(thread);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::CorrelationId;

    fn followers() -> Box<Followers> {
        Box::new(Followers::none(kernel_dispatch::COMPLETE))
    }

    fn completion(number: u64) -> Completion {
        let mut completion = Completion::blank();
        completion.correlation = CorrelationId(number);
        completion
    }

    #[test]
    fn work_is_told_once_whichever_of_call_and_record_ends_first() {
        let mut told = Told::default();
        let completed = |told: &mut Told| -> Vec<u64> {
            let all = told.completed.drain(..);
            all.map(|(_, completion)| completion.correlation.0)
                .collect()
        };
        // The record comes after the call has returned, and by the id of the call around it.
        told.begin(1, 0);
        told.begin(3, 2);
        told.follow(1, followers(), completion(100));
        told.follow(3, followers(), completion(100));
        assert!(completed(&mut told).is_empty());
        told.complete(1, &completion(1));
        told.complete(2, &completion(2));
        assert_eq!(completed(&mut told), [1, 2]);
        // The record comes before the call returns.
        told.begin(4, 0);
        told.complete(4, &completion(4));
        assert!(completed(&mut told).is_empty());
        told.follow(4, followers(), completion(100));
        assert_eq!(completed(&mut told), [4]);
        assert!(!told.follows_any() && told.inside.is_empty());
        // The call failed; nobody follows; the record never comes.
        told.begin(5, 0);
        told.forget(5);
        told.complete(6, &completion(6));
        told.begin(7, 0);
        told.follow(7, followers(), completion(100));
        told.give_up();
        assert_eq!(completed(&mut told), [100]);
        assert!(!told.follows_any());
    }
}
