//! Exact counts of the instructions that the waves of a launch execute: how often each is executed depends on neither time
//! nor contention. All waves of a launch go one of two ways: the first wave of a workgroup, and the others.

use super::program::{WaveOperation, WaveProgram};

/// The executions of one instruction by all waves of a launch.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::sim) struct Executed {
    /// Times that a wave executed it.
    pub times: u64,
    /// Times after which lanes of the wave went different ways.
    pub diverged: u64,
}

impl WaveProgram {
    /// The way of a wave through the program: calls `each` with the index of each instruction that it executes, and
    /// whether the wave branches there.
    pub fn walk(&self, is_first: bool, mut each: impl FnMut(usize, bool)) {
        let mut turns = vec![0; self.lines.len()];
        let mut next = 0;
        while let Some(line) = self.lines.get(next) {
            let place = next;
            let target = match line.operation {
                WaveOperation::Branch { to, times } if turns[place] < times => {
                    turns[place] += 1;
                    Some(to)
                }
                WaveOperation::Branch { .. } => {
                    turns[place] = 0;
                    None
                }
                WaveOperation::Skip { to } if !is_first => Some(to),
                WaveOperation::Jump { to } => Some(to),
                _ => None,
            };
            each(place, target.is_some());
            if line.operation == WaveOperation::End {
                break;
            }
            next = target.map_or(place + 1, |to| to as usize);
        }
    }

    /// The executions of each instruction by a launch of `groups` workgroups.
    pub fn executed(&self, groups: u64, waves_per_group: u64) -> Vec<Executed> {
        let mut all = vec![Executed::default(); self.lines.len()];
        let others = groups * waves_per_group.saturating_sub(1);
        for (is_first, waves) in [(true, groups), (false, others)] {
            self.walk(is_first, |place, branches| {
                all[place].times += waves;
                if !branches && self.diverges(place) {
                    all[place].diverged += waves;
                }
            });
        }
        all
    }

    /// Whether lanes go different ways in a wave that does not branch at `place`: fewer lanes execute what follows than the
    /// branch.
    fn diverges(&self, place: usize) -> bool {
        let [line, next] = [place, place + 1].map(|place| self.lines.get(place));
        let (Some(line), Some(next)) = (line, next) else {
            return false;
        };
        matches!(line.operation, WaveOperation::Skip { .. }) && next.lanes < line.lanes
    }
}
