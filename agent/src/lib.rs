//! The JVMTI agent: puts hooks into classes as they are loaded, and is their slow path.
//!
//! ```text
//! Agent_OnLoad   ─► session::start: options, log, encoder, shadow stacks
//! VMStart        ─► the helper classes, boot edition              before any Java code runs
//! class bytes    ─► classes::load ─► hooks ─► bytecode ─► VM      from java.lang.Object on
//! VMInit         ─► session::live: the live edition; JNI brackets
//! event          ─► LucceRt… (Java) ─► entry::natives ─► counting ─► callgraph ─► registry::journal ─► tracelog
//! VMDeath        ─► session::finish: the log's end, one line for the user
//! Agent_OnAttach ─► session::attach: a JVM that ran already, without hooks
//! lucce ctl      ─► session::control: a thread of its own
//! ```
//!
//! Each folder is a floor that imports lower ones only: ARCHITECTURE.md draws them. A failure of the agent never stops the
//! program: every function that the VM calls ends in `session::guard`.

mod classes;
mod comparison;
mod core;
mod counting;
mod entry;
mod events;
mod hookless;
mod leaks;
mod memory;
mod options;
mod registry;
mod session;
mod stack;
mod thread;
