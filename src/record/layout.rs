//! The layout of every record as data, for what walks all kinds, fields and values: checks of the documents, and the check
//! that some source produces each.

use super::*;

/// The layout of one kind of record.
#[derive(Copy, Clone, Debug)]
pub struct RecordLayout {
    /// The name of the type.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// The size of the type.
    pub bytes: usize,
    /// The fields after the header, in order, without gaps.
    pub fields: &'static [Field],
}

/// A field of a record.
#[derive(Copy, Clone, Debug)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// The offset in the record.
    pub offset: usize,
    /// The size.
    pub bytes: usize,
    /// Its values.
    pub values: FieldValues,
    /// The clock that a time was read from; `None` for other fields.
    pub clock: Option<FieldClock>,
}

/// The clock that a field's time was read from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FieldClock {
    /// The host's: [`Ticks`].
    Host,
    /// That of the record's agent: [`DeviceTime`].
    Agent,
}

impl FieldClock {
    /// The clock of fields of the type called `name`.
    pub(crate) const fn of_type(name: &str) -> Option<FieldClock> {
        match name.as_bytes() {
            b"Ticks" => Some(FieldClock::Host),
            b"DeviceTime" => Some(FieldClock::Agent),
            _ => None,
        }
    }
}

/// The values of a field.
#[derive(Copy, Clone, Debug)]
pub enum FieldValues {
    /// A number, an id, a time or an array of such.
    Number,
    /// Named values: the name of the type, the values and their names.
    Named(&'static str, &'static [(u64, &'static str)]),
    /// Bit fields: the name of the type; name, first bit and width of each.
    Bits(&'static str, &'static [(&'static str, u32, u32)]),
    /// A structure with these fields; their offsets count from its begin.
    Fields(&'static [Field]),
}

impl Field {
    /// Whether the field is reserved, and always 0.
    pub fn is_reserved(&self) -> bool {
        self.name.starts_with("reserved")
    }
}

impl RecordLayout {
    /// The layout of records of `kind`.
    pub fn of(kind: Kind) -> Option<&'static RecordLayout> {
        LAYOUTS.iter().find(|layout| layout.kind == kind)
    }
}

/// The type of a field.
pub trait FieldType {
    /// Meaning of its values.
    const VALUES: FieldValues = FieldValues::Number;
    /// The clock of its values, if they are times.
    const CLOCK: Option<FieldClock> = None;
}

impl FieldType for u8 {}
impl FieldType for u16 {}
impl FieldType for u32 {}
impl FieldType for u64 {}
impl FieldType for i32 {}
impl FieldType for i64 {}
impl<T: FieldType, const N: usize> FieldType for [T; N] {}

const fn field<S, F: FieldType>(name: &'static str, offset: usize, _get: fn(&S) -> &F) -> Field {
    Field {
        name,
        offset,
        bytes: size_of::<F>(),
        values: F::VALUES,
        clock: F::CLOCK,
    }
}

/// Whether `fields` fill the bytes from `from` to `to`.
const fn are_without_gaps(fields: &[Field], mut from: usize, to: usize) -> bool {
    let mut place = 0;
    while place < fields.len() {
        if fields[place].offset != from {
            return false;
        }
        from += fields[place].bytes;
        place += 1;
    }
    from == to
}

macro_rules! fields {
    ($type:ident, $($field:ident),*) => {
        &[$(field(stringify!($field), core::mem::offset_of!($type, $field), |of: &$type| &of.$field)),*]
    };
}

macro_rules! layouts {
    ($($type:ident { $($field:ident),* $(,)? })*) => {
        /// The layouts of all records.
        pub const LAYOUTS: &[RecordLayout] = &[$(RecordLayout {
            name: stringify!($type),
            kind: $type::KIND,
            bytes: size_of::<$type>(),
            fields: fields!($type, $($field),*),
        }),*];
    };
}

macro_rules! parts {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl FieldType for $type {
            const VALUES: FieldValues = FieldValues::Fields(fields!($type, $($field),*));
        }
    };
}

parts! { Operation { domain, number } }
parts! {
    WorkHeader { id, correlation, external, enqueued, agent, context, queue, stream, thread, command, commands }
}

layouts! {
    Api { start, end, correlation, ancestor, external, thread, return_code, operation, stack }
    KernelDispatch {
        work, kernel, workgroup, grid, registers, static_local_memory, dynamic_local_memory, private_memory,
        private_memory_total, grid_id, executed_local_memory, cache_requested, cache_executed,
        local_memory_config, carveout, launch, dimensions, accumulation_registers, scalar_registers, reserved
    }
    MemoryCopy {
        work, bytes, source_address, destination_address, source_offset, destination_offset, source_agent,
        destination_agent, transfer, source_memory, destination_memory, reserved, source_context,
        destination_context
    }
    MemorySet { work, bytes, address, value, pattern_bytes, memory, reserved }
    Allocation {
        correlation, external, start, end, address, bytes, agent, context, thread, operation, memory, reserved,
        runtime_flags
    }
    Synchronization { work, end, event_handle, waited_for, events, event, what, reserved }
    Completion { work, correlation, queued, submitted, start, end, completed, agent, status, unfinished, reserved }
    Retirement { correlation, time }
    Dependency { correlation, work, waited_for }
    ChildKernel { work, parent, parent_grid, parent_kernel, parent_workgroup }
    GraphNode { work, node, graph, reserved }
    GraphChange {
        time, correlation, handle, node, other_node, graph, other_graph, thread, domain, what, node_type
    }
    ExternalCorrelation { correlation, external, kind, reserved }
    Arguments { correlation, operation, count, values }
    Overhead { correlation, start, end, thread, agent, module, what, reserved, detail, reserved2 }
    Loss { count, first, last, thread, lost, reserved }
    ClockSnapshot { before, after, monotonic, monotonic_raw, boottime, realtime }
    ClockPair { before, after, device, agent, reserved }
    CallStack { id, count, frames }
    HostModule { id, path, build_id, reserved }
    StringName { id, length }
    Process { id, parent, executable, command, host, version, configuration, main_thread, rank, name }
    Thread { id, name, reserved }
    Agent {
        id, name, vendor, driver, version, platform, architecture, bus, compute_units, clock_mhz, memory,
        local_memory, max_workgroup, domain, kind, reserved, handle, timer_resolution
    }
    Context { id, agent, handle, agents, domain, reserved, name, reserved2 }
    Queue { id, context, agent, properties, handle, name, number }
    Stream { id, context, agent, name, handle, priority, flag }
    Event { id, context, handle }
    Module { id, context, handle, source, options, reserved }
    CodeObject { id, module, agent, path, load_base, load_size, reserved }
    KernelSymbol {
        id, module, name, demangled, handle, local_memory, private_memory, max_workgroup, workgroup_multiple,
        arguments, code_object
    }
    OperationName { operation, name, arguments, group }
    Note { time, text, what }
    ExternalName { id, kind, name }
    AgentAttribute { agent, what, reserved, value }
    CodeBytes { id, length, offset, total, flags, reserved }
    Link {
        agent, peer, what, flags, generation, reserved, width, max_width, rate, max_rate, bandwidth, upstream,
        reserved2
    }
    Marker { time, id, payload, name, domain, category, color, thread, what, payload_kind, external_kind }
    Environment { time, value, agent, what, reserved }
    UnifiedMemoryCounter { start, end, value, address, source_agent, destination_agent, flags, what, reserved }
    Preemption { time, work, grid, agent, workgroup, what, reserved }
    HostTrapSample {
        correlation, external, work, time, offset, exec_mask, hardware, agent, kernel, code_object, thread,
        workgroup, absent, wave_in_group, reserved
    }
    StochasticSample {
        correlation, external, work, time, offset, exec_mask, hardware, agent, kernel, code_object, thread,
        workgroup, absent, wave_in_group, issue, snapshot, memory_counters, wave_count, has_memory_counters,
        reserved
    }
    InvalidSample { time, work, agent, method, reserved }
    SamplingTotals { correlation, work, total, dropped, interval, agent, method, unit, reserved }
    SampleAggregate {
        correlation, work, offset, samples, latency_samples, code_object, kernel, agent, source_locator, stall,
        reason, instruction, method, reserved
    }
    SourceLocator { id, file, line, column }
    InstructionCorrelation { offset, code_object, kernel, source_locator, text, instruction, reserved }
    InstructionCount {
        correlation, work, offset, executed, threads, diverged, transactions, ideal_transactions, code_object,
        kernel, agent, source_locator, class, instruction, access, bytes, reserved
    }
    CounterValue {
        correlation, work, start, end, value, agent, queue, counter, block, instance, remaining, scheduled,
        value_type, invalid, usage, reserved, range
    }
}

const _: () = {
    let mut place = 0;
    while place < LAYOUTS.len() {
        let RecordLayout { fields, bytes, .. } = LAYOUTS[place];
        assert!(are_without_gaps(fields, size_of::<Header>(), bytes));
        place += 1;
    }
};
