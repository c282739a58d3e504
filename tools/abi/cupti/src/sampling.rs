//! Samples of the program counter.
