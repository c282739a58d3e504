//! Counters: what there is, and the values that are collected.

use crate::layouts::layouts;
use crate::types::{
    AgentId, AsyncCorrelationId, CounterDimensionId, CounterId, CounterInstanceId, DispatchId,
    KernelDispatchInfo, Timestamp, UserData,
};
use core::ffi::c_char;

layouts! { COUNTER_LAYOUTS:
    /// A dimension of a counter, with the number of its positions.
    fixed CounterRecordDimensionInfo = "rocprofiler_counter_record_dimension_info_t" {
        name: *const c_char,
        instance_size: usize,
        id: CounterDimensionId,
    }

    /// A value of a counter at one position in each of its dimensions. `dispatch_id` is 0 without a dispatch.
    fixed CounterRecord = "rocprofiler_counter_record_t" {
        id: CounterInstanceId,
        counter_value: f64,
        dispatch_id: DispatchId,
        user_data: UserData,
        agent_id: AgentId,
    }

    /// A counter. `flags`: [`IS_CONSTANT`], [`IS_DERIVED`]. `block` is that of hardware counters, `expression` that of derived ones.
    fixed CounterInfoV0 = "rocprofiler_counter_info_v0_t" {
        id: CounterId,
        name: *const c_char,
        description: *const c_char,
        block: *const c_char,
        expression: *const c_char,
        flags: u8,
    }

    /// A dimension with a position in it.
    growing CounterDimensionInfo = "rocprofiler_counter_dimension_info_t" {
        size: u64,
        dimension_name: *const c_char,
        index: usize,
    }

    /// A counter at one position in each of its dimensions.
    growing CounterRecordDimensionInstanceInfo = "rocprofiler_counter_record_dimension_instance_info_t" {
        size: u64,
        instance_id: CounterInstanceId,
        counter_id: u64,
        dimensions_count: u64,
        dimensions: *const *const CounterDimensionInfo,
    }

    /// A counter with its dimensions and instances.
    growing CounterInfoV1 = "rocprofiler_counter_info_v1_t" {
        size: u64,
        id: CounterId,
        name: *const c_char,
        description: *const c_char,
        block: *const c_char,
        expression: *const c_char,
        flags: u8,
        dimensions_count: u64,
        dimensions: *const *const CounterRecordDimensionInfo,
        dimensions_instances_count: u64,
        dimensions_instances: *const *const CounterRecordDimensionInstanceInfo,
        spm_support: u8,
        reserved_padding: [u8; 7],
    }

    /// A dispatch that is counted. The times are there when it has completed.
    growing DispatchCountingData = "rocprofiler_dispatch_counting_service_data_t" {
        size: u64,
        correlation_id: AsyncCorrelationId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        dispatch_info: KernelDispatchInfo,
    }

    /// The record of a dispatch in a buffer, before its `num_records` records of values.
    growing DispatchCountingRecord = "rocprofiler_dispatch_counting_service_record_t" {
        size: u64,
        num_records: u64,
        correlation_id: AsyncCorrelationId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        dispatch_info: KernelDispatchInfo,
    }
}

/// A flag of counters: the value is a property of the agent.
pub const IS_CONSTANT: u8 = 1;
/// A flag of counters: the value follows from an expression.
pub const IS_DERIVED: u8 = 2;

/// The dimension of a counter's instances. The others are those of the hardware around them: 1 XCC, 2 AID, 3 shader engine, 4 agent,
/// 5 shader array, 6 WGP; 0 is all of them together.
pub const DIMENSION_INSTANCE: CounterDimensionId = 7;
