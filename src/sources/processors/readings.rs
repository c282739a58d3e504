//! Clock, temperature, power, fan and throttling of the processors, as files of `/sys` report them.

use gputrail_buffer::platform::sysfs;
use gputrail_record::EnvironmentKind;
use std::path::{Path, PathBuf};

/// The reason for a lower clock that the kernel counts, in the bits of CUPTI: the hardware is too hot or draws too much
/// (`CUPTI_CLOCKS_THROTTLE_REASON_HW_SLOWDOWN`).
pub const HW_SLOWDOWN: u64 = 8;
/// Drivers of temperature sensors of processors.
const SENSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
/// The type of the thermal zone of an x86 package, and the begin of those of other processors' zones.
const ZONES: [&str; 3] = ["x86_pkg_temp", "cpu", "soc"];

/// The files of the processors' quantities, those that can be read.
#[derive(Debug, Default)]
pub struct ProcessorReadings {
    /// kHz, one for each group of processors that share a clock.
    clocks: Vec<PathBuf>,
    /// Thousandths of a degree Celsius.
    temperatures: Vec<PathBuf>,
    packages: Vec<Package>,
    /// Limits of packages, in microwatts.
    limits: Vec<PathBuf>,
    /// Duty cycles of fans, up to 255.
    fans: Vec<PathBuf>,
    /// Counts of the times that a package was throttled.
    throttles: Vec<PathBuf>,
    throttled: Option<u64>,
    missing: Vec<String>,
}

/// The energy counter of a package (RAPL).
#[derive(Debug)]
struct Package {
    /// Microjoules.
    energy: PathBuf,
    /// The counter begins again at 0 after this value.
    wraps_after: u64,
    /// Time in nanoseconds, and value, of the latest reading.
    latest: Option<(u64, u64)>,
}

impl ProcessorReadings {
    /// Finds what can be read below `root`, which is `/sys`.
    pub fn find(root: &Path) -> ProcessorReadings {
        let mut found = ProcessorReadings::default();
        let cpus = root.join("devices/system/cpu");
        let policies = sysfs::entries(&cpus.join("cpufreq"), "policy");
        let clocks = policies
            .iter()
            .map(|policy| policy.join("scaling_cur_freq"));
        found.clocks = found.readable("clock", cpus.join("cpufreq"), clocks);

        let zones = sysfs::entries(&root.join("class/thermal"), "thermal_zone");
        let is_cpu = |zone: &&PathBuf| {
            sysfs::text(&zone.join("type")).is_ok_and(|kind| {
                ZONES
                    .iter()
                    .any(|begin| kind.to_lowercase().starts_with(begin))
            })
        };
        let monitors = sysfs::entries(&root.join("class/hwmon"), "hwmon");
        let is_sensor = |monitor: &&PathBuf| {
            sysfs::text(&monitor.join("name")).is_ok_and(|name| SENSORS.contains(&&*name))
        };
        let zones = zones.iter().filter(is_cpu).map(|zone| zone.join("temp"));
        let sensors = monitors
            .iter()
            .filter(is_sensor)
            .map(|monitor| monitor.join("temp1_input"));
        found.temperatures = found.readable(
            "temperature",
            root.join("class/thermal"),
            zones.chain(sensors),
        );

        let powercap = root.join("class/powercap");
        let packages: Vec<PathBuf> = sysfs::entries(&powercap, "intel-rapl:")
            .into_iter()
            .filter(|zone| {
                sysfs::text(&zone.join("name")).is_ok_and(|name| name.starts_with("package"))
            })
            .collect();
        let energies = packages.iter().map(|package| package.join("energy_uj"));
        let energies = found.readable("power", powercap.clone(), energies);
        found.packages = energies
            .into_iter()
            .map(|energy| Package {
                wraps_after: sysfs::number(&energy.with_file_name("max_energy_range_uj"))
                    .unwrap_or(u64::MAX),
                energy,
                latest: None,
            })
            .collect();
        let limits = packages
            .iter()
            .map(|package| package.join("constraint_0_power_limit_uw"));
        found.limits = found.readable("limit of power", powercap, limits);

        let fans = monitors.iter().flat_map(|monitor| {
            let mut files = sysfs::entries(monitor, "pwm");
            // Others configure it: pwm1_enable.
            files.retain(|file| {
                let name = file.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name[3..].bytes().all(|byte| byte.is_ascii_digit()))
            });
            files
        });
        let fans: Vec<PathBuf> = fans.collect();
        found.fans = found.readable("fan", root.join("class/hwmon"), fans.into_iter());

        let throttles = sysfs::entries(&cpus, "cpu")
            .into_iter()
            .map(|cpu| cpu.join("thermal_throttle/package_throttle_count"))
            .filter(|count| count.exists());
        let throttles: Vec<PathBuf> = throttles.collect();
        found.throttles = found.readable("throttling", cpus, throttles.into_iter());
        found
    }

    /// Returns the readable ones of `files`. If there are none, notes that `what` is missing, and why.
    fn readable(
        &mut self,
        what: &str,
        folder: PathBuf,
        files: impl Iterator<Item = PathBuf>,
    ) -> Vec<PathBuf> {
        let mut failure = None;
        let mut readable = Vec::new();
        for file in files {
            match sysfs::number(&file) {
                Ok(_) => readable.push(file),
                Err(error) => drop(failure.get_or_insert((file, error))),
            }
        }
        if readable.is_empty() {
            self.missing.push(match failure {
                Some((file, error)) => format!("{what} ({}: {error})", file.display()),
                None => format!("{what} (nothing in {})", folder.display()),
            });
        }
        readable
    }

    /// The quantities that the machine does not report, each with the reason.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Whether anything can be read.
    pub fn is_empty(&self) -> bool {
        let files = [
            &self.clocks,
            &self.temperatures,
            &self.limits,
            &self.fans,
            &self.throttles,
        ];
        self.packages.is_empty() && files.iter().all(|files| files.is_empty())
    }

    /// The quantities now, at `time` in nanoseconds of any steady clock. Power and throttling are those since the
    /// previous reading. A file that can no longer be read has no part in its quantity.
    pub fn read(&mut self, time: u64) -> Vec<(EnvironmentKind, u64)> {
        let mut values = Vec::new();
        let mut add = |what, value: Option<u64>| values.extend(value.map(|value| (what, value)));
        let clocks: Vec<u64> = all(&self.clocks).collect();
        let together = sum(clocks.iter().copied());
        add(
            EnvironmentKind::CLOCK,
            together
                .checked_div(clocks.len() as u64)
                .map(|khz| khz / 1_000),
        );
        add(
            EnvironmentKind::TEMPERATURE,
            all(&self.temperatures).max().map(|degrees| degrees / 1_000),
        );
        let mut power = None;
        for package in &mut self.packages {
            if let Some(milliwatts) = package.power(time) {
                power = Some(sum_of(power, milliwatts));
            }
        }
        add(EnvironmentKind::POWER, power);
        let limits = all(&self.limits).fold(None, |limit, value| Some(sum_of(limit, value)));
        add(
            EnvironmentKind::POWER_LIMIT,
            limits.map(|microwatts| microwatts / 1_000),
        );
        let fan = all(&self.fans).max();
        add(
            EnvironmentKind::FAN_SPEED,
            fan.map(|duty| duty.min(255) * 100 / 255),
        );
        if !self.throttles.is_empty() {
            let count = sum(all(&self.throttles));
            let before = self.throttled.replace(count).unwrap_or(count);
            let reasons = if count > before { HW_SLOWDOWN } else { 0 };
            add(EnvironmentKind::THROTTLE_REASONS, Some(reasons));
        }
        values
    }
}

impl Package {
    /// The mean power since the previous reading, in milliwatts; `None` at the first one.
    fn power(&mut self, time: u64) -> Option<u64> {
        let energy = sysfs::number(&self.energy).ok()?;
        let (from, before) = self.latest.replace((time, energy))?;
        let used = if energy >= before {
            energy - before
        } else {
            energy.saturating_add(self.wraps_after.checked_sub(before)?)
        };
        let span = time.checked_sub(from).filter(|span| *span > 0)?;
        // A microjoule in a nanosecond is a kilowatt: 1 000 000 mW.
        u64::try_from(u128::from(used) * 1_000_000 / u128::from(span)).ok()
    }
}

/// The numbers in `files`.
fn all(files: &[PathBuf]) -> impl Iterator<Item = u64> {
    files.iter().filter_map(|file| sysfs::number(file).ok())
}

fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

fn sum_of(sum: Option<u64>, value: u64) -> u64 {
    sum.unwrap_or(0).saturating_add(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(root.path(), path, text);
        }
        root
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn all_quantities_are_read_of_a_machine_with_two_packages() {
        let root = tree(&[
            (
                "devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
                "3000000\n",
            ),
            (
                "devices/system/cpu/cpufreq/policy1/scaling_cur_freq",
                "1000000\n",
            ),
            (
                "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count",
                "7\n",
            ),
            ("class/thermal/thermal_zone0/type", "acpitz\n"),
            ("class/thermal/thermal_zone0/temp", "99000\n"),
            ("class/thermal/thermal_zone1/type", "x86_pkg_temp\n"),
            ("class/thermal/thermal_zone1/temp", "61500\n"),
            ("class/hwmon/hwmon0/name", "coretemp\n"),
            ("class/hwmon/hwmon0/temp1_input", "63000\n"),
            ("class/hwmon/hwmon1/name", "nct6775\n"),
            ("class/hwmon/hwmon1/pwm1", "51\n"),
            ("class/hwmon/hwmon1/pwm1_enable", "255\n"),
            ("class/powercap/intel-rapl:0/name", "package-0\n"),
            ("class/powercap/intel-rapl:0/energy_uj", "1000000\n"),
            (
                "class/powercap/intel-rapl:0/max_energy_range_uj",
                "2000000\n",
            ),
            (
                "class/powercap/intel-rapl:0/constraint_0_power_limit_uw",
                "65000000\n",
            ),
            ("class/powercap/intel-rapl:1/name", "package-1\n"),
            ("class/powercap/intel-rapl:1/energy_uj", "1900000\n"),
            (
                "class/powercap/intel-rapl:1/max_energy_range_uj",
                "2000000\n",
            ),
            (
                "class/powercap/intel-rapl:1/constraint_0_power_limit_uw",
                "65000000\n",
            ),
            // A part of a package is counted in the package.
            ("class/powercap/intel-rapl:0:0/name", "core\n"),
            ("class/powercap/intel-rapl:0:0/energy_uj", "5\n"),
        ]);
        let mut found = ProcessorReadings::find(root.path());
        assert_eq!(found.missing(), [""; 0]);
        let mut expected = vec![
            (EnvironmentKind::CLOCK, 2_000),
            (EnvironmentKind::TEMPERATURE, 63),
            (EnvironmentKind::POWER_LIMIT, 130_000),
            (EnvironmentKind::FAN_SPEED, 20),
            (EnvironmentKind::THROTTLE_REASONS, 0),
        ];
        assert_eq!(found.read(5_000_000_000), expected);
        // 0.5 J and, past the end of its counter, 0.2 J in 10 ms.
        write(
            root.path(),
            "class/powercap/intel-rapl:0/energy_uj",
            "1500000\n",
        );
        write(
            root.path(),
            "class/powercap/intel-rapl:1/energy_uj",
            "100000\n",
        );
        let throttles = "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count";
        write(root.path(), throttles, "8\n");
        expected.insert(2, (EnvironmentKind::POWER, 70_000));
        expected[5].1 = HW_SLOWDOWN;
        assert_eq!(found.read(5_010_000_000), expected);
        // Nothing more was drawn, and no time has passed: there is no power.
        expected.remove(2);
        expected[4].1 = 0;
        assert_eq!(found.read(5_010_000_000), expected);
    }

    #[test]
    fn quantities_that_are_not_there_or_no_numbers_are_named_with_the_reason() {
        let root = tree(&[
            ("class/powercap/intel-rapl:0/name", "package-0\n"),
            ("class/powercap/intel-rapl:0/energy_uj", "much\n"),
        ]);
        let mut found = ProcessorReadings::find(root.path());
        assert!(found.is_empty() && found.read(1).is_empty());
        let missing = found.missing().join("\n");
        assert!(missing.contains("clock (nothing in "), "{missing}");
        assert!(
            missing.contains("energy_uj: expected a number, found \"much\""),
            "{missing}"
        );
        assert_eq!(found.missing().len(), 6, "{missing}");
    }

    #[test]
    fn a_file_that_vanishes_has_no_part_in_its_quantity() {
        let clock = "devices/system/cpu/cpufreq/policy0/scaling_cur_freq";
        let root = tree(&[(clock, "3000000")]);
        let mut found = ProcessorReadings::find(root.path());
        assert_eq!(found.read(1), [(EnvironmentKind::CLOCK, 3_000)]);
        std::fs::remove_file(root.path().join(clock)).unwrap();
        assert_eq!(found.read(2), []);
    }
}
