//! Tests of the `gputrail` command: the demo, and real OpenCL programs recorded on PoCL. Their traces are queried with
//! Perfetto's own trace processor.

mod bad_input;
mod c_api;
mod cache;
mod command;
mod command_buffers;
mod completeness;
mod damages;
mod demo;
mod dependencies;
mod disturbances;
mod exporting;
mod flight;
mod gate;
mod guide;
mod hangs;
mod hotspots;
mod importing;
mod inspection;
mod kills;
mod losses;
mod merging;
mod outputs;
mod processes;
mod random;
mod sampling;
mod scope;
mod summaries;
mod tables;
mod tools;
mod transparency;
mod viewer;
mod viewing;
mod without_parent;
mod witness;
