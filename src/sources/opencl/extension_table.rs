//! Extension functions that are observed, as rows of the kind that the dispatch table has; see
//! [`table`](super::table). New rows go to the end: the place of a row is part of its operation's number.

/// Hands the table to the macro `$with`.
macro_rules! extension_functions {
    ($with:ident) => {
        $with! {
            CREATE object(errcode_ret) clCreateCommandBufferKHR(num_queues: cl_uint, queues: *const cl_command_queue,
                properties: *const cl_ulong, errcode_ret: *mut cl_int) -> cl_command_buffer_khr {
                then |call, buffer| command_buffers::created(call, buffer, num_queues, queues)
            }
            OTHER status clFinalizeCommandBufferKHR(command_buffer: cl_command_buffer_khr) -> cl_int {
                then |call, ()| command_buffers::finalized(call, command_buffer)
            }
            LIFETIME status clRetainCommandBufferKHR(command_buffer: cl_command_buffer_khr) -> cl_int {
                then |call, ()| command_buffers::retained(call, command_buffer)
            }
            LIFETIME status clReleaseCommandBufferKHR(command_buffer: cl_command_buffer_khr) -> cl_int {
                then |call, ()| command_buffers::released(call, command_buffer)
            }
            ENQUEUE work(queues, event) clEnqueueCommandBufferKHR(num_queues: cl_uint, queues: *mut cl_command_queue,
                command_buffer: cl_command_buffer_khr, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int { CommandBuffer(command_buffer) }
            ENQUEUE status clCommandBarrierWithWaitListKHR(command_buffer: cl_command_buffer_khr,
                command_queue: cl_command_queue, num_sync_points_in_wait_list: cl_uint,
                sync_point_wait_list: *const cl_uint, sync_point: *mut cl_uint,
                mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::barrier(call, command_buffer)
            }
            ENQUEUE status clCommandCopyBufferKHR(command_buffer: cl_command_buffer_khr,
                command_queue: cl_command_queue, src_buffer: cl_mem, dst_buffer: cl_mem, src_offset: usize,
                dst_offset: usize, size: usize, num_sync_points_in_wait_list: cl_uint,
                sync_point_wait_list: *const cl_uint, sync_point: *mut cl_uint,
                mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::copy(src_buffer, src_offset,
                    dst_buffer, dst_offset, size))
            }
            ENQUEUE status clCommandCopyBufferRectKHR(command_buffer: cl_command_buffer_khr,
                command_queue: cl_command_queue, src_buffer: cl_mem, dst_buffer: cl_mem, src_origin: *const usize,
                dst_origin: *const usize, region: *const usize, src_row_pitch: usize, src_slice_pitch: usize,
                dst_row_pitch: usize, dst_slice_pitch: usize, num_sync_points_in_wait_list: cl_uint,
                sync_point_wait_list: *const cl_uint, sync_point: *mut cl_uint,
                mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::copy(src_buffer,
                    rect::offset(src_origin, region, src_row_pitch, src_slice_pitch), dst_buffer,
                    rect::offset(dst_origin, region, dst_row_pitch, dst_slice_pitch), rect::bytes(region)))
            }
            ENQUEUE status clCommandCopyBufferToImageKHR(command_buffer: cl_command_buffer_khr,
                command_queue: cl_command_queue, src_buffer: cl_mem, dst_image: cl_mem, src_offset: usize,
                dst_origin: *const usize, region: *const usize, num_sync_points_in_wait_list: cl_uint,
                sync_point_wait_list: *const cl_uint, sync_point: *mut cl_uint,
                mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::buffer_to_image(src_buffer,
                    src_offset, dst_image, region))
            }
            ENQUEUE status clCommandCopyImageKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue,
                src_image: cl_mem, dst_image: cl_mem, src_origin: *const usize, dst_origin: *const usize,
                region: *const usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_uint,
                sync_point: *mut cl_uint, mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::copy_image(src_image, dst_image,
                    region))
            }
            ENQUEUE status clCommandCopyImageToBufferKHR(command_buffer: cl_command_buffer_khr,
                command_queue: cl_command_queue, src_image: cl_mem, dst_buffer: cl_mem, src_origin: *const usize,
                region: *const usize, dst_offset: usize, num_sync_points_in_wait_list: cl_uint,
                sync_point_wait_list: *const cl_uint, sync_point: *mut cl_uint,
                mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::image_to_buffer(src_image, region,
                    dst_buffer, dst_offset))
            }
            ENQUEUE status clCommandFillBufferKHR(command_buffer: cl_command_buffer_khr,
                command_queue: cl_command_queue, buffer: cl_mem, pattern: *const c_void, pattern_size: usize,
                offset: usize, size: usize, num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_uint,
                sync_point: *mut cl_uint, mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::fill(buffer, offset, size, pattern,
                    pattern_size))
            }
            ENQUEUE status clCommandFillImageKHR(command_buffer: cl_command_buffer_khr, command_queue: cl_command_queue,
                image: cl_mem, fill_color: *const c_void, origin: *const usize, region: *const usize,
                num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_uint, sync_point: *mut cl_uint,
                mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::fill_image(image, region,
                    fill_color))
            }
            ENQUEUE status clCommandNDRangeKernelKHR(command_buffer: cl_command_buffer_khr,
                command_queue: cl_command_queue, properties: *const cl_ulong, kernel: cl_kernel, work_dim: cl_uint,
                global_work_offset: *const usize, global_work_size: *const usize, local_work_size: *const usize,
                num_sync_points_in_wait_list: cl_uint, sync_point_wait_list: *const cl_uint, sync_point: *mut cl_uint,
                mutable_handle: *mut cl_mutable_command_khr) -> cl_int {
                then |call, ()| command_buffers::record(call, command_buffer, Commands::kernel(kernel, work_dim,
                    global_work_offset, global_work_size, local_work_size))
            }
            QUERY status clGetCommandBufferInfoKHR(command_buffer: cl_command_buffer_khr, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            OTHER status clUpdateMutableCommandsKHR(command_buffer: cl_command_buffer_khr,
                mutable_config: *const c_void) -> cl_int {}
            QUERY status clGetMutableCommandInfoKHR(command: cl_mutable_command_khr, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            CREATE object(errcode_ret) clCreateSemaphoreWithPropertiesKHR(context: cl_context,
                sema_props: *const cl_ulong, errcode_ret: *mut cl_int) -> cl_semaphore_khr {}
            ENQUEUE work(command_queue, event) clEnqueueWaitSemaphoresKHR(command_queue: cl_command_queue,
                num_sema_objects: cl_uint, sema_objects: *const cl_semaphore_khr, sema_payload_list: *const cl_ulong,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::semaphore(num_sema_objects)
            }
            ENQUEUE work(command_queue, event) clEnqueueSignalSemaphoresKHR(command_queue: cl_command_queue,
                num_sema_objects: cl_uint, sema_objects: *const cl_semaphore_khr, sema_payload_list: *const cl_ulong,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::semaphore(num_sema_objects)
            }
            QUERY status clGetSemaphoreInfoKHR(sema_object: cl_semaphore_khr, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            LIFETIME status clReleaseSemaphoreKHR(sema_object: cl_semaphore_khr) -> cl_int {}
            LIFETIME status clRetainSemaphoreKHR(sema_object: cl_semaphore_khr) -> cl_int {}
            QUERY status clGetSemaphoreHandleForTypeKHR(sema_object: cl_semaphore_khr, device: cl_device_id,
                handle_type: cl_uint, handle_size: usize, handle_ptr: *mut c_void,
                handle_size_ret: *mut usize) -> cl_int {}
            ENQUEUE work(command_queue, event) clEnqueueAcquireExternalMemObjectsKHR(command_queue: cl_command_queue,
                num_mem_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::migrate(num_mem_objects, mem_objects, cl_bitfield(0))
            }
            ENQUEUE work(command_queue, event) clEnqueueReleaseExternalMemObjectsKHR(command_queue: cl_command_queue,
                num_mem_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::migrate(num_mem_objects, mem_objects, cl_bitfield(0))
            }
            CREATE object(errcode_ret) clHostMemAllocINTEL(context: cl_context, properties: *const cl_ulong,
                size: usize, alignment: cl_uint, errcode_ret: *mut cl_int) -> *mut c_void {
                then |call, address| memory::usm_allocated(call, address, context, size, MemoryKind::PINNED)
            }
            CREATE object(errcode_ret) clDeviceMemAllocINTEL(context: cl_context, device: cl_device_id,
                properties: *const cl_ulong, size: usize, alignment: cl_uint, errcode_ret: *mut cl_int) -> *mut c_void {
                then |call, address| memory::usm_allocated(call, address, context, size, MemoryKind::DEVICE)
            }
            CREATE object(errcode_ret) clSharedMemAllocINTEL(context: cl_context, device: cl_device_id,
                properties: *const cl_ulong, size: usize, alignment: cl_uint, errcode_ret: *mut cl_int) -> *mut c_void {
                then |call, address| memory::usm_allocated(call, address, context, size, MemoryKind::MANAGED)
            }
            LIFETIME status clMemFreeINTEL(context: cl_context, ptr: *mut c_void) -> cl_int {
                then |call, ()| memory::usm_freed(call, ptr)
            }
            LIFETIME status clMemBlockingFreeINTEL(context: cl_context, ptr: *mut c_void) -> cl_int {
                then |call, ()| memory::usm_freed(call, ptr)
            }
            QUERY status clGetMemAllocInfoINTEL(context: cl_context, ptr: *const c_void, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            SET status clSetKernelArgMemPointerINTEL(kernel: cl_kernel, arg_index: cl_uint,
                arg_value: *const c_void) -> cl_int {
                if counters::have_passes();
                then |_, ()| kernel_arguments::pointer_set(kernel, arg_index, arg_value)
            }
            ENQUEUE work(command_queue, event) clEnqueueMemFillINTEL(command_queue: cl_command_queue,
                dst_ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::svm_fill(dst_ptr, size, pattern, pattern_size)
            }
            ENQUEUE work(command_queue, event, blocking) clEnqueueMemcpyINTEL(command_queue: cl_command_queue,
                blocking: cl_bool, dst_ptr: *mut c_void, src_ptr: *const c_void, size: usize,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::svm_copy(dst_ptr, src_ptr, size)
            }
            ENQUEUE work(command_queue, event) clEnqueueMemAdviseINTEL(command_queue: cl_command_queue,
                ptr: *const c_void, size: usize, advice: cl_uint, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::marker(num_events_in_wait_list, event_wait_list)
            }
            ENQUEUE work(command_queue, event) clEnqueueMigrateMemINTEL(command_queue: cl_command_queue,
                ptr: *const c_void, size: usize, flags: cl_bitfield, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int { Commands::usm_migrate(ptr, size) }
            ENQUEUE work(command_queue, event) clEnqueueMemsetINTEL(command_queue: cl_command_queue,
                dst_ptr: *mut c_void, value: cl_int, size: usize, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::usm_set(dst_ptr, value, size)
            }
            CREATE object(errcode_ret) clCreateBufferWithPropertiesINTEL(context: cl_context,
                properties: *const cl_ulong, flags: cl_bitfield, size: usize, host_ptr: *mut c_void,
                errcode_ret: *mut cl_int) -> cl_mem { then |call, mem| memory::created(call, mem, context, flags) }
            QUERY status clGetKernelSuggestedLocalWorkSizeKHR(command_queue: cl_command_queue, kernel: cl_kernel,
                work_dim: cl_uint, global_work_offset: *const usize, global_work_size: *const usize,
                suggested_local_work_size: *mut usize) -> cl_int {}
            CREATE object(errcode_ret) clCreateCommandQueueWithPropertiesKHR(context: cl_context, device: cl_device_id,
                properties: *const cl_ulong, errcode_ret: *mut cl_int) -> cl_command_queue { by create_queue }
            CREATE object(errcode_ret) clCreateProgramWithILKHR(context: cl_context, il: *const c_void, length: usize,
                errcode_ret: *mut cl_int) -> cl_program { then |call, program| programs::created(call, program) }
            OTHER status clTerminateContextKHR(context: cl_context) -> cl_int {}
        }
    };
}
pub(super) use extension_functions;
