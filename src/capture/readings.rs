//! Thinning of clock readings.
//!
//! Under load a recording reads its clocks hundreds of times a second, and a long one would fill memory with redundant
//! readings. At most [`MAX_READINGS`] are kept: the first of each clock, then the narrowest of each group of
//! consecutive ones, evenly over time. Clocks are fitted to the kept readings, which also give the error bounds.

use std::collections::BTreeMap;

use gputrail_record::{AgentId, ClockPair, ClockSnapshot};

/// The most readings kept of all clocks together, unless there are very many clocks.
const MAX_READINGS: usize = 1 << 14;

/// A reading of a clock, taken between two ticks.
pub(super) trait Reading: Copy {
    /// The agent of the clock, or none for the host's.
    fn clock(&self) -> AgentId;
    /// The ticks that the reading took. A narrow reading is more accurate.
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

/// Ticks from `before` to `after`, or the maximum if they are invalid.
fn width(before: u64, after: u64) -> u64 {
    match before {
        0 => u64::MAX,
        before => after.checked_sub(before).unwrap_or(u64::MAX),
    }
}

/// The latest group of readings of one clock, of which one is kept.
#[derive(Copy, Clone, Debug)]
struct ReadingGroup {
    /// Index of the narrowest reading.
    index: usize,
    count: u64,
}

/// Thins out a list of readings.
#[derive(Clone, Debug)]
pub(super) struct Thinning {
    /// The size of a full group.
    group_size: u64,
    /// The length of the list at which groups are merged.
    limit: usize,
    groups: BTreeMap<AgentId, ReadingGroup>,
}

impl Default for Thinning {
    fn default() -> Thinning {
        Thinning {
            group_size: 1,
            limit: MAX_READINGS,
            groups: BTreeMap::new(),
        }
    }
}

impl Thinning {
    /// Adds a reading to `list`, which must be the same list each time.
    pub fn add<T: Reading>(&mut self, list: &mut Vec<T>, reading: T) {
        match self.groups.get_mut(&reading.clock()) {
            Some(group) if group.count < self.group_size => {
                group.count += 1;
                let kept = &mut list[group.index];
                if reading.width() < kept.width() {
                    *kept = reading;
                }
            }
            known => {
                // The first reading is a full group of its own.
                let count = known.map_or(u64::MAX, |_| 1);
                let index = list.len();
                self.groups
                    .insert(reading.clock(), ReadingGroup { index, count });
                list.push(reading);
                if list.len() >= self.limit {
                    self.halve(list);
                }
            }
        }
    }

    /// Merges groups in pairs.
    fn halve<T: Reading>(&mut self, list: &mut Vec<T>) {
        let before = std::mem::take(&mut self.groups);
        let all = std::mem::take(list);
        for reading in all {
            let clock = reading.clock();
            match self.groups.get_mut(&clock) {
                Some(group) if group.count == self.group_size => {
                    group.count *= 2;
                    let kept = &mut list[group.index];
                    if reading.width() < kept.width() {
                        *kept = reading;
                    }
                }
                known => {
                    let count = known.map_or(u64::MAX, |_| self.group_size);
                    let index = list.len();
                    self.groups.insert(clock, ReadingGroup { index, count });
                    list.push(reading);
                }
            }
        }
        // The latest group of each clock may be incomplete.
        for (clock, group) in &mut self.groups {
            let missing = before
                .get(clock)
                .map_or(0, |latest| self.group_size.saturating_sub(latest.count));
            group.count -= missing.min(group.count);
        }
        self.group_size *= 2;
        // With many clocks little can be left out: a higher limit avoids a merge per reading.
        self.limit = self.limit.max(list.len() + list.len() / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::Ticks;

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
            // The second agent is read rarely.
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
            let even = thinning.group_size * if agent == 1 { 1 } else { 100 };
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
