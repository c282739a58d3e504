//! Copies, fills, allocations (CUPTI: `CUpti_ActivityMemcpy`, `Memcpy2`, `Memset`, `Memory`;
//! rocprofiler-sdk: memory copy and memory allocation records).

use super::*;

open_enum! {
    /// The kind of memory (CUPTI: `CUpti_ActivityMemoryKind`, same values).
    MemoryKind(u8) {
        /// Unknown.
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
    /// The direction of a transfer (CUPTI: `CUpti_ActivityMemcpyKind`, same values up to 10).
    TransferKind(u8) {
        /// Unknown.
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
        /// Map of a buffer or image for the host (OpenCL).
        MAP = 16, "map";
        /// Unmap.
        UNMAP = 17, "unmap";
        /// Migration of memory objects to a device or the host.
        MIGRATE = 18, "migrate";
        /// Release of shared virtual memory by a queue (clEnqueueSVMFree).
        FREE = 19, "free";
    }
}

/// The enqueue of a transfer. 128 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MemoryCopy {
    /// Kind [`Kind::MEMORY_COPY`].
    pub header: Header,
    /// The fields of all work records.
    pub work: WorkHeader,
    /// Bytes transferred.
    pub bytes: u64,
    /// Address or handle of the source; 0: unknown.
    pub source_address: u64,
    /// Address or handle of the destination; 0: unknown.
    pub destination_address: u64,
    /// Offset in the source, in bytes.
    pub source_offset: u64,
    /// Offset in the destination, in bytes.
    pub destination_offset: u64,
    /// The agent of the source memory; none for the host.
    pub source_agent: AgentId,
    /// The agent of the destination memory; none for the host.
    pub destination_agent: AgentId,
    /// The direction.
    pub transfer: TransferKind,
    /// The kind of the source memory.
    pub source_memory: MemoryKind,
    /// The kind of the destination memory.
    pub destination_memory: MemoryKind,
    /// Reserved, 0.
    pub reserved: [u8; 5],
    /// Of copies between agents, the context that owns the source memory; else none (CUPTI: srcContextId).
    pub source_context: ContextId,
    /// Of copies between agents, the context that owns the destination memory; else none (CUPTI: dstContextId).
    pub destination_context: ContextId,
}
work_record!(MemoryCopy, Kind::MEMORY_COPY, 128);

/// The enqueue of a fill. 88 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MemorySet {
    /// Kind [`Kind::MEMORY_SET`].
    pub header: Header,
    /// The fields of all work records.
    pub work: WorkHeader,
    /// Bytes filled.
    pub bytes: u64,
    /// Address or handle of the memory.
    pub address: u64,
    /// The first 4 bytes of the pattern.
    pub value: u32,
    /// The length of the pattern in bytes.
    pub pattern_bytes: u16,
    /// The kind of memory.
    pub memory: MemoryKind,
    /// Reserved, 0.
    pub reserved: u8,
}
work_record!(MemorySet, Kind::MEMORY_SET, 88);

open_enum! {
    /// Allocation or release, of memory or of a pool that others allocate from.
    AllocationOperation(u8) {
        /// The memory was allocated.
        ALLOCATE = 1, "allocate";
        /// The memory was freed.
        FREE = 2, "free";
        /// A pool of memory was created.
        CREATE_POOL = 3, "create pool";
        /// A pool was destroyed.
        DESTROY_POOL = 4, "destroy pool";
        /// A pool returned memory that it does not use.
        TRIM_POOL = 5, "trim pool";
    }
}

/// An allocation or release of memory by the program. 80 bytes.
///
/// Like rocprofiler-sdk, and unlike CUPTI, which has one record for the life of an allocation: it may outlast the
/// recording.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Allocation {
    /// Kind [`Kind::MEMORY_ALLOCATION`].
    pub header: Header,
    /// The call.
    pub correlation: CorrelationId,
    /// The external id supplied for the operation, or else that of the call.
    pub external: ExternalId,
    /// When the operation began.
    pub start: Ticks,
    /// When the operation ended.
    pub end: Ticks,
    /// Address or handle.
    pub address: u64,
    /// The size in bytes; 0 in a free record if unknown.
    pub bytes: u64,
    /// The agent of the memory; none if the runtime decides.
    pub agent: AgentId,
    /// The context.
    pub context: ContextId,
    /// The calling thread.
    pub thread: ThreadId,
    /// Allocation or release.
    pub operation: AllocationOperation,
    /// The kind of memory.
    pub memory: MemoryKind,
    /// Reserved, 0.
    pub reserved: [u8; 2],
    /// The runtime's flags (OpenCL: cl_mem_flags).
    pub runtime_flags: u64,
}
record!(Allocation, Kind::MEMORY_ALLOCATION, 80);
