//! Methods that become too long for HotSpot's compilers by their hooks.
//!
//! The compilers never compile a method of more than 8,000 bytes of code, however often it runs. A method that exceeded this
//! limit only with its hooks ran fifty times slower. Therefore, when such a class is loaded, the agent switches the flag
//! `DontCompileHugeMethods` off: from then on, methods of any length are compiled. Users can prevent this with
//! `-XX:+DontCompileHugeMethods`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use lucce_bytecode::{ClassFile, LONGEST_COMPILED};
use lucce_jvmti::VmHandle;
use lucce_jvmti::flags::compile_long_methods;

use crate::classes::ClassParts;
use crate::options::LogLevel;

/// Switches `DontCompileHugeMethods` off once, and reports it.
#[derive(Default)]
pub struct LongMethodReport {
    vm: OnceLock<VmHandle>,
    is_reported: AtomicBool,
}

impl LongMethodReport {
    /// Sets the VM, once, before any class has hooks.
    pub fn set_vm(&self, vm: VmHandle) {
        let _ = self.vm.set(vm);
    }

    /// Handles methods of a class being loaded that have become too long.
    pub fn report_outgrown(
        &self,
        agent: ClassParts<'_>,
        class: &ClassFile<'_>,
        outgrown: &[usize],
    ) {
        let Some(method) = outgrown.first().and_then(|at| class.methods().get(*at)) else {
            return;
        };
        // Relaxed: the first thread reports it.
        if self.is_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let class = class.name().replace('/', ".");
        let what = format!(
            "{class}.{} has more than {LONGEST_COMPILED} bytes with its hooks",
            method.name
        );
        match self.vm.get().copied().is_some_and(compile_long_methods) {
            true => agent.core.report_message(
                LogLevel::Debug,
                &format!("{what}: methods of that length are compiled, too, from here on"),
            ),
            false => agent.core.report_message(
                LogLevel::Warn,
                &format!(
                    "{what}, and HotSpot compiles no such method: -XX:-DontCompileHugeMethods makes it do so"
                ),
            ),
        }
    }
}
