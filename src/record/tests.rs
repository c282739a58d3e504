//! The layouts are a contract: these tests fail when one moves.

use super::*;
use core::mem::offset_of;

macro_rules! layout {
    ($type:ty, $size:literal, $($field:ident @ $offset:literal),* $(,)?) => {
        assert_eq!(size_of::<$type>(), $size, stringify!($type));
        $(assert_eq!(offset_of!($type, $field), $offset, concat!(stringify!($type), ".", stringify!($field)));)*
    };
}

#[test]
fn layouts_are_pinned() {
    layout!(Header, 8, kind @ 0, flags @ 1, words @ 2, sequence @ 4);
    layout!(Api, 64, header @ 0, start @ 8, end @ 16, correlation @ 24, ancestor @ 32, external @ 40,
        thread @ 48, return_code @ 52, operation @ 56, stack @ 60);
    layout!(WorkHeader, 56, id @ 0, correlation @ 8, external @ 16, enqueued @ 24, agent @ 32, context @ 36,
        queue @ 40, stream @ 44, thread @ 48, command @ 52, commands @ 54);
    layout!(KernelDispatch, 152, work @ 8, kernel @ 64, workgroup @ 68, grid @ 80, registers @ 104,
        static_local_memory @ 108, dynamic_local_memory @ 112, private_memory @ 116, private_memory_total @ 120,
        grid_id @ 128, executed_local_memory @ 136, cache_requested @ 140, cache_executed @ 141,
        local_memory_config @ 142, carveout @ 143, launch @ 144, dimensions @ 145, accumulation_registers @ 146,
        scalar_registers @ 148, reserved @ 150);
    layout!(Completion, 80, work @ 8, correlation @ 16, queued @ 24, submitted @ 32, start @ 40, end @ 48,
        completed @ 56, agent @ 64, status @ 68, unfinished @ 72);
    layout!(Retirement, 24, correlation @ 8, time @ 16);
    layout!(Dependency, 32, correlation @ 8, work @ 16, waited_for @ 24);
    layout!(ChildKernel, 48, work @ 8, parent @ 16, parent_grid @ 24, parent_kernel @ 32, parent_workgroup @ 36);
    layout!(Preemption, 56, time @ 8, work @ 16, grid @ 24, agent @ 32, workgroup @ 36, what @ 48, reserved @ 49);
    layout!(InstructionCount, 96, correlation @ 8, work @ 16, offset @ 24, executed @ 32, threads @ 40,
        diverged @ 48, transactions @ 56, ideal_transactions @ 64, code_object @ 72, kernel @ 76, agent @ 80,
        source_locator @ 84, class @ 88, instruction @ 89, access @ 90, bytes @ 91, reserved @ 92);
    layout!(GraphNode, 32, work @ 8, node @ 16, graph @ 24, reserved @ 28);
    layout!(GraphChange, 64, time @ 8, correlation @ 16, handle @ 24, node @ 32, other_node @ 40, graph @ 48,
        other_graph @ 52, thread @ 56, domain @ 60, what @ 62, node_type @ 63);
    layout!(MemoryCopy, 128, work @ 8, bytes @ 64, source_address @ 72, destination_address @ 80,
        source_offset @ 88, destination_offset @ 96, source_agent @ 104, destination_agent @ 108, transfer @ 112,
        source_memory @ 113, destination_memory @ 114, reserved @ 115, source_context @ 120,
        destination_context @ 124);
    layout!(MemorySet, 88, work @ 8, bytes @ 64, address @ 72, value @ 80, pattern_bytes @ 84, memory @ 86,
        reserved @ 87);
    layout!(Allocation, 80, correlation @ 8, external @ 16, start @ 24, end @ 32, address @ 40, bytes @ 48,
        agent @ 56, context @ 60, thread @ 64, operation @ 68, memory @ 69, runtime_flags @ 72);
    layout!(Synchronization, 104, work @ 8, end @ 64, event_handle @ 72, waited_for @ 80, events @ 88, event @ 92,
        what @ 96, reserved @ 97);
    layout!(Overhead, 56, correlation @ 8, start @ 16, end @ 24, thread @ 32, agent @ 36, module @ 40,
        what @ 44, detail @ 48);
    layout!(Environment, 32, time @ 8, value @ 16, agent @ 24, what @ 28, reserved @ 29);
    layout!(UnifiedMemoryCounter, 56, start @ 8, end @ 16, value @ 24, address @ 32, source_agent @ 40,
        destination_agent @ 44, flags @ 48, what @ 52, reserved @ 53);
    layout!(Loss, 40, count @ 8, first @ 16, last @ 24, thread @ 32, lost @ 36);
    layout!(ClockSnapshot, 56, before @ 8, after @ 16, monotonic @ 24, monotonic_raw @ 32, boottime @ 40,
        realtime @ 48);
    layout!(ClockPair, 40, before @ 8, after @ 16, device @ 24, agent @ 32);
    layout!(Arguments, 184, correlation @ 8, operation @ 16, count @ 20, values @ 24);
    layout!(CallStack, 1040, id @ 8, count @ 12, frames @ 16);
    layout!(HostModule, 24, id @ 8, path @ 12, build_id @ 16, reserved @ 20);
    layout!(StringName, 16, id @ 8, length @ 12);
    layout!(Process, 48, id @ 8, parent @ 12, executable @ 16, command @ 20, host @ 24, version @ 28,
        configuration @ 32, main_thread @ 36, rank @ 40, name @ 44);
    layout!(Thread, 24, id @ 8, name @ 12);
    layout!(Agent, 88, id @ 8, name @ 12, vendor @ 16, driver @ 20, version @ 24, platform @ 28,
        architecture @ 32, bus @ 36, compute_units @ 40, clock_mhz @ 44, memory @ 48, local_memory @ 56,
        max_workgroup @ 64, domain @ 68, kind @ 70, handle @ 72, timer_resolution @ 80);
    layout!(Context, 40, id @ 8, agent @ 12, handle @ 16, agents @ 24, domain @ 28, name @ 32);
    layout!(Queue, 40, id @ 8, context @ 12, agent @ 16, properties @ 20, handle @ 24, name @ 32, number @ 36);
    layout!(Stream, 40, id @ 8, context @ 12, agent @ 16, name @ 20, handle @ 24, priority @ 32, flag @ 36);
    layout!(Event, 24, id @ 8, context @ 12, handle @ 16);
    layout!(Module, 40, id @ 8, context @ 12, handle @ 16, source @ 24, options @ 28);
    layout!(CodeObject, 48, id @ 8, module @ 12, agent @ 16, path @ 20, load_base @ 24, load_size @ 32);
    layout!(AgentAttribute, 24, agent @ 8, what @ 12, reserved @ 14, value @ 16);
    layout!(Link, 48, agent @ 8, peer @ 12, what @ 16, flags @ 17, generation @ 18, reserved @ 19, width @ 20,
        max_width @ 22, rate @ 24, max_rate @ 28, bandwidth @ 32, upstream @ 40, reserved2 @ 44);
    layout!(CodeBytes, 40, id @ 8, length @ 12, offset @ 16, total @ 24, flags @ 32, reserved @ 36);
    layout!(KernelSymbol, 64, id @ 8, module @ 12, name @ 16, demangled @ 20, handle @ 24, local_memory @ 32,
        private_memory @ 40, max_workgroup @ 48, workgroup_multiple @ 52, arguments @ 56, code_object @ 60);
    layout!(OperationName, 24, operation @ 8, name @ 12, arguments @ 16, group @ 20);
    layout!(Note, 24, time @ 8, text @ 16, what @ 20);
    layout!(HostTrapSample, 96, correlation @ 8, external @ 16, work @ 24, time @ 32, offset @ 40, exec_mask @ 48,
        hardware @ 56, agent @ 64, kernel @ 68, code_object @ 72, thread @ 76, workgroup @ 80, absent @ 92,
        wave_in_group @ 94);
    layout!(StochasticSample, 112, wave_in_group @ 94, issue @ 95, snapshot @ 96, memory_counters @ 100,
        wave_count @ 104, has_memory_counters @ 108);
    layout!(InvalidSample, 32, time @ 8, work @ 16, agent @ 24, method @ 28);
    layout!(SamplingTotals, 56, correlation @ 8, work @ 16, total @ 24, dropped @ 32, interval @ 40, agent @ 48,
        method @ 52, unit @ 53);
    layout!(SampleAggregate, 72, correlation @ 8, work @ 16, offset @ 24, samples @ 32, latency_samples @ 40,
        code_object @ 48, kernel @ 52, agent @ 56, source_locator @ 60, stall @ 64, reason @ 65, instruction @ 66,
        method @ 67);
    layout!(SourceLocator, 24, id @ 8, file @ 12, line @ 16, column @ 20);
    layout!(InstructionCorrelation, 40, offset @ 8, code_object @ 16, kernel @ 20, source_locator @ 24, text @ 28,
        instruction @ 32);
    layout!(CounterValue, 80, correlation @ 8, work @ 16, start @ 24, end @ 32, value @ 40, agent @ 48, queue @ 52,
        counter @ 56, block @ 60, instance @ 64, remaining @ 68, scheduled @ 70, value_type @ 72, invalid @ 73,
        usage @ 74, range @ 76);
}

#[test]
fn a_header_is_laid_out_as_drawn() {
    let mut header = Header::of::<Api>().with(flags::FAILED);
    header.sequence = 0x0403_0201;
    assert_eq!(bytemuck::bytes_of(&header), [1, 4, 8, 0, 1, 2, 3, 4]);
}

#[test]
fn every_kind_has_a_value_a_name_and_an_index_of_its_own() {
    for (place, (kind, name)) in Kind::ALL.iter().enumerate() {
        assert_eq!(kind.index(), place);
        assert_eq!(Kind::from_index(place), Some(*kind));
        assert_eq!(Kind::from_name(name), Some(*kind));
    }
    assert_eq!(Kind(0xff).index(), KINDS - 1);
    assert_eq!(Kind::from_index(KINDS - 1), None);
}

#[test]
fn every_kind_has_one_type() {
    let kinds = [
        Api::KIND,
        KernelDispatch::KIND,
        MemoryCopy::KIND,
        MemorySet::KIND,
        Allocation::KIND,
        Synchronization::KIND,
        Completion::KIND,
        Retirement::KIND,
        Dependency::KIND,
        ChildKernel::KIND,
        Preemption::KIND,
        InstructionCount::KIND,
        GraphNode::KIND,
        GraphChange::KIND,
        Arguments::KIND,
        Overhead::KIND,
        Environment::KIND,
        UnifiedMemoryCounter::KIND,
        Loss::KIND,
        ClockSnapshot::KIND,
        ClockPair::KIND,
        CallStack::KIND,
        HostModule::KIND,
        StringName::KIND,
        Process::KIND,
        Thread::KIND,
        Agent::KIND,
        Context::KIND,
        Queue::KIND,
        Stream::KIND,
        Event::KIND,
        Module::KIND,
        CodeObject::KIND,
        CodeBytes::KIND,
        AgentAttribute::KIND,
        Link::KIND,
        KernelSymbol::KIND,
        OperationName::KIND,
        Note::KIND,
        HostTrapSample::KIND,
        StochasticSample::KIND,
        InvalidSample::KIND,
        SamplingTotals::KIND,
        SampleAggregate::KIND,
        SourceLocator::KIND,
        InstructionCorrelation::KIND,
        CounterValue::KIND,
    ];
    let distinct: std::collections::HashSet<_> = kinds.iter().collect();
    assert_eq!(distinct.len(), kinds.len());
}

#[test]
fn arguments_take_only_the_space_of_their_values() {
    let record = Arguments::new(CorrelationId(7), Operation::default(), &[1, 2, 3]);
    assert_eq!(record.header.bytes(), 48);
    let run = bytemuck::bytes_of(&record)[..record.header.bytes()].to_vec();
    let read = Records::new(&run)
        .next()
        .unwrap()
        .read::<Arguments>()
        .unwrap();
    assert_eq!((read.count, &read.values[..4]), (3, &[1, 2, 3, 0][..]));
}

proptest::proptest! {
    #[test]
    fn the_iterator_survives_arbitrary_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600)) {
        let mut records = Records::new(&bytes);
        let mut total = 0;
        for record in records.by_ref() {
            total += record.bytes().len();
            record.read::<Api>();
            record.get::<Api>();
            record.activity();
            record.string();
        }
        match records.malformed() {
            Some(malformed) => assert_eq!(malformed.offset, total),
            None => assert_eq!(total, bytes.len()),
        }
    }
}
