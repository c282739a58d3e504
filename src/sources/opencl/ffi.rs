//! The parts of OpenCL's C interface that the source uses: handles, callbacks, constants.
//!
//! Handles and bit sets have types of their own, so that the function table determines how annotations show them, and a
//! queue cannot be mistaken for a kernel.
#![allow(non_camel_case_types, missing_docs)]

pub use core::ffi::{c_char, c_void};

pub type cl_int = i32;
pub type cl_uint = u32;
pub type cl_ulong = u64;

/// A set of flags: queue properties, memory flags, map flags, device types.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct cl_bitfield(pub u64);

/// OpenCL's boolean: any value but 0 is true.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct cl_bool(pub u32);

/// A byte of a binary: a type of its own, since on some processors a byte and a character have the same type.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct cl_uchar(#[allow(dead_code)] pub u8); // only pointed to

macro_rules! handles {
    ($($name:ident)*) => {$(
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(pub *mut c_void);

        impl $name {
            pub const NULL: $name = $name(core::ptr::null_mut());

            pub fn is_null(self) -> bool {
                self.0.is_null()
            }
        }

        impl From<$name> for u64 {
            fn from(handle: $name) -> u64 {
                handle.0 as u64
            }
        }
    )*};
}
handles! {
    cl_platform_id cl_device_id cl_context cl_command_queue cl_mem cl_program cl_kernel cl_event cl_sampler
    cl_semaphore_khr cl_command_buffer_khr cl_mutable_command_khr
}

pub type ContextCallback =
    Option<unsafe extern "C-unwind" fn(*const c_char, *const c_void, usize, *mut c_void)>;
pub type ContextDestructor = Option<unsafe extern "C-unwind" fn(cl_context, *mut c_void)>;
pub type ProgramCallback = Option<unsafe extern "C-unwind" fn(cl_program, *mut c_void)>;
pub type EventCallback = Option<unsafe extern "C-unwind" fn(cl_event, cl_int, *mut c_void)>;
pub type MemCallback = Option<unsafe extern "C-unwind" fn(cl_mem, *mut c_void)>;
pub type SvmFreeCallback =
    Option<unsafe extern "C-unwind" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>;
pub type NativeKernel = Option<unsafe extern "C-unwind" fn(*mut c_void)>;

pub const CL_SUCCESS: cl_int = 0;
pub const CL_PROFILING_INFO_NOT_AVAILABLE: cl_int = -7;
pub const CL_INVALID_VALUE: cl_int = -30;
pub const CL_INVALID_QUEUE_PROPERTIES: cl_int = -35;

pub const CL_COMPLETE: cl_int = 0;

pub const CL_PLATFORM_NAME: cl_uint = 0x0902;

pub const CL_DEVICE_TYPE_CPU: u64 = 1 << 1;
pub const CL_DEVICE_TYPE_GPU: u64 = 1 << 2;
pub const CL_DEVICE_TYPE_ACCELERATOR: u64 = 1 << 3;
pub const CL_DEVICE_TYPE_ALL: cl_bitfield = cl_bitfield(0xffff_ffff);
pub const CL_DEVICE_TYPE: cl_uint = 0x1000;
pub const CL_DEVICE_MAX_COMPUTE_UNITS: cl_uint = 0x1002;
pub const CL_DEVICE_MAX_WORK_GROUP_SIZE: cl_uint = 0x1004;
pub const CL_DEVICE_MAX_CLOCK_FREQUENCY: cl_uint = 0x100c;
pub const CL_DEVICE_GLOBAL_MEM_SIZE: cl_uint = 0x101f;
pub const CL_DEVICE_LOCAL_MEM_SIZE: cl_uint = 0x1023;
pub const CL_DEVICE_PROFILING_TIMER_RESOLUTION: cl_uint = 0x1025;
pub const CL_DEVICE_NAME: cl_uint = 0x102b;
pub const CL_DEVICE_VENDOR: cl_uint = 0x102c;
pub const CL_DRIVER_VERSION: cl_uint = 0x102d;
pub const CL_DEVICE_VERSION: cl_uint = 0x102f;
pub const CL_DEVICE_PLATFORM: cl_uint = 0x1031;
pub const CL_DEVICE_UUID_KHR: cl_uint = 0x106a;
pub const CL_DEVICE_PCI_BUS_INFO_KHR: cl_uint = 0x410f;

pub const CL_CONTEXT_DEVICES: cl_uint = 0x1081;

pub const CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE: u64 = 1 << 0;
pub const CL_QUEUE_PROFILING_ENABLE: u64 = 1 << 1;
pub const CL_QUEUE_ON_DEVICE: u64 = 1 << 2;
pub const CL_QUEUE_CONTEXT: cl_uint = 0x1090;
pub const CL_QUEUE_DEVICE: cl_uint = 0x1091;
pub const CL_QUEUE_REFERENCE_COUNT: cl_uint = 0x1092;
pub const CL_QUEUE_PROPERTIES: cl_uint = 0x1093;
pub const CL_QUEUE_PROPERTIES_ARRAY: cl_uint = 0x1098;

pub const CL_MEM_READ_ONLY: u64 = 1 << 2;
pub const CL_MEM_USE_HOST_PTR: u64 = 1 << 3;
pub const CL_MEM_ALLOC_HOST_PTR: u64 = 1 << 4;
pub const CL_MEM_SVM_FINE_GRAIN_BUFFER: u64 = 1 << 10;
pub const CL_MEM_OBJECT_BUFFER: cl_uint = 0x10f0;
pub const CL_MEM_OBJECT_IMAGE2D_ARRAY: cl_uint = 0x10f3;
pub const CL_MEM_OBJECT_IMAGE1D_ARRAY: cl_uint = 0x10f5;
pub const CL_MEM_OBJECT_PIPE: cl_uint = 0x10f7;
pub const CL_MEM_TYPE: cl_uint = 0x1100;
pub const CL_MEM_FLAGS: cl_uint = 0x1101;
pub const CL_MEM_SIZE: cl_uint = 0x1102;
pub const CL_MEM_MAP_COUNT: cl_uint = 0x1104;
pub const CL_MEM_CONTEXT: cl_uint = 0x1106;
pub const CL_MEM_ASSOCIATED_MEMOBJECT: cl_uint = 0x1107;
pub const CL_MEM_OFFSET: cl_uint = 0x1108;
pub const CL_IMAGE_ELEMENT_SIZE: cl_uint = 0x1111;
pub const CL_IMAGE_WIDTH: cl_uint = 0x1114;
pub const CL_IMAGE_HEIGHT: cl_uint = 0x1115;
pub const CL_IMAGE_DEPTH: cl_uint = 0x1116;
pub const CL_IMAGE_ARRAY_SIZE: cl_uint = 0x1117;
pub const CL_IMAGE_NUM_MIP_LEVELS: cl_uint = 0x1119;
pub const CL_IMAGE_NUM_SAMPLES: cl_uint = 0x111a;
pub const CL_MIGRATE_MEM_OBJECT_HOST: u64 = 1 << 0;

pub const CL_KERNEL_FUNCTION_NAME: cl_uint = 0x1190;
pub const CL_KERNEL_NUM_ARGS: cl_uint = 0x1191;
pub const CL_KERNEL_PROGRAM: cl_uint = 0x1194;
pub const CL_KERNEL_WORK_GROUP_SIZE: cl_uint = 0x11b0;
pub const CL_KERNEL_LOCAL_MEM_SIZE: cl_uint = 0x11b2;
pub const CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE: cl_uint = 0x11b3;
pub const CL_KERNEL_PRIVATE_MEM_SIZE: cl_uint = 0x11b4;

pub const CL_KERNEL_ARG_ADDRESS_QUALIFIER: cl_uint = 0x1196;
pub const CL_KERNEL_ARG_ACCESS_QUALIFIER: cl_uint = 0x1197;
pub const CL_KERNEL_ARG_ADDRESS_GLOBAL: cl_uint = 0x119b;
pub const CL_KERNEL_ARG_ADDRESS_CONSTANT: cl_uint = 0x119d;
pub const CL_KERNEL_ARG_ACCESS_READ_ONLY: cl_uint = 0x11a0;

pub const CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE: cl_uint = 0x1185;
pub const CL_PROGRAM_CONTEXT: cl_uint = 0x1161;
pub const CL_PROGRAM_DEVICES: cl_uint = 0x1163;

pub const CL_EVENT_COMMAND_QUEUE: cl_uint = 0x11d0;
pub const CL_EVENT_REFERENCE_COUNT: cl_uint = 0x11d2;
pub const CL_EVENT_COMMAND_EXECUTION_STATUS: cl_uint = 0x11d3;
pub const CL_EVENT_CONTEXT: cl_uint = 0x11d4;

pub const CL_PROFILING_COMMAND_QUEUED: cl_uint = 0x1280;
pub const CL_PROFILING_COMMAND_SUBMIT: cl_uint = 0x1281;
pub const CL_PROFILING_COMMAND_START: cl_uint = 0x1282;
pub const CL_PROFILING_COMMAND_END: cl_uint = 0x1283;

pub const CL_LAYER_API_VERSION: cl_uint = 0x4240;
pub const CL_LAYER_NAME: cl_uint = 0x4241;
pub const CL_LAYER_API_VERSION_100: cl_uint = 100;
