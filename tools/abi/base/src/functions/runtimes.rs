//! The functions of OpenCL and of the simulated GPU's runtime: the effect of each, and its arguments by their roles.
//!
//! A row is `Action: function [or Action if argument] [(Role = value, ...)], ...;`. Where an argument has one of the [usual
//! names](USUAL) of a role, the row need not say it.

use super::arguments::{Length, Translation, Value};
use super::{Action, DOMAINS, Role, by_number, entry};
use Value::{Block, Element, Grid, Made, Number, Of, Pattern, Same};
use gputrail_record::Operation;
use gputrail_tool::operation_name;
use std::sync::LazyLock;

/// A function.
#[derive(Debug)]
struct Row {
    /// Its name.
    function: &'static str,
    /// Its effect.
    action: Action,
    /// Its effect if an argument is not 0.
    waiting: Option<(&'static str, Action)>,
    /// The values of roles.
    values: &'static [(Role, Value)],
}

const HOST_TO_DEVICE: Value = Number(1);
const DEVICE_TO_HOST: Value = Number(2);
const DEVICE_TO_DEVICE: Value = Number(3);
/// The direction follows from the addresses.
const DEFAULT: Value = Number(4);

const EVENT: Value = Of("event");
const fn first(list: &'static str, count: &'static str) -> Value {
    Element(list, 0, Length::Of(count))
}

macro_rules! usual {
    ($($role:ident: $($value:expr),*;)*) => {
        /// The values of roles for which a row has none: the first one whose arguments a function has.
        pub(crate) const USUAL: &[(Role, Value)] = &[$($((Role::$role, $value)),*),*];
    };
}

usual! {
    One: Number(1);
    Made: Made;
    Context: Of("context");
    Count: Value::Place("num_devices"), Made;
    Flags: Of("flags");
    Stream: Of("command_queue"), Value::Stream("stream");
    Memory: Of("memory"), Of("memobj"), Of("svm_pointer"), Of("ptr");
    Bytes: Of("cb"), Of("size"), Of("bytes");
    Destination: Of("dst_buffer"), Of("dst_image"), Of("dst_ptr"), Of("destination");
    Source: Of("src_buffer"), Of("src_image"), Of("src_ptr"), Of("source");
    // The bytes and rows of a rectangle.
    Width: Of("image_width"), Element("region", 0, Length::Is(3));
    Height: Of("image_height"), Element("region", 1, Length::Is(3));
    Direction: DEFAULT;
    Value: Of("value");
    Module: Of("program"), Of("module");
    Code: Of("il");
    Name: Of("kernel_name");
    Kernel: Of("kernel");
    GridX: Grid(0);
    GridY: Grid(1);
    GridZ: Grid(2);
    BlockX: Block(0);
    BlockY: Block(1);
    BlockZ: Block(2);
    LocalMemory: Of("local_memory");
    HostFunction: Of("user_func");
    UserData: Of("args");
    Graph: Of("command_buffer"), Of("graph");
}

macro_rules! rows {
    ($($action:ident: $(
        $function:ident $(or $waiting:ident if $argument:ident)? $(($($role:ident = $value:expr),*))?
    ),*;)*) => {
        static ROWS: &[Row] = &[$($(Row {
            function: stringify!($function),
            action: Action::$action,
            waiting: rows!(@ $($waiting $argument)?),
            values: &[$($((Role::$role, $value)),*)?],
        }),*),*];
    };
    (@) => { None };
    (@ $waiting:ident $argument:ident) => { Some((stringify!($argument), Action::$waiting)) };
}

rows! {
    // Devices and contexts.
    Initialise: clGetPlatformIDs, simInit;
    CountDevices: clGetDeviceIDs, simGetDeviceCount;
    GetDeviceAttribute: clGetDeviceInfo, simDeviceGetAttribute(Device = Of("device"), CudaAttribute = Of("attribute"));
    SetDevice: simSetDevice(Device = Of("device"));
    SynchronizeDevice: simDeviceSynchronize;
    GetMemoryInfo: simMemGetInfo(Total = Value::Total);
    GetLastError: simGetLastError;
    CreateContext: clCreateContext, clCreateContextFromType;
    DestroyContext: clReleaseContext;

    // Queues are streams.
    CreateStream: clCreateCommandQueue, clCreateCommandQueueWithProperties, clCreateCommandQueueWithPropertiesKHR, simStreamCreate;
    DestroyStream: clReleaseCommandQueue, simStreamDestroy;
    SynchronizeStream: clFinish, simStreamSynchronize;
    WaitInStream:
        clEnqueueBarrier,
        clEnqueueWaitForEvents(Event = first("event_list", "num_events")),
        clEnqueueBarrierWithWaitList(Event = first("event_wait_list", "num_events_in_wait_list")),
        simStreamWaitEvent(Event = EVENT);

    // Events. That of a marker is made by it.
    CreateEvent: clCreateUserEvent, simEventCreate;
    DestroyEvent: clReleaseEvent(Event = EVENT), simEventDestroy(Event = EVENT);
    RecordEvent: clEnqueueMarker, clEnqueueMarkerWithWaitList, simEventRecord(Event = EVENT);
    SynchronizeEvent: clWaitForEvents(Event = first("event_list", "num_events")), simEventSynchronize(Event = EVENT);
    QueryEvent: simEventQuery(Event = EVENT);

    // Memory.
    Allocate: clCreateBuffer, clCreateBufferWithProperties, clCreateBufferWithPropertiesINTEL, clDeviceMemAllocINTEL, simMalloc;
    AllocateHost: clHostMemAllocINTEL, simMallocHost;
    AllocateManaged: clSharedMemAllocINTEL, clSVMAlloc, simMallocManaged;
    AllocateArray: clCreateImage, clCreateImageWithProperties, clCreateImage2D, clCreateImage3D;
    Free: clReleaseMemObject, clSVMFree, clMemFreeINTEL, clMemBlockingFreeINTEL, simFree;
    FreeHost: simFreeHost;
    FreeInStream: clEnqueueSVMFree(Memory = first("svm_pointers", "num_svm_pointers"));
    Prefetch:
        clEnqueueMigrateMemObjects(Memory = first("mem_objects", "num_mem_objects")),
        clEnqueueSVMMigrateMem(Memory = first("svm_pointers", "num_svm_pointers")),
        clEnqueueMigrateMemINTEL;

    // Copies, by their direction.
    CopyToHost: clEnqueueReadBuffer or CopyToHostAndWait if blocking_read
        (Destination = Of("ptr"), Source = Of("buffer"), Direction = DEVICE_TO_HOST);
    CopyToDevice: clEnqueueWriteBuffer or CopyToDeviceAndWait if blocking_write
        (Destination = Of("buffer"), Source = Of("ptr"), Direction = HOST_TO_DEVICE);
    CopyWithinDevice: clEnqueueCopyBuffer(Direction = DEVICE_TO_DEVICE);
    CopyBetweenDevices: simMemcpyPeerAsync;
    Copy: clEnqueueSVMMemcpy or CopyAndWait if blocking_copy, clEnqueueMemcpyINTEL or CopyAndWait if blocking, simMemcpyAsync;
    CopyWithoutStream: simMemcpy;
    CopyRectangle:
        clEnqueueReadBufferRect or CopyRectangleAndWait if blocking_read
            (Destination = Of("ptr"), DestinationPitch = Of("host_row_pitch"), Source = Of("buffer"),
            SourcePitch = Of("buffer_row_pitch"), Direction = DEVICE_TO_HOST),
        clEnqueueWriteBufferRect or CopyRectangleAndWait if blocking_read
            (Destination = Of("buffer"), DestinationPitch = Of("buffer_row_pitch"), Source = Of("ptr"),
            SourcePitch = Of("host_row_pitch"), Direction = HOST_TO_DEVICE),
        clEnqueueCopyBufferRect
            (DestinationPitch = Of("dst_row_pitch"), SourcePitch = Of("src_row_pitch"), Direction = DEVICE_TO_DEVICE);
    CopyFromArray:
        clEnqueueReadImage or CopyFromArrayAndWait if blocking_read
            (Destination = Of("ptr"), DestinationPitch = Of("row_pitch"), Source = Of("image"), Direction = DEVICE_TO_HOST),
        clEnqueueCopyImageToBuffer(Direction = DEVICE_TO_DEVICE);
    CopyToArray:
        clEnqueueWriteImage or CopyToArrayAndWait if blocking_write
            (Destination = Of("image"), Source = Of("ptr"), SourcePitch = Of("input_row_pitch"), Direction = HOST_TO_DEVICE),
        clEnqueueCopyBufferToImage(Direction = DEVICE_TO_DEVICE);
    CopyArray: clEnqueueCopyImage;

    // Fills.
    Fill:
        clEnqueueFillBuffer(Memory = Of("buffer"), Value = Pattern),
        clEnqueueSVMMemFill(Memory = Of("svm_ptr"), Value = Pattern),
        clEnqueueMemFillINTEL(Memory = Of("dst_ptr"), Value = Pattern),
        clEnqueueMemsetINTEL(Memory = Of("dst_ptr")),
        simMemsetAsync;
    FillArray: clEnqueueFillImage(Memory = Of("image"));

    // Programs are modules, kernels functions.
    LoadModule: simModuleLoad;
    LoadModuleData:
        clCreateProgramWithSource, clCreateProgramWithBinary, clCreateProgramWithBuiltInKernels, clCreateProgramWithIL,
        clCreateProgramWithILKHR;
    UnloadModule: clReleaseProgram, simModuleUnload;
    GetFunction: clCreateKernel, simModuleGetKernel;
    Launch:
        clEnqueueNDRangeKernel,
        clEnqueueTask,
        simLaunchKernel
            (GridX = Of("grid_x"), GridY = Of("grid_y"), GridZ = Of("grid_z"), BlockX = Of("block_x"), BlockY = Of("block_y"),
            BlockZ = Of("block_z"));
    LaunchHostFunction: clEnqueueNativeKernel;

    // A command buffer is a graph, and what is launched of it.
    CreateGraph: clCreateCommandBufferKHR, simGraphCreate;
    InstantiateGraph: clFinalizeCommandBufferKHR(Made = Same("command_buffer")), simGraphInstantiate;
    LaunchGraph: clEnqueueCommandBufferKHR(Stream = first("queues", "num_queues")), simGraphLaunch;
    DestroyExecutableGraph: clReleaseCommandBufferKHR, simGraphExecDestroy;
    DestroyGraph: simGraphDestroy;
}

/// A function of a runtime.
pub(super) struct Call {
    pub action: Action,
    /// The place of the argument that says that the call waits, and its effect then.
    pub waiting: Option<(usize, Action)>,
    pub translation: Translation,
}

/// The function of a runtime, if it has a row. The rows are read when they are first asked for.
pub(super) fn call(operation: Operation) -> Option<&'static Call> {
    static CALLS: LazyLock<[Vec<Option<Call>>; 2]> = LazyLock::new(|| {
        by_number(|operation| {
            let name = operation_name(operation)?;
            let row = ROWS.iter().find(|row| row.function == name)?;
            let translation = Translation::new(operation, row.values);
            let waiting = row
                .waiting
                .and_then(|(argument, action)| Some((translation.place(argument)?, action)));
            Some(Call {
                action: row.action,
                waiting,
                translation,
            })
        })
    });
    let calls: &'static [Vec<Option<Call>>; 2] = &CALLS;
    entry(calls, operation)
}

/// How the arguments of a function of a runtime are translated, if it appears in other APIs.
pub fn translation(operation: Operation) -> Option<&'static Translation> {
    call(operation).map(|call| &call.translation)
}

/// All functions of the runtimes.
pub fn all_calls() -> impl Iterator<Item = Operation> {
    let domains = DOMAINS.into_iter();
    domains.flat_map(|domain| gputrail_tool::operations(domain).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_one_row_and_each_role_one_value_in_it() {
        for row in ROWS {
            let twice = ROWS.iter().filter(|one| one.function == row.function);
            assert_eq!(twice.count(), 1, "{}", row.function);
            for (role, _) in row.values {
                let twice = row.values.iter().filter(|(one, _)| one == role);
                assert_eq!(twice.count(), 1, "{}: {role:?}", row.function);
            }
        }
    }
}
