//! Pairs of host ticks and device times, from which readers determine an agent's clock domain.
//!
//! The runtime stamps a command as queued during the enqueuing call, so every piece of work is a reading of both
//! clocks; now and then one from a short call is kept. If clGetDeviceAndHostTimer works, it is called instead.
//! A first reading from a long call may fit several clocks: the next one from a call of half its length is kept at once.

use super::below::{below, next};
use super::device::ClDevice;
use super::ffi::*;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_collect::process;
use gputrail_record::{AgentId, ClockPair, DeviceTime, Ticks};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Agents that have clock pairs.
const AGENTS: usize = 64;

/// The time of each agent's latest pair, in ticks; 0 before the first.
static LAST: [AtomicU64; AGENTS] = [const { AtomicU64::new(0) }; AGENTS];
/// The earliest time of each agent's next pair, in ticks.
static DUE: [AtomicU64; AGENTS] = [const { AtomicU64::new(0) }; AGENTS];
/// The width of the window of each agent's latest pair, in ticks.
static WIDTHS: [AtomicU64; AGENTS] = [const { AtomicU64::new(0) }; AGENTS];
/// The device of each agent whose timer works, or 0.
static TIMERS: [AtomicUsize; AGENTS] = [const { AtomicUsize::new(0) }; AGENTS];

/// The least time after a pair with a narrow window, the greatest after any pair, and the width of a narrow window, in ticks.
struct Spans {
    shortest: u64,
    longest: u64,
    narrow: u64,
}

/// The latest pair of an agent: how long ago it was read, and the width of its window, in ticks.
struct Latest {
    age: u64,
    width: u64,
}

impl Spans {
    /// Whether a reading with a window of this width is to be kept.
    fn want(&self, width: u64, latest: Option<Latest>) -> bool {
        latest.is_none_or(|latest| {
            latest.age >= self.longest || width <= self.narrow || width <= latest.width / 2
        })
    }
}

fn spans() -> &'static Spans {
    static SPANS: OnceBox<Spans> = OnceBox::new();
    SPANS.get_or_init(|| {
        let second = clock::frequency();
        Spans {
            shortest: second / 10,
            longest: second,
            narrow: second / 20_000,
        }
    })
}

/// Tries the timer of a new agent, which devices have from version 2.1 on. With older devices the runtime lacks the
/// function, even if the loader has it.
pub(super) fn new_agent(agent: AgentId, device: cl_device_id, known: &ClDevice) {
    let Some(timer) = TIMERS.get(agent.0 as usize) else {
        return;
    };
    timer.store(0, Ordering::Relaxed);
    LAST[agent.0 as usize].store(0, Ordering::Relaxed);
    DUE[agent.0 as usize].store(0, Ordering::Relaxed);
    if known.has_version(2, 1)
        && let Some(pair) = read_timer(agent, device)
    {
        timer.store(device.0 as usize, Ordering::Relaxed);
        keep(pair);
    }
}

/// Offers a reading: work of `agent` was queued at `queued`, between the two ticks of `window`.
#[inline(always)]
pub(super) fn offer(agent: AgentId, window: (Ticks, Ticks), queued: DeviceTime) {
    if let Some(due) = DUE.get(agent.0 as usize)
        && window.0.0 >= due.load(Ordering::Relaxed)
    {
        offer_due(agent, window, queued);
    }
}

#[cold]
#[inline(never)]
fn offer_due(agent: AgentId, window: (Ticks, Ticks), queued: DeviceTime) {
    let (place, spans) = (agent.0 as usize, spans());
    let before = LAST[place].load(Ordering::Relaxed);
    let latest = (before != 0).then(|| Latest {
        age: window.0.0.saturating_sub(before),
        width: WIDTHS[place].load(Ordering::Relaxed),
    });
    let width = window.1 - window.0;
    if !spans.want(width, latest) {
        return;
    }
    if before == 0 {
        // The first one, before other threads see that there is one: their completions may be read at once.
        keep(pair(agent, window, queued));
    }
    if LAST[place]
        .compare_exchange(before, window.0.0, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
    {
        return;
    }
    let device = TIMERS[place].load(Ordering::Relaxed);
    let timed = (device != 0)
        .then(|| read_timer(agent, cl_device_id(device as *mut c_void)))
        .flatten();
    let pause = if width <= spans.narrow || timed.is_some() {
        spans.shortest
    } else {
        0
    };
    DUE[place].store(window.0.0.saturating_add(pause), Ordering::Relaxed);
    WIDTHS[place].store(width, Ordering::Relaxed);
    if before != 0 || timed.is_some() {
        keep(timed.unwrap_or_else(|| pair(agent, window, queued)));
    }
}

fn read_timer(agent: AgentId, device: cl_device_id) -> Option<ClockPair> {
    below().clGetDeviceAndHostTimer?;
    let (mut time, mut host) = (0, 0);
    let before = clock::now_ordered();
    // SAFETY: the loader has the function (checked above); the runtime writes to locals.
    let result = unsafe {
        next!(clGetDeviceAndHostTimer(
            device,
            &raw mut time,
            &raw mut host
        ))
    };
    let after = clock::now_ordered();
    (result == CL_SUCCESS).then(|| pair(agent, (before, after), DeviceTime(time)))
}

fn pair(agent: AgentId, window: (Ticks, Ticks), device: DeviceTime) -> ClockPair {
    let mut pair = ClockPair::blank();
    (pair.before, pair.after) = window;
    (pair.agent, pair.device) = (agent, device);
    pair
}

fn keep(pair: ClockPair) {
    if let Some(names) = process::names() {
        names.clock_pair(pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_from_a_long_call_is_kept_until_a_better_one_comes() {
        let spans = Spans {
            shortest: 100,
            longest: 1000,
            narrow: 5,
        };
        let wants = |width, latest: Option<(u64, u64)>| {
            let latest = latest.map(|(age, width)| Latest { age, width });
            spans.want(width, latest)
        };
        assert!(wants(240, None));
        // The next call, at once: half as long, or short.
        assert!(wants(120, Some((0, 240))));
        assert!(wants(5, Some((0, 6))));
        assert!(!wants(121, Some((0, 240))));
        assert!(!wants(6, Some((999, 5))));
        // Any after a while.
        assert!(wants(240, Some((1000, 5))));
    }
}
