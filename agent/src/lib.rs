//! The JVMTI agent: inserts hooks into classes as they are loaded, and is the hooks' slow path.
//!
//! ```text
//! Agent_OnLoad   ─► session::start: options, log, encoder, shadow stacks
//! VMStart        ─► helper classes, boot variant                     before any Java code runs
//! class bytes    ─► classes::load ─► instrument ─► bytecode ─► VM    from java.lang.Object on
//! VMInit         ─► session::live: helper classes, live variant; JNI brackets
//! event          ─► LucceRt… (Java) ─► entry::natives ─► counting ─► callgraph ─► registry journal ─► tracelog
//! VMDeath        ─► session::finish: ends the log, prints one line for the user
//! Agent_OnAttach ─► session::attach: a JVM that is running already, without hooks
//! lucce ctl      ─► session::control: a thread of its own
//! ```
//!
//! Each folder is a layer that imports lower layers only; ARCHITECTURE.md draws them. A failure of the agent never
//! stops the program: every function that the VM calls runs inside `session::guard`.

mod classes;
#[cfg(feature = "lab")]
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
mod tracking;
