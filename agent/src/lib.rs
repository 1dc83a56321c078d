//! The JVMTI agent: puts hooks into classes as they are loaded, and is their slow path.
//!
//! ```text
//! Agent_OnLoad ─► options ─► agent (log, encoder, shadow stacks)
//! VMStart      ─► helper class, boot edition         before any Java code runs
//! class bytes  ─► hook ─► planner ─► bytecode ─► VM  from java.lang.Object on
//! VMInit       ─► helper class, live edition; JNI brackets
//! event        ─► LucceRt (Java) ─► natives ─► callgraph ─► journal ─► tracelog
//! VMDeath      ─► the log's end, one line for the user
//! Agent_OnAttach ─► attach: a JVM that ran already, without hooks
//! lucce ctl    ─► control: a thread of its own
//! ```
//!
//! A failure of the agent never stops the program: every callback ends in `natives::guard`.

mod options;

mod jar;
mod only;

mod bits;
mod book;
mod quiet;
mod recorder;
mod vm_calls;
mod vm_flags;

mod outside;
mod planner;

mod clock;
mod names;

mod journal;
mod jvm;
mod loaders;
mod memory;
mod originals;
mod outputs;
mod record;
mod rows;
mod stream;
mod table_memory;
mod texts;

mod earlier;
mod plan;

mod paper;

mod java_table;
mod lane;
mod recent;
mod thread;
mod tree;

mod gate;

mod burst;
mod coverage;
mod fate;
mod java_agents;
mod trace;
mod trim;
mod twins;
mod unloading;
mod vm_count;

mod acting;
mod agent;
mod cells;
mod events;
mod hook;
mod io;
mod own_kinds;
mod scope;
mod types;

mod alike;
mod arrival;
mod frames;
mod here;
mod locals;
mod upcall;
mod verify;
mod warnings;
mod watch;

mod exception;
mod lock;
mod started;
mod thrown;
mod vm_alloc;
mod vm_events;
mod vm_thrown;

mod bracket;
mod natives;
mod near;

mod samples;
mod weight;

mod canaries;
mod followed;
mod leaks;

mod api;
mod marks;
mod native_api;

mod context_scope;
mod dump;
mod status;
mod tasks;

mod attach;
mod control;
mod copies;
mod edition;
mod helper_class;
mod shared_layout;
mod signals;
#[cfg(test)]
mod simulated;
mod slots;

mod finish;
mod start;
