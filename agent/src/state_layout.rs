//! Where fields lie in a thread's state that Java code writes. The agent's build reads this file, too.

/// With `events=io`: when the operation began that the thread is doing, 0: none; and the bytes that it was
/// given.
pub const IO_SINCE: usize = 40;
#[allow(dead_code, reason = "for the agent's build")]
pub const IO_BYTES: usize = IO_SINCE + 8;
/// The slot of the frame that has called `Object.clone` itself, until that returns.
#[allow(dead_code, reason = "for the agent's build")]
pub const CLONING: usize = 56;
/// Bytes of the text that an exception is made with, until its trace has been noted.
#[allow(dead_code, reason = "for the agent's build")]
pub const TEXT: usize = 64;
/// With `record=stream`: where the thread's next event goes.
pub const PLACE: usize = 72;
