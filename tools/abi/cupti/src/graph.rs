//! The ids of graphs, executable graphs, nodes and events: callbacks have numbers in the places of their handles, which are the ids.

use crate::place::Place;
use crate::result::{Answer, CUptiResult};
use crate::with_gputrail;
use core::ffi::c_void;

/// The id that a handle is.
fn id<T: TryFrom<usize>>(handle: *mut c_void) -> Answer<T> {
    if handle.is_null() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    T::try_from(handle.addr()).map_err(|_| CUptiResult::INVALID_PARAMETER)
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident: $type:ty;)*) => {
        $(
            $(#[$meta])*
            ///
            /// # Safety
            ///
            /// `place` is null or a place for a number.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(handle: *mut c_void, place: *mut $type) -> CUptiResult {
                with_gputrail(|| {
                    // SAFETY: `place` is null or a place for a number.
                    let place = unsafe { Place::new(place) }?;
                    place.put(id::<$type>(handle)?);
                    Ok(())
                })
            }
        )*
    };
}

ids! {
    /// The id of a graph.
    cuptiGetGraphId: u32;
    /// The id of an executable graph, as records of work have it.
    cuptiGetGraphExecId: u32;
    /// The id of a node, unique in the process.
    cuptiGetGraphNodeId: u64;
    /// The id of an event of the simulated GPU, as records of events have it. Events of OpenCL have none.
    cuptiGetCudaEventId: u32;
}
