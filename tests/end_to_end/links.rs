//! Links of agents: those of the simulated GPU, and those that a folder like `/sys` has of devices on the PCI bus.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use std::path::PathBuf;

use crate::command::{TestDir, well};
use crate::cuda::StandIns;

/// The lines of `gputrail info` about links.
fn links(dir: &TestDir, file: &str) -> Vec<String> {
    let text = well(&mut dir.gputrail(["info", file])).text();
    let lines = text.lines().filter(|line| line.contains(" to "));
    let lines = lines.filter(|line| line.contains("PCIe") || line.contains("peer link"));
    let without_name = |line: &str| line.trim().trim_start_matches("links").trim().to_owned();
    lines.map(without_name).collect()
}

#[test]
fn the_demo_has_links_to_the_host_and_between_its_devices() {
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture"]));
    let to_host = |name: &str, bridge: &str| {
        format!("{name} to host: PCIe 4, 16 lanes, 16 GT/s, 31.5 GB/s, below {bridge}")
    };
    let expected = |one: &str, other: &str| {
        [
            to_host(one, "0000:40:01.0"),
            to_host(other, "0000:80:01.0"),
            format!("{other} to {one}: peer link 2, 2 lanes, 42.0 GB/s"),
        ]
    };
    assert_eq!(links(&dir, "demo.pftrace"), expected("GPU 0", "GPU 1"));
    let addresses = expected("0000:41:00.0", "0000:81:00.0");
    assert_eq!(links(&dir, "demo.gputrail"), addresses);
    let agents = well(&mut dir.gputrail(["agents"])).text();
    let (_, simulated) = agents.split_once("Simulated GPU (").expect("the devices");
    let listed = |line: &&str| line.trim_start().starts_with("link ");
    let listed: Vec<_> = simulated.lines().filter(listed).map(str::trim).collect();
    let link = |text: &str| format!("link           {text}");
    let expected = [
        link("to the host: PCIe 4, 16 lanes, 16 GT/s, 31.5 GB/s, below 0000:40:01.0"),
        link("to the host: PCIe 4, 16 lanes, 16 GT/s, 31.5 GB/s, below 0000:80:01.0"),
        link("to device 0: peer link 2, 2 lanes, 42.0 GB/s"),
    ];
    assert_eq!(listed, expected);
}

/// A folder with the two devices of the stand-in below one bridge, of which the second has half of its lanes.
fn made_up(dir: &TestDir) -> PathBuf {
    let root = dir.join("sys");
    let devices = root.join("bus/pci/devices");
    std::fs::create_dir_all(&devices).unwrap();
    for (bus, width) in [("0000:00:00.0", "16\n"), ("0000:01:00.0", "8\n")] {
        let folder = root.join("devices/pci0000:00/0000:00:08.0").join(bus);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in [
            ("current_link_speed", "32.0 GT/s PCIe\n"),
            ("max_link_speed", "32.0 GT/s PCIe\n"),
            ("current_link_width", width),
            ("max_link_width", "16\n"),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink(&folder, devices.join(bus)).unwrap();
    }
    root
}

#[test]
fn devices_on_the_bus_have_the_links_that_the_system_describes() {
    needs!(devices_on_the_bus_have_the_links_that_the_system_describes: Need::Program("cc"));
    let stand_ins = StandIns::new();
    let root = made_up(stand_ins.dir());
    let mut command = stand_ins.record_with(&["-q"], "1209", "", &["3", "1"]);
    command.env("STANDIN_DEVICES", "2");
    well(command.env("GPUTRAIL_SYSFS", &root));
    let link = |to: &str, lanes: &str, rate: &str| {
        format!("{to}: PCIe 5, {lanes} lanes, 32 GT/s, {rate} GB/s, below 0000:00:08.0")
    };
    let expected = [
        link("GPU 0 to host", "16", "63.0"),
        link("GPU 1 to host", "8 of 16", "31.5"),
        link("GPU 1 to GPU 0", "8 of 16", "31.5"),
    ];
    assert_eq!(links(stand_ins.dir(), "run.pftrace"), expected);
    let mut command = stand_ins.dir().gputrail(["agents"]);
    stand_ins.prepare(&mut command, "1209", "");
    let text = well(command.env("GPUTRAIL_SYSFS", &root)).text();
    assert!(text.contains("PCIe 5, 16 lanes, 32 GT/s"), "{text}");
}
