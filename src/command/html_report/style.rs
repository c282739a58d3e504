//! The style of the page. Colours of loads can be told apart without seeing red and green (Paul Tol's schemes).

/// The style sheet.
pub const STYLE: &str = include_str!("style.css");
