//! Which classes have hooks and are in traces: `instrument=`, `include=`, `exclude=`.
//!
//! The rewriter and the oracle ask the same question here, so a trace holds the frames of the VM's own
//! trace whose classes are in scope.

use crate::book::Loader;
use crate::core::Core;
use crate::options::{Instrument, Options};

/// What the JDK makes at run time in loaders of its own: accessors of reflection.
const OF_THE_JDK: [&str; 3] = ["java/", "jdk/internal/", "sun/"];

/// Whether the class (`a/b/C`) is in scope.
pub fn holds(core: &Core, loader: Loader, class: &str) -> bool {
    let options = &core.options;
    let of_whom = match options.instrument {
        Instrument::All => true,
        Instrument::App => is_application(core, loader, class),
    };
    of_whom && options.filter.admits(class)
}

/// Whether no class of the JDK that code of the JDK calls by name is in scope.
pub fn is_without_the_jdk(options: &Options) -> bool {
    let filter = &options.filter;
    let without = |packages: &&str| !filter.admits_below(packages);
    options.instrument == Instrument::App || OF_THE_JDK.iter().all(without)
}

fn is_application(core: &Core, loader: Loader, class: &str) -> bool {
    let of_the_jdk = OF_THE_JDK.iter().any(|prefix| class.starts_with(prefix));
    !of_the_jdk && core.loaders.is_application(loader)
}

/// Whether a class of `loader` that is not in scope may run a constructor in scope by creating an object
/// of class `of`.
pub fn may_create(core: &Core, loader: Loader, of: &str) -> bool {
    match core.loaders.is_application(loader) {
        true => may_be_created(core, of),
        // The JDK names its own classes only.
        false => holds(core, Loader::BOOT, of),
    }
}

/// Whether the constructor of such a class may be in scope, or may call one.
pub fn may_be_created(core: &Core, of: &str) -> bool {
    !of.starts_with("java/") || holds(core, Loader::BOOT, of)
}
