//! Unloaded classes: frees what `classes` keeps of them; see also `stack::unloading`.

use lucce_jvmti::JniEnvironment;

use crate::classes::AgentClasses;
use crate::stack::unloading;

/// Checks a few loaders for unloading. Called for each class that is loaded.
pub fn forget_unloaded_classes(classes: &AgentClasses, env: JniEnvironment) {
    let gone = classes.loaders.remove_unloaded(env);
    if !gone.is_empty() {
        classes.original_classes.forget_loaders(&gone);
        classes.method_watch.forget_loaders(&gone);
        unloading::forget_loaders(classes, &gone);
    }
}
