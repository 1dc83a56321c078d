//! Classes on their way into the VM: their hooks, Java agents, what they were before, those that cannot have hooks.

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

pub struct AgentClasses {
    pub counting: AgentCounting,
    /// What earlier runs have made of classes of the JDK.
    pub cache: HookedClassCache,
    /// What classes were before their hooks.
    pub original_classes: OriginalClasses,
    /// Classes that several loaders have.
    pub duplicates: DuplicateClasses,
    pub method_watch: MethodWatch,
    /// Methods that hooks make too long for the VM's compilers.
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
