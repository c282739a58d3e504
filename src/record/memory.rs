//! Copies, fills, allocations (CUPTI: `CUpti_ActivityMemcpy`, `Memcpy2`, `Memset`, `Memory`;
//! rocprofiler-sdk: memory copy and memory allocation records).

use super::*;

open_enum! {
    /// What kind of memory (CUPTI: `CUpti_ActivityMemoryKind`, same values).
    MemoryKind(u8) {
        /// Not known.
        UNKNOWN = 0, "unknown";
        /// Pageable memory of the host.
        PAGEABLE = 1, "pageable";
        /// Page-locked memory of the host.
        PINNED = 2, "pinned";
        /// Memory of the device.
        DEVICE = 3, "device";
        /// An array or image.
        ARRAY = 4, "array";
        /// Managed or shared virtual memory.
        MANAGED = 5, "managed";
        /// Static memory of the device.
        DEVICE_STATIC = 6, "device static";
        /// Static managed memory.
        MANAGED_STATIC = 7, "managed static";
    }
}

open_enum! {
    /// Direction of a transfer (CUPTI: `CUpti_ActivityMemcpyKind`, same values up to 10).
    TransferKind(u8) {
        /// Not known.
        UNKNOWN = 0, "copy";
        /// Host to device.
        HOST_TO_DEVICE = 1, "copy host to device";
        /// Device to host.
        DEVICE_TO_HOST = 2, "copy device to host";
        /// Host to array.
        HOST_TO_ARRAY = 3, "copy host to image";
        /// Array to host.
        ARRAY_TO_HOST = 4, "copy image to host";
        /// Array to array.
        ARRAY_TO_ARRAY = 5, "copy image to image";
        /// Array to device.
        ARRAY_TO_DEVICE = 6, "copy image to buffer";
        /// Device to array.
        DEVICE_TO_ARRAY = 7, "copy buffer to image";
        /// Within a device.
        DEVICE_TO_DEVICE = 8, "copy device to device";
        /// Host to host.
        HOST_TO_HOST = 9, "copy host to host";
        /// From one device to another.
        PEER_TO_PEER = 10, "copy peer to peer";
        /// A buffer or image was mapped for the host (OpenCL).
        MAP = 16, "map";
        /// It was unmapped.
        UNMAP = 17, "unmap";
        /// Memory objects were migrated to a device or the host.
        MIGRATE = 18, "migrate";
        /// Shared virtual memory was freed by a queue (clEnqueueSVMFree).
        FREE = 19, "free";
    }
}

/// A transfer was enqueued. 120 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MemoryCopy {
    /// Kind [`Kind::MEMORY_COPY`].
    pub header: Header,
    /// The transfer, and where it was put.
    pub work: WorkHeader,
    /// Bytes moved.
    pub bytes: u64,
    /// Address or handle of the source, 0 if not known.
    pub source_address: u64,
    /// Address or handle of the destination.
    pub destination_address: u64,
    /// Offset in the source, bytes.
    pub source_offset: u64,
    /// Offset in the destination, bytes.
    pub destination_offset: u64,
    /// Where the source lies; none is the host.
    pub source_agent: AgentId,
    /// Where the destination lies; none is the host.
    pub destination_agent: AgentId,
    /// Direction.
    pub transfer: TransferKind,
    /// Memory at the source.
    pub source_memory: MemoryKind,
    /// Memory at the destination.
    pub destination_memory: MemoryKind,
    /// 0.
    pub reserved: [u8; 5],
}
work_record!(MemoryCopy, Kind::MEMORY_COPY, 120);

/// A fill was enqueued. 88 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MemorySet {
    /// Kind [`Kind::MEMORY_SET`].
    pub header: Header,
    /// The fill, and where it was put.
    pub work: WorkHeader,
    /// Bytes set.
    pub bytes: u64,
    /// Address or handle of the memory.
    pub address: u64,
    /// First 4 bytes of the pattern.
    pub value: u32,
    /// Length of the pattern, bytes.
    pub pattern_bytes: u16,
    /// What kind of memory.
    pub memory: MemoryKind,
    /// 0.
    pub reserved: u8,
}
work_record!(MemorySet, Kind::MEMORY_SET, 88);

open_enum! {
    /// Whether memory came or went.
    AllocationOperation(u8) {
        /// It was allocated.
        ALLOCATE = 1, "allocate";
        /// It was freed.
        FREE = 2, "free";
    }
}

/// Memory was allocated or freed by the program. 80 bytes.
///
/// CUPTI has one record for the life of an allocation, rocprofiler-sdk one for each of its ends;
/// rocprofiler-sdk's way is followed, since a life may not end before the recording does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Allocation {
    /// Kind [`Kind::MEMORY_ALLOCATION`].
    pub header: Header,
    /// The call that did it.
    pub correlation: CorrelationId,
    /// External id of that call.
    pub external: ExternalId,
    /// When it began.
    pub start: Ticks,
    /// When it was done.
    pub end: Ticks,
    /// Address or handle.
    pub address: u64,
    /// Bytes; in a free record 0 if they are not known.
    pub bytes: u64,
    /// Where the memory lies, none if the runtime decides.
    pub agent: AgentId,
    /// The context it belongs to.
    pub context: ContextId,
    /// The calling thread.
    pub thread: ThreadId,
    /// Allocated or freed.
    pub operation: AllocationOperation,
    /// What kind of memory.
    pub memory: MemoryKind,
    /// 0.
    pub reserved: [u8; 2],
    /// Flags of the runtime (cl_mem_flags, for OpenCL).
    pub runtime_flags: u64,
}
record!(Allocation, Kind::MEMORY_ALLOCATION, 80);
