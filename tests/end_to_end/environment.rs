//! `--environment-period`: clock, temperature, power and fan of processors, from a folder that has what `/sys` has on a
//! machine that reports them.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_record::{EnvironmentKind, Records};

use crate::command::TestDir;
use crate::tools::tool;

/// The quantities of a made-up processor, with their values in records.
const QUANTITIES: [(EnvironmentKind, u64); 5] = [
    (EnvironmentKind::CLOCK, 2_400),
    (EnvironmentKind::TEMPERATURE, 61),
    (EnvironmentKind::POWER_LIMIT, 65_000),
    (EnvironmentKind::FAN_SPEED, 50),
    (EnvironmentKind::THROTTLE_REASONS, 0),
];

/// A folder with the files of a processor.
fn processor(dir: &TestDir) -> std::path::PathBuf {
    let files = [
        (
            "devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
            "2400000\n",
        ),
        (
            "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count",
            "3\n",
        ),
        ("class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
        ("class/thermal/thermal_zone0/temp", "61000\n"),
        ("class/hwmon/hwmon0/name", "it87\n"),
        ("class/hwmon/hwmon0/pwm1", "128\n"),
        ("class/powercap/intel-rapl:0/name", "package-0\n"),
        ("class/powercap/intel-rapl:0/energy_uj", "9000\n"),
        ("class/powercap/intel-rapl:0/max_energy_range_uj", "90000\n"),
        (
            "class/powercap/intel-rapl:0/constraint_0_power_limit_uw",
            "65000000\n",
        ),
    ];
    let root = dir.join("sys");
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn the_environment_of_processors_is_in_the_trace() {
    needs!(the_environment_of_processors_is_in_the_trace: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("waits");
    let options = ["-q", "--environment-period", "1ms"];
    let mut command = dir.record_with(&options, Driver::Threaded, &program, &[]);
    run(command.env("GPUTRAIL_SYSFS", processor(&dir)));
    let mut trace = dir.trace();
    for (what, value) in QUANTITIES {
        let name = what.name().unwrap();
        let values: Vec<(f64,)> = trace.rows(&format!(
            "select distinct value from counter join process_counter_track track on counter.track_id = track.id \
             where track.name glob '* · {name}'"
        ));
        // No other value, also not at the end: the lowest one is a reading.
        assert_eq!(values, [(value as f64,)], "{name}");
    }
    let notes: i64 = trace.value("select count(*) from slice where name = 'note'");
    assert_eq!(notes, 0, "nothing is missing");
}

#[test]
fn a_machine_that_reports_nothing_is_told_of_once() {
    needs!(a_machine_that_reports_nothing_is_told_of_once: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("waits");
    let options = ["-q", "--environment-period", "1ms"];
    let mut command = dir.record_with(&options, Driver::Threaded, &program, &[]);
    let ended = run(command.env("GPUTRAIL_SYSFS", dir.join("nothing")));
    let said = "the environment of the processors is not recorded: this machine does not report it";
    assert_eq!(ended.stderr.matches(said).count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("nothing/devices/system/cpu/cpufreq"));
}

#[test]
fn a_tool_sets_the_period() {
    needs!(a_tool_sets_the_period: Need::Pocl, Need::OpenClToolchain, Need::Program("cc"));
    let dir = TestDir::new();
    let library = tool(&dir, &[], "tests/programs/every_kind.c", "libevery_kind.so");
    let program = dir.program("waits");
    let options = ["-q", "--tool", &library];
    for (period, expected) in [("0", 0), ("1000000", QUANTITIES.len())] {
        let mut command = dir.record_with(&options, Driver::Threaded, &program, &[]);
        command.env("GPUTRAIL_SYSFS", processor(&dir));
        command.env("EVERY_KIND", "tool.records");
        run(command.env("EVERY_KIND_PERIOD", period));
        let records = std::fs::read(dir.join("tool.records")).unwrap();
        let of_kind = Records::new(&records)
            .filter_map(|record| record.read::<gputrail_record::Environment>());
        let mut seen: Vec<(EnvironmentKind, u64)> = of_kind
            .map(|record| (record.what, record.value))
            .filter(|(what, _)| *what != EnvironmentKind::POWER)
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), expected, "{seen:?}");
        assert!(
            QUANTITIES
                .iter()
                .all(|one| expected == 0 || seen.contains(one))
        );
    }
}
