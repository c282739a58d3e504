//! The kernel's description of the machine: a folder with the files of `/sys` that are read, each with any text or pieces of the
//! formats, in place of `/sys`.
#![no_main]

use gputrail_sources::perf::HostCounters;
use gputrail_sources::processors::ProcessorReadings;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

const FILES: [&str; 21] = [
    "bus/event_source/devices/power/type",
    "bus/event_source/devices/power/cpumask",
    "bus/event_source/devices/power/format/event",
    "bus/event_source/devices/power/events/energy-pkg",
    "bus/event_source/devices/power/events/energy-pkg.scale",
    "bus/event_source/devices/power/events/energy-pkg.unit",
    "bus/event_source/devices/uncore_imc_0/type",
    "bus/event_source/devices/uncore_imc_0/cpumask",
    "bus/event_source/devices/uncore_imc_0/format/umask",
    "bus/event_source/devices/uncore_imc_0/events/reads",
    "bus/event_source/devices/uncore_imc_1/events/reads",
    "class/powercap/intel-rapl:0/name",
    "class/powercap/intel-rapl:0/energy_uj",
    "class/powercap/intel-rapl:0/max_energy_range_uj",
    "class/powercap/intel-rapl:0:0/name",
    "devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
    "class/thermal/thermal_zone0/type",
    "class/thermal/thermal_zone0/temp",
    "class/hwmon/hwmon0/name",
    "class/hwmon/hwmon0/temp1_input",
    "class/hwmon/hwmon0/name/none",
];
const PIECES: [&str; 24] = [
    "config:0-7",
    "config1:8-15,21",
    "config:63",
    "event=0x04",
    ",umask=0x03",
    "=",
    "?",
    "event",
    "0-3,18",
    "20",
    "-1",
    "18446744073709551615",
    "2.3283064365386962890625e-10",
    "1e308",
    "nan",
    "Joules",
    "MiB",
    "package-0",
    "dram",
    "x86_pkg_temp",
    "coretemp",
    "k10temp",
    "\n",
    "4294967296",
];

/// Writes some of the files.
fn write(root: &Path, input: &mut Unstructured<'_>) -> Result<()> {
    for _ in 0..input.int_in_range(1..=24)? {
        let path = root.join(input.choose(&FILES)?);
        let mut text = Vec::new();
        for _ in 0..input.int_in_range(0..=4)? {
            if input.ratio(1, 6)? {
                text.extend_from_slice(input.arbitrary::<&[u8]>()?)
            } else {
                text.extend_from_slice(input.choose(&PIECES)?.as_bytes())
            }
        }
        // A file may stand where another one needs a folder.
        let _ = std::fs::create_dir_all(path.parent().unwrap_or(root))
            .and_then(|()| std::fs::write(path, text));
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let Ok(root) = tempfile::tempdir() else {
        return;
    };
    // The input's end ends the folder.
    let _ = write(root.path(), &mut Unstructured::new(data));
    assert!(
        !HostCounters::machine_notes_of(root.path())
            .iter()
            .any(String::is_empty)
    );
    let mut readings = ProcessorReadings::find(root.path());
    for time in [0, 1, 1_000_000_000, u64::MAX] {
        readings.read(time);
    }
});
