//! The compute units of a device, and their places.

use gputrail_record::HardwareId;

/// Compute units of a device.
pub const COMPUTE_UNITS: u64 = 80;
/// Compute units of a shader array, shader arrays of a shader engine, and shader engines of a chiplet.
const UNITS_OF_ARRAY: u64 = 10;
const ARRAYS_OF_ENGINE: u64 = 2;
const ENGINES_OF_CHIPLET: u64 = 2;
/// The microengine of compute queues. The first one is that of graphics.
const MICROENGINE: u64 = 1;

/// The place of compute unit `unit`, of which a hardware queue has work. Each compute queue has a pipe.
pub(super) fn hardware(unit: u64, queue: u32) -> HardwareId {
    let array = unit / UNITS_OF_ARRAY;
    let engine = array / ARRAYS_OF_ENGINE;
    HardwareId(0)
        .with_compute_unit(unit % UNITS_OF_ARRAY)
        .with_shader_array(array % ARRAYS_OF_ENGINE)
        .with_shader_engine(engine % ENGINES_OF_CHIPLET)
        .with_chiplet(engine / ENGINES_OF_CHIPLET)
        .with_queue(queue.into())
        .with_pipe(queue.into())
        .with_microengine(MICROENGINE)
        .with_virtual_memory(1)
}

/// The compute unit with this place.
#[cfg(test)]
pub(super) fn unit_of(place: HardwareId) -> u64 {
    let engine = place.chiplet() * ENGINES_OF_CHIPLET + place.shader_engine();
    let array = engine * ARRAYS_OF_ENGINE + place.shader_array();
    array * UNITS_OF_ARRAY + place.compute_unit()
}
