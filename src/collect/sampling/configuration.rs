//! Requests for one of the configurations that an agent offers.

use super::{Possible, SamplingError};
use gputrail_interface::sampling::{Configuration, PeriodLevel, Request, SamplingPeriod};
use gputrail_record::{SamplingMethod, SamplingUnit};

/// Checks whether an agent that offers `possible` can do `request`; the error contains the possible configurations.
pub(super) fn check(
    agent: &str,
    possible: Vec<Configuration>,
    request: &Request,
) -> Result<(), SamplingError> {
    let agent = agent.to_owned();
    if possible.is_empty() {
        return Err(SamplingError::NotSupported { agent });
    }
    if possible.iter().any(|one| one.allows(request)) {
        return Ok(());
    }
    let request = *request;
    let Some(like) = possible.iter().find(|one| one.is_of(&request)).copied() else {
        let possible = Possible(possible);
        return Err(SamplingError::Method {
            agent,
            request,
            possible,
        });
    };
    Err(if (like.min..=like.max).contains(&request.interval) {
        let above = request.interval.checked_next_power_of_two();
        SamplingError::PowerOfTwo {
            agent,
            request,
            below: 1 << request.interval.ilog2(),
            above: above.unwrap_or(1 << request.interval.ilog2()),
        }
    } else {
        SamplingError::Interval {
            agent,
            request,
            possible: Possible(vec![like]),
        }
    })
}

/// The configuration for an agent that offers `possible`, at this period. Levels divide the agent's range evenly on a logarithmic
/// scale, and are powers of two if the agent requires that; stochastic sampling is preferred, as in CUPTI.
///
/// # Errors
///
/// [`SamplingError::Period`] if nothing is set, or an exponent or level that does not exist;
/// [`SamplingError::NotSupported`]; [`SamplingError::Method`] if an exponent is asked of an agent that does not
/// count cycles. Whether the agent can do the interval is checked when it is configured.
pub(super) fn at_period(
    period: SamplingPeriod,
    agent: &str,
    possible: &[Configuration],
) -> Result<Request, SamplingError> {
    let in_cycles = |one: &&Configuration| one.unit == SamplingUnit::CYCLES;
    let stochastic = |one: &&Configuration| one.method == SamplingMethod::STOCHASTIC;
    let best = (possible.iter().filter(stochastic).find(in_cycles))
        .or_else(|| possible.iter().find(in_cycles));
    let not_supported = || SamplingError::NotSupported {
        agent: agent.to_owned(),
    };
    if period.exponent != 0 {
        if !(5..=31).contains(&period.exponent) {
            return Err(SamplingError::Period(period));
        }
        let interval = 1 << period.exponent;
        let wished = Request {
            method: best.map_or(SamplingMethod::STOCHASTIC, |one| one.method),
            unit: SamplingUnit::CYCLES,
            interval,
        };
        return match best {
            Some(_) => Ok(wished),
            None if possible.is_empty() => Err(not_supported()),
            None => Err(SamplingError::Method {
                agent: agent.to_owned(),
                request: wished,
                possible: Possible(possible.to_vec()),
            }),
        };
    }
    if !(PeriodLevel::MIN..=PeriodLevel::MAX).contains(&period.level) {
        return Err(SamplingError::Period(period));
    }
    let one = best.or(possible.first()).ok_or_else(not_supported)?;
    let fraction = f64::from(period.level.0 - 1) / 4.0;
    let (min, max) = (one.min.max(1) as f64, one.max.max(1) as f64);
    let exact = (min * (max / min).powf(fraction)).round() as u64;
    let mut interval = exact.clamp(one.min, one.max);
    if one.power_of_two && !interval.is_power_of_two() {
        interval = interval.next_power_of_two();
        if interval > one.max {
            interval /= 2;
        }
    }
    Ok(Request {
        method: one.method,
        unit: one.unit,
        interval,
    })
}

#[cfg(test)]
mod tests {
    use super::super::SampleSource;
    use super::*;

    const CYCLES: Configuration = Configuration {
        method: SamplingMethod::STOCHASTIC,
        unit: SamplingUnit::CYCLES,
        min: 1 << 8,
        max: 1 << 31,
        power_of_two: true,
    };
    const TIME: Configuration = Configuration {
        method: SamplingMethod::HOST_TRAP,
        unit: SamplingUnit::TIME,
        min: 1_000,
        max: 1_000_000_000,
        power_of_two: false,
    };

    fn refused(request: Request) -> String {
        check("agent 1", vec![TIME, CYCLES], &request)
            .unwrap_err()
            .to_string()
    }

    fn stochastic(interval: u64) -> Request {
        Request {
            method: SamplingMethod::STOCHASTIC,
            unit: SamplingUnit::CYCLES,
            interval,
        }
    }

    #[test]
    fn a_refusal_names_what_is_possible() {
        let out_of_range = refused(stochastic(1 << 5));
        assert!(out_of_range.contains("256 cycles to 2147483648 cycles, a power of two"));
        let between = refused(stochastic(3_000));
        assert!(
            between.contains("2048") && between.contains("4096"),
            "{between}"
        );
        let other = refused(Request {
            unit: SamplingUnit::INSTRUCTIONS,
            ..stochastic(1 << 10)
        });
        assert!(
            other.contains("host-trap every 1 us to 1 s; stochastic every 256 cycles"),
            "{other}"
        );
        assert_eq!(
            check("agent 1", vec![TIME, CYCLES], &stochastic(1 << 10)),
            Ok(())
        );
        let nothing = check("agent 1", Vec::new(), &stochastic(1 << 10));
        assert!(matches!(nothing, Err(SamplingError::NotSupported { .. })));
    }

    #[test]
    fn an_exponent_overrides_a_level() {
        let period = |level, exponent| SamplingPeriod { level, exponent };
        let asked = |period: SamplingPeriod| at_period(period, "agent 1", &[TIME, CYCLES]);
        for exponent in 5..=31 {
            let request = asked(period(PeriodLevel::MAX, exponent)).unwrap();
            assert_eq!(request, stochastic(1 << exponent));
        }
        for exponent in [1, 4, 32, u32::MAX] {
            let wrong = period(PeriodLevel::MIN, exponent);
            assert_eq!(asked(wrong), Err(SamplingError::Period(wrong)));
        }
        let unset = SamplingPeriod::default();
        assert_eq!(asked(unset), Err(SamplingError::Period(unset)));
        assert!(asked(period(PeriodLevel(6), 0)).is_err());
    }

    #[test]
    fn levels_of_processors_and_of_cycles_are_those_of_the_documents() {
        let at = |possible: &[Configuration]| {
            let level = |level| SamplingPeriod {
                level: PeriodLevel(level),
                exponent: 0,
            };
            [1, 2, 3, 4, 5].map(|of| at_period(level(of), "agent 1", possible).unwrap().interval)
        };
        let processors = at(&SampleSource::PerfEvents.possible());
        let expected = [50_000, 594_604, 7_071_068, 84_089_642, 1_000_000_000];
        assert_eq!(processors, expected, "docs/apis.md has them in ms");
        let cycles = [8, 14, 20, 26, 31].map(|exponent| 1 << exponent);
        assert_eq!(at(&[CYCLES]), cycles, "docs/apis.md has the exponents");
    }

    #[test]
    fn levels_go_evenly_from_the_shortest_to_the_longest_period() {
        let levels = (1..=5).map(|level| SamplingPeriod {
            level: PeriodLevel(level),
            exponent: 0,
        });
        let requests: Vec<Request> = levels
            .map(|level| at_period(level, "agent 1", &[TIME, CYCLES]).unwrap())
            .collect();
        let intervals: Vec<u64> = requests.iter().map(|one| one.interval).collect();
        assert_eq!(intervals.first(), Some(&CYCLES.min));
        assert_eq!(intervals.last(), Some(&CYCLES.max));
        assert!(intervals.is_sorted() && requests.iter().all(|one| CYCLES.allows(one)));
        // An agent that counts no cycles has levels, but no exponents.
        let level = SamplingPeriod {
            level: PeriodLevel::MID,
            exponent: 0,
        };
        assert_eq!(
            at_period(level, "agent 1", &[TIME]).unwrap().interval,
            1_000_000
        );
        let exponent = SamplingPeriod {
            level: PeriodLevel::MID,
            exponent: 10,
        };
        let refused = at_period(exponent, "agent 1", &[TIME]).unwrap_err();
        assert!(refused.to_string().contains("host-trap every 1 us to 1 s"));
    }
}
