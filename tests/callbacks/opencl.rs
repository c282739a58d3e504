//! OpenCL as a program uses it, with the layer in this process.

use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::{program, repository};
use gputrail_sources::opencl;
use std::ffi::{CStr, CString, c_char, c_void};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

const CHILD: &str = "GPUTRAIL_CALLBACKS_TEST";
const LAYER: &str = "GPUTRAIL_CALLBACKS_LAYER";

/// Runs `body` in a process of its own, which reaches PoCL through the layer. `test` is the name of the calling test.
pub fn on_layer(test: &str, driver: Driver, body: fn(&OpenCl)) {
    if std::env::var_os(CHILD).is_some() {
        let opencl = OpenCl::load();
        body(&opencl);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = repository("tests/programs/forwarding_layer.c");
    let layer = program::compile_with(&["-shared", "-fPIC"], &source, folder.path());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env(LAYER, &layer)
        .env("OPENCL_LAYERS", &layer);
    let ended = program::run(on_pocl(&mut command, driver)).well();
    assert!(ended.text().contains("1 passed"), "{}", ended.text());
}

fn open(path: &CStr) -> *mut c_void {
    // SAFETY: libraries of the test's own and the system's.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!library.is_null(), "{path:?}");
    library
}

pub type Handle = *mut c_void;

macro_rules! functions {
    ($($name:ident($($type:ty),*) -> $result:ty;)*) => {
        /// The loader's functions.
        #[allow(non_snake_case)]
        pub struct OpenCl { $(pub $name: unsafe extern "C" fn($($type),*) -> $result,)* }

        impl OpenCl {
            /// Loads the loader, which loads the layer at its first call.
            fn load() -> OpenCl {
                let layer = CString::new(std::env::var(LAYER).unwrap()).unwrap();
                // SAFETY: the functions of those names have those signatures.
                unsafe {
                    let forward = libc::dlsym(open(&layer), c"forward_to".as_ptr());
                    assert!(!forward.is_null());
                    let forward: extern "C" fn(*const c_void, *const c_void) = std::mem::transmute(forward);
                    forward(
                        opencl::layer_info as *const c_void,
                        opencl::init_layer as *const c_void,
                    );
                    let loader = open(c"libOpenCL.so.1");
                    OpenCl { $($name: {
                        let name = CString::new(stringify!($name)).unwrap();
                        let function = libc::dlsym(loader, name.as_ptr());
                        assert!(!function.is_null(), "{name:?}");
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(function)
                    },)* }
                }
            }
        }
    };
}

functions! {
    clGetPlatformIDs(u32, *mut Handle, *mut u32) -> i32;
    clGetDeviceIDs(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
    clCreateContext(*const isize, u32, *const Handle, *const c_void, *mut c_void, *mut i32) -> Handle;
    clGetContextInfo(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clReleaseContext(Handle) -> i32;
    clCreateCommandQueue(Handle, Handle, u64, *mut i32) -> Handle;
    clGetCommandQueueInfo(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clReleaseCommandQueue(Handle) -> i32;
    clCreateProgramWithSource(Handle, u32, *const *const c_char, *const usize, *mut i32) -> Handle;
    clBuildProgram(Handle, u32, *const Handle, *const c_char, *const c_void, *mut c_void) -> i32;
    clGetProgramInfo(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clReleaseProgram(Handle) -> i32;
    clCreateKernel(Handle, *const c_char, *mut i32) -> Handle;
    clSetKernelArg(Handle, u32, usize, *const c_void) -> i32;
    clGetKernelInfo(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clReleaseKernel(Handle) -> i32;
    clCreateBuffer(Handle, u64, usize, *mut c_void, *mut i32) -> Handle;
    clGetMemObjectInfo(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clReleaseMemObject(Handle) -> i32;
    clEnqueueWriteBuffer(Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueReadBuffer(Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueFillBuffer(Handle, Handle, *const c_void, usize, usize, usize, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueNDRangeKernel(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle,
        *mut Handle) -> i32;
    clEnqueueMarkerWithWaitList(Handle, u32, *const Handle, *mut Handle) -> i32;
    clCreateUserEvent(Handle, *mut i32) -> Handle;
    clSetUserEventStatus(Handle, i32) -> i32;
    clWaitForEvents(u32, *const Handle) -> i32;
    clReleaseEvent(Handle) -> i32;
    clFinish(Handle) -> i32;
}

/// The objects of a small program.
pub struct Small<'a> {
    pub opencl: &'a OpenCl,
    pub context: Handle,
    pub queue: Handle,
    pub program: Handle,
    pub kernel: Handle,
    pub buffer: Handle,
}

/// The number of elements with which [`Small`] computes.
pub const COUNT: usize = 256;

const SOURCE: &CStr =
    c"__kernel void square(__global int *x) { size_t i = get_global_id(0); x[i] = x[i] * x[i]; }";

impl<'a> Small<'a> {
    /// A context with a queue, a kernel and a buffer.
    pub fn new(opencl: &'a OpenCl) -> Small<'a> {
        Small::of(opencl, SOURCE, c"-w")
    }

    /// A context with a queue, a buffer and the kernel of this source, built with these options.
    pub fn of(opencl: &'a OpenCl, source: &CStr, options: &CStr) -> Small<'a> {
        // PoCL 3.1 shows no device to threads that arrive while another one initializes it, with or without a layer.
        static FINDING: Mutex<()> = Mutex::new(());
        let finding = FINDING.lock().unwrap();
        let (mut platform, mut device) = (null_mut(), null_mut());
        let mut status = 0;
        // SAFETY: the calls get what OpenCL asks for.
        unsafe {
            assert_eq!((opencl.clGetPlatformIDs)(1, &mut platform, null_mut()), 0);
            let all = 0xffff_ffff;
            let found = (opencl.clGetDeviceIDs)(platform, all, 1, &mut device, null_mut());
            assert_eq!(found, 0);
            drop(finding);
            let context =
                (opencl.clCreateContext)(null(), 1, &device, null(), null_mut(), &mut status);
            assert_eq!(status, 0);
            let queue = (opencl.clCreateCommandQueue)(context, device, 0, &mut status);
            assert_eq!(status, 0);
            let source = source.as_ptr();
            let program =
                (opencl.clCreateProgramWithSource)(context, 1, &source, null(), &mut status);
            assert_eq!(status, 0);
            let options = options.as_ptr();
            let built = (opencl.clBuildProgram)(program, 1, &device, options, null(), null_mut());
            assert_eq!(built, 0);
            let kernel = (opencl.clCreateKernel)(program, c"square".as_ptr(), &mut status);
            assert_eq!(status, 0);
            let mut small = Small {
                opencl,
                context,
                queue,
                program,
                kernel,
                buffer: null_mut(),
            };
            small.buffer = small.create_buffer();
            let argument = (&raw const small.buffer).cast();
            assert_eq!((opencl.clSetKernelArg)(kernel, 0, 8, argument), 0);
            small
        }
    }

    pub fn create_buffer(&self) -> Handle {
        let mut status = 0;
        // SAFETY: as above.
        let buffer = unsafe {
            (self.opencl.clCreateBuffer)(self.context, 1, COUNT * 4, null_mut(), &mut status)
        };
        assert_eq!(status, 0);
        buffer
    }

    pub fn write(&self, numbers: &[i32; COUNT]) {
        let (bytes, from) = (size_of_val(numbers), numbers.as_ptr().cast());
        // SAFETY: as above; the call waits.
        let status = unsafe {
            (self.opencl.clEnqueueWriteBuffer)(
                self.queue,
                self.buffer,
                1,
                0,
                bytes,
                from,
                0,
                null(),
                null_mut(),
            )
        };
        assert_eq!(status, 0);
    }

    pub fn fill(&self, number: i32) {
        let pattern = (&raw const number).cast();
        // SAFETY: as above; the pattern is copied.
        let status = unsafe {
            (self.opencl.clEnqueueFillBuffer)(
                self.queue,
                self.buffer,
                pattern,
                4,
                0,
                COUNT * 4,
                0,
                null(),
                null_mut(),
            )
        };
        assert_eq!(status, 0);
    }

    pub fn read(&self) -> [i32; COUNT] {
        let mut numbers = [0; COUNT];
        let to = numbers.as_mut_ptr().cast();
        // SAFETY: as above; the call waits.
        let status = unsafe {
            (self.opencl.clEnqueueReadBuffer)(
                self.queue,
                self.buffer,
                1,
                0,
                COUNT * 4,
                to,
                0,
                null(),
                null_mut(),
            )
        };
        assert_eq!(status, 0);
        numbers
    }

    /// Launches the kernel in `dimensions` dimensions; returns the status of the call.
    pub fn launch_in(&self, dimensions: u32, event: *mut Handle) -> i32 {
        let (global, local) = ([COUNT, 1, 1], [16, 1, 1]);
        let (global, local) = (global.as_ptr(), local.as_ptr());
        // SAFETY: as above.
        unsafe {
            (self.opencl.clEnqueueNDRangeKernel)(
                self.queue,
                self.kernel,
                dimensions,
                null(),
                global,
                local,
                0,
                null(),
                event,
            )
        }
    }

    pub fn launch(&self) {
        assert_eq!(self.launch_in(1, null_mut()), 0);
    }

    pub fn finish(&self) {
        // SAFETY: as above.
        assert_eq!(unsafe { (self.opencl.clFinish)(self.queue) }, 0);
    }

    /// Releases all objects.
    pub fn release(self) {
        let opencl = self.opencl;
        // SAFETY: as above.
        unsafe {
            assert_eq!((opencl.clReleaseMemObject)(self.buffer), 0);
            assert_eq!((opencl.clReleaseKernel)(self.kernel), 0);
            assert_eq!((opencl.clReleaseProgram)(self.program), 0);
            assert_eq!((opencl.clReleaseCommandQueue)(self.queue), 0);
            assert_eq!((opencl.clReleaseContext)(self.context), 0);
        }
    }
}
