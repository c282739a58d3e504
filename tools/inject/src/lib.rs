//! The library that `gputrail record` puts into the programs it records.
