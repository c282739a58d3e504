//! The session: this process's use of rocprofiler-sdk, from the configuration on. The library, its agents, its clock, and the
//! contexts and buffers of the services.
//!
//! The SDK's clock is CLOCK_BOOTTIME, whose translation to ticks is known only by readings: it is read between two ticks at the start, at
//! most ten times a second while buffers come, and at the end.

use super::kinds::RecordKinds;
use super::sdk::Sdk;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_collect::process;
use gputrail_record::{AgentId, ClockPair, DeviceTime, Ticks};
use gputrail_rocprofiler::{AgentV0, BufferId, ContextId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Attempts at a narrow reading of the clock.
const TRIES: usize = 4;

/// The process's use of the SDK.
pub(super) struct Session {
    /// The library: its functions and its version.
    pub sdk: Sdk,
    /// The processors of the machine, as the library described them. Pointers in them stay valid as long as the library.
    pub agents: Vec<SdkAgent>,
    /// The library's numbers of the kinds of records.
    pub kinds: RecordKinds,
    /// The contexts of our services.
    pub contexts: Contexts,
    /// The buffer of work that has completed.
    pub work: Option<BufferId>,
    /// The buffer of the driver's events.
    pub driver: Option<BufferId>,
    /// The SDK's clock when the session began: what ended before is left out.
    pub begin: u64,
    /// The host's ticks and the SDK's clock when the session began.
    pub first_reading: Option<Reading>,
    /// The process that made it, by its generation. It does not work in forked children.
    pub generation: u64,
    /// Whether services can be configured: only while the SDK initialises us.
    is_configuring: AtomicBool,
    /// Whether the SDK has been finalised: none of its functions may be called any more.
    has_ended: AtomicBool,
    last_reading: AtomicU64,
}

/// The contexts of the services, those of sampling and counting aside. `None`: the SDK has refused it.
#[derive(Copy, Clone, Default)]
pub(super) struct Contexts {
    /// Code objects, streams, initialisation of runtimes, AMD's ROCTx: always started.
    pub always: Option<ContextId>,
    /// Calls: one context for each API, in the order of [`DOMAINS`](super::DOMAINS).
    pub calls: [Option<ContextId>; super::DOMAINS.len()],
    /// Kernels, copies, allocations, scratch memory.
    pub work: Option<ContextId>,
    /// Migrations and page faults, as the driver tells them.
    pub driver: Option<ContextId>,
}

/// A processor, with its texts copied.
pub(super) struct SdkAgent {
    /// The SDK's description of it. `id` is the SDK's; our id is [`objects::agent`](super::objects::agent)'s.
    pub info: AgentV0,
    /// Its name as the compiler has it, such as `gfx942`.
    pub architecture: String,
    /// Its name for people.
    pub product: String,
    /// Its memory in bytes.
    pub memory: u64,
}

// SAFETY: the pointers in `info` are not followed after the copy, and the rest are numbers and texts.
unsafe impl Send for SdkAgent {}
// SAFETY: as above.
unsafe impl Sync for SdkAgent {}

/// The session of this process, or of the one that it was forked from.
pub(super) static SESSION: OnceBox<Session> = OnceBox::new();

/// The session of this process, while the SDK's functions may be called.
#[inline]
pub(super) fn current_session() -> Option<&'static Session> {
    SESSION
        .get()
        .filter(|session| session.is_of_this_process() && !session.has_ended())
}

/// A reading of the SDK's clock between two ticks.
#[derive(Copy, Clone, Debug)]
pub(super) struct Reading {
    before: Ticks,
    time: u64,
    after: Ticks,
}

impl Reading {
    /// The reading as a pair of the clock of `agent`.
    pub fn of_agent(self, agent: AgentId) -> ClockPair {
        let mut pair = ClockPair::blank();
        (pair.before, pair.after) = (self.before, self.after);
        (pair.device, pair.agent) = (DeviceTime(self.time), agent);
        pair
    }

    /// The host's ticks at a time of the SDK's clock, by the `frequency` of ticks.
    pub fn to_ticks(self, time: u64, frequency: u64) -> Ticks {
        const SECOND: i128 = 1_000_000_000;
        let since = i128::from(time) - i128::from(self.time);
        let ticks = since * i128::from(frequency) / SECOND;
        let middle = i128::from(self.before.0) + i128::from(self.after - self.before) / 2;
        Ticks((middle + ticks).clamp(1, i128::from(u64::MAX)) as u64)
    }
}

/// Reads the SDK's clock: the narrowest of several attempts.
fn read_clock(sdk: &Sdk) -> Option<Reading> {
    let readings = (0..TRIES).filter_map(|_| {
        let before = clock::now_ordered();
        let time = sdk.timestamp()?;
        let after = clock::now_ordered();
        Some(Reading {
            before,
            time,
            after,
        })
    });
    readings.min_by_key(|reading| reading.after - reading.before)
}

impl Session {
    /// The use of the library begins, with no context yet.
    pub fn new(sdk: Sdk) -> Session {
        let first_reading = read_clock(&sdk);
        Session {
            begin: first_reading.map_or(0, |reading| reading.time),
            first_reading,
            agents: sdk.agents(),
            kinds: RecordKinds::of(&sdk),
            sdk,
            contexts: Contexts::default(),
            work: None,
            driver: None,
            generation: process::generation(),
            is_configuring: AtomicBool::new(true),
            has_ended: AtomicBool::new(false),
            last_reading: AtomicU64::new(0),
        }
    }

    /// Whether the process made it, and was not forked from the one that did.
    #[inline]
    pub fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }

    /// Whether services can still be configured. Afterwards the SDK answers CONFIGURATION_LOCKED.
    pub fn is_configuring(&self) -> bool {
        self.is_configuring.load(Ordering::Acquire)
    }

    /// The SDK takes no more services.
    pub fn end_configuration(&self) {
        self.is_configuring.store(false, Ordering::Release);
    }

    /// Whether the SDK has been finalised.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// The SDK is finalised. Returns whether it was before.
    pub fn end(&self) -> bool {
        self.has_ended.swap(true, Ordering::AcqRel)
    }

    /// A reading of the clock, at most ten times a second.
    pub fn reading_if_due(&self) -> Option<Reading> {
        let (now, last) = (clock::now().0, self.last_reading.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(last) > clock::frequency() / 10;
        let taken = is_due
            && self
                .last_reading
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        taken.then(|| self.reading()).flatten()
    }

    /// A reading of the clock.
    pub fn reading(&self) -> Option<Reading> {
        read_clock(&self.sdk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_sdk_become_ticks_by_the_nearest_reading() {
        let reading = Reading {
            before: Ticks(1_000_000_000),
            time: 5_000_000_000,
            after: Ticks(1_000_000_100),
        };
        let ticks = |time| reading.to_ticks(time, 2_000_000_000);
        assert_eq!(ticks(5_000_000_000), Ticks(1_000_000_050));
        assert_eq!(ticks(6_000_000_000), Ticks(3_000_000_050));
        assert_eq!(ticks(0), Ticks(1));
    }
}
