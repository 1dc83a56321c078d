//! Classes that the VM has unloaded: see also `stack::unloading`.

use lucce_jvmti::JniEnvironment;

use crate::classes::AgentClasses;
use crate::stack::unloading;

/// Looks after a few loaders; asked for whenever a class is loaded.
pub fn forget_unloaded_classes(classes: &AgentClasses, env: JniEnvironment) {
    let gone = classes.loaders.remove_unloaded(env);
    if !gone.is_empty() {
        classes.original_classes.forget_loaders(&gone);
        classes.method_watch.forget_loaders(&gone);
        unloading::forget_loaders(classes, &gone);
    }
}
