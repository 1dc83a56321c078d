//! Classes on their way into the VM: hooks, the class cache, Java agents, original bytes, and methods without hooks.
//!
//! ```text
//! VM: class file ─► java_agents: old hooks? ─► load: duplicate? cached? else rewritten ─► VM
//!                                                └ method_watch: methods without hooks get breakpoints
//! ```
//!
//! Read `load` first, then `cache`, `shared_class_copies`, `java_agents` with `original_classes`, `method_watch`,
//! `long_methods`, and `unloading`.

pub mod cache;
pub mod java_agents;
pub mod load;
pub mod long_methods;
pub mod method_watch;
pub mod original_classes;
pub mod rewriting;
pub mod shared_class_copies;
pub mod unloading;

use crate::core::AgentCore;
use crate::stack::{StackParts, StackTracker};
use crate::thread::{CounterStore, ThreadParts};

use cache::HookedClassCache;
use long_methods::LongMethodReport;
use method_watch::MethodWatch;
use original_classes::OriginalClasses;
use shared_class_copies::SharedClassCopies;

/// The parts of the agent that the layer of classes uses: its own, and those of the layers below.
#[derive(Clone, Copy)]
pub struct ClassParts<'a> {
    pub core: &'a AgentCore,
    pub counters: &'a CounterStore,
    pub stack: &'a StackTracker,
    pub classes: &'a LoadedClasses,
}

impl<'a> ClassParts<'a> {
    pub fn thread_parts(self) -> ThreadParts<'a> {
        self.stack_parts().thread_parts()
    }

    pub fn stack_parts(self) -> StackParts<'a> {
        StackParts {
            core: self.core,
            counters: self.counters,
            stack: self.stack,
        }
    }
}

/// What is kept about classes on their way into the VM.
#[derive(Default)]
pub struct LoadedClasses {
    /// The JDK's classes with hooks from earlier runs.
    pub cache: HookedClassCache,
    /// Hashes of classes without their hooks.
    pub original_classes: OriginalClasses,
    /// Classes that several loaders have.
    pub shared_copies: SharedClassCopies,
    pub method_watch: MethodWatch,
    /// Methods that become too long for the VM's compilers by their hooks.
    pub long_methods: LongMethodReport,
}
