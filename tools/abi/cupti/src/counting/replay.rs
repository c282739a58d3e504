//! The program's function that is called after each run of a kernel that runs several times.

use crate::load::callee;
use crate::result::Answer;
use core::ffi::{c_char, c_int, c_void};
use gputrail_abi::{Watch, WithData, kept, lock};
use gputrail_tool::events::kernel_dispatch;
use std::sync::Mutex;

/// `CUpti_KernelReplayUpdateFunc`.
pub type UpdateFunction = unsafe extern "C-unwind" fn(*const c_char, c_int, *mut c_void);

static TOLD: Mutex<Option<WithData<UpdateFunction>>> = Mutex::new(None);
/// What calls the function, once it has been set.
static WATCHING: Mutex<Option<Watch>> = Mutex::new(None);

/// Has the function called in the place of the one before.
pub fn subscribe(function: Option<UpdateFunction>, data: *mut c_void) -> Answer {
    *lock(&TOLD) = function.map(|function| WithData { function, data });
    let mut watching = lock(&WATCHING);
    if function.is_none() || watching.is_some() {
        return Ok(());
    }
    let new = Watch::new(&[kernel_dispatch::REPLAY], |callback| {
        let told = *lock(&TOLD);
        if let Some(told) = told {
            let name = kept(&callback.kernel_name().unwrap_or_default());
            let done = callback.passes_done() as c_int;
            // SAFETY: the program's function for this, with its data; a text that lasts for ever.
            let call = || unsafe { (told.function)(name.as_ptr(), done, told.data) };
            callee(
                "cuptiKernelReplaySubscribeUpdate",
                told.function as *const (),
            )
            .call(call);
        }
    })?;
    *watching = Some(new);
    Ok(())
}
