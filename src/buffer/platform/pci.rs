//! Devices on the PCI bus, as `/sys` describes them.

use super::sysfs;
use std::path::{Path, PathBuf};

/// The rates of the generations of PCI Express, from the first, in millions of transfers per second.
const RATES: [u32; 6] = [2_500, 5_000, 8_000, 16_000, 32_000, 64_000];
/// Generations up to this one send 10 bits for a byte; later ones 130 for 16.
const LAST_OF_10_BITS: u8 = 2;
/// The generation that sends no further bits.
const FIRST_OF_FLITS: u8 = 6;

/// A device and its link to the bridge above it. Values of 0 are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciDevice {
    /// The folders from the root of the bus to the device, each named by its address.
    pub path: Vec<String>,
    /// Lanes in use.
    pub width: u16,
    /// Lanes that both ends could use.
    pub max_width: u16,
    /// Transfers of a lane, in millions per second.
    pub rate: u32,
    /// The highest rate.
    pub max_rate: u32,
}

impl PciDevice {
    /// The device at the address `bus`, such as `0000:41:00.0`; `None` for other texts, and where there is no such device.
    pub fn at(root: &Path, bus: &str) -> Option<PciDevice> {
        let bus = bus.to_ascii_lowercase();
        let folder = folder(root, &bus)?.canonicalize().ok()?;
        let names = folder.iter().filter_map(|name| name.to_str());
        let is_of_bus = |name: &&str| is_address(name) || name.starts_with("pci");
        let path = names.filter(is_of_bus).map(str::to_owned).collect();
        let number = |file: &str| sysfs::number(&folder.join(file)).ok();
        let width = |file: &str| number(file).and_then(|width| width.try_into().ok());
        let rate = |file: &str| rate(&sysfs::text(&folder.join(file)).ok()?);
        Some(PciDevice {
            path,
            width: width("current_link_width").unwrap_or(0),
            max_width: width("max_link_width").unwrap_or(0),
            rate: rate("current_link_speed").unwrap_or(0),
            max_rate: rate("max_link_speed").unwrap_or(0),
        })
    }

    /// Whether the device has a link of PCI Express.
    pub fn is_express(&self) -> bool {
        self.max_width != 0
    }

    /// The generation of PCI Express that has the highest rate; 0 if that is not known.
    pub fn generation(&self) -> u8 {
        generation(self.max_rate)
    }

    /// Bytes per second in one direction, without those of packets' headers; 0 if that is not known.
    pub fn bandwidth(&self) -> u64 {
        let bits = u64::from(self.rate) * 1_000_000 * u64::from(self.width);
        match generation(self.rate) {
            0 => 0,
            1..=LAST_OF_10_BITS => bits / 10,
            FIRST_OF_FLITS.. => bits / 8,
            _ => bits / 130 * 16,
        }
    }

    /// The bridge above the device.
    pub fn upstream(&self) -> Option<&str> {
        let above = self.path.len().checked_sub(2)?;
        self.path.get(above).map(String::as_str)
    }

    /// The nearest bridge above both devices; `None` if they have none, or are the same device.
    pub fn common_upstream(&self, other: &PciDevice) -> Option<&str> {
        if self.path == other.path {
            return None;
        }
        let pairs = self.path.iter().zip(&other.path);
        let (common, _) = pairs.take_while(|(one, other)| one == other).last()?;
        Some(common)
    }
}

/// The folder of the device at `bus`, unless that is another text.
pub fn folder(root: &Path, bus: &str) -> Option<PathBuf> {
    is_address(bus).then(|| root.join("bus/pci/devices").join(bus))
}

/// Whether `text` is an address on the bus: `0000:41:00.0`.
fn is_address(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
    text.len() >= 12 && text.bytes().all(is_digit) && text.contains(':')
}

fn generation(rate: u32) -> u8 {
    let place = RATES.iter().position(|one| *one == rate);
    place.map_or(0, |place| place as u8 + 1)
}

/// A rate as `/sys` writes it: `16.0 GT/s PCIe`, or `2.5 GT/s`.
fn rate(text: &str) -> Option<u32> {
    let (number, unit) = text.split_once(' ')?;
    let rate: f64 = number.parse().ok()?;
    let is_rate = unit.starts_with("GT/s") && (0.0..1e6).contains(&rate);
    is_rate.then(|| (rate * 1000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device at the end of `path`, with these files.
    fn make(root: &Path, path: &str, files: &[(&str, &str)]) {
        let folder = root.join("devices").join(path);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let devices = root.join("bus/pci/devices");
        std::fs::create_dir_all(&devices).unwrap();
        let bus = folder.file_name().unwrap();
        std::os::unix::fs::symlink(&folder, devices.join(bus)).unwrap();
    }

    #[test]
    fn a_device_has_a_link_to_the_bridge_above_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let files = [
            ("current_link_speed", "16.0 GT/s PCIe\n"),
            ("max_link_speed", "32.0 GT/s PCIe\n"),
            ("current_link_width", "8\n"),
            ("max_link_width", "16\n"),
        ];
        let below = "pci0000:40/0000:40:01.0/0000:41:00.0";
        make(root, &format!("{below}/0000:42:00.0/0000:43:00.0"), &files);
        make(root, &format!("{below}/0000:42:01.0/0000:44:00.0"), &[]);
        let slow = [
            ("current_link_speed", "2.5 GT/s"),
            ("current_link_width", "4"),
        ];
        make(root, "pci0000:00/0000:00:02.0", &slow);
        let at = |bus| PciDevice::at(root, bus).unwrap();
        let device = at("0000:43:00.0");
        assert_eq!((device.rate, device.max_rate), (16_000, 32_000));
        assert_eq!((device.width, device.max_width), (8, 16));
        assert_eq!(device.generation(), 5);
        assert_eq!(device.bandwidth() / 1_000_000, 15_753);
        assert_eq!(device.upstream(), Some("0000:42:00.0"));
        let (other, far) = (at("0000:44:00.0"), at("0000:00:02.0"));
        assert_eq!(device.common_upstream(&other), Some("0000:41:00.0"));
        assert_eq!(device.common_upstream(&device), None);
        assert_eq!(device.common_upstream(&far), None);
        assert!(device.is_express() && !other.is_express());
        assert_eq!(other.bandwidth(), 0);
        assert_eq!(far.bandwidth(), 1_000_000_000);
        assert_eq!(far.upstream(), Some("pci0000:00"));
    }

    #[test]
    fn other_texts_are_no_device() {
        let root = tempfile::tempdir().unwrap();
        for bus in ["0000:41:00.0", "", "../../../secret:", "GPU 0"] {
            assert_eq!(PciDevice::at(root.path(), bus), None, "{bus}");
        }
        for text in ["Unknown", "", "nan GT/s", "-1 GT/s", "1e300 GT/s", "8"] {
            assert_eq!(rate(text), None, "{text}");
        }
    }
}
