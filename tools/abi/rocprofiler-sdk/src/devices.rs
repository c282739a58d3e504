//! The devices of OpenCL, asked of its loader: agents are listed before the program makes a context for them, by which gputrail
//! comes to know them.

use core::ffi::{CStr, c_void};
use std::ptr::{NonNull, null_mut};

/// A device, as far as it is known. Unknown numbers are 0.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Its handle in the runtime.
    pub handle: u64,
    /// Its name.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Its compiler's name for it, if that is one of AMD's.
    pub architecture: String,
    /// Compute units.
    pub compute_units: u32,
    /// The highest clock in MHz.
    pub clock: u32,
    /// Bytes of its memory.
    pub memory: u64,
    /// Bytes of local memory of a compute unit.
    pub local_memory: u64,
    /// Bytes of its last cache, and of a line of it.
    pub cache: (u64, u32),
    /// Work-items of a workgroup, in all and in each dimension.
    pub workgroup: (u32, [u32; 3]),
    /// Work-items of a wave.
    pub wave: u32,
    /// Waves of a compute unit.
    pub waves: u32,
    /// The vendor's and the device's number on the PCI bus.
    pub pci: (u16, u16),
}

type Handle = *mut c_void;
type GetPlatforms = unsafe extern "C" fn(u32, *mut Handle, *mut u32) -> i32;
type GetDevices = unsafe extern "C" fn(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
type GetInfo = unsafe extern "C" fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;

/// Three functions of OpenCL.
struct OpenCl {
    platforms: GetPlatforms,
    devices: GetDevices,
    info: GetInfo,
}

/// Numbers of what is asked.
mod ask {
    pub const ALL_TYPES: u64 = 0xffff_ffff;
    pub const VENDOR_ID: u32 = 0x1001;
    pub const COMPUTE_UNITS: u32 = 0x1002;
    pub const WORKGROUP: u32 = 0x1004;
    pub const WORKGROUP_SIZES: u32 = 0x1005;
    pub const CLOCK: u32 = 0x100c;
    pub const CACHE_LINE: u32 = 0x101d;
    pub const CACHE: u32 = 0x101e;
    pub const MEMORY: u32 = 0x101f;
    pub const LOCAL_MEMORY: u32 = 0x1023;
    pub const NAME: u32 = 0x102b;
    pub const VENDOR: u32 = 0x102c;
}

impl OpenCl {
    /// The loader of OpenCL, if it is in the process or, where that is allowed, can be opened.
    fn find(may_open: bool) -> Option<OpenCl> {
        let how = match may_open {
            true => libc::RTLD_NOW,
            false => libc::RTLD_NOW | libc::RTLD_NOLOAD,
        };
        // SAFETY: a text that ends with a 0; the library is OpenCL's.
        let library = unsafe { libc::dlopen(c"libOpenCL.so.1".as_ptr(), how) };
        let library = NonNull::new(library)?;
        let find = |name: &CStr| {
            // SAFETY: an open library, and a text that ends with a 0.
            let found = unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) };
            NonNull::new(found).map(NonNull::as_ptr)
        };
        let (platforms, devices) = (find(c"clGetPlatformIDs")?, find(c"clGetDeviceIDs")?);
        let info = find(c"clGetDeviceInfo")?;
        // SAFETY: OpenCL's functions of these names have these types.
        unsafe {
            Some(OpenCl {
                platforms: core::mem::transmute::<*mut c_void, GetPlatforms>(platforms),
                devices: core::mem::transmute::<*mut c_void, GetDevices>(devices),
                info: core::mem::transmute::<*mut c_void, GetInfo>(info),
            })
        }
    }

    /// The handles that `list` writes, given room and a place for their number.
    fn handles(list: impl Fn(u32, *mut Handle, *mut u32) -> i32) -> Vec<Handle> {
        let mut count = 0;
        if list(0, null_mut(), &raw mut count) != 0 {
            return Vec::new();
        }
        let mut all = vec![null_mut(); count as usize];
        match list(count, all.as_mut_ptr(), &raw mut count) {
            0 => all,
            _ => Vec::new(),
        }
    }

    /// A number of a device; 0 if it does not tell.
    fn number<T: Copy + Default>(&self, device: Handle, what: u32) -> T {
        let mut answer = T::default();
        let to = (&raw mut answer).cast();
        // SAFETY: a device of the runtime's, and a place of this size. What is written there is a number.
        unsafe { (self.info)(device, what, size_of::<T>(), to, null_mut()) };
        answer
    }

    /// A text of a device.
    fn text(&self, device: Handle, what: u32) -> String {
        let mut bytes = [0u8; 1024];
        let to = bytes.as_mut_ptr().cast();
        // SAFETY: a device of the runtime's, and a place of this size.
        unsafe { (self.info)(device, what, bytes.len() - 1, to, null_mut()) };
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        text.to_string_lossy().trim().to_owned()
    }

    fn describe(&self, device: Handle) -> Device {
        let name = self.text(device, ask::NAME);
        let of_dimensions: [usize; 3] = self.number(device, ask::WORKGROUP_SIZES);
        let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Device {
            handle: device.addr() as u64,
            architecture: match name.starts_with("gfx") {
                true => name.clone(),
                false => String::new(),
            },
            name,
            vendor: self.text(device, ask::VENDOR),
            compute_units: self.number(device, ask::COMPUTE_UNITS),
            clock: self.number(device, ask::CLOCK),
            memory: self.number(device, ask::MEMORY),
            local_memory: self.number(device, ask::LOCAL_MEMORY),
            cache: (
                self.number(device, ask::CACHE),
                self.number(device, ask::CACHE_LINE),
            ),
            workgroup: (
                word(self.number(device, ask::WORKGROUP)),
                of_dimensions.map(word),
            ),
            wave: 0,
            waves: 0,
            pci: (self.number::<u32>(device, ask::VENDOR_ID) as u16, 0),
        }
    }
}

/// All devices of OpenCL. `may_open` allows to load OpenCL, where the program has not done so.
pub fn all(may_open: bool) -> Vec<Device> {
    let Some(opencl) = OpenCl::find(may_open) else {
        return Vec::new();
    };
    let platforms = OpenCl::handles(|room, to, count| {
        // SAFETY: room for as many handles as are said, and a place for their number.
        unsafe { (opencl.platforms)(room, to, count) }
    });
    let devices = platforms.into_iter().flat_map(|platform| {
        OpenCl::handles(|room, to, count| {
            // SAFETY: a platform, room for as many handles as are said, and a place for their number.
            unsafe { (opencl.devices)(platform, ask::ALL_TYPES, room, to, count) }
        })
    });
    devices.map(|device| opencl.describe(device)).collect()
}
