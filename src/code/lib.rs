//! Machine code of devices: code objects, symbols and source lines, and samples counted by address.

#[allow(unused_imports)]
pub(crate) use crate as code;
#[allow(unused_imports)]
pub(crate) use gputrail_record as record;
#[allow(unused_imports)]
pub(crate) use gputrail_buffer as buffer;
#[allow(unused_imports)]
pub(crate) use gputrail_buffer::clock;
#[allow(unused_imports)]
pub(crate) use gputrail_buffer::platform;
#[allow(unused_imports)]
pub(crate) use gputrail_capture as capture;

pub mod aggregate;
pub mod reader;
pub mod symbols;
