//! Credentials of a socket's peer and of this process, and a signal.
#![allow(unsafe_code, reason = "calls of the system")]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The credentials that the kernel reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerCredentials {
    pub pid: u32,
    pub user: u32,
}

/// Returns the process that connected, or that listens.
///
/// # Errors
/// The system's error.
pub fn read_credentials(stream: &UnixStream) -> io::Result<PeerCredentials> {
    let mut credentials = libc::ucred {
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
            (&raw mut credentials).cast(),
            &raw mut size,
        )
    };
    if code != 0 || size as usize != size_of::<libc::ucred>() {
        return Err(io::Error::last_os_error());
    }
    Ok(PeerCredentials {
        pid: u32::try_from(credentials.pid).unwrap_or(0),
        user: credentials.uid,
    })
}

/// Sends SIGQUIT, by which a JVM prints its threads or starts to listen.
///
/// # Errors
/// The system's error.
pub fn send_quit(pid: u32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: touches no memory of this process.
    match unsafe { libc::kill(pid, libc::SIGQUIT) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the effective user.
pub fn effective_user() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}
