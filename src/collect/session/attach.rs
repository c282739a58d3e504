//! The program's side: asking the parent for memory to record into.

use super::message::{self, Config, Hello, Reason, Refusal};
use super::{SESSION_VARIABLE, SOCKET, filter, switch};
use gputrail_buffer::{Mapping, MappingError};
use gputrail_capture::queue::{ChunkQueue, QUEUE_BYTES};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sockopt,
};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// How long the program waits for a parent that does not answer, before it runs untraced.
const PATIENCE: Duration = Duration::from_secs(10);

/// The place of a process in a session.
pub struct Attached {
    /// The parent's instructions.
    pub config: Config,
    /// The memory of the pool. The parent holds it too.
    pub mapping: Mapping,
    /// The queue for metadata, in the same memory.
    pub(crate) metadata: ChunkQueue,
    /// The switch of the session, in memory that stays mapped.
    pub(crate) switch: Option<&'static AtomicU32>,
    /// Stays open for as long as the process records: its end tells the parent of an exec.
    pub connection: OwnedFd,
}

/// Why a process has no place in the session that its environment names.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The session has ended, and its directory or its listener is gone. Nothing to complain
    /// about: this process outlived the program that was recorded.
    #[error("the session {0:?} has ended")]
    Over(PathBuf),
    /// The parent cannot be reached.
    #[error("{SESSION_VARIABLE}={0:?}: cannot reach the running gputrail: {1}")]
    Connect(PathBuf, Errno),
    /// The parent does not answer in time.
    #[error("{SESSION_VARIABLE}={0:?}: the running gputrail has not answered for {PATIENCE:?}")]
    Silent(PathBuf),
    /// The program has forbidden itself the calls.
    #[error(
        "not recorded: a filter of system calls (seccomp), which the program has installed, ends it at those that reach \
         gputrail"
    )]
    Filtered,
    /// The reply is no answer of a gputrail.
    #[error("{SESSION_VARIABLE}={0:?}: no gputrail answers there: {1}")]
    Answer(PathBuf, String),
    /// The parent said no.
    #[error("not recorded: {0}")]
    Refused(Refusal),
    /// The memory that came cannot be used.
    #[error("not recorded: {0}")]
    Mapping(#[from] MappingError),
}

/// Asks the parent that listens in `directory` for a buffer. Blocks for as long as the parent takes to make one, at
/// most some seconds. Open files of ours get high numbers, so that the program's own keep the numbers that they would
/// have had.
pub fn attach(directory: &Path, reason: Reason) -> Result<Attached, AttachError> {
    let failed = |errno| match errno {
        // The last one when it ends while we are asking.
        Errno::NOENT | Errno::CONNREFUSED | Errno::CONNRESET => AttachError::Over(directory.into()),
        Errno::AGAIN => AttachError::Silent(directory.into()),
        errno => AttachError::Connect(directory.into(), errno),
    };
    if filter::ends_process() {
        return Err(AttachError::Filtered);
    }
    let connection = connect(&directory.join(SOCKET)).map_err(failed)?;
    let hello = Hello {
        pid: std::process::id(),
        reason,
        ticks: gputrail_buffer::clock::init(),
    };
    retry(|| rustix::net::send(&connection, &hello.encode(), SendFlags::NOSIGNAL))
        .map_err(failed)?;

    let (answer, files) = receive(&connection).map_err(failed)?;
    let nonsense = |what: String| AttachError::Answer(directory.into(), what);
    let config = message::decode_answer(&answer)
        .map_err(|malformed| nonsense(malformed.to_string()))?
        .map_err(AttachError::Refused)?;
    let mut files = files.into_iter();
    let mut next = |what| {
        let file = files.next();
        file.ok_or_else(|| nonsense(format!("no {what} came with the answer")))
    };
    let (memory, switch) = (next("memory")?, next("switch")?);
    let length = rustix::fs::fstat(&memory).map_err(failed)?.st_size as u64;
    let pool_bytes = config.mapping_bytes;
    if pool_bytes.checked_add(QUEUE_BYTES as u64) != Some(length) {
        return Err(nonsense(format!(
            "a memory of {length} bytes came, for a pool of {pool_bytes}"
        )));
    }
    let mapping = Mapping::open(memory.as_raw_fd(), pool_bytes as usize)?;
    let map = |source| MappingError::Map {
        bytes: QUEUE_BYTES,
        source,
    };
    let metadata = ChunkQueue::map(memory.as_raw_fd(), pool_bytes).map_err(map)?;
    // Without this a child could write to its parent's queue; the wiped table of consumers keeps it away, too.
    let _ = metadata.keep_from_children();
    Ok(Attached {
        config,
        mapping,
        metadata,
        switch: Some(
            switch::map(&switch).ok_or_else(|| nonsense("the switch cannot be mapped".into()))?,
        ),
        connection: out_of_the_way(connection),
    })
}

/// Whether the parent that listened in `directory` has ended, by whatever way: nobody listens there any more.
pub fn has_ended(directory: &Path) -> bool {
    if filter::ends_process() {
        return false;
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(address) = SocketAddrUnix::new(directory.join(SOCKET)) else {
        return false;
    };
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    // The directory may be out of reach, by chroot for example: only a refusal is certain.
    socket.is_ok_and(|socket| rustix::net::connect(&socket, &address) == Err(Errno::CONNREFUSED))
}

fn connect(socket: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(socket)?;
    let connection = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    for direction in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&connection, direction, Some(PATIENCE))?;
    }
    retry(|| rustix::net::connect(&connection, &address))?;
    Ok(connection)
}

/// The answer's bytes and the files that came with it.
fn receive(connection: &OwnedFd) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let mut bytes = vec![0; message::ANSWER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry(|| {
        rustix::net::recvmsg(
            connection,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let files = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        })
        .flatten()
        .collect();
    bytes.truncate(received.bytes);
    Ok((bytes, files))
}

/// Moves the file to a high number, if one is free.
fn out_of_the_way(file: OwnedFd) -> OwnedFd {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let top = limit.current.unwrap_or(1024).min(1024) as i32;
    [top - 24, top / 2]
        .into_iter()
        .find_map(|lowest| rustix::io::fcntl_dupfd_cloexec(file.as_fd(), lowest.max(0)).ok())
        .unwrap_or(file)
}

/// A signal handler of the program may interrupt any of these calls.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
