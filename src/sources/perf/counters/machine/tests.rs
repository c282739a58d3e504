//! Units from a folder that has what `/sys` has, and events of the kernel that stand for those of units.

use super::*;
use crate::perf::counters::architecture::define;
use gputrail_counters::{Architecture, Counted, Resolution};
use gputrail_record::{ALWAYS_SCHEDULED, CounterInvalid};
use std::io;

/// The folder of units.
const IMC: &str = "bus/event_source/devices/uncore_imc_";
const ENERGY: &str = "bus/event_source/devices/power";
const ZONE: &str = "class/powercap/intel-rapl:";

/// A folder with these files.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    files
        .iter()
        .for_each(|(path, text)| write(root.path(), path, text));
    root
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Two sockets with energy and two memory controllers each, as the kernel describes them.
fn server() -> tempfile::TempDir {
    let root = tree(&[
        (&format!("{ENERGY}/type"), "20\n"),
        (&format!("{ENERGY}/cpumask"), "0,18\n"),
        (&format!("{ENERGY}/format/event"), "config:0-7\n"),
        (&format!("{ENERGY}/events/energy-pkg"), "event=0x02\n"),
        (
            &format!("{ENERGY}/events/energy-pkg.scale"),
            "2.3283064365386962890625e-10\n",
        ),
        (&format!("{ENERGY}/events/energy-pkg.unit"), "Joules\n"),
        (&format!("{ZONE}0/name"), "package-0\n"),
        (&format!("{ZONE}0/energy_uj"), "1000\n"),
        (&format!("{ZONE}0/max_energy_range_uj"), "9999\n"),
        (&format!("{ZONE}0:0/name"), "dram\n"),
        (&format!("{ZONE}0:0/energy_uj"), "70\n"),
    ]);
    for number in ["0", "1", "10", "2"] {
        let imc = format!("{IMC}{number}");
        for (file, text) in [
            ("type", format!("3{number}")),
            ("cpumask", "0,18".to_owned()),
            ("format/event", "config:0-7".to_owned()),
            ("format/umask", "config:8-15".to_owned()),
            ("events/cas_count_read", "event=0x04,umask=0x03".to_owned()),
            ("events/cas_count_read.scale", "6.103515625e-5".to_owned()),
            ("events/cas_count_read.unit", "MiB".to_owned()),
            ("events/clockticks", "event=0xff,umask=0x00".to_owned()),
        ] {
            write(root.path(), &format!("{imc}/{file}"), &text);
        }
    }
    root
}

#[test]
fn units_of_a_kind_are_instances_of_a_block_in_the_order_of_their_numbers() {
    let root = server();
    let machine = MachineCounters::find(root.path());
    assert_eq!(machine.problems, [""; 0]);
    let names: Vec<&str> = machine.counters.iter().map(|one| &*one.name).collect();
    let expected = [
        "ENERGY_PKG",
        "UNCORE_IMC_CAS_COUNT_READ",
        "UNCORE_IMC_CLOCKTICKS",
        "ENERGY_RAM",
    ];
    assert_eq!(names, expected);
    let reads = machine.counter("UNCORE_IMC_CAS_COUNT_READ").unwrap();
    assert_eq!((&*reads.block, reads.usage), ("UNCORE_IMC", Usage::Bytes));
    let kinds: Vec<(u32, u32)> = reads.events.iter().map(|one| (one.kind, one.cpu)).collect();
    let expected = [30, 31, 32, 310].map(|kind| [(kind, 0), (kind, 18)]);
    assert_eq!(kinds, expected.concat());
    // Lines of 64 bytes.
    assert!(
        reads
            .events
            .iter()
            .all(|one| one.config == [0x304, 0, 0] && one.factor == 64.0)
    );
    let energy = machine.counter("ENERGY_PKG").unwrap();
    assert_eq!(
        (energy.usage, energy.events.len(), energy.zones.len()),
        (Usage::Microjoules, 2, 1)
    );
    assert!((energy.events[0].factor - 2.328_306_4e-4).abs() < 1e-9);

    let architecture = define(&machine);
    let find = |name: &str| architecture.counter(architecture.find(name).unwrap());
    assert_eq!(find("ENERGY_RAM").usage, Usage::Microjoules);
    assert!(
        find("UNCORE_IMC_CLOCKTICKS")
            .description
            .contains("uncore_imc/clockticks/ of the whole machine")
    );
    let instances = |name: &str| {
        let block = architecture
            .blocks()
            .iter()
            .find(|block| block.name == name);
        block.unwrap().instances
    };
    assert_eq!(
        (instances("UNCORE_IMC"), instances("POWER")),
        (Some(8), Some(2))
    );
    assert!(architecture.find("TASK_CLOCK").is_some());
}

#[test]
fn what_is_not_as_the_kernel_writes_it_is_named_and_the_rest_is_read() {
    let root = server();
    let wrong = [
        (
            "bus/event_source/devices/uncore_a/type",
            "many\n",
            "uncore_a: type: expected a number",
        ),
        (
            "bus/event_source/devices/uncore_b/type",
            "4\n",
            "uncore_b: cpumask: ",
        ),
        (
            "bus/event_source/devices/uncore_c/cpumask",
            "0-\n",
            "uncore_c: type: ",
        ),
        (
            "bus/event_source/devices/uncore_imc_1/events/x y",
            "event=1",
            "x y: expected a name",
        ),
        (
            "bus/event_source/devices/uncore_imc_1/events/open",
            "event=?",
            "open: expected a number behind event=",
        ),
        (
            "bus/event_source/devices/uncore_imc_1/events/large",
            "umask=256",
            "0x100 is too large for umask",
        ),
        (
            "bus/event_source/devices/uncore_imc_1/events/none",
            "",
            "none: expected the name of a term",
        ),
        // A unit like the others, that counts something else by that name.
        (
            "bus/event_source/devices/uncore_imc_1/events/clockticks.unit",
            "MiB",
            "another counter is called UNCORE_IMC_CLOCKTICKS",
        ),
    ];
    for (path, text, _) in wrong {
        write(root.path(), path, text);
    }
    for scale in ["NaN", "-1", "inf", "0", "much"] {
        let path = format!("{IMC}2/events/scaled{scale}");
        write(root.path(), &path, "event=1");
        write(root.path(), &format!("{path}.scale"), scale);
    }
    for number in 0..20 {
        write(root.path(), &format!("{IMC}2/events/z{number}"), "?");
    }
    let machine = MachineCounters::find(root.path());
    let notes = machine.notes(root.path()).join("\n");
    for (_, _, words) in &wrong {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    assert!(
        notes.contains("expected a positive number, found \"NaN\""),
        "{notes}"
    );
    assert!(
        notes.contains("17 further descriptions are wrong"),
        "{notes}"
    );
    let ticks = machine.counter("UNCORE_IMC_CLOCKTICKS").unwrap();
    assert_eq!((machine.counters.len(), ticks.events.len()), (4, 6));
}

#[test]
fn processors_are_a_list_of_ranges() {
    assert_eq!(processors("0"), Some(vec![0]));
    assert_eq!(processors("0-2,18,1"), Some(vec![0, 1, 2, 18]));
    for text in ["", "a", "3-1", "0-4294967295", "-1", "0,,1", "4294967295"] {
        assert_eq!(processors(text), None, "{text}");
    }
}

#[test]
fn a_machine_without_units_is_told_of() {
    let root = tempfile::tempdir().unwrap();
    let machine = MachineCounters::find(root.path());
    let notes = machine.notes(root.path());
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("no counters of energy and of units outside of the cores"));
    assert!(notes[0].contains("class/powercap"), "{notes:?}");
}

/// The machine of a folder, and counters of it that are open.
fn opened(root: &Path, names: &[&str]) -> (Architecture, Result<MachineEvents, String>) {
    let machine = MachineCounters::find(root);
    let architecture = define(&machine);
    let counted: Vec<Counted> = names
        .iter()
        .map(|name| (architecture.find(name).unwrap(), Resolution::None))
        .collect();
    let open = MachineEvents::open(&machine, &architecture, counted.into_iter());
    (architecture, open)
}

#[test]
fn energy_of_zones_is_the_difference_of_two_readings_also_past_their_end() {
    let root = tree(&[
        (&format!("{ZONE}0/name"), "package-0\n"),
        (&format!("{ZONE}0/energy_uj"), "1000\n"),
        (&format!("{ZONE}0/max_energy_range_uj"), "9999\n"),
        (&format!("{ZONE}1/name"), "package-1\n"),
        (&format!("{ZONE}1/energy_uj"), "9000\n"),
        (&format!("{ZONE}1/max_energy_range_uj"), "9999\n"),
        // Not an energy that has a name.
        (&format!("{ZONE}2/name"), "other\n"),
        (&format!("{ZONE}2/energy_uj"), "1\n"),
    ]);
    let (_, open) = opened(root.path(), &["ENERGY_PKG"]);
    let mut open = open.unwrap();
    write(root.path(), &format!("{ZONE}0/energy_uj"), "1500");
    write(root.path(), &format!("{ZONE}1/energy_uj"), "1");
    let readings = open.read();
    assert_eq!(readings[0].1.instances, [500, 1000]);
    assert_eq!(open.read()[0].1.instances, [0, 0]);
    write(root.path(), &format!("{ZONE}1/energy_uj"), "lost");
    assert_eq!(open.read()[0].1.invalid, CounterInvalid::MISSING);
    let (_, refused) = opened(root.path(), &["ENERGY_PKG"]);
    let refused = refused.err().unwrap();
    assert!(
        refused.contains("energy_uj: expected a number"),
        "{refused}"
    );
}

#[test]
fn a_zone_for_administrators_is_refused_with_the_remedy() {
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    let text = reading::zone_error(Path::new("/sys/energy_uj"), &denied).to_string();
    assert!(
        text.contains("`chmod a+r /sys/energy_uj`") && text.contains("CAP_DAC_READ_SEARCH"),
        "{text}"
    );
}

#[test]
fn events_of_a_processor_are_counted_in_the_unit_of_their_counter() {
    // The clock of processor 0 stands for a unit, with 1 ms of it as 1 MiB.
    let unit = "bus/event_source/devices/uncore_clock_0";
    let root = tree(&[
        (&format!("{unit}/type"), "1\n"),
        (&format!("{unit}/cpumask"), "0\n"),
        (&format!("{unit}/events/time"), "config=0x0\n"),
        (&format!("{unit}/events/time.scale"), "1e-6\n"),
        (&format!("{unit}/events/time.unit"), "MiB\n"),
        (&format!("{unit}/events/none"), "config=0xffff\n"),
    ]);
    let (_, open) = opened(root.path(), &["UNCORE_CLOCK_TIME"]);
    let mut open = match open {
        Ok(open) => open,
        Err(reason) => {
            // Without the permission, the reason says how to get it.
            assert!(reason.contains("kernel.perf_event_paranoid"), "{reason}");
            return;
        }
    };
    let begin = std::time::Instant::now();
    while begin.elapsed().as_millis() < 5 {}
    let (_, reading) = open.read().remove(0);
    assert!(reading.instances[0] > 2 << 20, "{reading:?}");
    assert_eq!(reading.scheduled, ALWAYS_SCHEDULED);
    let (_, refused) = opened(root.path(), &["UNCORE_CLOCK_NONE"]);
    let refused = refused.err().unwrap();
    assert!(
        refused.contains("UNCORE_CLOCK_NONE: the kernel does not count this event"),
        "{refused}"
    );
}
