//! The configurations that an agent offers, and requests for one of them.

use super::SamplingError;
use gputrail_interface::sampling::PeriodLevel;
use gputrail_record::{SamplingMethod, SamplingUnit};
use std::fmt;

/// One way in which an agent can be sampled (rocprofiler-sdk: `rocprofiler_pc_sampling_configuration_t`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// How samples are taken.
    pub method: SamplingMethod,
    /// The unit of intervals.
    pub unit: SamplingUnit,
    /// The shortest interval, in `unit`.
    pub min: u64,
    /// The longest interval.
    pub max: u64,
    /// Whether intervals have to be powers of two.
    pub power_of_two: bool,
}

/// How an agent is to be sampled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How samples are taken.
    pub method: SamplingMethod,
    /// The unit of `interval`.
    pub unit: SamplingUnit,
    /// Units from one sample of a compute unit to the next.
    pub interval: u64,
}

impl Configuration {
    /// The configuration that is this request and nothing else: that of an agent which samples so already. Its flag is that of the
    /// configuration among `possible` that the request is of.
    pub fn active(request: Request, possible: &[Configuration]) -> Configuration {
        let of = possible.iter().find(|one| one.is_of(&request));
        Configuration {
            method: request.method,
            unit: request.unit,
            min: request.interval,
            max: request.interval,
            power_of_two: of.is_some_and(|one| one.power_of_two),
        }
    }

    /// Whether the agent can do what `request` says.
    pub fn allows(&self, request: &Request) -> bool {
        self.is_of(request)
            && (self.min..=self.max).contains(&request.interval)
            && (!self.power_of_two || request.interval.is_power_of_two())
    }

    fn is_of(&self, request: &Request) -> bool {
        (self.method, self.unit) == (request.method, request.unit)
    }
}

/// An interval for people, in its unit.
struct Interval(u64, SamplingUnit);

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval(interval, unit) = *self;
        if unit != SamplingUnit::TIME {
            return write!(f, "{interval} {}", unit.name().unwrap_or("units"));
        }
        match interval {
            0 => write!(f, "0 ns"),
            _ if interval % 1_000_000_000 == 0 => write!(f, "{} s", interval / 1_000_000_000),
            _ if interval % 1_000_000 == 0 => write!(f, "{} ms", interval / 1_000_000),
            _ if interval % 1_000 == 0 => write!(f, "{} us", interval / 1_000),
            _ => write!(f, "{interval} ns"),
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method.name().unwrap_or("unknown method");
        let interval = |of| Interval(of, self.unit);
        if self.min == self.max {
            return write!(f, "{method} every {}", interval(self.min));
        }
        let (min, max) = (interval(self.min), interval(self.max));
        write!(f, "{method} every {min} to {max}")?;
        match self.power_of_two {
            true => f.write_str(", a power of two"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Configuration::active(*self, &[]).fmt(f)
    }
}

/// The configurations that an agent offers, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possible(pub Vec<Configuration>);

impl fmt::Display for Possible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (place, one) in self.0.iter().enumerate() {
            let before = if place == 0 { "" } else { "; " };
            write!(f, "{before}{one}")?;
        }
        Ok(())
    }
}

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
    Err(match (like.min..=like.max).contains(&request.interval) {
        true => {
            let above = request.interval.checked_next_power_of_two();
            SamplingError::PowerOfTwo {
                agent,
                request,
                below: 1 << request.interval.ilog2(),
                above: above.unwrap_or(1 << request.interval.ilog2()),
            }
        }
        false => SamplingError::Interval {
            agent,
            request,
            possible: Possible(vec![like]),
        },
    })
}

/// CUPTI's way of asking (`CUpti_ActivityPCSamplingConfig`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct SamplingPeriod {
    /// One of five levels.
    pub level: PeriodLevel,
    /// An exponent from 5 to 31, which overrides the level: 2 to that many cycles. 0 is not set.
    pub exponent: u32,
}

impl SamplingPeriod {
    /// The configuration for an agent that offers `possible`. Levels divide the agent's range evenly on a logarithmic
    /// scale, and are powers of two if the agent requires that; stochastic sampling is preferred, as in CUPTI.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Period`] if nothing is set, or an exponent or level that does not exist;
    /// [`SamplingError::NotSupported`]; [`SamplingError::Method`] if an exponent is asked of an agent that does not
    /// count cycles. Whether the agent can do the interval is checked when it is configured.
    pub fn request(
        &self,
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
        if self.exponent != 0 {
            if !(5..=31).contains(&self.exponent) {
                return Err(SamplingError::Period(*self));
            }
            let interval = 1 << self.exponent;
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
        if !(PeriodLevel::MIN..=PeriodLevel::MAX).contains(&self.level) {
            return Err(SamplingError::Period(*self));
        }
        let one = best.or(possible.first()).ok_or_else(not_supported)?;
        let fraction = f64::from(self.level.0 - 1) / 4.0;
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
}

#[cfg(test)]
mod tests {
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
        let asked = |period: SamplingPeriod| period.request("agent 1", &[TIME, CYCLES]);
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
    fn levels_go_evenly_from_the_shortest_to_the_longest_period() {
        let levels = (1..=5).map(|level| SamplingPeriod {
            level: PeriodLevel(level),
            exponent: 0,
        });
        let requests: Vec<Request> = levels
            .map(|level| level.request("agent 1", &[TIME, CYCLES]).unwrap())
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
            level.request("agent 1", &[TIME]).unwrap().interval,
            1_000_000
        );
        let exponent = SamplingPeriod {
            level: PeriodLevel::MID,
            exponent: 10,
        };
        let refused = exponent.request("agent 1", &[TIME]).unwrap_err();
        assert!(refused.to_string().contains("host-trap every 1 us to 1 s"));
    }
}
