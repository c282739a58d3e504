//! The part of CUDA's driver API that the programs use.

use crate::library::{Failed, Library};
use std::ffi::{c_char, c_void};

crate::functions! {
    /// The functions of libcuda.
    Cuda("libcuda") {
        cuInit(flags: u32);
        cuDriverGetVersion(version: *mut i32);
        cuDeviceGetCount(count: *mut i32);
        cuDeviceGet(device: *mut i32, number: i32);
        cuDeviceGetName(name: *mut c_char, length: i32, device: i32);
        cuDevicePrimaryCtxRetain(context: *mut usize, device: i32);
        cuCtxSetCurrent(context: usize);
        cuCtxSynchronize();
        cuModuleLoadData(module: *mut usize, image: *const c_void);
        cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char);
        cuMemAlloc_v2(pointer: *mut u64, bytes: usize);
        cuMemFree_v2(pointer: u64);
        cuMemAllocManaged(pointer: *mut u64, bytes: usize, flags: u32);
        cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize);
        cuMemFreeHost(pointer: *mut c_void);
        cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize);
        cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize);
        cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize);
        cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: usize);
        cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: usize);
        cuMemsetD8_v2(to: u64, value: u8, bytes: usize);
        cuMemsetD32_v2(to: u64, value: u32, count: usize);
        cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32,
            stream: usize, arguments: *mut *mut c_void, extra: *mut *mut c_void);
        cuStreamCreate(stream: *mut usize, flags: u32);
        cuStreamSynchronize(stream: usize);
        cuStreamQuery(stream: usize);
        cuStreamWaitEvent(stream: usize, event: usize, flags: u32);
        cuStreamBeginCapture_v2(stream: usize, mode: u32);
        cuStreamEndCapture(stream: usize, graph: *mut usize);
        cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: u64);
        cuGraphLaunch(executable: usize, stream: usize);
        cuEventCreate(event: *mut usize, flags: u32);
        cuEventRecord(event: usize, stream: usize);
        cuEventSynchronize(event: usize);
        cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize);
    }
}

/// The status of work that has not completed.
pub const NOT_READY: i32 = 600;

/// The kernels of the programs.
const PTX: &str = concat!(include_str!("kernels.ptx"), "\0");

/// A GPU, its primary context, and the kernels.
pub struct Gpu {
    /// The driver's functions.
    pub cuda: Cuda,
    context: usize,
    module: usize,
}

/// The driver's library and the name of the first GPU, or the reason why there is none.
pub fn find() -> Result<(Cuda, String), String> {
    let cuda = Cuda::of(Library::open("libcuda.so.1")?);
    let text = |failed: Failed| failed.to_string();
    let (mut count, mut version, mut device) = (0, 0, 0);
    let mut name = [0 as c_char; 256];
    // SAFETY: the driver writes to locals, and no more than 255 bytes of the name.
    unsafe {
        cuda.cuInit(0).map_err(text)?;
        cuda.cuDeviceGetCount(&raw mut count).map_err(text)?;
        if count == 0 {
            return Err("the driver knows no GPU".into());
        }
        cuda.cuDriverGetVersion(&raw mut version).map_err(text)?;
        cuda.cuDeviceGet(&raw mut device, 0).map_err(text)?;
        cuda.cuDeviceGetName(name.as_mut_ptr(), 255, device)
            .map_err(text)?;
    }
    // SAFETY: the last byte is 0 in any case.
    let name = unsafe { std::ffi::CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
    let (major, minor) = (version / 1000, version % 1000 / 10);
    let more = match count {
        1 => String::new(),
        count => format!(", the first of {count}"),
    };
    Ok((cuda, format!("{name} (CUDA {major}.{minor}{more})")))
}

impl Gpu {
    /// The first GPU.
    pub fn open() -> Result<Gpu, Box<dyn std::error::Error>> {
        let (cuda, _) = find()?;
        let (mut device, mut context, mut module) = (0, 0, 0);
        // SAFETY: the driver writes to locals; the context is the one that it returns, and the text of the module ends with
        // a 0.
        unsafe {
            cuda.cuDeviceGet(&raw mut device, 0)?;
            cuda.cuDevicePrimaryCtxRetain(&raw mut context, device)?;
            cuda.cuCtxSetCurrent(context)?;
            cuda.cuModuleLoadData(&raw mut module, PTX.as_ptr().cast())?;
        }
        Ok(Gpu {
            cuda,
            context,
            module,
        })
    }

    /// Makes the context current on the calling thread.
    pub fn make_current(&self) -> Result<(), Failed> {
        // SAFETY: the context is never released.
        unsafe { self.cuda.cuCtxSetCurrent(self.context) }
    }

    /// Waits for all work of the context.
    pub fn synchronize(&self) -> Result<(), Failed> {
        // SAFETY: no arguments.
        unsafe { self.cuda.cuCtxSynchronize() }
    }

    /// A kernel.
    pub fn kernel(&self, name: &str) -> Result<usize, Failed> {
        let mut function = 0;
        let name = std::ffi::CString::new(name).unwrap_or_default();
        // SAFETY: the module is never unloaded; the driver reads a text, and writes to a local.
        unsafe {
            self.cuda
                .cuModuleGetFunction(&raw mut function, self.module, name.as_ptr())
        }?;
        Ok(function)
    }

    /// Allocates `bytes` of the device.
    pub fn allocate(&self, bytes: usize) -> Result<u64, Failed> {
        let mut pointer = 0;
        // SAFETY: the driver writes to a local.
        unsafe { self.cuda.cuMemAlloc_v2(&raw mut pointer, bytes) }?;
        Ok(pointer)
    }

    /// A new stream.
    pub fn stream(&self) -> Result<usize, Failed> {
        let mut stream = 0;
        // The flag 1 has it run beside the default stream.
        // SAFETY: the driver writes to a local.
        unsafe { self.cuda.cuStreamCreate(&raw mut stream, 1) }?;
        Ok(stream)
    }

    /// A new event.
    pub fn event(&self) -> Result<usize, Failed> {
        let mut event = 0;
        // SAFETY: the driver writes to a local.
        unsafe { self.cuda.cuEventCreate(&raw mut event, 0) }?;
        Ok(event)
    }

    /// Launches a kernel of one dimension. `arguments` lead to the values.
    ///
    /// # Safety
    ///
    /// `function` is a kernel of [`Gpu::kernel`] that takes as many `arguments` of these types, and reads and writes no
    /// other memory than exists until it has ended. `stream` is 0 or a stream of [`Gpu::stream`].
    pub unsafe fn launch(
        &self,
        function: usize,
        (groups, threads): (u32, u32),
        stream: usize,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Failed> {
        // SAFETY: the kernel, its arguments and the stream are what the driver asks for (`# Safety`); it copies the
        // arguments.
        unsafe {
            self.cuda.cuLaunchKernel(
                function,
                groups,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
    }

    /// Launches saxpy for `count` elements.
    ///
    /// # Safety
    ///
    /// `function` is the kernel `saxpy`; `x` and `y` are memory of the device for `count` numbers, until it has ended.
    /// `stream` is 0 or a stream of [`Gpu::stream`].
    pub unsafe fn saxpy(
        &self,
        function: usize,
        mut count: u32,
        (mut x, mut y): (u64, u64),
        stream: usize,
    ) -> Result<(), Failed> {
        let mut factor = 2.0_f32;
        let mut arguments: [*mut c_void; 4] = [
            (&raw mut count).cast(),
            (&raw mut factor).cast(),
            (&raw mut x).cast(),
            (&raw mut y).cast(),
        ];
        let size = (count.div_ceil(256), 256);
        // SAFETY: saxpy takes a number of elements, a factor and two vectors with as many.
        unsafe { self.launch(function, size, stream, &mut arguments) }
    }
}
