//! Classes on their way into the VM: their hooks, Java agents, what they were before, those that cannot have hooks.

pub mod cache;
pub mod java_agents;
pub mod load;
pub mod long;
pub mod originals;
pub mod twins;
pub mod unloading;
pub mod watch;

use std::ops::Deref;

use crate::counting::Counting;

use cache::Cache;
use long::Long;
use originals::Originals;
use twins::Twins;
use watch::Watch;

pub struct Classes {
    pub counting: Counting,
    /// What earlier runs have made of classes of the JDK.
    pub cache: Cache,
    /// What classes were before their hooks.
    pub originals: Originals,
    /// Classes that several loaders have.
    pub twins: Twins,
    pub watch: Watch,
    /// Methods that hooks make too long for the VM's compilers.
    pub long: Long,
}

impl Deref for Classes {
    type Target = Counting;

    fn deref(&self) -> &Counting {
        &self.counting
    }
}

impl Classes {
    pub fn new(counting: Counting) -> Classes {
        let mut classes = Classes {
            counting,
            cache: Cache::default(),
            originals: Originals::default(),
            twins: Twins::default(),
            watch: Watch::default(),
            long: Long::default(),
        };
        classes.cache = Cache::open(&classes);
        classes
    }
}
