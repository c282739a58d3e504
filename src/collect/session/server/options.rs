//! The settings of a session.

use crate::session::flight::Flight;
use gputrail_buffer::{Layout, Policy};
use std::path::PathBuf;

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where the socket is made; private to the user.
    pub directory: PathBuf,
    /// Where captures are made; private to the user.
    pub captures: PathBuf,
    /// How the pool of each process is divided.
    pub layout: Layout,
    /// The policy when no block is empty.
    pub policy: Policy,
    /// See [`Config::watermark`](crate::session::Config::watermark).
    pub watermark: u32,
    /// Processes recorded at a time; later ones run unrecorded and are counted.
    pub processes: usize,
    /// With [`Policy::Overwrite`]: when what is kept is written out.
    pub flight: Option<Flight>,
    /// Whether the session begins switched off, see [`Server::controls`](super::Server::controls).
    pub paused: bool,
}
