//! Processors of the machine.

use crate::enumerations::AgentType;
use crate::layouts::layouts;
use crate::types::{AgentId, Dim3};
use core::ffi::c_char;

/// A number that is unique in the world.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Uuid {
    /// Its bytes.
    pub bytes: [u8; 16],
}

/// The runtimes that see an agent, as bits: HSA, HIP, RCCL, rocDecode.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct AgentRuntimeVisibility(pub u32);

layouts! { AGENT_LAYOUTS:
    /// Memory of an agent. `mem_clk_max` is in MHz. `flags` and `heap_type` are the driver's.
    fixed AgentMemBank = "rocprofiler_agent_mem_bank_t" {
        heap_type: u32,
        flags: u32,
        width: u32,
        mem_clk_max: u32,
        size_in_bytes: u64,
    }

    /// A cache of an agent. `size` is in KiB.
    fixed AgentCache = "rocprofiler_agent_cache_t" {
        processor_id_low: u64,
        size: u64,
        level: u32,
        cache_line_size: u32,
        cache_lines_per_tag: u32,
        association: u32,
        latency: u32,
        type_: u32,
    }

    /// A link to another node. Bandwidths are in MB/s.
    fixed AgentIoLink = "rocprofiler_agent_io_link_t" {
        type_: u32,
        version_major: u32,
        version_minor: u32,
        node_from: u32,
        node_to: u32,
        weight: u32,
        min_latency: u32,
        max_latency: u32,
        min_bandwidth: u32,
        max_bandwidth: u32,
        recommended_transfer_size: u32,
        flags: u32,
    }

    /// An agent. Clocks are in MHz. `gfx_target_version` is 10 000 times the major version, 100 times the minor one, and the step.
    growing AgentV0 = "rocprofiler_agent_v0_t" {
        size: u64,
        id: AgentId,
        type_: AgentType,
        cpu_cores_count: u32,
        simd_count: u32,
        mem_banks_count: u32,
        caches_count: u32,
        io_links_count: u32,
        cpu_core_id_base: u32,
        simd_id_base: u32,
        max_waves_per_simd: u32,
        lds_size_in_kb: u32,
        gds_size_in_kb: u32,
        num_gws: u32,
        wave_front_size: u32,
        num_xcc: u32,
        cu_count: u32,
        array_count: u32,
        num_shader_banks: u32,
        simd_arrays_per_engine: u32,
        cu_per_simd_array: u32,
        simd_per_cu: u32,
        max_slots_scratch_cu: u32,
        gfx_target_version: u32,
        vendor_id: u16,
        device_id: u16,
        location_id: u32,
        domain: u32,
        drm_render_minor: u32,
        num_sdma_engines: u32,
        num_sdma_xgmi_engines: u32,
        num_sdma_queues_per_engine: u32,
        num_cp_queues: u32,
        max_engine_clk_ccompute: u32,
        max_engine_clk_fcompute: u32,
        sdma_fw_version: u32,
        fw_version: u32,
        capability: u32,
        cu_per_engine: u32,
        max_waves_per_cu: u32,
        family_id: u32,
        workgroup_max_size: u32,
        grid_max_size: u32,
        local_mem_size: u64,
        hive_id: u64,
        gpu_id: u64,
        workgroup_max_dim: Dim3,
        grid_max_dim: Dim3,
        mem_banks: *const AgentMemBank,
        caches: *const AgentCache,
        io_links: *const AgentIoLink,
        name: *const c_char,
        vendor_name: *const c_char,
        product_name: *const c_char,
        model_name: *const c_char,
        node_id: u32,
        logical_node_id: i32,
        logical_node_type_id: i32,
        runtime_visibility: AgentRuntimeVisibility,
        uuid: Uuid,
    }
}
