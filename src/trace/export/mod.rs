//! The model in formats of other programs.

mod chrome;

pub use chrome::ChromeWriter;
