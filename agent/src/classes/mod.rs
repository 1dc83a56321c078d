//! Classes on their way into the VM: hooks, the class cache, Java agents, original bytes, and methods without hooks.
//!
//! ```text
//! VM: class file ─► java_agents: old hooks? ─► load: duplicate? cached? else rewritten ─► VM
//!                                                └ method_watch: methods without hooks get breakpoints
//! ```
//!
//! Read `load` first, then `cache`, `duplicate_classes`, `java_agents` with `original_classes`, `method_watch`,
//! `long_methods`, and `unloading`.

pub mod cache;
pub mod duplicate_classes;
pub mod java_agents;
pub mod load;
pub mod long_methods;
pub mod method_watch;
pub mod original_classes;
pub mod unloading;

use std::ops::Deref;

use crate::counting::AgentCounting;

use cache::HookedClassCache;
use duplicate_classes::DuplicateClasses;
use long_methods::LongMethodReport;
use method_watch::MethodWatch;
use original_classes::OriginalClasses;

/// The layer of classes, on top of counting.
pub struct AgentClasses {
    pub counting: AgentCounting,
    /// The JDK's classes with hooks from earlier runs.
    pub cache: HookedClassCache,
    /// Hashes of classes without their hooks.
    pub original_classes: OriginalClasses,
    /// Classes that several loaders have.
    pub duplicates: DuplicateClasses,
    pub method_watch: MethodWatch,
    /// Methods that become too long for the VM's compilers by their hooks.
    pub long_methods: LongMethodReport,
}

impl Deref for AgentClasses {
    type Target = AgentCounting;

    fn deref(&self) -> &AgentCounting {
        &self.counting
    }
}

impl AgentClasses {
    pub fn new(counting: AgentCounting) -> AgentClasses {
        let mut classes = AgentClasses {
            counting,
            cache: HookedClassCache::default(),
            original_classes: OriginalClasses::default(),
            duplicates: DuplicateClasses::default(),
            method_watch: MethodWatch::default(),
            long_methods: LongMethodReport::default(),
        };
        classes.cache = HookedClassCache::open(&classes);
        classes
    }
}
