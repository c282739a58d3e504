//! The OpenCL 3.0 dispatch table, once: every function in the order in which loaders hand it out.
//!
//! A row is `GROUP how(details) name(arguments) -> result { hook }`. The place of the row is the number of the
//! operation in records, so rows are never reordered or removed; `GROUP` is its
//! [`OperationGroup`](gputrail_record::OperationGroup). `how` says where the status is and what is special:
//!
//! * `status`: returned. `object(errcode)`: in that out-parameter. `value`: the function has none.
//! * `work(queue, event[, blocking])`, `map(queue, event, blocking, errcode)`: puts work into a queue; the
//!   hook is the [`Commands`](super::layer::work::Commands). `untracked(queue)`: the same without an event.
//! * `pass`: a function of another system, handed through untouched.
//!
//! A hook `then` is called after success, with the call and what it created; `through` makes the call instead, and so
//! does `by`, with the function below us as its second argument. `if` before it says for which arguments.

/// Hands the table to the macro `$with`.
macro_rules! opencl_functions {
    ($with:ident) => {
        $with! {
            QUERY status clGetPlatformIDs(num_entries: cl_uint, platforms: *mut cl_platform_id,
                num_platforms: *mut cl_uint) -> cl_int {}
            QUERY status clGetPlatformInfo(platform: cl_platform_id, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            QUERY status clGetDeviceIDs(platform: cl_platform_id, device_type: cl_bitfield, num_entries: cl_uint,
                devices: *mut cl_device_id, num_devices: *mut cl_uint) -> cl_int {}
            QUERY status clGetDeviceInfo(device: cl_device_id, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            CREATE object(errcode_ret) clCreateContext(properties: *const isize, num_devices: cl_uint,
                devices: *const cl_device_id, pfn_notify: ContextCallback, user_data: *mut c_void,
                errcode_ret: *mut cl_int) -> cl_context { then |call, context| objects::context_created(call, context) }
            CREATE object(errcode_ret) clCreateContextFromType(properties: *const isize, device_type: cl_bitfield,
                pfn_notify: ContextCallback, user_data: *mut c_void, errcode_ret: *mut cl_int) -> cl_context {
                then |call, context| objects::context_created(call, context)
            }
            LIFETIME status clRetainContext(context: cl_context) -> cl_int {
                then |call, ()| objects::retained(call, context)
            }
            LIFETIME status clReleaseContext(context: cl_context) -> cl_int { through objects::release_context }
            QUERY status clGetContextInfo(context: cl_context, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            CREATE object(errcode_ret) clCreateCommandQueue(context: cl_context, device: cl_device_id,
                properties: cl_bitfield, errcode_ret: *mut cl_int) -> cl_command_queue { through queue_calls::create }
            LIFETIME status clRetainCommandQueue(command_queue: cl_command_queue) -> cl_int {
                then |call, ()| queue_calls::retained(call, command_queue)
            }
            LIFETIME status clReleaseCommandQueue(command_queue: cl_command_queue) -> cl_int {
                through queue_calls::release
            }
            QUERY status clGetCommandQueueInfo(command_queue: cl_command_queue, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {
                through queue_calls::info
            }
            SET status clSetCommandQueueProperty(command_queue: cl_command_queue, properties: cl_bitfield,
                enable: cl_bool, old_properties: *mut cl_bitfield) -> cl_int { through queue_calls::set_property }
            CREATE object(errcode_ret) clCreateBuffer(context: cl_context, flags: cl_bitfield, size: usize,
                host_ptr: *mut c_void, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            CREATE object(errcode_ret) clCreateImage2D(context: cl_context, flags: cl_bitfield,
                image_format: *const c_void, image_width: usize, image_height: usize, image_row_pitch: usize,
                host_ptr: *mut c_void, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            CREATE object(errcode_ret) clCreateImage3D(context: cl_context, flags: cl_bitfield,
                image_format: *const c_void, image_width: usize, image_height: usize, image_depth: usize,
                image_row_pitch: usize, image_slice_pitch: usize, host_ptr: *mut c_void,
                errcode_ret: *mut cl_int) -> cl_mem { then |call, mem| memory::created(call, mem, context, flags) }
            LIFETIME status clRetainMemObject(memobj: cl_mem) -> cl_int {
                then |call, ()| objects::retained(call, memobj)
            }
            LIFETIME status clReleaseMemObject(memobj: cl_mem) -> cl_int { through objects::release_memory }
            QUERY status clGetSupportedImageFormats(context: cl_context, flags: cl_bitfield, image_type: cl_uint,
                num_entries: cl_uint, image_formats: *mut c_void, num_image_formats: *mut cl_uint) -> cl_int {}
            QUERY status clGetMemObjectInfo(memobj: cl_mem, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            QUERY status clGetImageInfo(image: cl_mem, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            CREATE object(errcode_ret) clCreateSampler(context: cl_context, normalized_coords: cl_bool,
                addressing_mode: cl_uint, filter_mode: cl_uint, errcode_ret: *mut cl_int) -> cl_sampler {}
            LIFETIME status clRetainSampler(sampler: cl_sampler) -> cl_int {}
            LIFETIME status clReleaseSampler(sampler: cl_sampler) -> cl_int {}
            QUERY status clGetSamplerInfo(sampler: cl_sampler, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            CREATE object(errcode_ret) clCreateProgramWithSource(context: cl_context, count: cl_uint,
                strings: *mut *const c_char, lengths: *const usize, errcode_ret: *mut cl_int) -> cl_program {
                then |call, program| programs::created_from_source(call, program, count, strings, lengths)
            }
            CREATE object(errcode_ret) clCreateProgramWithBinary(context: cl_context, num_devices: cl_uint,
                device_list: *const cl_device_id, lengths: *const usize, binaries: *mut *const cl_uchar,
                binary_status: *mut cl_int, errcode_ret: *mut cl_int) -> cl_program {
                then |call, program| programs::created(call, program)
            }
            LIFETIME status clRetainProgram(program: cl_program) -> cl_int {
                then |call, ()| objects::retained(call, program)
            }
            LIFETIME status clReleaseProgram(program: cl_program) -> cl_int { through objects::release_program }
            BUILD status clBuildProgram(program: cl_program, num_devices: cl_uint, device_list: *const cl_device_id,
                options: *const c_char, pfn_notify: ProgramCallback, user_data: *mut c_void) -> cl_int {
                through programs::build
            }
            BUILD status clUnloadCompiler() -> cl_int {}
            QUERY status clGetProgramInfo(program: cl_program, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            QUERY status clGetProgramBuildInfo(program: cl_program, device: cl_device_id, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {
                through debug_info::build_info
            }
            CREATE object(errcode_ret) clCreateKernel(program: cl_program, kernel_name: *const c_char,
                errcode_ret: *mut cl_int) -> cl_kernel { then |call, kernel| kernels::created(call, kernel, program) }
            CREATE status clCreateKernelsInProgram(program: cl_program, num_kernels: cl_uint, kernels: *mut cl_kernel,
                num_kernels_ret: *mut cl_uint) -> cl_int {
                then |call, ()| kernels::created_all(call, program, num_kernels, kernels, num_kernels_ret)
            }
            LIFETIME status clRetainKernel(kernel: cl_kernel) -> cl_int {
                then |call, ()| objects::retained(call, kernel)
            }
            LIFETIME status clReleaseKernel(kernel: cl_kernel) -> cl_int { through objects::release_kernel }
            SET status clSetKernelArg(kernel: cl_kernel, arg_index: cl_uint, arg_size: usize,
                arg_value: *const c_void) -> cl_int {
                if arg_value.is_null() || counters::have_passes();
                then |call, ()| kernels::argument_set(call, kernel, arg_index, arg_size, arg_value)
            }
            QUERY status clGetKernelInfo(kernel: cl_kernel, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            QUERY status clGetKernelWorkGroupInfo(kernel: cl_kernel, device: cl_device_id, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            SYNCHRONIZE status clWaitForEvents(num_events: cl_uint, event_list: *const cl_event) -> cl_int {
                through waits::for_events
            }
            QUERY status clGetEventInfo(event: cl_event, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int { through events::info }
            LIFETIME status clRetainEvent(event: cl_event) -> cl_int {}
            LIFETIME status clReleaseEvent(event: cl_event) -> cl_int {}
            QUERY status clGetEventProfilingInfo(event: cl_event, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int { through events::profiling_info }
            OTHER status clFlush(command_queue: cl_command_queue) -> cl_int {}
            SYNCHRONIZE status clFinish(command_queue: cl_command_queue) -> cl_int { through waits::finish }
            ENQUEUE work(command_queue, event, blocking_read) clEnqueueReadBuffer(command_queue: cl_command_queue,
                buffer: cl_mem, blocking_read: cl_bool, offset: usize, cb: usize, ptr: *mut c_void,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::read(buffer, offset, cb, ptr)
            }
            ENQUEUE work(command_queue, event, blocking_write) clEnqueueWriteBuffer(command_queue: cl_command_queue,
                buffer: cl_mem, blocking_write: cl_bool, offset: usize, cb: usize, ptr: *const c_void,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::write(buffer, offset, cb, ptr)
            }
            ENQUEUE work(command_queue, event) clEnqueueCopyBuffer(command_queue: cl_command_queue, src_buffer: cl_mem,
                dst_buffer: cl_mem, src_offset: usize, dst_offset: usize, cb: usize, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::copy(src_buffer, src_offset, dst_buffer, dst_offset, cb)
            }
            ENQUEUE work(command_queue, event, blocking_read) clEnqueueReadImage(command_queue: cl_command_queue,
                image: cl_mem, blocking_read: cl_bool, origin: *const usize, region: *const usize, row_pitch: usize,
                slice_pitch: usize, ptr: *mut c_void, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::read_image(image, region, ptr)
            }
            ENQUEUE work(command_queue, event, blocking_write) clEnqueueWriteImage(command_queue: cl_command_queue,
                image: cl_mem, blocking_write: cl_bool, origin: *const usize, region: *const usize,
                input_row_pitch: usize, input_slice_pitch: usize, ptr: *const c_void, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::write_image(image, region, ptr)
            }
            ENQUEUE work(command_queue, event) clEnqueueCopyImage(command_queue: cl_command_queue, src_image: cl_mem,
                dst_image: cl_mem, src_origin: *const usize, dst_origin: *const usize, region: *const usize,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::copy_image(src_image, dst_image, region)
            }
            ENQUEUE work(command_queue, event) clEnqueueCopyImageToBuffer(command_queue: cl_command_queue,
                src_image: cl_mem, dst_buffer: cl_mem, src_origin: *const usize, region: *const usize,
                dst_offset: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event,
                event: *mut cl_event) -> cl_int { Commands::image_to_buffer(src_image, region, dst_buffer, dst_offset) }
            ENQUEUE work(command_queue, event) clEnqueueCopyBufferToImage(command_queue: cl_command_queue,
                src_buffer: cl_mem, dst_image: cl_mem, src_offset: usize, dst_origin: *const usize,
                region: *const usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event,
                event: *mut cl_event) -> cl_int { Commands::buffer_to_image(src_buffer, src_offset, dst_image, region) }
            ENQUEUE map(command_queue, event, blocking_map, errcode_ret)
                clEnqueueMapBuffer(command_queue: cl_command_queue, buffer: cl_mem, blocking_map: cl_bool,
                map_flags: cl_bitfield, offset: usize, cb: usize, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event, errcode_ret: *mut cl_int) -> *mut c_void {
                Commands::map(buffer, offset, cb)
            }
            ENQUEUE map(command_queue, event, blocking_map, errcode_ret)
                clEnqueueMapImage(command_queue: cl_command_queue, image: cl_mem, blocking_map: cl_bool,
                map_flags: cl_bitfield, origin: *const usize, region: *const usize, image_row_pitch: *mut usize,
                image_slice_pitch: *mut usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event,
                event: *mut cl_event, errcode_ret: *mut cl_int) -> *mut c_void { Commands::map_image(image, region) }
            ENQUEUE work(command_queue, event) clEnqueueUnmapMemObject(command_queue: cl_command_queue, memobj: cl_mem,
                mapped_ptr: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event,
                event: *mut cl_event) -> cl_int { Commands::unmap(memobj, mapped_ptr) }
            ENQUEUE work(command_queue, event) clEnqueueNDRangeKernel(command_queue: cl_command_queue,
                kernel: cl_kernel, work_dim: cl_uint, global_work_offset: *const usize, global_work_size: *const usize,
                local_work_size: *const usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event,
                event: *mut cl_event) -> cl_int {
                Commands::kernel(kernel, work_dim, global_work_offset, global_work_size, local_work_size)
            }
            ENQUEUE work(command_queue, event) clEnqueueTask(command_queue: cl_command_queue, kernel: cl_kernel,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::task(kernel)
            }
            ENQUEUE work(command_queue, event) clEnqueueNativeKernel(command_queue: cl_command_queue,
                user_func: NativeKernel, args: *mut c_void, cb_args: usize, num_mem_objects: cl_uint,
                mem_list: *const cl_mem, args_mem_loc: *mut *const c_void, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int { Commands::native(user_func) }
            ENQUEUE work(command_queue, event) clEnqueueMarker(command_queue: cl_command_queue,
                event: *mut cl_event) -> cl_int { Commands::marker(0, ptr::null()) }
            ENQUEUE untracked(command_queue) clEnqueueWaitForEvents(command_queue: cl_command_queue,
                num_events: cl_uint, event_list: *const cl_event) -> cl_int { Commands::barrier(num_events, event_list) }
            ENQUEUE untracked(command_queue) clEnqueueBarrier(command_queue: cl_command_queue) -> cl_int {
                Commands::barrier(0, ptr::null())
            }
            QUERY value clGetExtensionFunctionAddress(function_name: *const c_char) -> *mut c_void {
                through extensions::address
            }
            CREATE object(errcode_ret) clCreateFromGLBuffer(context: cl_context, flags: cl_bitfield, bufobj: cl_uint,
                errcode_ret: *mut cl_int) -> cl_mem { then |call, mem| memory::created(call, mem, context, flags) }
            CREATE object(errcode_ret) clCreateFromGLTexture2D(context: cl_context, flags: cl_bitfield, target: cl_uint,
                miplevel: cl_int, texture: cl_uint, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            CREATE object(errcode_ret) clCreateFromGLTexture3D(context: cl_context, flags: cl_bitfield, target: cl_uint,
                miplevel: cl_int, texture: cl_uint, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            CREATE object(errcode_ret) clCreateFromGLRenderbuffer(context: cl_context, flags: cl_bitfield,
                renderbuffer: cl_uint, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            QUERY status clGetGLObjectInfo(memobj: cl_mem, gl_object_type: *mut cl_uint,
                gl_object_name: *mut cl_uint) -> cl_int {}
            QUERY status clGetGLTextureInfo(memobj: cl_mem, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            ENQUEUE work(command_queue, event) clEnqueueAcquireGLObjects(command_queue: cl_command_queue,
                num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::migrate(num_objects, mem_objects, cl_bitfield(0))
            }
            ENQUEUE work(command_queue, event) clEnqueueReleaseGLObjects(command_queue: cl_command_queue,
                num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::migrate(num_objects, mem_objects, cl_bitfield(0))
            }
            QUERY status clGetGLContextInfoKHR(properties: *const isize, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            OTHER pass clGetDeviceIDsFromD3D10KHR() -> () {}
            OTHER pass clCreateFromD3D10BufferKHR() -> () {}
            OTHER pass clCreateFromD3D10Texture2DKHR() -> () {}
            OTHER pass clCreateFromD3D10Texture3DKHR() -> () {}
            OTHER pass clEnqueueAcquireD3D10ObjectsKHR() -> () {}
            OTHER pass clEnqueueReleaseD3D10ObjectsKHR() -> () {}
            SET status clSetEventCallback(event: cl_event, command_exec_callback_type: cl_int,
                pfn_notify: EventCallback, user_data: *mut c_void) -> cl_int {}
            CREATE object(errcode_ret) clCreateSubBuffer(buffer: cl_mem, flags: cl_bitfield,
                buffer_create_type: cl_uint, buffer_create_info: *const c_void, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::sub_buffer_created(call, mem, buffer)
            }
            SET status clSetMemObjectDestructorCallback(memobj: cl_mem, pfn_notify: MemCallback,
                user_data: *mut c_void) -> cl_int {}
            CREATE object(errcode_ret) clCreateUserEvent(context: cl_context, errcode_ret: *mut cl_int) -> cl_event {
                then |_, _| counters::work_waits_for_program()
            }
            SET status clSetUserEventStatus(event: cl_event, execution_status: cl_int) -> cl_int {}
            ENQUEUE work(command_queue, event, blocking_read) clEnqueueReadBufferRect(command_queue: cl_command_queue,
                buffer: cl_mem, blocking_read: cl_bool, buffer_origin: *const usize, host_origin: *const usize,
                region: *const usize, buffer_row_pitch: usize, buffer_slice_pitch: usize, host_row_pitch: usize,
                host_slice_pitch: usize, ptr: *mut c_void, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::read(buffer, rect::offset(buffer_origin, region, buffer_row_pitch, buffer_slice_pitch),
                    rect::bytes(region), ptr)
            }
            ENQUEUE work(command_queue, event, blocking_read) clEnqueueWriteBufferRect(command_queue: cl_command_queue,
                buffer: cl_mem, blocking_read: cl_bool, buffer_origin: *const usize, host_origin: *const usize,
                region: *const usize, buffer_row_pitch: usize, buffer_slice_pitch: usize, host_row_pitch: usize,
                host_slice_pitch: usize, ptr: *const c_void, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::write(buffer, rect::offset(buffer_origin, region, buffer_row_pitch, buffer_slice_pitch),
                    rect::bytes(region), ptr)
            }
            ENQUEUE work(command_queue, event) clEnqueueCopyBufferRect(command_queue: cl_command_queue,
                src_buffer: cl_mem, dst_buffer: cl_mem, src_origin: *const usize, dst_origin: *const usize,
                region: *const usize, src_row_pitch: usize, src_slice_pitch: usize, dst_row_pitch: usize,
                dst_slice_pitch: usize, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event,
                event: *mut cl_event) -> cl_int {
                Commands::copy(src_buffer, rect::offset(src_origin, region, src_row_pitch, src_slice_pitch), dst_buffer,
                    rect::offset(dst_origin, region, dst_row_pitch, dst_slice_pitch), rect::bytes(region))
            }
            CREATE status clCreateSubDevicesEXT(in_device: cl_device_id, partition_properties: *const cl_ulong,
                num_entries: cl_uint, out_devices: *mut cl_device_id, num_devices: *mut cl_uint) -> cl_int {}
            LIFETIME status clRetainDeviceEXT(device: cl_device_id) -> cl_int {}
            LIFETIME status clReleaseDeviceEXT(device: cl_device_id) -> cl_int {}
            CREATE object(errcode_ret) clCreateEventFromGLsyncKHR(context: cl_context, sync: *mut c_void,
                errcode_ret: *mut cl_int) -> cl_event {}
            CREATE status clCreateSubDevices(in_device: cl_device_id, partition_properties: *const isize,
                num_entries: cl_uint, out_devices: *mut cl_device_id, num_devices: *mut cl_uint) -> cl_int {}
            LIFETIME status clRetainDevice(device: cl_device_id) -> cl_int {}
            LIFETIME status clReleaseDevice(device: cl_device_id) -> cl_int {}
            CREATE object(errcode_ret) clCreateImage(context: cl_context, flags: cl_bitfield,
                image_format: *const c_void, image_desc: *const c_void, host_ptr: *mut c_void,
                errcode_ret: *mut cl_int) -> cl_mem { then |call, mem| memory::created(call, mem, context, flags) }
            CREATE object(errcode_ret) clCreateProgramWithBuiltInKernels(context: cl_context, num_devices: cl_uint,
                device_list: *const cl_device_id, kernel_names: *const c_char, errcode_ret: *mut cl_int) -> cl_program {
                then |call, program| programs::created(call, program)
            }
            BUILD status clCompileProgram(program: cl_program, num_devices: cl_uint, device_list: *const cl_device_id,
                options: *const c_char, num_input_headers: cl_uint, input_headers: *const cl_program,
                header_include_names: *mut *const c_char, pfn_notify: ProgramCallback,
                user_data: *mut c_void) -> cl_int { through programs::compile }
            BUILD object(errcode_ret) clLinkProgram(context: cl_context, num_devices: cl_uint,
                device_list: *const cl_device_id, options: *const c_char, num_input_programs: cl_uint,
                input_programs: *const cl_program, pfn_notify: ProgramCallback, user_data: *mut c_void,
                errcode_ret: *mut cl_int) -> cl_program { through programs::link }
            BUILD status clUnloadPlatformCompiler(platform: cl_platform_id) -> cl_int {}
            QUERY status clGetKernelArgInfo(kernel: cl_kernel, arg_indx: cl_uint, param_name: cl_uint,
                param_value_size: usize, param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            ENQUEUE work(command_queue, event) clEnqueueFillBuffer(command_queue: cl_command_queue, buffer: cl_mem,
                pattern: *const c_void, pattern_size: usize, offset: usize, cb: usize, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::fill(buffer, offset, cb, pattern, pattern_size)
            }
            ENQUEUE work(command_queue, event) clEnqueueFillImage(command_queue: cl_command_queue, image: cl_mem,
                fill_color: *const c_void, origin: *const usize, region: *const usize, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::fill_image(image, region, fill_color)
            }
            ENQUEUE work(command_queue, event) clEnqueueMigrateMemObjects(command_queue: cl_command_queue,
                num_mem_objects: cl_uint, mem_objects: *const cl_mem, flags: cl_bitfield,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::migrate(num_mem_objects, mem_objects, flags)
            }
            ENQUEUE work(command_queue, event) clEnqueueMarkerWithWaitList(command_queue: cl_command_queue,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::marker(num_events_in_wait_list, event_wait_list)
            }
            ENQUEUE work(command_queue, event) clEnqueueBarrierWithWaitList(command_queue: cl_command_queue,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::barrier(num_events_in_wait_list, event_wait_list)
            }
            QUERY value clGetExtensionFunctionAddressForPlatform(platform: cl_platform_id,
                function_name: *const c_char) -> *mut c_void { through extensions::address_for_platform }
            CREATE object(errcode_ret) clCreateFromGLTexture(context: cl_context, flags: cl_bitfield, target: cl_uint,
                miplevel: cl_int, texture: cl_uint, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            OTHER pass clGetDeviceIDsFromD3D11KHR() -> () {}
            OTHER pass clCreateFromD3D11BufferKHR() -> () {}
            OTHER pass clCreateFromD3D11Texture2DKHR() -> () {}
            OTHER pass clCreateFromD3D11Texture3DKHR() -> () {}
            OTHER pass clCreateFromDX9MediaSurfaceKHR() -> () {}
            OTHER pass clEnqueueAcquireD3D11ObjectsKHR() -> () {}
            OTHER pass clEnqueueReleaseD3D11ObjectsKHR() -> () {}
            OTHER pass clGetDeviceIDsFromDX9MediaAdapterKHR() -> () {}
            OTHER pass clEnqueueAcquireDX9MediaSurfacesKHR() -> () {}
            OTHER pass clEnqueueReleaseDX9MediaSurfacesKHR() -> () {}
            CREATE object(errcode_ret) clCreateFromEGLImageKHR(context: cl_context, display: *mut c_void,
                image: *mut c_void, flags: cl_bitfield, properties: *const isize, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            ENQUEUE work(command_queue, event) clEnqueueAcquireEGLObjectsKHR(command_queue: cl_command_queue,
                num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::migrate(num_objects, mem_objects, cl_bitfield(0))
            }
            ENQUEUE work(command_queue, event) clEnqueueReleaseEGLObjectsKHR(command_queue: cl_command_queue,
                num_objects: cl_uint, mem_objects: *const cl_mem, num_events_in_wait_list: cl_uint,
                event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::migrate(num_objects, mem_objects, cl_bitfield(0))
            }
            CREATE object(errcode_ret) clCreateEventFromEGLSyncKHR(context: cl_context, sync: *mut c_void,
                display: *mut c_void, errcode_ret: *mut cl_int) -> cl_event {}
            CREATE object(errcode_ret) clCreateCommandQueueWithProperties(context: cl_context, device: cl_device_id,
                properties: *const cl_ulong, errcode_ret: *mut cl_int) -> cl_command_queue {
                through queue_calls::create_with_properties
            }
            CREATE object(errcode_ret) clCreatePipe(context: cl_context, flags: cl_bitfield, pipe_packet_size: cl_uint,
                pipe_max_packets: cl_uint, properties: *const isize, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            QUERY status clGetPipeInfo(pipe: cl_mem, param_name: cl_uint, param_value_size: usize,
                param_value: *mut c_void, param_value_size_ret: *mut usize) -> cl_int {}
            CREATE value clSVMAlloc(context: cl_context, flags: cl_bitfield, size: usize,
                alignment: cl_uint) -> *mut c_void {
                then |call, address| {
                    counters::svm_allocated(flags);
                    memory::svm_allocated(call, address, context, flags, size)
                }
            }
            LIFETIME value clSVMFree(context: cl_context, svm_pointer: *mut c_void) -> () { through memory::svm_free }
            ENQUEUE work(command_queue, event) clEnqueueSVMFree(command_queue: cl_command_queue,
                num_svm_pointers: cl_uint, svm_pointers: *mut *mut c_void, pfn_free_func: SvmFreeCallback,
                user_data: *mut c_void, num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event,
                event: *mut cl_event) -> cl_int { Commands::svm_free(num_svm_pointers, svm_pointers, pfn_free_func) }
            ENQUEUE work(command_queue, event, blocking_copy) clEnqueueSVMMemcpy(command_queue: cl_command_queue,
                blocking_copy: cl_bool, dst_ptr: *mut c_void, src_ptr: *const c_void, size: usize,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::svm_copy(dst_ptr, src_ptr, size)
            }
            ENQUEUE work(command_queue, event) clEnqueueSVMMemFill(command_queue: cl_command_queue,
                svm_ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::svm_fill(svm_ptr, size, pattern, pattern_size)
            }
            ENQUEUE work(command_queue, event, blocking_map) clEnqueueSVMMap(command_queue: cl_command_queue,
                blocking_map: cl_bool, map_flags: cl_bitfield, svm_ptr: *mut c_void, size: usize,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::svm_map(svm_ptr, size)
            }
            ENQUEUE work(command_queue, event) clEnqueueSVMUnmap(command_queue: cl_command_queue, svm_ptr: *mut c_void,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::svm_unmap(svm_ptr)
            }
            CREATE object(errcode_ret) clCreateSamplerWithProperties(context: cl_context,
                sampler_properties: *const cl_ulong, errcode_ret: *mut cl_int) -> cl_sampler {}
            SET status clSetKernelArgSVMPointer(kernel: cl_kernel, arg_index: cl_uint,
                arg_value: *const c_void) -> cl_int {
                if counters::have_passes();
                then |_, ()| kernel_arguments::pointer_set(kernel, arg_index, arg_value)
            }
            SET status clSetKernelExecInfo(kernel: cl_kernel, param_name: cl_uint, param_value_size: usize,
                param_value: *const c_void) -> cl_int {
                if counters::have_passes();
                then |_, ()| kernel_arguments::exec_info_set(kernel)
            }
            QUERY status clGetKernelSubGroupInfoKHR(in_kernel: cl_kernel, in_device: cl_device_id, param_name: cl_uint,
                input_value_size: usize, input_value: *const c_void, param_value_size: usize, param_value: *mut c_void,
                param_value_size_ret: *mut usize) -> cl_int {}
            CREATE object(errcode_ret) clCloneKernel(source_kernel: cl_kernel, errcode_ret: *mut cl_int) -> cl_kernel {
                then |call, kernel| kernels::cloned(call, kernel, source_kernel)
            }
            CREATE object(errcode_ret) clCreateProgramWithIL(context: cl_context, il: *const c_void, length: usize,
                errcode_ret: *mut cl_int) -> cl_program {
                then |call, program| programs::created(call, program)
            }
            ENQUEUE work(command_queue, event) clEnqueueSVMMigrateMem(command_queue: cl_command_queue,
                num_svm_pointers: cl_uint, svm_pointers: *mut *const c_void, sizes: *const usize, flags: cl_bitfield,
                num_events_in_wait_list: cl_uint, event_wait_list: *const cl_event, event: *mut cl_event) -> cl_int {
                Commands::svm_migrate(num_svm_pointers, svm_pointers, sizes, flags)
            }
            QUERY status clGetDeviceAndHostTimer(device: cl_device_id, device_timestamp: *mut cl_ulong,
                host_timestamp: *mut cl_ulong) -> cl_int {}
            QUERY status clGetHostTimer(device: cl_device_id, host_timestamp: *mut cl_ulong) -> cl_int {}
            QUERY status clGetKernelSubGroupInfo(kernel: cl_kernel, device: cl_device_id, param_name: cl_uint,
                input_value_size: usize, input_value: *const c_void, param_value_size: usize, param_value: *mut c_void,
                param_value_size_ret: *mut usize) -> cl_int {}
            SET status clSetDefaultDeviceCommandQueue(context: cl_context, device: cl_device_id,
                command_queue: cl_command_queue) -> cl_int {}
            SET status clSetProgramReleaseCallback(program: cl_program, pfn_notify: ProgramCallback,
                user_data: *mut c_void) -> cl_int {}
            SET status clSetProgramSpecializationConstant(program: cl_program, spec_id: cl_uint, spec_size: usize,
                spec_value: *const c_void) -> cl_int {}
            CREATE object(errcode_ret) clCreateBufferWithProperties(context: cl_context, properties: *const cl_ulong,
                flags: cl_bitfield, size: usize, host_ptr: *mut c_void, errcode_ret: *mut cl_int) -> cl_mem {
                then |call, mem| memory::created(call, mem, context, flags)
            }
            CREATE object(errcode_ret) clCreateImageWithProperties(context: cl_context, properties: *const cl_ulong,
                flags: cl_bitfield, image_format: *const c_void, image_desc: *const c_void, host_ptr: *mut c_void,
                errcode_ret: *mut cl_int) -> cl_mem { then |call, mem| memory::created(call, mem, context, flags) }
            SET status clSetContextDestructorCallback(context: cl_context, pfn_notify: ContextDestructor,
                user_data: *mut c_void) -> cl_int {}
        }
    };
}
pub(super) use opencl_functions;
