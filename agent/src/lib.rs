//! The JVMTI agent: puts hooks into classes as they are loaded, and is their slow path.
//!
//! ```text
//! Agent_OnLoad ─► options ─► agent (log, encoder, shadow stacks)
//! VMStart      ─► helper class, boot edition         before any Java code runs
//! class bytes  ─► hook ─► hooks ─► bytecode ─► VM  from java.lang.Object on
//! VMInit       ─► helper class, live edition; JNI brackets
//! event        ─► LucceRt (Java) ─► natives ─► callgraph ─► journal ─► tracelog
//! VMDeath      ─► the log's end, one line for the user
//! Agent_OnAttach ─► attach: a JVM that ran already, without hooks
//! lucce ctl    ─► control: a thread of its own
//! ```
//!
//! A failure of the agent never stops the program: every callback ends in `natives::guard`.

mod attach;
mod book;
mod classes;
mod comparison;
mod core;
mod counting;
mod entry;
mod events;
mod leaks;
mod memory;
mod options;
mod session;
mod stack;
mod thread;
