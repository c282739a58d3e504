//! A program of OpenCL: on NVIDIA's driver where there is one.

use crate::library::Library;
use crate::programs::{Values, print};
use std::ffi::{CStr, c_char, c_void};

type Handle = *mut c_void;

crate::functions! {
    /// Functions that return a status.
    Calls("libOpenCL") {
        clGetPlatformIDs(room: u32, platforms: *mut Handle, count: *mut u32);
        clGetPlatformInfo(platform: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize);
        clGetDeviceIDs(platform: Handle, kind: u64, room: u32, devices: *mut Handle, count: *mut u32);
        clBuildProgram(program: Handle, count: u32, devices: *const Handle, options: *const c_char,
            notify: *const c_void, user: *const c_void);
        clSetKernelArg(kernel: Handle, index: u32, size: usize, value: *const c_void);
        clEnqueueNDRangeKernel(queue: Handle, kernel: Handle, dimensions: u32, offset: *const usize, global: *const usize,
            local: *const usize, count: u32, waits: *const Handle, event: *mut Handle);
        clEnqueueReadBuffer(queue: Handle, buffer: Handle, blocking: u32, offset: usize, bytes: usize, to: *mut c_void,
            count: u32, waits: *const Handle, event: *mut Handle);
        clFinish(queue: Handle);
    }
}

/// Calls a function that returns a handle; its last argument is the place of the status. The caller's `unsafe` block says
/// why the function has these types, and why the arguments are what it asks for.
macro_rules! create {
    ($library:expr, $name:literal, ($($argument:expr => $type:ty),*)) => {{
        let found = $library.symbol($name).ok_or(concat!("the library lacks ", $name))?;
        let function: unsafe extern "C" fn($($type,)* *mut i32) -> Handle = core::mem::transmute(found);
        let mut status = 0;
        let handle = function($($argument,)* &raw mut status);
        match status {
            0 => handle,
            status => return Err(format!("{} failed with {status}", $name).into()),
        }
    }};
}

const SOURCE: &CStr =
    c"kernel void add(global uint *data, uint by) { data[get_global_id(0)] += by; }";
const COUNT: usize = 4096;
const KERNELS: u32 = 100;

/// Runs the program.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    let library = Library::open("libOpenCL.so.1")?;
    let calls = Calls::of(library);
    let null = std::ptr::null_mut::<c_void>();
    let (mut platforms, mut count) = ([null; 16], 0);
    // SAFETY: room for 16 handles, and a place for their number.
    unsafe { calls.clGetPlatformIDs(16, platforms.as_mut_ptr(), &raw mut count) }?;
    let named = |platform: &&Handle| {
        let mut name = [0_u8; 256];
        let place = name.as_mut_ptr().cast();
        let no_size = std::ptr::null_mut();
        // SAFETY: a platform of the library, and room for 255 bytes.
        let asked = unsafe { calls.clGetPlatformInfo(**platform, 0x0902, 255, place, no_size) };
        asked.is_ok() && name.starts_with(b"NVIDIA")
    };
    let platforms = &platforms[..count as usize];
    let platform = platforms.iter().find(named).or(platforms.first());
    let platform = *platform.ok_or("no driver of OpenCL")?;
    let mut device = null;
    let all = 0xffff_ffff;
    let (no_handle, no_size) = (std::ptr::null::<Handle>(), std::ptr::null::<usize>());
    let no_event = std::ptr::null_mut::<Handle>();
    let mut data = vec![0_u32; COUNT];
    let by = 3_u32;
    // SAFETY: functions of these names have these types. Handles are those that the library has returned; memory has the
    // sizes that are said, and lives until the work has ended.
    unsafe {
        calls.clGetDeviceIDs(platform, all, 1, &raw mut device, std::ptr::null_mut())?;
        let context = create!(library, "clCreateContext", (
            std::ptr::null() => *const isize, 1 => u32, &raw const device => *const Handle,
            null => *mut c_void, null => *mut c_void
        ));
        let queue = create!(library, "clCreateCommandQueue", (
            context => Handle, device => Handle, 2 => u64
        ));
        let source = SOURCE.as_ptr();
        let program = create!(library, "clCreateProgramWithSource", (
            context => Handle, 1 => u32, &raw const source => *const *const c_char, std::ptr::null() => *const usize
        ));
        let nothing = std::ptr::null::<c_void>();
        calls.clBuildProgram(
            program,
            1,
            &raw const device,
            c"".as_ptr(),
            nothing,
            nothing,
        )?;
        let kernel = create!(library, "clCreateKernel", (
            program => Handle, c"add".as_ptr() => *const c_char
        ));
        // Readable, writable, with the host's contents.
        let flags = 1 | 1 << 5;
        let buffer = create!(library, "clCreateBuffer", (
            context => Handle, flags => u64, COUNT * 4 => usize, data.as_mut_ptr().cast() => *mut c_void
        ));
        calls.clSetKernelArg(kernel, 0, size_of::<Handle>(), (&raw const buffer).cast())?;
        calls.clSetKernelArg(kernel, 1, 4, (&raw const by).cast())?;
        let global = COUNT;
        for _ in 0..KERNELS {
            calls.clEnqueueNDRangeKernel(
                queue,
                kernel,
                1,
                no_size,
                &raw const global,
                no_size,
                0,
                no_handle,
                no_event,
            )?;
        }
        calls.clEnqueueReadBuffer(
            queue,
            buffer,
            1,
            0,
            COUNT * 4,
            data.as_mut_ptr().cast(),
            0,
            no_handle,
            no_event,
        )?;
        calls.clFinish(queue)?;
    }
    if data.iter().any(|value| *value != by * KERNELS) {
        return Err("a kernel computed something else".into());
    }
    let sum: f64 = data.iter().map(|value| f64::from(*value)).sum();
    let values = [("kernels", f64::from(KERNELS)), ("sum", sum)];
    print(&Values::from(
        values.map(|(name, value)| (name.to_owned(), value)),
    ));
    Ok(())
}
