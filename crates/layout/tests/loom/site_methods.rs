//! Model of a site's method, which hooks look up by plain reads: `METHODS` in LucceRtFrames.
//!
//! The agent stores it while the VM loads the class, and the VM publishes classes and compiled code: a thread that runs
//! the site's code sees what was stored before. The model assumes this publication, and shows that the agent's store
//! precedes it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use lucce_layout::site_method::set_method;

const SITES: usize = 3;

/// The agent's array, and the VM's publication: 0, or a site whose code may run.
struct ModelVm {
    methods: [AtomicU32; SITES],
    loaded: AtomicU32,
    /// Compiled code, in which the site is a constant.
    compiled: AtomicU32,
}

/// The method of a site, as in the log.
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

    /// Loads a class like the class file load hook: stores the methods of all sites, then publishes the class.
    fn load_class(&self, sites: std::ops::RangeInclusive<u32>) {
        for site in sites.clone() {
            set_method(&self.methods[site as usize], method_of(site));
        }
        self.loaded.store(*sites.end(), Ordering::Release);
    }

    /// Reads like a hook: plainly.
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
            // Loads another class while code of the first runs.
            loads.load_class(2..=2);
        });
        let compiling = loom::thread::spawn(move || {
            let site = compiles.loaded.load(Ordering::Acquire);
            if site != 0 {
                compiles.run_site(site);
                compiles.compiled.store(site, Ordering::Release);
            }
        });
        // A third thread runs code that the second compiled, and did not see the class load.
        let site = world.compiled.load(Ordering::Acquire);
        if site != 0 {
            (1..=site).for_each(|site| world.run_site(site));
        }
        loading.join().unwrap();
        compiling.join().unwrap();
    });
}
