//! Programs and their builds.

use super::below::{below, next};
use super::call::ObservedCall;
use super::call_site::CallSite;
use super::contained::contained;
use super::contexts;
use super::debug_info;
use super::devices;
use super::ffi::*;
use super::functions::ask;
use super::handles::ObjectTable;
use super::references::{ReferenceCounted, object};
use bytemuck::{Pod, Zeroable};
use core::ffi::CStr;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::process::{self, Current};
use gputrail_collect::switchboard::Payload;
use gputrail_interface::operations::resource;
use gputrail_record::*;
use std::collections::HashMap;
use std::ffi::CString;

/// The tracked state of a program.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ProgramInfo {
    references: u32,
    id: ModuleId,
    context: ContextId,
    /// Its source text, if it was recorded.
    source: StringId,
    unused: [u32; 10],
}
object!(cl_program, ProgramInfo, PROGRAMS);

/// The context of a program that is known.
pub(super) fn context_of(program: cl_program) -> Option<ContextId> {
    PROGRAMS.get(program).map(|info| info.context)
}

/// A program was created.
pub(super) fn created(call: &mut ObservedCall, program: cl_program) {
    call.end();
    PROGRAMS.remove(program);
    let info = lookup(program);
    call.notify_object::<Module>(resource::MODULE_LOADED, info.id.0);
}

/// A program was created from source text, which is recorded if its lines are to be shown.
///
/// # Safety
///
/// The arguments are those of a call to clCreateProgramWithSource that succeeded.
pub(super) unsafe fn created_from_source(
    call: &mut ObservedCall,
    program: cl_program,
    count: cl_uint,
    strings: *mut *const c_char,
    lengths: *const usize,
) {
    created(call, program);
    debug_info::new_program(program);
    let (Some(recorder), Some(names)) = (process::recorder(), process::names()) else {
        return;
    };
    if !recorder.keeps_source() {
        return;
    }
    let mut text = Vec::new();
    for place in 0..count as usize {
        // SAFETY: the runtime has taken the arguments: `strings` leads to `count` strings, and `lengths` is null or leads to
        // as many lengths.
        let (string, length) = unsafe {
            let length = if lengths.is_null() {
                0
            } else {
                *lengths.add(place)
            };
            (*strings.add(place), length)
        };
        // SAFETY: as above; a length of 0 says that the string ends with a 0.
        text.extend_from_slice(unsafe {
            match length {
                0 => CStr::from_ptr(string).to_bytes(),
                length => core::slice::from_raw_parts(string.cast(), length),
            }
        });
        if text.len() > MAX_STRING {
            break;
        }
    }
    let source = names.string(&String::from_utf8_lossy(&text));
    let info = PROGRAMS.update(program, |info| {
        info.source = source;
        *info
    });
    if let Some(info) = info {
        names.module(module_of(program, &info));
    }
}

/// The record of a program.
fn module_of(program: cl_program, info: &ProgramInfo) -> Module {
    let mut module = Module::blank();
    (module.id, module.context, module.source) = (info.id, info.context, info.source);
    module.handle = program.into();
    module
}

/// Machine code of programs that subscribers have been notified of, by module.
static CODE: PerProcess<HashMap<u32, Vec<CodeObject>>> = PerProcess::new();

pub(super) fn forget_all() {
    PROGRAMS.clear();
}

/// Reports that the program is going to release its last reference to a program object.
pub(super) fn going(call: &ObservedCall, info: &ProgramInfo) {
    if let Some(site) = call.inner_call_site() {
        unload(&site, info.id);
    }
    call.notify_object::<Module>(resource::MODULE_UNLOADED, info.id.0);
}

/// Notifies subscribers that the machine code of `module` is going to be unloaded.
fn unload(site: &CallSite, module: ModuleId) {
    let known = CODE.lock().remove(&module.0);
    for object in known.unwrap_or_default() {
        let payload = Payload::Code(&object, &[]);
        site.instant(resource::CODE_OBJECT_UNLOADED, payload);
    }
}

/// Notifies subscribers of the machine code that `program` has for each of its devices. OpenCL does not report its
/// address.
fn load(site: &CallSite, program: cl_program, module: ModuleId) {
    let Some(names) = process::names() else {
        return;
    };
    let devices = devices(program);
    for (agent, binary) in devices.iter().zip(binaries(program, devices.len())) {
        if binary.is_empty() {
            continue;
        }
        let mut object = CodeObject::blank();
        (object.module, object.agent) = (module, devices::agent(*agent));
        object.load_size = binary.len() as u64;
        object.id = names.code_object(object);
        let mut known = CODE.lock();
        known.entry(module.0).or_default().push(object);
        drop(known);
        site.instant(
            resource::CODE_OBJECT_LOADED,
            Payload::Code(&object, &binary),
        );
    }
}

/// The binaries of `program` for its `devices`; empty if there is none.
fn binaries(program: cl_program, devices: usize) -> Vec<Vec<u8>> {
    const CL_PROGRAM_BINARY_SIZES: cl_uint = 0x1165;
    const CL_PROGRAM_BINARIES: cl_uint = 0x1166;
    /// For larger binaries subscribers get no code.
    const MAX_BINARY_BYTES: usize = 256 << 20;
    let mut sizes = vec![0usize; devices];
    let ask = |what, bytes, to: *mut c_void| {
        let none = core::ptr::null_mut();
        // SAFETY: the program exists during its call or the callback of its build; `to` leads to `bytes` bytes.
        CL_SUCCESS == unsafe { next!(clGetProgramInfo(program, what, bytes, to, none)) }
    };
    let room = size_of_val(&*sizes);
    if !ask(CL_PROGRAM_BINARY_SIZES, room, sizes.as_mut_ptr().cast()) {
        return Vec::new();
    }
    let small = sizes
        .iter()
        .fold(0usize, |sum, size| sum.saturating_add(*size))
        <= MAX_BINARY_BYTES;
    let mut binaries: Vec<Vec<u8>> = if small {
        sizes.iter().map(|size| vec![0; *size]).collect()
    } else {
        return Vec::new();
    };
    let mut places: Vec<*mut u8> = binaries.iter_mut().map(|one| one.as_mut_ptr()).collect();
    let room = size_of_val(&*places);
    if ask(CL_PROGRAM_BINARIES, room, places.as_mut_ptr().cast()) {
        binaries
    } else {
        Vec::new()
    }
}

/// Whether the source of `program` has `text` in it, or its code where it was not made from source.
pub(super) fn mentions(program: cl_program, text: &[u8]) -> bool {
    const CL_PROGRAM_SOURCE: cl_uint = 0x1164;
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    // SAFETY: the program exists during its call; `text` passes room, and its size.
    let source = super::device::text(|bytes, to, size| unsafe {
        next!(clGetProgramInfo(
            program,
            CL_PROGRAM_SOURCE,
            bytes,
            to,
            size
        ))
    });
    if !source.is_empty() {
        return has(source.as_bytes());
    }
    let binaries = binaries(program, devices(program).len());
    binaries.iter().any(|binary| has(binary))
}

/// The module of `program`.
pub(super) fn module(program: cl_program) -> ModuleId {
    lookup(program).id
}

fn lookup(program: cl_program) -> ProgramInfo {
    PROGRAMS.get(program).unwrap_or_else(|| name(program))
}

#[cold]
fn name(program: cl_program) -> ProgramInfo {
    let mut info = ProgramInfo::zeroed();
    let Some(names) = process::names().filter(|_| !program.is_null()) else {
        return info;
    };
    let context = ask!(below(), clGetProgramInfo(program, CL_PROGRAM_CONTEXT) -> cl_context);
    info.context = context
        .map(|context| contexts::context(context).id)
        .unwrap_or_default();
    info.references = 1;
    let mut record = Module::blank();
    (record.context, record.handle) = (info.context, program.into());
    info.id = names.module(record);
    PROGRAMS.insert(program, info);
    info
}

/// The first device of `program`.
pub(super) fn first_device(program: cl_program) -> cl_device_id {
    let first = devices(program).first().copied();
    first.unwrap_or(cl_device_id::NULL)
}

/// The devices of `program`, up to the maximum.
fn devices(program: cl_program) -> Vec<cl_device_id> {
    let mut devices = [cl_device_id::NULL; 64];
    let mut bytes = 0;
    if !program.is_null() {
        let to = devices.as_mut_ptr().cast();
        // SAFETY: the program exists during its call or the callback of its build; `devices` has as many bytes as stated.
        unsafe {
            next!(clGetProgramInfo(
                program,
                CL_PROGRAM_DEVICES,
                size_of_val(&devices),
                to,
                &raw mut bytes
            ))
        };
    }
    let count = (bytes / size_of::<cl_device_id>()).min(devices.len());
    devices[..count].to_vec()
}

/// A build in progress: the program's callback for its end, and the arguments.
struct Build {
    notify: ProgramCallback,
    user_data: *mut c_void,
    correlation: CorrelationId,
    start: Ticks,
    options: StringId,
}

impl Build {
    /// # Safety
    ///
    /// `options` is null or a string that ends with a 0.
    unsafe fn new(call: &ObservedCall, options: *const c_char) -> Build {
        let text = match options.is_null() {
            true => String::new(),
            // SAFETY: `options` is not null, so that it is a string that ends with a 0; it is copied.
            false => unsafe { CStr::from_ptr(options) }
                .to_string_lossy()
                .into_owned(),
        };
        Build {
            notify: None,
            user_data: core::ptr::null_mut(),
            correlation: call.correlation(),
            start: call.start(),
            options: process::names()
                .map(|names| names.string(&text))
                .unwrap_or_default(),
        }
    }

    /// Replaces the program's callback, if there is one: that is called at the end of a build that may go on after the
    /// call has returned.
    fn observe(
        mut self,
        notify: ProgramCallback,
        user_data: *mut c_void,
    ) -> (Option<Build>, ProgramCallback, *mut c_void) {
        if notify.is_none() {
            return (Some(self), None, user_data);
        }
        (self.notify, self.user_data) = (notify, user_data);
        (
            None,
            Some(build_ended),
            Box::into_raw(Box::new(self)).cast(),
        )
    }

    /// Reports the end of the build, with its duration and options.
    fn ended(&self, program: cl_program, end: Ticks) {
        let info = lookup(program);
        let Some(names) = process::names() else {
            return;
        };
        let mut module = module_of(program, &info);
        module.options = self.options;
        names.module(module);
        let mut overhead = Overhead::blank();
        overhead.correlation = self.correlation;
        (overhead.start, overhead.end) = (self.start, end);
        (overhead.module, overhead.what) = (info.id, OverheadKind::COMPILATION);
        overhead.detail = self.options;
        if let Some(thread) = gputrail_collect::process::current() {
            thread.with(|host| {
                overhead.thread = host.thread();
                host.write(overhead);
            });
            self.notify(program, info.id, thread);
        }
    }
}

impl Build {
    /// Notifies subscribers of the machine code that the build has made, which replaces earlier code.
    fn notify(&self, program: cl_program, module: ModuleId, thread: Current) {
        let operations = [resource::CODE_OBJECT_LOADED, resource::CODE_OBJECT_UNLOADED];
        let anybody = |operation| process::interest(operation).has_subscribers();
        if !operations.into_iter().any(anybody) {
            return;
        }
        if let Some(site) = CallSite::new(thread, self.correlation, 0) {
            unload(&site, module);
            load(&site, program, module);
        }
    }
}

/// The callback of the runtime at the end of a build. `user_data` is the [`Build`].
unsafe extern "C-unwind" fn build_ended(program: cl_program, user_data: *mut c_void) {
    // SAFETY: made by `observe`; OpenCL calls this once.
    let build = *unsafe { Box::from_raw(user_data.cast::<Build>()) };
    contained(|| build.ended(program, clock::now()));
    let (notify, user_data) = (build.notify, build.user_data);
    if let Some(notify) = notify {
        // SAFETY: the program's callback with the program's data.
        unsafe { notify(program, user_data) };
    }
}

/// The options to build `program` with for source lines, if the user requests them. OpenCL copies options before a
/// build that goes on after the call.
///
/// # Safety
///
/// `options` is null or a string that ends with a 0.
unsafe fn with_lines(program: cl_program, options: *const c_char) -> Option<CString> {
    let asked = match options.is_null() {
        true => c"",
        // SAFETY: `options` is not null, so that it is a string that ends with a 0; it stays during the call.
        false => unsafe { CStr::from_ptr(options) },
    };
    let asked = asked.to_str().ok()?;
    if !process::recorder()?.wants_kernel_debug_info() {
        return None;
    }
    let version = devices::pocl_version(first_device(program))?;
    debug_info::options(program, version, asked)
}

pub(super) unsafe fn build(
    call: &mut ObservedCall,
    program: cl_program,
    num_devices: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    notify: ProgramCallback,
    user_data: *mut c_void,
) -> cl_int {
    let build = |options, notify, user_data| {
        // SAFETY: the program's own arguments, or options and a callback of ours that stay until the build has ended.
        unsafe {
            next!(clBuildProgram(
                program,
                num_devices,
                devices,
                options,
                notify,
                user_data
            ))
        }
    };
    // SAFETY: the program's string.
    unsafe { built(call, program, options, (notify, user_data), build) }
}

/// Builds `program` with `build`, which gets the options and the callback for the end.
///
/// # Safety
///
/// `options` is null, or leads to a string that ends with a 0.
unsafe fn built(
    call: &mut ObservedCall,
    program: cl_program,
    options: *const c_char,
    (notify, user_data): (ProgramCallback, *mut c_void),
    build: impl FnOnce(*const c_char, ProgramCallback, *mut c_void) -> cl_int,
) -> cl_int {
    // SAFETY: `options` is null or a string that ends with a 0.
    let observed = unsafe { Build::new(call, options) };
    // SAFETY: as above.
    let ours = unsafe { with_lines(program, options) };
    let options = ours.as_ref().map_or(options, |ours| ours.as_ptr());
    let (observed, notify, user_data) = observed.observe(notify, user_data);
    let result = build(options, notify, user_data);
    if let Some(observed) = observed {
        observed.ended(program, call.end());
    }
    result
}

#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn compile(
    call: &mut ObservedCall,
    program: cl_program,
    num_devices: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    num_headers: cl_uint,
    headers: *const cl_program,
    names: *mut *const c_char,
    notify: ProgramCallback,
    user_data: *mut c_void,
) -> cl_int {
    let compile = |options, notify, user_data| {
        // SAFETY: as in `build`.
        unsafe {
            next!(clCompileProgram(
                program,
                num_devices,
                devices,
                options,
                num_headers,
                headers,
                names,
                notify,
                user_data
            ))
        }
    };
    // SAFETY: the program's string.
    unsafe { built(call, program, options, (notify, user_data), compile) }
}

#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn link(
    call: &mut ObservedCall,
    context: cl_context,
    num_devices: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    num_programs: cl_uint,
    programs: *const cl_program,
    notify: ProgramCallback,
    user_data: *mut c_void,
    errcode: *mut cl_int,
) -> cl_program {
    // SAFETY: the program's string.
    let build = unsafe { Build::new(call, options) };
    let (build, notify, user_data) = build.observe(notify, user_data);
    // SAFETY: as in `build`.
    let program = unsafe {
        next!(clLinkProgram(
            context,
            num_devices,
            devices,
            options,
            num_programs,
            programs,
            notify,
            user_data,
            errcode
        ))
    };
    if let Some(build) = build.filter(|_| !program.is_null()) {
        build.ended(program, call.end());
    }
    program
}
