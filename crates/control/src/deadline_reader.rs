//! Reads with a limit of bytes and a deadline, however slowly the other side sends.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A stream that can be read until a deadline.
pub struct DeadlineReader<'s> {
    stream: &'s UnixStream,
    deadline: Instant,
}

impl<'s> DeadlineReader<'s> {
    pub fn new(stream: &'s UnixStream, wait: Duration) -> DeadlineReader<'s> {
        let end = Instant::now() + wait;
        DeadlineReader {
            stream,
            deadline: end,
        }
    }

    /// Reads a line of at most `most` bytes with its end, and returns it without the end.
    pub fn read_line(&mut self, most: usize) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.read_exact(&mut byte)?;
            if byte == [b'\n'] {
                return decode_utf8(line);
            }
            line.extend(byte);
            if line.len() >= most {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a line of more than {most} bytes"),
                ));
            }
        }
    }

    /// Reads `length` bytes.
    pub fn read_text(&mut self, length: usize) -> io::Result<String> {
        let mut bytes = vec![0; length];
        self.read_exact(&mut bytes)?;
        decode_utf8(bytes)
    }
}

fn decode_utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "bytes that are no text"))
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        match Read::read(&mut &*self.stream, into) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(io::ErrorKind::TimedOut.into()),
            read => read,
        }
    }
}
