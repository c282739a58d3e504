//! Attributes of devices beyond their descriptions: from OpenCL, from extensions of vendors, and from `/sys`.

use super::ffi::*;
use super::functions::{DispatchTable, ask};
use gputrail_buffer::platform::{pci, sysfs};
use gputrail_record::{AgentAttributeKind, AgentKind};
use std::path::Path;

const CL_DEVICE_VENDOR_ID: cl_uint = 0x1001;
const CL_DEVICE_MAX_WORK_ITEM_SIZES: cl_uint = 0x1005;
const CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE: cl_uint = 0x101d;
const CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: cl_uint = 0x101e;
const CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE: cl_uint = 0x1020;
const CL_DEVICE_ERROR_CORRECTION_SUPPORT: cl_uint = 0x1024;
/// `cl_nv_device_attribute_query`
const CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV: cl_uint = 0x4000;
const CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV: cl_uint = 0x4001;
const CL_DEVICE_REGISTERS_PER_BLOCK_NV: cl_uint = 0x4002;
const CL_DEVICE_WARP_SIZE_NV: cl_uint = 0x4003;
const CL_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT_NV: cl_uint = 0x4007;
/// `cl_amd_device_attribute_query`
const CL_DEVICE_WAVEFRONT_WIDTH_AMD: cl_uint = 0x4043;

const NVIDIA: u32 = 0x10de;
const AMD: u32 = 0x1002;

/// The attributes of `device` that are known. `bus` is its address on the PCI bus, or another text.
pub(super) fn of(
    api: &DispatchTable,
    device: cl_device_id,
    kind: AgentKind,
    bus: &str,
) -> Vec<(AgentAttributeKind, u64)> {
    let number = |what| ask!(api, clGetDeviceInfo(device, what) -> u32).map(u64::from);
    let size = |what| ask!(api, clGetDeviceInfo(device, what) -> u64);
    let some = |value: Option<u64>| value.filter(|value| *value != 0);
    let mut found = vec![
        (
            AgentAttributeKind::CONSTANT_MEMORY,
            some(size(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE)),
        ),
        (
            AgentAttributeKind::CACHE_LINE,
            some(number(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE)),
        ),
        (
            AgentAttributeKind::MAX_LOCAL_MEMORY_OF_WORKGROUP,
            some(size(CL_DEVICE_LOCAL_MEM_SIZE)),
        ),
    ];
    if let Some(sizes) =
        ask!(api, clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES) -> [usize; 3])
    {
        let dimensions = [
            AgentAttributeKind::MAX_WORKGROUP_X,
            AgentAttributeKind::MAX_WORKGROUP_Y,
            AgentAttributeKind::MAX_WORKGROUP_Z,
        ];
        found.extend(
            dimensions
                .into_iter()
                .zip(sizes.map(|size| Some(size as u64))),
        );
    }
    let vendor = ask!(api, clGetDeviceInfo(device, CL_DEVICE_VENDOR_ID) -> u32);
    let of_vendor: &[(AgentAttributeKind, cl_uint)] = match vendor {
        Some(NVIDIA) => &[
            (
                AgentAttributeKind::COMPUTE_CAPABILITY_MAJOR,
                CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV,
            ),
            (
                AgentAttributeKind::COMPUTE_CAPABILITY_MINOR,
                CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV,
            ),
            (
                AgentAttributeKind::MAX_REGISTERS_OF_WORKGROUP,
                CL_DEVICE_REGISTERS_PER_BLOCK_NV,
            ),
            (AgentAttributeKind::WAVE_SIZE, CL_DEVICE_WARP_SIZE_NV),
            (
                AgentAttributeKind::COPY_ENGINES,
                CL_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT_NV,
            ),
        ],
        Some(AMD) => &[(AgentAttributeKind::WAVE_SIZE, CL_DEVICE_WAVEFRONT_WIDTH_AMD)],
        _ => &[],
    };
    let of_vendor = of_vendor.iter();
    found.extend(of_vendor.map(|(attribute, what)| (*attribute, number(*what))));
    let root = sysfs::root();
    let of_processor = kind == AgentKind::CPU;
    let cache = if of_processor { l2_cache(&root) } else { None };
    found.push((
        AgentAttributeKind::L2_CACHE,
        cache.or_else(|| some(size(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE))),
    ));
    let corrects = number(CL_DEVICE_ERROR_CORRECTION_SUPPORT).map(|corrects| corrects.min(1));
    found.push((
        AgentAttributeKind::ECC,
        if of_processor && has_edac(&root) {
            Some(1)
        } else {
            corrects
        },
    ));
    let (vendor, model) = pci_numbers(&root, bus);
    found.push((AgentAttributeKind::PCI_VENDOR, vendor));
    found.push((AgentAttributeKind::PCI_DEVICE, model));
    let known = found.into_iter();
    known
        .filter_map(|(attribute, value)| Some((attribute, value?)))
        .collect()
}

/// The size of the second level's cache of the first processor, in bytes.
fn l2_cache(root: &Path) -> Option<u64> {
    let caches = sysfs::entries(&root.join("devices/system/cpu/cpu0/cache"), "index");
    let is_second = |cache: &&std::path::PathBuf| {
        sysfs::number(&cache.join("level")).is_ok_and(|level| level == 2)
    };
    let size = sysfs::text(&caches.iter().find(is_second)?.join("size")).ok()?;
    let (digits, unit) = match size.as_bytes().last()? {
        b'K' => (&size[..size.len() - 1], 1 << 10),
        b'M' => (&size[..size.len() - 1], 1 << 20),
        _ => (&size[..], 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Whether the kernel watches memory that corrects errors.
fn has_edac(root: &Path) -> bool {
    let controllers = sysfs::entries(&root.join("devices/system/edac/mc"), "mc");
    !controllers.is_empty()
}

/// The numbers of the vendor and of the device at the address `bus`.
fn pci_numbers(root: &Path, bus: &str) -> (Option<u64>, Option<u64>) {
    let Some(folder) = pci::folder(root, bus) else {
        return (None, None);
    };
    let number = |file: &str| {
        let text = sysfs::text(&folder.join(file)).ok()?;
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    };
    (number("vendor"), number("device"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_from_a_made_up_machine() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("devices/system/cpu/cpu0/cache/index0/level", "1"),
            ("devices/system/cpu/cpu0/cache/index0/size", "32K"),
            ("devices/system/cpu/cpu0/cache/index2/level", "2"),
            ("devices/system/cpu/cpu0/cache/index2/size", "1280K\n"),
            ("devices/system/edac/mc/mc0/mc_name", "some"),
            ("bus/pci/devices/0000:41:00.0/vendor", "0x10de\n"),
            ("bus/pci/devices/0000:41:00.0/device", "0x2330\n"),
        ];
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = root.path();
        assert_eq!(l2_cache(root), Some(1280 << 10));
        assert!(has_edac(root));
        let numbers = (Some(0x10de), Some(0x2330));
        assert_eq!(pci_numbers(root, "0000:41:00.0"), numbers);
        for other in ["0000:42:00.0", "", "../../../secret:", "a0b1c2d3e4f5a6b7"] {
            assert_eq!(pci_numbers(root, other), (None, None));
        }
        let empty = root.join("empty");
        assert_eq!((l2_cache(&empty), has_edac(&empty)), (None, false));
    }
}
