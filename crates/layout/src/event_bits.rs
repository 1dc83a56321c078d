//! The bits of the event mask that are no kind of `events=`. Kinds define their own bits (`lucce_options::kinds`).
//!
//! Java code has constants of these names.

/// Events that the program counts itself.
pub const OWN: u64 = 1 << 1;
/// The agent follows objects that are passed to other threads, to measure allocations.
pub const FOLLOW: u64 = 1 << 17;

/// Tasks keep the context that submits them.
pub const ORIGINS: u64 = 1 << 10;
/// Tags are in use, and tasks keep them.
pub const TAGS: u64 = 1 << 11;

/// Name and value of each bit.
pub const ALL: &[(&str, u64)] = &[
    ("OWN", OWN),
    ("ORIGINS", ORIGINS),
    ("TAGS", TAGS),
    ("FOLLOW", FOLLOW),
];
