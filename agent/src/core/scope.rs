//! The instrumentation scope: classes that have hooks and are in traces (`instrument=`, `include=`, `exclude=`).
//!
//! Instrumentation and verification use the same function, so a trace holds the frames of the VM's own trace whose
//! classes are in scope.

use lucce_instrument::continuations::is_continuation_class;

use crate::core::AgentCore;
use crate::options::{AgentOptions, InstrumentScope};
use crate::registry::ClassLoaderId;

/// Packages of classes that the JDK makes at run time in loaders of its own, such as accessors of reflection.
const JDK_PREFIXES: [&str; 3] = ["java/", "jdk/internal/", "sun/"];

/// Whether the class (`a/b/C`) is in scope.
pub fn is_in_scope(core: &AgentCore, loader: ClassLoaderId, class: &str) -> bool {
    let options = &core.options;
    let of_whom = match options.instrument {
        InstrumentScope::All => true,
        InstrumentScope::App => is_application_class(core, loader, class),
    };
    of_whom && options.filter.admits_class(class) || is_continuation_class(class)
}

/// Whether all JDK classes that JDK code calls by name are out of scope.
pub fn is_jdk_excluded(options: &AgentOptions) -> bool {
    let filter = &options.filter;
    let without = |packages: &&str| !filter.admits_below(packages);
    options.instrument == InstrumentScope::App || JDK_PREFIXES.iter().all(without)
}

fn is_application_class(core: &AgentCore, loader: ClassLoaderId, class: &str) -> bool {
    let of_the_jdk = JDK_PREFIXES.iter().any(|prefix| class.starts_with(prefix));
    !of_the_jdk && core.loaders.is_application(loader)
}

/// Whether a class of `loader` that is out of scope may run a constructor in scope by creating an object of class
/// `of`.
pub fn may_create(core: &AgentCore, loader: ClassLoaderId, of: &str) -> bool {
    match core.loaders.is_application(loader) {
        true => may_be_created(core, of),
        // The JDK names only its own classes.
        false => is_in_scope(core, ClassLoaderId::BOOT, of),
    }
}

/// Whether the constructor of such a class may be in scope, or may call one in scope.
pub fn may_be_created(core: &AgentCore, of: &str) -> bool {
    !of.starts_with("java/") || is_in_scope(core, ClassLoaderId::BOOT, of)
}
