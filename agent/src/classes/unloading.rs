//! Unloaded classes: frees what `classes` keeps of them; see also `stack::unloading`.

use lucce_jvmti::JniEnvironment;

use crate::classes::ClassParts;
use crate::stack::unloading;

/// Checks a few loaders for unloading. Called for each class that is loaded.
pub fn forget_unloaded_classes(agent: ClassParts<'_>, env: JniEnvironment) {
    let gone = agent.core.loaders.remove_unloaded(env);
    if !gone.is_empty() {
        agent.classes.original_classes.forget_loaders(&gone);
        agent.classes.method_watch.forget_loaders(&gone);
        unloading::forget_loaders(agent.stack_parts(), &gone);
    }
}
