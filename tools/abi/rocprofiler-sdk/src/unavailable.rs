//! Functions of AMD's library that need what is not there: they answer that, whatever they are given.

use gputrail_rocprofiler::Status;

/// Functions with one answer. C leaves it to the caller to take arguments back, so that none need be declared.
macro_rules! unavailable {
    ($($(#[$what:meta])* $name:ident = $status:ident;)*) => {
        $($(#[$what])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> Status {
            Status::$status
        })*
    };
}

unavailable! {
    /// Traces the waves of an agent.
    rocprofiler_configure_device_thread_trace_service = ERROR_NOT_IMPLEMENTED;
    /// Traces the waves of dispatches.
    rocprofiler_configure_dispatch_thread_trace_service = ERROR_NOT_IMPLEMENTED;
    /// Counts dispatches over time, into a buffer.
    rocprofiler_spm_configure_buffer_dispatch_service = ERROR_NOT_IMPLEMENTED;
    /// Counts dispatches over time, for a callback.
    rocprofiler_spm_configure_callback_dispatch_service = ERROR_NOT_IMPLEMENTED;
    /// Makes a set of counters over time.
    rocprofiler_spm_create_counter_config = ERROR_NOT_IMPLEMENTED;
    /// Destroys a set of counters over time.
    rocprofiler_spm_destroy_counter_config = ERROR_NOT_IMPLEMENTED;
    /// Gives the counters that an agent has over time.
    rocprofiler_spm_iterate_agent_supported_counters = ERROR_NOT_IMPLEMENTED;
    /// Gives the ways in which an agent counts over time.
    rocprofiler_spm_query_agent_configurations = ERROR_NOT_IMPLEMENTED;
    /// Visits the runtimes that have registered themselves with AMD's library of registrations.
    rocprofiler_iterate_runtime_registration_info = ERROR_INCOMPATIBLE_REGISTER_VERSION;
}
