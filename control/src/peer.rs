//! Who is at the other end of a socket, and who this process is.
#![allow(unsafe_code, reason = "two calls of the system")]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// As the kernel says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub pid: u32,
    pub user: u32,
}

/// The process that connected, or that listens.
///
/// # Errors
/// The system's.
pub fn of(stream: &UnixStream) -> io::Result<Peer> {
    let mut found = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers are to a structure of that size and to its size.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut size,
        )
    };
    if code != 0 || size as usize != size_of::<libc::ucred>() {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer {
        pid: u32::try_from(found.pid).unwrap_or(0),
        user: found.uid,
    })
}

/// The effective user.
pub fn user() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}
