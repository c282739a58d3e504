//! The environment of a simulated device: heat, power, fan and clocks, which answer to the load of its compute units.
//!
//! Power follows the load and the clock. The device warms up or cools down towards the temperature at which the fan
//! takes the heat away, faster than a real one, so that a short run shows it. Above its limit of power or of
//! temperature the device lowers its clock step by step, with a reason, and raises it again below. The clock that the
//! model reports does not change how long kernels take.

use super::machine::ShareSpan;
use super::time::Moment;
use gputrail_collect::correlation::HostThread;
use gputrail_record::{AgentId, Environment, EnvironmentKind, Nanos, Ticks};

/// The reasons for a lower clock, in the bits of CUPTI (`CUpti_EnvironmentClocksThrottleReason`).
const GPU_IDLE: u64 = 1;
const POWER_CAP: u64 = 4;
const THERMAL_SLOWDOWN: u64 = 0x20;

/// The clock of a busy device, of an idle one, and a step, in MHz.
const CLOCK: u64 = 1_500;
const IDLE_CLOCK: u64 = 210;
const CLOCK_STEP: u64 = 15;
/// The clock of the memory of a busy device, and of an idle one.
const MEMORY_CLOCK: u64 = 1_215;
const IDLE_MEMORY_CLOCK: u64 = 405;
/// The power of an idle device, what the load adds at the full clock, and the limit, in milliwatts.
const IDLE_POWER: u64 = 42_000;
const LOAD_POWER: u64 = 308_000;
const POWER_LIMIT: u64 = 330_000;
/// Temperatures in thousandths of a degree Celsius: the air, and the one above which the clock is lowered.
const AIR: u64 = 27_000;
const HOT: u64 = 83_000;
/// The heat in thousandths of a degree that a watt adds without the fan, in which the fan's percents are subtracted.
const HEAT_OF_WATT: u64 = 250;
/// The time in which the temperature covers most of its way.
const WARM_UP: u64 = 40_000_000;
/// Load in thousandths below which a device is idle.
const IDLE: u64 = 20;

/// The environment of a device.
#[derive(Debug)]
pub(super) struct DeviceEnvironment {
    /// Use of the compute units since the latest reading: thousandths of a unit times nanoseconds.
    used: u64,
    read: Moment,
    clock: u64,
    /// In thousandths of a degree.
    temperature: u64,
    power: u64,
    fan: u64,
    reasons: u64,
    is_idle: bool,
}

impl Default for DeviceEnvironment {
    fn default() -> DeviceEnvironment {
        DeviceEnvironment {
            used: 0,
            read: Moment::BEGIN,
            clock: IDLE_CLOCK,
            temperature: 34_000,
            power: IDLE_POWER,
            fan: 30,
            reasons: GPU_IDLE,
            is_idle: true,
        }
    }
}

impl DeviceEnvironment {
    /// Adds a span of use of the compute units.
    pub(super) fn ran(&mut self, span: &ShareSpan) {
        let shares: u64 = span.shares.iter().map(|(_, share)| share).sum();
        self.used += shares * (span.to - span.from).0;
    }

    /// Brings the model up to `now`. `units` are the device's compute units in thousandths.
    pub(super) fn advance(&mut self, now: Moment, units: u64) {
        let span = (now - self.read).0;
        if span == 0 {
            return;
        }
        let load = (self.used / (units * span / 1_000)).min(1_000);
        (self.used, self.read, self.is_idle) = (0, now, load < IDLE);
        self.reasons = 0;
        if self.is_idle {
            (self.clock, self.reasons) = (IDLE_CLOCK, GPU_IDLE);
        } else {
            // Work raises the clock of an idle device at once.
            self.clock = match self.clock {
                IDLE_CLOCK => CLOCK,
                clock => (clock + CLOCK_STEP).min(CLOCK),
            };
        }
        let draws = |clock: u64| IDLE_POWER + LOAD_POWER * load / 1_000 * clock / CLOCK;
        for (reason, exceeded) in [
            (POWER_CAP, draws(self.clock) > POWER_LIMIT),
            (THERMAL_SLOWDOWN, self.temperature > HOT),
        ] {
            if exceeded {
                self.reasons |= reason;
                self.clock = self.clock.saturating_sub(2 * CLOCK_STEP).max(IDLE_CLOCK);
            }
        }
        self.power = draws(self.clock);
        let target = AIR + self.power * (HEAT_OF_WATT - self.fan) / 1_000;
        let way = span.min(WARM_UP);
        self.temperature = (self.temperature * (WARM_UP - way) + target * way) / WARM_UP;
        self.fan = (30 + self.temperature.saturating_sub(45_000) * 2 / 1_000).min(100);
    }

    /// The quantities now.
    fn values(&self) -> [(EnvironmentKind, u64); 9] {
        let by_use = |busy, idle| if self.is_idle { idle } else { busy };
        [
            (EnvironmentKind::CLOCK, self.clock),
            (
                EnvironmentKind::MEMORY_CLOCK,
                by_use(MEMORY_CLOCK, IDLE_MEMORY_CLOCK),
            ),
            // An idle link sleeps.
            (EnvironmentKind::PCIE_GENERATION, by_use(4, 1)),
            (EnvironmentKind::PCIE_WIDTH, 16),
            (EnvironmentKind::THROTTLE_REASONS, self.reasons),
            (EnvironmentKind::TEMPERATURE, self.temperature / 1_000),
            (EnvironmentKind::POWER, self.power),
            (EnvironmentKind::POWER_LIMIT, POWER_LIMIT),
            (EnvironmentKind::FAN_SPEED, self.fan),
        ]
    }

    /// Records the quantities.
    pub(super) fn record(&self, host: &mut HostThread, agent: AgentId, time: Ticks) {
        for (what, value) in self.values() {
            let mut record = Environment::blank();
            (record.time, record.agent) = (time, agent);
            (record.what, record.value) = (what, value);
            host.write(record);
        }
    }
}

/// The reading of the environment of all devices.
pub(super) struct Readings {
    /// The thread that writes the records.
    pub(super) host: HostThread,
    pub(super) period: Nanos,
    pub(super) next: Moment,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const UNITS: u64 = 80_000;

    /// Advances by steps of a millisecond with this load in thousandths.
    fn load(of: &mut DeviceEnvironment, thousandths: u64, steps: u64) {
        for _ in 0..steps {
            of.used += UNITS * MS / 1_000 * thousandths;
            let now = of.read + Nanos(MS);
            of.advance(now, UNITS);
        }
    }

    #[test]
    fn a_device_under_load_warms_up_and_cools_down_again() {
        let mut device = DeviceEnvironment::default();
        load(&mut device, 500, 20);
        assert_eq!((device.clock, device.reasons), (CLOCK, 0));
        assert_eq!(device.power, IDLE_POWER + LOAD_POWER / 2);
        let warm = device.temperature;
        assert!(warm > 45_000, "{warm}");
        load(&mut device, 0, 200);
        assert_eq!((device.clock, device.reasons), (IDLE_CLOCK, GPU_IDLE));
        assert_eq!(device.power, IDLE_POWER);
        assert!(device.temperature < warm - 5_000, "{}", device.temperature);
    }

    #[test]
    fn full_load_exceeds_the_limits_and_the_clock_gives_way() {
        let mut device = DeviceEnvironment::default();
        load(&mut device, 1_000, 1);
        assert_eq!(device.reasons, POWER_CAP);
        assert!(device.clock < CLOCK);
        load(&mut device, 1_000, 400);
        assert!(device.power <= POWER_LIMIT && device.power > POWER_LIMIT * 9 / 10);
        assert!(device.fan > 60 && device.fan <= 100);
    }
}
