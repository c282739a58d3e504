//! Tools in Rust that people use: see the examples of this package.
