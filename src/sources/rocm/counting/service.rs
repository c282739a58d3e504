//! The SDK's functions for counters behind safe ones.

use crate::rocm::sdk::{Refused, Sdk, call, text_of};
use core::ffi::c_void;
use gputrail_rocprofiler::{
    AgentId, BufferId, ContextId, CounterConfigId, CounterDimensionId, CounterFlag, CounterId,
    CounterInfoV0, CounterInfoV1, CounterInfoVersion, CounterInstanceId, CounterRecord,
    CounterRecordDimensionInfo, DeviceCountingCallback, DispatchCountingCallback,
    DispatchCountingRecordCallback, IS_CONSTANT, IS_DERIVED, Status, UserData, read,
};

/// A counter or metric of an agent, as the library describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SdkCounter {
    /// The library's number.
    pub id: CounterId,
    pub name: String,
    pub description: String,
    /// The block that counts it; empty for metrics.
    pub block: String,
    /// The formula of a metric; else empty.
    pub expression: String,
    /// Whether it is a property of the agent.
    pub is_constant: bool,
    /// Whether it is a metric.
    pub is_derived: bool,
}

/// A dimension of a counter, such as the shader engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CounterDimension {
    /// The library's number.
    pub id: CounterDimensionId,
    pub name: String,
    /// The number of positions in it.
    pub size: usize,
}

/// The most dimensions of a counter that are read, and the most counters of an agent.
const MAX_DIMENSIONS: usize = 64;
const MAX_COUNTERS: usize = 1 << 16;
/// The most values of an agent that are read at a time.
const MAX_VALUES: usize = 1 << 20;
/// Room for the description of a counter in later versions of the library, in words.
const DESCRIPTION_WORDS: usize = 128;

const _: () = assert!(DESCRIPTION_WORDS * 8 > size_of::<CounterInfoV1>());

fn done(status: Status) -> Result<(), Refused> {
    match status {
        Status::SUCCESS => Ok(()),
        refused => Err(refused),
    }
}

impl Sdk {
    /// The numbers of the counters and metrics of an agent.
    pub(super) fn counter_ids(&self, agent: AgentId) -> Result<Vec<CounterId>, Refused> {
        unsafe extern "C" fn take(
            _: AgentId,
            counters: *mut CounterId,
            count: usize,
            found: *mut c_void,
        ) -> Status {
            if !counters.is_null() {
                // SAFETY: the library gives this many numbers.
                let counters = unsafe { core::slice::from_raw_parts(counters, count) };
                // SAFETY: the vector of the caller below, which waits for this.
                let found = unsafe { &mut *found.cast::<Vec<CounterId>>() };
                found.extend(counters.iter().take(MAX_COUNTERS));
            }
            Status::SUCCESS
        }
        let mut found: Vec<CounterId> = Vec::new();
        let place = (&raw mut found).cast();
        // SAFETY: the callback is called in the call, with the vector.
        done(unsafe {
            call!(
                self,
                iterate_agent_supported_counters(agent, Some(take), place)
            )
        })?;
        Ok(found)
    }

    /// The description of a counter.
    pub(super) fn counter(&self, id: CounterId) -> Result<SdkCounter, Refused> {
        // SAFETY: numbers and null pointers.
        let mut info: CounterInfoV0 = unsafe { core::mem::zeroed() };
        let (version, place) = (CounterInfoVersion::VERSION_0, (&raw mut info).cast());
        // SAFETY: the library fills in the structure of this version, which does not grow.
        done(unsafe { call!(self, query_counter_info(id, version, place)) })?;
        // SAFETY: null or texts of the library, which last as long as it.
        let text = |text| unsafe { text_of(text) }.unwrap_or_default();
        Ok(SdkCounter {
            id,
            name: text(info.name),
            description: text(info.description),
            block: text(info.block),
            expression: text(info.expression),
            is_constant: info.flags & IS_CONSTANT != 0,
            is_derived: info.flags & IS_DERIVED != 0,
        })
    }

    /// The dimensions of a counter: by version 1 of its description, or before that by a function of its own.
    pub(super) fn counter_dimensions(&self, id: CounterId) -> Vec<CounterDimension> {
        self.described_dimensions(id)
            .unwrap_or_else(|| self.iterated_dimensions(id))
    }

    fn described_dimensions(&self, id: CounterId) -> Option<Vec<CounterDimension>> {
        if self.is_before_1_0() {
            return None;
        }
        // The library writes as many bytes as its version of the structure has.
        let mut room = [0_u64; DESCRIPTION_WORDS];
        let version = CounterInfoVersion::VERSION_1;
        // SAFETY: there is room for the structure.
        let status = unsafe {
            call!(
                self,
                query_counter_info(id, version, room.as_mut_ptr().cast())
            )
        };
        if status != Status::SUCCESS {
            return None;
        }
        // SAFETY: the library has filled in the structure, which begins with its size.
        let info: CounterInfoV1 = unsafe { read(room.as_ptr().cast()) };
        if info.dimensions.is_null() {
            return Some(Vec::new());
        }
        let count = (info.dimensions_count as usize).min(MAX_DIMENSIONS);
        // SAFETY: the library gives this many pointers, which last as long as it.
        let dimensions = unsafe { core::slice::from_raw_parts(info.dimensions, count) };
        let dimensions = dimensions.iter().filter_map(|one| {
            // SAFETY: null, or it leads to a dimension, which lasts as long as the library.
            unsafe { one.as_ref() }.map(dimension)
        });
        Some(dimensions.collect())
    }

    fn iterated_dimensions(&self, id: CounterId) -> Vec<CounterDimension> {
        unsafe extern "C" fn take(
            _: CounterId,
            dimensions: *const CounterRecordDimensionInfo,
            count: usize,
            found: *mut c_void,
        ) -> Status {
            if !dimensions.is_null() {
                let count = count.min(MAX_DIMENSIONS);
                // SAFETY: the library gives this many dimensions.
                let dimensions = unsafe { core::slice::from_raw_parts(dimensions, count) };
                // SAFETY: the vector of the caller below, which waits for this.
                let found = unsafe { &mut *found.cast::<Vec<CounterDimension>>() };
                found.extend(dimensions.iter().map(dimension));
            }
            Status::SUCCESS
        }
        let mut found: Vec<CounterDimension> = Vec::new();
        let place = (&raw mut found).cast();
        // SAFETY: the callback is called in the call, with the vector.
        unsafe { call!(self, iterate_counter_dimensions(id, Some(take), place)) };
        found
    }

    /// The counter of a value.
    pub(super) fn counter_of(&self, value: CounterInstanceId) -> Option<CounterId> {
        let mut counter = CounterId::default();
        // SAFETY: the library writes to a local.
        let status = unsafe { call!(self, query_record_counter_id(value, &raw mut counter)) };
        (status == Status::SUCCESS).then_some(counter)
    }

    /// The position of a value in a dimension.
    pub(super) fn position_of(
        &self,
        value: CounterInstanceId,
        dimension: CounterDimensionId,
    ) -> usize {
        let mut position = 0;
        // SAFETY: the library writes to a local.
        unsafe {
            call!(
                self,
                query_record_dimension_position(value, dimension, &raw mut position)
            )
        };
        position
    }

    /// A set of counters that are counted at the same time.
    pub(super) fn create_config(
        &self,
        agent: AgentId,
        counters: &[CounterId],
    ) -> Result<CounterConfigId, Refused> {
        let mut ids = counters.to_vec();
        let mut config = CounterConfigId::default();
        let (first, count, place) = (ids.as_mut_ptr(), ids.len(), &raw mut config);
        // SAFETY: the library reads as many numbers as stated in the call, and writes to a local.
        done(unsafe {
            match self.functions.create_counter_config {
                Some(create) => create(agent, first, count, place),
                // Its name before version 1.0.
                None => call!(self, create_profile_config(agent, first, count, place)),
            }
        })?;
        Ok(config)
    }

    /// Gives up a set that nothing counts.
    pub(super) fn destroy_config(&self, config: CounterConfigId) {
        // SAFETY: a handle, which the library checks.
        unsafe {
            match self.functions.destroy_counter_config {
                Some(destroy) => destroy(config),
                None => call!(self, destroy_profile_config(config)),
            }
        };
    }

    /// Has the dispatches of all agents counted while `context` is started: `choose` says what is counted of each, and `counted` is
    /// given the values.
    pub(super) fn count_dispatches(
        &self,
        context: ContextId,
        choose: DispatchCountingCallback,
        counted: DispatchCountingRecordCallback,
    ) -> Result<(), Refused> {
        let none = core::ptr::null_mut();
        // SAFETY: a handle, which the library checks. The callbacks are functions of this library, which is never unloaded, and use
        // no data.
        done(unsafe {
            call!(
                self,
                configure_callback_dispatch_counting_service(
                    context,
                    Some(choose),
                    none,
                    Some(counted),
                    none
                )
            )
        })
    }

    /// Has an agent counted while `context` is started: `choose` says what.
    pub(super) fn count_device(
        &self,
        context: ContextId,
        agent: AgentId,
        choose: DeviceCountingCallback,
    ) -> Result<(), Refused> {
        // Values are asked for, and not written to a buffer.
        let no_buffer = BufferId { handle: 0 };
        let none = core::ptr::null_mut();
        // SAFETY: handles, which the library checks. The callback is a function of this library, which is never unloaded, and uses no
        // data.
        done(unsafe {
            call!(
                self,
                configure_device_counting_service(context, no_buffer, agent, Some(choose), none)
            )
        })
    }

    /// The values that the agent of a started context has counted so far: about so many values.
    pub(super) fn read_device(
        &self,
        context: ContextId,
        expected: usize,
    ) -> Result<Vec<CounterRecord>, Refused> {
        let mut room = expected.max(1);
        loop {
            // SAFETY: numbers.
            let blank: CounterRecord = unsafe { core::mem::zeroed() };
            let mut values = vec![blank; room];
            let mut count = room;
            let (word, place) = (UserData::from(0), values.as_mut_ptr());
            // SAFETY: there are as many places as stated; the library writes no more, and their number.
            let status = unsafe {
                call!(
                    self,
                    sample_device_counting_service(
                        context,
                        word,
                        CounterFlag::NONE,
                        place,
                        &raw mut count
                    )
                )
            };
            match status {
                // There are more values than room: it says how many.
                Status::ERROR_OUT_OF_RESOURCES if count > room && count <= MAX_VALUES => {
                    room = count;
                }
                _ => {
                    done(status)?;
                    values.truncate(count);
                    return Ok(values);
                }
            }
        }
    }
}

fn dimension(of: &CounterRecordDimensionInfo) -> CounterDimension {
    CounterDimension {
        id: of.id,
        // SAFETY: null or a text of the library, which lasts as long as it.
        name: unsafe { text_of(of.name) }.unwrap_or_default(),
        size: of.instance_size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_rocprofiler::{CounterDimensionsCallback, Functions};

    const NAME: &core::ffi::CStr = c"DIMENSION_XCC";

    fn xcc(size: usize) -> CounterRecordDimensionInfo {
        CounterRecordDimensionInfo {
            name: NAME.as_ptr(),
            instance_size: size,
            id: 1,
        }
    }

    /// Counter 7, described in a structure that has grown.
    unsafe extern "C" fn info(
        id: CounterId,
        version: CounterInfoVersion,
        place: *mut c_void,
    ) -> Status {
        if id.handle != 7 || version != CounterInfoVersion::VERSION_1 {
            return Status::ERROR_COUNTER_NOT_FOUND;
        }
        let dimension = Box::leak(Box::new(xcc(8)));
        let dimensions = Box::leak(Box::new([&raw const *dimension]));
        // SAFETY: numbers and null pointers.
        let mut info: CounterInfoV1 = unsafe { core::mem::zeroed() };
        info.size = size_of::<CounterInfoV1>() as u64 + 64;
        (info.dimensions_count, info.dimensions) = (1, dimensions.as_ptr());
        // SAFETY: the caller's place has room for more than the structure.
        unsafe { place.cast::<CounterInfoV1>().write(info) };
        Status::SUCCESS
    }

    unsafe extern "C" fn iterate(
        id: CounterId,
        callback: Option<CounterDimensionsCallback>,
        data: *mut c_void,
    ) -> Status {
        let all = [xcc(2)];
        // SAFETY: the callback of the caller, with as many structures as stated.
        unsafe { callback.unwrap()(id, all.as_ptr(), all.len(), data) }
    }

    /// Three values.
    unsafe extern "C" fn values(
        _: ContextId,
        _: UserData,
        _: CounterFlag,
        place: *mut CounterRecord,
        count: *mut usize,
    ) -> Status {
        // SAFETY: the caller's places.
        unsafe {
            let room = count.replace(3);
            if room < 3 {
                return Status::ERROR_OUT_OF_RESOURCES;
            }
            (0..3).for_each(|at| (*place.add(at)).counter_value = at as f64);
        }
        Status::SUCCESS
    }

    #[test]
    fn dimensions_are_those_of_the_description_or_of_the_function_before_it() {
        let functions = Functions {
            query_counter_info: Some(info),
            iterate_counter_dimensions: Some(iterate),
            ..Functions::default()
        };
        let mut sdk = Sdk::with(functions);
        let sizes = |sdk: &Sdk, handle| {
            let found = sdk.counter_dimensions(CounterId { handle });
            assert!(found.iter().all(|one| one.name == "DIMENSION_XCC"));
            found.iter().map(|one| one.size).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&sdk, 7), [2], "before 1.0");
        sdk.version.major = 1;
        assert_eq!(sizes(&sdk, 7), [8]);
        assert_eq!(sizes(&sdk, 8), [2], "not described");
    }

    #[test]
    fn values_are_asked_for_again_where_there_are_more_than_expected() {
        let functions = Functions {
            sample_device_counting_service: Some(values),
            ..Functions::default()
        };
        let sdk = Sdk::with(functions);
        let context = ContextId { handle: 1 };
        for expected in [0, 1, 3, 9] {
            let found = sdk.read_device(context, expected).unwrap();
            let numbers: Vec<f64> = found.iter().map(|one| one.counter_value).collect();
            assert_eq!(numbers, [0.0, 1.0, 2.0]);
        }
    }
}
