//! The layouts of CUPTI's activity records, as far as they are read.
//!
//! A record only ever grows at its end from one version of CUPTI to the next, and the library writes the layout of its
//! own version. The size of each kind, its stride, is learnt from the library itself; a field that the stride does not
//! cover reads as zero.

use super::ffi::{self, Cupti, call};
use bytemuck::{Pod, Zeroable};

/// Declares the beginning of a record as far as it is read. The fields have no gaps.
macro_rules! layouts {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {
        $($(#[$meta])*
        #[derive(Copy, Clone, Pod, Zeroable)]
        #[repr(C, packed)]
        pub(super) struct $name { $(pub $field: $type,)* })*

        /// The offset of each field, by layout and name.
        #[cfg(test)]
        pub(super) const FIELDS: &[(&str, &str, usize, usize)] = &[$($((
            stringify!($name),
            stringify!($field),
            core::mem::offset_of!($name, $field),
            size_of::<$type>(),
        ),)*)*];
    };
}

layouts! {
    /// A kernel (CUPTI: `CUpti_ActivityKernel3` and later).
    Kernel {
        kind: u32,
        cache_config: u8,
        shared_memory_config: u8,
        registers: u16,
        partitioned_requested: u32,
        partitioned_executed: u32,
        start: u64,
        end: u64,
        completed: u64,
        device: u32,
        context: u32,
        stream: u32,
        grid: [u32; 3],
        block: [u32; 3],
        static_shared: u32,
        dynamic_shared: u32,
        local_per_thread: u32,
        local_total: u32,
        correlation: u32,
        grid_id: i64,
        name: u64,
        reserved: u64,
        queued: u64,
        submitted: u64,
        launch_type: u8,
        carveout_is_requested: u8,
        carveout_requested: u8,
        padding: u8,
        shared_executed: u32,
        graph_node: u64,
        shared_limit: u32,
        graph: u32,
        access_policy: u64,
        channel: u32,
        channel_type: u32,
        cluster: [u32; 3],
        cluster_scheduling: u32,
        local_total_64: u64,
    }

    /// A copy (CUPTI: `CUpti_ActivityMemcpy` and later).
    Copy {
        kind: u32,
        copy_kind: u8,
        source_kind: u8,
        destination_kind: u8,
        flags: u8,
        bytes: u64,
        start: u64,
        end: u64,
        device: u32,
        context: u32,
        stream: u32,
        correlation: u32,
        runtime_correlation: u32,
        padding: u32,
        reserved: u64,
        graph_node: u64,
        graph: u32,
    }

    /// A copy between devices (CUPTI: `CUpti_ActivityMemcpyPtoP` and later).
    PeerCopy {
        kind: u32,
        copy_kind: u8,
        source_kind: u8,
        destination_kind: u8,
        flags: u8,
        bytes: u64,
        start: u64,
        end: u64,
        device: u32,
        context: u32,
        stream: u32,
        source_device: u32,
        source_context: u32,
        destination_device: u32,
        destination_context: u32,
        correlation: u32,
        reserved: u64,
        graph_node: u64,
        graph: u32,
    }

    /// A fill (CUPTI: `CUpti_ActivityMemset` and later).
    Set {
        kind: u32,
        value: u32,
        bytes: u64,
        start: u64,
        end: u64,
        device: u32,
        context: u32,
        stream: u32,
        correlation: u32,
        flags: u16,
        memory_kind: u16,
        padding: u32,
        reserved: u64,
        graph_node: u64,
        graph: u32,
    }

    /// An allocation or release (CUPTI: `CUpti_ActivityMemory2` and later).
    Memory {
        kind: u32,
        operation: u32,
        memory_kind: u32,
        correlation: u32,
        address: u64,
        bytes: u64,
        timestamp: u64,
        pc: u64,
        process: u32,
        device: u32,
        context: u32,
        stream: u32,
    }

    /// A pool of memory that was created, destroyed or trimmed (CUPTI: `CUpti_ActivityMemoryPool` and later).
    MemoryPool {
        kind: u32,
        operation: u32,
        pool_type: u32,
        correlation: u32,
        process: u32,
        device: u32,
        kept_bytes: u64,
        address: u64,
        bytes: u64,
        threshold: u64,
        timestamp: u64,
    }

    /// A wait of the host, or of a stream (CUPTI: `CUpti_ActivitySynchronization` and later).
    Synchronization {
        kind: u32,
        what: u32,
        start: u64,
        end: u64,
        correlation: u32,
        context: u32,
        stream: u32,
        event: u32,
    }

    /// An event that was recorded in a stream (CUPTI: `CUpti_ActivityCudaEvent` and later).
    CudaEvent {
        kind: u32,
        correlation: u32,
        context: u32,
        stream: u32,
        event: u32,
        padding: u32,
        device: u32,
        padding2: u32,
        reserved: u64,
        timestamp: u64,
    }

    /// A stream that was created (CUPTI: `CUpti_ActivityStream`).
    CreatedStream {
        kind: u32,
        context: u32,
        stream: u32,
        priority: u32,
        flag: u32,
        correlation: u32,
    }

    /// Managed memory that moved, or page faults (CUPTI: `CUpti_ActivityUnifiedMemoryCounter2` and later).
    UnifiedMemory {
        kind: u32,
        what: u32,
        value: u64,
        start: u64,
        end: u64,
        address: u64,
        source: u32,
        destination: u32,
        stream: u32,
        process: u32,
        flags: u32,
        padding: u32,
    }

    /// The state of a device (CUPTI: `CUpti_ActivityEnvironment`). The meaning of `values` depends on `what`.
    Environment {
        kind: u32,
        device: u32,
        timestamp: u64,
        what: u32,
        values: [u32; 5],
    }

    /// Time taken by CUPTI or the driver (CUPTI: `CUpti_ActivityOverhead` and later). In the first version the times are
    /// at the same place.
    Overhead {
        kind: u32,
        overhead_kind: u32,
        object_kind: u32,
        object: [u32; 3],
        start: u64,
        end: u64,
        correlation: u32,
    }

    /// Work of the driver's compiler, or of its cache (CUPTI: `CUpti_ActivityJit` and later).
    Jit {
        kind: u32,
        entry: u32,
        operation: u32,
        device: u32,
        start: u64,
        end: u64,
        correlation: u32,
        padding: u32,
        operation_correlation: u64,
        cache_bytes: u64,
        cache_path: u64,
    }

    /// A function of a module (CUPTI: `CUpti_ActivityFunction`).
    FunctionOf {
        kind: u32,
        id: u32,
        context: u32,
        module: u32,
        index: u32,
        padding: u32,
        name: u64,
    }

    /// An id that the program had pushed to CUPTI when it made a call (CUPTI: `CUpti_ActivityExternalCorrelation`).
    External {
        kind: u32,
        external_kind: u32,
        id: u64,
        correlation: u32,
    }
}

/// The number of kinds whose strides are kept.
const KINDS: usize = 64;

/// The kinds that are read.
pub(super) const READ: [u32; 16] = [
    ffi::MEMCPY,
    ffi::MEMSET,
    ffi::KERNEL,
    ffi::CONCURRENT_KERNEL,
    ffi::OVERHEAD,
    ffi::ENVIRONMENT,
    ffi::MEMCPY_PEER,
    ffi::UNIFIED_MEMORY_COUNTER,
    ffi::CUDA_EVENT,
    ffi::STREAM,
    ffi::SYNCHRONIZATION,
    ffi::MEMORY,
    ffi::MEMORY_POOL,
    ffi::JIT,
    ffi::EXTERNAL_CORRELATION,
    ffi::FUNCTION,
];

/// The sizes of the records of the loaded library.
pub(super) struct Strides([u16; KINDS]);

impl Strides {
    /// Learns the size of each kind that is read.
    pub fn learn(cupti: &Cupti) -> Strides {
        let mut strides = Strides([0; KINDS]);
        for kind in READ {
            let size = size_by_name(cupti, kind).or_else(|| size_by_walk(cupti, kind));
            let size = size.and_then(|size| u16::try_from(size).ok());
            strides.0[kind as usize] = size.unwrap_or(0);
        }
        strides
    }

    /// The size of records of `kind`; `None` if they are not read, or the library did not give it.
    pub fn of(&self, kind: u32) -> Option<usize> {
        let size = *self.0.get(kind as usize)?;
        (size > 0).then_some(size.into())
    }

    /// The sizes as text, for the trace's note about the library.
    pub fn describe(&self) -> String {
        let known = READ.iter().filter_map(|kind| Some((kind, self.of(*kind)?)));
        let texts: Vec<String> = known
            .map(|(kind, size)| format!("{kind}: {size}"))
            .collect();
        texts.join(", ")
    }
}

/// The size that the library states, which newer versions do.
fn size_by_name(cupti: &Cupti, kind: u32) -> Option<usize> {
    let mut size = 0;
    // SAFETY: CUPTI writes to a local, and refuses a kind that it does not know.
    let status = unsafe { call!(cupti, cuptiActivityGetStructSize(kind, 0, &raw mut size)) }?;
    (status == ffi::SUCCESS && size > 0).then_some(size)
}

/// The size as the distance of two records in a buffer of our own, which the library walks.
fn size_by_walk(cupti: &Cupti, kind: u32) -> Option<usize> {
    const WORDS: usize = 512;
    let mut buffer = [0u64; WORDS];
    // Wherever the second record begins, it is of the same kind.
    buffer.fill(u64::from(kind));
    let start = buffer.as_mut_ptr().cast::<u8>();
    let mut record = core::ptr::null_mut();
    for _ in 0..2 {
        // SAFETY: `start` leads to all bytes of `buffer`; `record` is null, or the record that CUPTI has set it to.
        let next = unsafe {
            call!(
                cupti,
                cuptiActivityGetNextRecord(start, size_of_val(&buffer), &raw mut record)
            )
        }?;
        if next != ffi::SUCCESS {
            return None;
        }
    }
    let size = (record as usize).checked_sub(start as usize)?;
    (size > 0 && size < size_of_val(&buffer)).then_some(size)
}

/// The kind of a record.
pub(super) fn kind(bytes: &[u8]) -> u32 {
    let kind = bytes.first_chunk().copied().unwrap_or_default();
    u32::from_ne_bytes(kind)
}

/// Reads a record. What it does not cover is zero.
#[inline(always)]
pub(super) fn read<R: Pod>(bytes: &[u8]) -> R {
    let mut record = R::zeroed();
    let to = bytemuck::bytes_of_mut(&mut record);
    let covered = bytes.len().min(to.len());
    to[..covered].copy_from_slice(&bytes[..covered]);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_cupti_puts_them() {
        let at = |layout: &str, field: &str| {
            let mut all = FIELDS.iter();
            let found = all.find(|(of, name, ..)| (*of, *name) == (layout, field));
            found.unwrap_or_else(|| panic!("{layout}.{field}")).2
        };
        let expected = [
            ("Kernel", "registers", 6),
            ("Kernel", "start", 16),
            ("Kernel", "correlation", 92),
            ("Kernel", "name", 104),
            ("Kernel", "graph_node", 144),
            ("Kernel", "graph", 156),
            ("Kernel", "channel", 168),
            ("Kernel", "local_total_64", 192),
            ("Copy", "correlation", 44),
            ("Copy", "graph", 72),
            ("PeerCopy", "correlation", 60),
            ("Set", "memory_kind", 50),
            ("Set", "graph_node", 64),
            ("Memory", "timestamp", 32),
            ("Memory", "stream", 60),
            ("MemoryPool", "address", 32),
            ("MemoryPool", "timestamp", 56),
            ("Synchronization", "event", 36),
            ("CudaEvent", "timestamp", 40),
            ("CreatedStream", "flag", 16),
            ("UnifiedMemory", "source", 40),
            ("UnifiedMemory", "flags", 56),
            ("Environment", "values", 20),
            ("Overhead", "start", 24),
            ("Overhead", "correlation", 40),
        ];
        for (layout, field, offset) in expected {
            assert_eq!(at(layout, field), offset, "{layout}.{field}");
        }
    }

    #[test]
    fn what_a_shorter_record_does_not_cover_is_zero() {
        let mut bytes = [0xff_u8; 48];
        bytes[..4].copy_from_slice(&ffi::OVERHEAD.to_ne_bytes());
        let whole: Overhead = read(&bytes);
        let first: Overhead = read(&bytes[..40]);
        assert_eq!((kind(&bytes), { whole.correlation }), (17, u32::MAX));
        assert_eq!(({ first.end }, { first.correlation }), (u64::MAX, 0));
    }
}
