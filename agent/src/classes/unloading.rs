//! Classes that the VM has unloaded: see also `stack::unloading`.

use lucce_vm::Env;

use crate::classes::Classes;
use crate::stack::unloading;

/// Looks after a few loaders; asked for whenever a class is loaded.
pub fn look(classes: &Classes, env: Env) {
    let gone = classes.loaders.gone(env);
    if !gone.is_empty() {
        classes.originals.forget(&gone);
        classes.watch.forget_all(&gone);
        unloading::forget(classes, &gone);
    }
}
