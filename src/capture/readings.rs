//! Readings of clocks, thinned out as they come.
//!
//! Under load a recording reads its clocks hundreds of times a second, and a long one would fill memory with readings that
//! tell nothing new. So no more than [`MAX_READINGS`] are kept: the first of each clock, and from then on the narrowest of each
//! so many, evenly over time. What clocks are fitted to is what is left, and so is what their error bounds are measured by.

use std::collections::BTreeMap;

use crate::record::{AgentId, ClockPair, ClockSnapshot};

/// Most readings that are kept, of all clocks together, unless there are very many clocks.
const MAX_READINGS: usize = 1 << 14;

/// A reading of a clock, taken between two ticks.
pub(super) trait Reading: Copy {
    /// Whose clock it is; none if it is the host's.
    fn clock(&self) -> AgentId;
    /// Ticks that it took: the fewer, the more it tells.
    fn width(&self) -> u64;
}

impl Reading for ClockSnapshot {
    fn clock(&self) -> AgentId {
        AgentId::NONE
    }

    fn width(&self) -> u64 {
        width(self.before.0, self.after.0)
    }
}

impl Reading for ClockPair {
    fn clock(&self) -> AgentId {
        self.agent
    }

    fn width(&self) -> u64 {
        width(self.before.0, self.after.0)
    }
}

/// Ticks from `before` to `after`; what cannot be used counts as endless.
fn width(before: u64, after: u64) -> u64 {
    match before {
        0 => u64::MAX,
        before => after.checked_sub(before).unwrap_or(u64::MAX),
    }
}

/// The readings of one clock that have come since the last one was kept for good.
#[derive(Copy, Clone, Debug)]
struct Group {
    /// Where the narrowest of them stands.
    place: usize,
    count: u64,
}

/// Thins out a list of readings.
#[derive(Clone, Debug)]
pub(super) struct Thinning {
    /// One of so many readings of a clock is kept.
    one_of: u64,
    most: usize,
    groups: BTreeMap<AgentId, Group>,
}

impl Default for Thinning {
    fn default() -> Thinning {
        Thinning {
            one_of: 1,
            most: MAX_READINGS,
            groups: BTreeMap::new(),
        }
    }
}

impl Thinning {
    /// Adds a reading to `list`, which nobody else adds to.
    pub fn add<T: Reading>(&mut self, list: &mut Vec<T>, reading: T) {
        match self.groups.get_mut(&reading.clock()) {
            Some(group) if group.count < self.one_of => {
                group.count += 1;
                let kept = &mut list[group.place];
                if reading.width() < kept.width() {
                    *kept = reading;
                }
            }
            known => {
                // The first reading stays: it is a group of its own.
                let count = known.map_or(u64::MAX, |_| 1);
                let place = list.len();
                self.groups.insert(reading.clock(), Group { place, count });
                list.push(reading);
                if list.len() >= self.most {
                    self.halve(list);
                }
            }
        }
    }

    /// Puts two groups at a time together.
    fn halve<T: Reading>(&mut self, list: &mut Vec<T>) {
        let before = std::mem::take(&mut self.groups);
        let all = std::mem::take(list);
        for reading in all {
            let clock = reading.clock();
            match self.groups.get_mut(&clock) {
                Some(group) if group.count == self.one_of => {
                    group.count *= 2;
                    let kept = &mut list[group.place];
                    if reading.width() < kept.width() {
                        *kept = reading;
                    }
                }
                known => {
                    let count = known.map_or(u64::MAX, |_| self.one_of);
                    let place = list.len();
                    self.groups.insert(clock, Group { place, count });
                    list.push(reading);
                }
            }
        }
        // The latest group of each clock may not be full yet.
        for (clock, group) in &mut self.groups {
            let missing = before
                .get(clock)
                .map_or(0, |latest| self.one_of.saturating_sub(latest.count));
            group.count -= missing.min(group.count);
        }
        self.one_of *= 2;
        // Of many clocks little can be left out: not to be tried each time.
        self.most = self.most.max(list.len() + list.len() / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Ticks;

    fn pair(agent: u32, time: u64, width: u64) -> ClockPair {
        ClockPair {
            agent: AgentId(agent),
            before: Ticks(time),
            after: Ticks(time + width),
            ..ClockPair::blank()
        }
    }

    #[test]
    fn few_readings_are_all_kept() {
        let (mut thinning, mut list) = (Thinning::default(), Vec::new());
        for time in 1..MAX_READINGS as u64 {
            thinning.add(&mut list, pair(1, time, 5));
        }
        assert_eq!(list.len(), MAX_READINGS - 1);
    }

    #[test]
    fn of_many_readings_the_first_and_the_narrowest_are_kept_evenly_over_time() {
        let (mut thinning, mut list) = (Thinning::default(), Vec::new());
        let many = 40 * MAX_READINGS as u64;
        for time in 1..=many {
            // The second agent is read seldom.
            let agent = 1 + u32::from(time % 100 == 0);
            let width = if time % 16 == 9 { 1 } else { 50 };
            thinning.add(&mut list, pair(agent, time, width));
        }
        assert!(
            (MAX_READINGS / 4..MAX_READINGS).contains(&list.len()),
            "{}",
            list.len()
        );
        for agent in [1, 2] {
            let own: Vec<_> = list.iter().filter(|pair| pair.agent.0 == agent).collect();
            assert!(own[0].before.0 <= 100);
            let steps: Vec<u64> = own
                .windows(2)
                .map(|two| two[1].before - two[0].before)
                .collect();
            let even = thinning.one_of * if agent == 1 { 1 } else { 100 };
            assert!(
                steps[1..]
                    .iter()
                    .all(|step| (1..=2 * even + 2).contains(step)),
                "{even} {steps:?}"
            );
            let last = own[own.len() - 1].before.0;
            assert!(many - last <= 2 * even);
        }
        let wide = list[1..]
            .iter()
            .filter(|pair| pair.agent.0 == 1 && pair.width() > 1);
        assert!(wide.count() <= 1);
    }

    #[test]
    fn readings_that_cannot_be_used_give_way() {
        let (mut thinning, mut list) = (Thinning::default(), Vec::new());
        for time in 1..=MAX_READINGS as u64 * 2 {
            let mut reading = pair(1, time, 50);
            if time % 2 == 0 {
                reading.after = Ticks(0);
            }
            thinning.add(&mut list, reading);
        }
        assert!(list[1..].iter().all(|reading| reading.width() == 50));
    }
}
