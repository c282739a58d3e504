//! The `gputrail` command.
fn main() {}
