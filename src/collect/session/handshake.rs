//! The parent's end of a new connection, up to the answer. Nothing that comes in is trusted.

use super::message::{self, Answer, Hello, Malformed, Refusal};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sockopt,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a connection may stay silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Silent connections at a time.
const MAX_PENDING: usize = 64;

/// Who is at the other end, as the system says.
pub(super) struct Peer {
    pub pid: u32,
    pub uid: u32,
}

/// A connection whose hello has not come yet.
pub(super) struct Pending {
    pub connection: OwnedFd,
    pub peer: Peer,
    pub deadline: Instant,
}

/// What a connection said.
pub(super) enum Heard {
    Nothing,
    Hello(Hello),
    Refuse(Refusal),
    Close,
}

/// A listening socket at `path`.
pub(super) fn listen(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, 128)?;
    Ok(listener)
}

/// The next connection that is waiting, unless enough others are silent already.
pub(super) fn accept(listener: &OwnedFd, pending: usize) -> Option<Pending> {
    if pending >= MAX_PENDING {
        return None;
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = rustix::net::accept_with(listener, flags).ok()?;
    let credentials = sockopt::socket_peercred(&connection).ok()?;
    Some(Pending {
        connection,
        peer: Peer {
            // Never 0: whoever got to the private directory is a descendant of ours or sees our processes.
            pid: credentials.pid.as_raw_nonzero().get() as u32,
            uid: credentials.uid.as_raw(),
        },
        deadline: Instant::now() + PATIENCE,
    })
}

impl Pending {
    /// What has come, without waiting.
    pub fn hear(&self) -> Heard {
        // One byte more than a message, so that a longer one shows.
        let mut bytes = [0; message::HELLO_BYTES + 1];
        let length = match rustix::net::recv(&self.connection, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < self.deadline => {
                return Heard::Nothing;
            }
            Err(_) => return Heard::Close,
        };
        // The directory is private, so this is somebody who was let in: the user, or root.
        if self.peer.uid != rustix::process::geteuid().as_raw() && self.peer.uid != 0 {
            return Heard::Close;
        }
        match Hello::decode(&bytes[..length]) {
            Ok(hello) => Heard::Hello(hello),
            Err(Malformed::Protocol(_)) => Heard::Refuse(Refusal::Version),
            Err(_) => Heard::Close,
        }
    }
}

/// Sends the answer, with files on success.
pub(super) fn reply(connection: &OwnedFd, answer: Answer, files: &[&OwnedFd]) -> Result<(), Errno> {
    let bytes = message::encode_answer(answer);
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(
            control.push(SendAncillaryMessage::ScmRights(&files)),
            "two files fit"
        );
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(connection, &[IoSlice::new(&bytes)], &mut control, flags).map(|_| ())
}
