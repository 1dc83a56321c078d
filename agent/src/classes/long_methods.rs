//! Methods that hooks make so long that HotSpot would not compile them.
//!
//! Its compilers leave a method of more than 8,000 bytes of code to the interpreter, however often it runs. One that was
//! shorter, and is longer with its hooks, took fifty times as long for that reason. So where such a class is loaded the flag
//! that says so, `DontCompileHugeMethods`, is put off: from there on methods of any length are compiled. A user who does not
//! want that says `-XX:+DontCompileHugeMethods`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use lucce_bytecode::{ClassFile, LONGEST_COMPILED};
use lucce_jvmti::VmHandle;
use lucce_jvmti::flags::compile_long_methods;

use crate::classes::AgentClasses;
use crate::options::LogLevel;

#[derive(Default)]
pub struct LongMethodReport {
    vm: OnceLock<VmHandle>,
    is_reported: AtomicBool,
}

impl LongMethodReport {
    /// Once, before any class has hooks.
    pub fn set_vm(&self, vm: VmHandle) {
        let _ = self.vm.set(vm);
    }

    /// These methods of a class that is being loaded have become too long.
    pub fn report_outgrown(
        &self,
        classes: &AgentClasses,
        class: &ClassFile<'_>,
        outgrown: &[usize],
    ) {
        let Some(method) = outgrown.first().and_then(|at| class.methods().get(*at)) else {
            return;
        };
        // Relaxed: who comes first says it.
        if self.is_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let class = class.name().replace('/', ".");
        let what = format!(
            "{class}.{} has more than {LONGEST_COMPILED} bytes with its hooks",
            method.name
        );
        match self.vm.get().copied().is_some_and(compile_long_methods) {
            true => classes.report_message(
                LogLevel::Debug,
                &format!("{what}: methods of that length are compiled, too, from here on"),
            ),
            false => classes.report_message(
                LogLevel::Warn,
                &format!(
                    "{what}, and HotSpot compiles no such method: -XX:-DontCompileHugeMethods makes it do so"
                ),
            ),
        }
    }
}
