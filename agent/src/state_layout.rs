//! Where fields lie in a thread's state that Java code writes. The agent's build reads this file, too.

/// With `record=stream`: where the thread's next event goes.
pub const PLACE: usize = 40;
