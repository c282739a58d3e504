//! Rounds, in each of which everybody takes a turn: what happens on the machine meanwhile happens to all.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 31;

/// The median of the processor times that each takes.
pub fn medians<const N: usize>(mut turns: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (turn, times) in turns.iter_mut().zip(&mut times) {
            let start = processor_time();
            turn();
            times.push(processor_time() - start);
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    })
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
