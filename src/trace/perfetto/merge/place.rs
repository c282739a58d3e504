//! The placement of each trace in time, and its machine.

use std::collections::HashMap;

use super::survey::Survey;

/// Maximum distance between starts of a machine that count as one start: real-time clocks are adjusted now and then.
const SAME_START_NS: u64 = 1_000_000_000;

/// The relation between the times of a trace and those of the first one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Both traces are of one machine: exact, by the same clock.
    SameMachine,
    /// By the real-time clocks of both machines: as exact as these agree, which the traces do not say.
    RealTime,
    /// As given by the user.
    Given,
}

/// The placement of a trace among the others.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The machine, numbered from 0, which is that of the first trace.
    pub machine: u32,
    /// Nanoseconds to add to its times.
    pub offset: i64,
    /// How far the offset can be trusted.
    pub trust: Trust,
}

/// Places each trace. `given` are offsets from the user for some of them, ns. The error is the index of a trace that
/// has no clock in common with the first one.
pub fn place(surveys: &[Survey], given: &HashMap<usize, i64>) -> Result<Vec<Placement>, usize> {
    let mut placements: Vec<Placement> = Vec::new();
    for (index, survey) in surveys.iter().enumerate() {
        let same = |other: &&(usize, &Survey)| is_same_machine(survey, other.1);
        let before: Vec<_> = surveys[..index].iter().enumerate().collect();
        let machines = placements
            .iter()
            .map(|placement| placement.machine + 1)
            .max();
        let placement = match (given.get(&index), before.iter().find(same)) {
            (Some(offset), other) => Placement {
                machine: other.map_or(machines.unwrap_or(0), |(other, _)| {
                    placements[*other].machine
                }),
                offset: *offset,
                trust: Trust::Given,
            },
            (None, Some((other, _))) => Placement {
                trust: match placements[*other].trust {
                    Trust::Given => Trust::SameMachine,
                    trust => trust,
                },
                ..placements[*other]
            },
            (None, None) if index == 0 => Placement {
                machine: 0,
                offset: 0,
                trust: Trust::SameMachine,
            },
            (None, None) => {
                let (Some(first), Some(started)) = (surveys[0].started, survey.started) else {
                    return Err(index);
                };
                let offset =
                    i128::from(started) - i128::from(first) + i128::from(placements[0].offset);
                Placement {
                    machine: machines.unwrap_or(0),
                    offset: i64::try_from(offset).map_err(|_| index)?,
                    trust: Trust::RealTime,
                }
            }
        };
        placements.push(placement);
    }
    Ok(placements)
}

/// Whether two traces are of one machine since the same start of it.
fn is_same_machine(first: &Survey, second: &Survey) -> bool {
    let names = [&first.host, &second.host];
    if names[0] != names[1] && names.iter().all(|name| !name.is_empty()) {
        return false;
    }
    match (first.started, second.started) {
        (Some(first), Some(second)) => first.abs_diff(second) <= SAME_START_NS,
        // Without a clock to compare, equal names mean one machine.
        _ => names.iter().all(|name| !name.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(host: &str, started: Option<u64>) -> Survey {
        Survey {
            host: host.to_owned(),
            started,
            ..Survey::default()
        }
    }

    fn placed(machine: u32, offset: i64, trust: Trust) -> Placement {
        Placement {
            machine,
            offset,
            trust,
        }
    }

    #[test]
    fn traces_of_one_machine_share_its_clock() {
        let surveys = [
            survey("a", Some(5_000)),
            survey("a", Some(9_000)),
            survey("", Some(4_000)),
        ];
        let same = placed(0, 0, Trust::SameMachine);
        assert_eq!(place(&surveys, &HashMap::new()), Ok(vec![same; 3]));
    }

    #[test]
    fn other_machines_are_placed_by_real_time_or_by_a_given_offset() {
        let second = 1_000_000_000;
        let surveys = [
            survey("a", Some(70 * second)),
            survey("b", Some(50 * second)),
            survey("b", Some(50 * second)),
            survey("a", Some(90 * second)),
        ];
        let by_real_time = placed(1, -20_000_000_000, Trust::RealTime);
        let restarted = placed(2, 20_000_000_000, Trust::RealTime);
        let first = placed(0, 0, Trust::SameMachine);
        assert_eq!(
            place(&surveys, &HashMap::new()),
            Ok(vec![first, by_real_time, by_real_time, restarted])
        );
        let given = HashMap::from([(1, 17)]);
        let placements = place(&surveys[..2], &given).unwrap();
        assert_eq!(placements[1], placed(1, 17, Trust::Given));
    }

    #[test]
    fn without_a_common_clock_there_is_no_place() {
        let surveys = [survey("a", Some(5)), survey("b", None)];
        assert_eq!(place(&surveys, &HashMap::new()), Err(1));
    }
}
