//! Records of work as tables of their fields: those that several structures have are written here, once.

/// A record of work: the fields that all of them have, and these.
macro_rules! of_work {
    ($record:ident, $device:expr, $joined:expr, { $($field:ident: $value:expr,)* }) => {
        $record {
            start: $joined.times.start.0,
            end: $joined.times.end.0,
            device_id: $device,
            context_id: $joined.work.context.0,
            stream_id: $crate::objects::stream_id($joined.work.stream, $joined.work.queue),
            correlation_id: $crate::activity::correlation($joined.work.correlation),
            $($field: $value,)*
            ..ActivityRecord::blank()
        }
    };
}

/// A record of a kernel: the fields that all of them have, and these.
macro_rules! of_kernel {
    ($record:ident, $device:expr, $kernel:expr, { $($field:ident: $value:expr,)* }) => {{
        let [grid_x, grid_y, grid_z] = workgroups(&$kernel).map(signed);
        let [block_x, block_y, block_z] = workgroup(&$kernel).map(signed);
        of_work!($record, $device, $kernel, {
            cache_config: $kernel.cache_requested & 0xf | $kernel.cache_executed << 4,
            shared_memory_config: $kernel.local_memory_config,
            registers_per_thread: $kernel.registers.try_into().unwrap_or(u16::MAX),
            completed: $kernel.times.end.0,
            grid_x: grid_x,
            grid_y: grid_y,
            grid_z: grid_z,
            block_x: block_x,
            block_y: block_y,
            block_z: block_z,
            static_shared_memory: signed($kernel.static_local_memory),
            dynamic_shared_memory: signed($kernel.dynamic_local_memory),
            local_memory_per_thread: $kernel.private_memory,
            local_memory_total: $kernel.private_memory_total.try_into().unwrap_or(u32::MAX),
            grid_id: $kernel.grid_id,
            name: names::of_kernel($kernel.kernel),
            $($field: $value,)*
        })
    }};
}

/// A copy: the fields that all of them have, and these.
macro_rules! of_copy {
    ($record:ident, $device:expr, $copy:expr, $kind:expr, { $($field:ident: $value:expr,)* }) => {
        of_work!($record, $device, $copy, {
            copy_kind: $kind,
            // CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC
            flags: $copy.is_asynchronous().into(),
            src_kind: $copy.source_memory.0,
            dst_kind: $copy.destination_memory.0,
            bytes: $copy.bytes,
            $($field: $value,)*
        })
    };
}

pub(super) use {of_copy, of_kernel, of_work};
