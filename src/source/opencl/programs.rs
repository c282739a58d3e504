//! Programs and their builds.

use super::attach;
use super::call::Call;
use super::dispatch::{ask, below, next};
use super::ffi::*;
use super::handles::Handles;
use super::objects::{self, Object, object};
use crate::clock;
use crate::record::*;
use bytemuck::{Pod, Zeroable};
use core::ffi::CStr;

/// What is known of a program.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ProgramInfo {
    references: u32,
    id: ModuleId,
    context: ContextId,
    unused: [u32; 11],
}
object!(cl_program, ProgramInfo, PROGRAMS);

/// A program was created.
pub(super) fn created(call: &mut Call, program: cl_program) {
    call.end();
    PROGRAMS.remove(program);
    lookup(program);
}

/// The module that `program` is.
pub(super) fn module(program: cl_program) -> ModuleId {
    lookup(program).id
}

fn lookup(program: cl_program) -> ProgramInfo {
    PROGRAMS.get(program).unwrap_or_else(|| name(program))
}

#[cold]
fn name(program: cl_program) -> ProgramInfo {
    let mut info = ProgramInfo::zeroed();
    let Some(names) = attach::names().filter(|_| !program.is_null()) else {
        return info;
    };
    let context = ask!(below(), clGetProgramInfo(program, CL_PROGRAM_CONTEXT) -> cl_context);
    info.context = context
        .map(|context| objects::context(context).id)
        .unwrap_or_default();
    info.references = 1;
    let mut record = Module::blank();
    (record.context, record.handle) = (info.context, program.into());
    info.id = names.module(record);
    PROGRAMS.insert(program, info);
    info
}

/// The first device that `program` is for.
pub(super) fn first_device(program: cl_program) -> cl_device_id {
    let mut devices = [cl_device_id::NULL; 64];
    if !program.is_null() {
        let to = devices.as_mut_ptr().cast();
        next!(clGetProgramInfo(
            program,
            CL_PROGRAM_DEVICES,
            size_of_val(&devices),
            to,
            core::ptr::null_mut()
        ));
    }
    devices[0]
}

/// A build that is under way: who is told when it has ended, and what it was.
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
    /// `options` is null or a string.
    unsafe fn new(call: &Call, options: *const c_char) -> Build {
        let text = match options.is_null() {
            true => String::new(),
            // SAFETY: the caller's promise.
            false => unsafe { CStr::from_ptr(options) }
                .to_string_lossy()
                .into_owned(),
        };
        Build {
            notify: None,
            user_data: core::ptr::null_mut(),
            correlation: call.correlation(),
            start: call.start(),
            options: attach::names()
                .map(|names| names.string(&text))
                .unwrap_or_default(),
        }
    }

    /// Stands in for the program's callback, if there is one: it ends the build, which may go on after
    /// the call has returned.
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

    /// The build has ended. Says what it took, and what the program was built with.
    fn ended(&self, program: cl_program, end: Ticks) {
        let info = lookup(program);
        let Some(names) = attach::names() else {
            return;
        };
        let mut module = Module::blank();
        (module.id, module.context, module.handle) = (info.id, info.context, program.into());
        module.options = self.options;
        names.module(module);
        let mut overhead = Overhead::blank();
        overhead.correlation = self.correlation;
        (overhead.start, overhead.end) = (self.start, end);
        (overhead.module, overhead.what) = (info.id, OverheadKind::COMPILATION);
        overhead.detail = self.options;
        if let Some(thread) = crate::process::current() {
            thread.with(|host| {
                overhead.thread = host.thread();
                host.write(overhead);
            });
        }
    }
}

/// The runtime says that a build has ended. `user_data` is the [`Build`].
unsafe extern "C-unwind" fn build_ended(program: cl_program, user_data: *mut c_void) {
    // SAFETY: made by `observe`; OpenCL calls this once.
    let build = *unsafe { Box::from_raw(user_data.cast::<Build>()) };
    build.ended(program, clock::now());
    let (notify, user_data) = (build.notify, build.user_data);
    if let Some(notify) = notify {
        // SAFETY: the program's callback with the program's data.
        unsafe { notify(program, user_data) };
    }
}

pub(super) unsafe fn build(
    call: &mut Call,
    program: cl_program,
    num_devices: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    notify: ProgramCallback,
    user_data: *mut c_void,
) -> cl_int {
    // SAFETY: the program's string.
    let build = unsafe { Build::new(call, options) };
    let (build, notify, user_data) = build.observe(notify, user_data);
    let result = next!(clBuildProgram(
        program,
        num_devices,
        devices,
        options,
        notify,
        user_data
    ));
    if let Some(build) = build {
        build.ended(program, call.end());
    }
    result
}

#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn compile(
    call: &mut Call,
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
    // SAFETY: the program's string.
    let build = unsafe { Build::new(call, options) };
    let (build, notify, user_data) = build.observe(notify, user_data);
    let result = next!(clCompileProgram(
        program,
        num_devices,
        devices,
        options,
        num_headers,
        headers,
        names,
        notify,
        user_data
    ));
    if let Some(build) = build {
        build.ended(program, call.end());
    }
    result
}

#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn link(
    call: &mut Call,
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
    let program = next!(clLinkProgram(
        context,
        num_devices,
        devices,
        options,
        num_programs,
        programs,
        notify,
        user_data,
        errcode
    ));
    if let Some(build) = build.filter(|_| !program.is_null()) {
        build.ended(program, call.end());
    }
    program
}
