//! A site's method, which hooks look up by plain reads: `METHODS` in LucceRt.
//!
//! The agent stores it while the VM loads the class, and the VM publishes classes and compiled code: who runs the site's code
//! has what was stored before. What the model assumes is this publication; that the agent's store comes before it is shown.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use crate::memory::owner::set_method;

const SITES: usize = 3;

/// The agent's array, and what the VM has published: 0, or a site whose code may be run.
struct ModelVm {
    methods: [AtomicU32; SITES],
    loaded: AtomicU32,
    /// Code that was compiled, in which the site is a constant.
    compiled: AtomicU32,
}

/// The method of a site, which the log says.
fn method_of(site: u32) -> u32 {
    site + 10
}

impl ModelVm {
    fn new() -> ModelVm {
        ModelVm {
            methods: std::array::from_fn(|_| AtomicU32::new(0)),
            loaded: AtomicU32::new(0),
            compiled: AtomicU32::new(0),
        }
    }

    /// As the class file hook does: the methods of all sites first, then the VM has the class.
    fn load_class(&self, sites: std::ops::RangeInclusive<u32>) {
        for site in sites.clone() {
            set_method(&self.methods[site as usize], method_of(site));
        }
        self.loaded.store(*sites.end(), Ordering::Release);
    }

    /// As a hook does: a plain read.
    fn run_site(&self, site: u32) {
        let method = self.methods[site as usize].load(Ordering::Relaxed);
        assert_eq!(method, method_of(site), "of site {site}");
    }
}

#[test]
fn code_that_runs_finds_the_methods_of_its_sites() {
    loom::model(|| {
        let world = Arc::new(ModelVm::new());
        let [loads, compiles] = [world.clone(), world.clone()];
        let loading = loom::thread::spawn(move || {
            loads.load_class(1..=1);
            // Another class, while code of the first runs.
            loads.load_class(2..=2);
        });
        let compiling = loom::thread::spawn(move || {
            let site = compiles.loaded.load(Ordering::Acquire);
            if site != 0 {
                compiles.run_site(site);
                compiles.compiled.store(site, Ordering::Release);
            }
        });
        // A third thread runs what the second has compiled, and never saw the class being loaded.
        let site = world.compiled.load(Ordering::Acquire);
        if site != 0 {
            (1..=site).for_each(|site| world.run_site(site));
        }
        loading.join().unwrap();
        compiling.join().unwrap();
    });
}
