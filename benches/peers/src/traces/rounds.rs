//! Rounds in which each alternative takes a turn, so that disturbances of the machine affect all of them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 31;

/// The medians of the processor times of all alternatives.
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
