//! Methods that hooks make so long that HotSpot would not compile them.
//!
//! Its compilers leave a method of more than 8,000 bytes of code to the interpreter, however often it runs. One that was
//! shorter, and is longer with its hooks, took fifty times as long for that reason. So where such a class is loaded the flag
//! that says so, `DontCompileHugeMethods`, is put off: from there on methods of any length are compiled. A user who does not
//! want that says `-XX:+DontCompileHugeMethods`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use lucce_bytecode::{ClassFile, LONGEST_COMPILED};
use lucce_vm::Vm;
use lucce_vm::flags::compile_long_methods;

use crate::classes::Classes;
use crate::options::Level;

#[derive(Default)]
pub struct Long {
    vm: OnceLock<Vm>,
    met: AtomicBool,
}

impl Long {
    /// Once, before any class has hooks.
    pub fn prepare(&self, vm: Vm) {
        let _ = self.vm.set(vm);
    }

    /// These methods of a class that is being loaded have become too long.
    pub fn met(&self, classes: &Classes, class: &ClassFile<'_>, outgrown: &[usize]) {
        let Some(method) = outgrown.first().and_then(|at| class.methods().get(*at)) else {
            return;
        };
        // Relaxed: who comes first says it.
        if self.met.swap(true, Ordering::Relaxed) {
            return;
        }
        let class = class.name().replace('/', ".");
        let what = format!(
            "{class}.{} has more than {LONGEST_COMPILED} bytes with its hooks",
            method.name
        );
        match self.vm.get().copied().is_some_and(compile_long_methods) {
            true => classes.say(
                Level::Debug,
                &format!("{what}: methods of that length are compiled, too, from here on"),
            ),
            false => classes.say(
                Level::Warn,
                &format!(
                    "{what}, and HotSpot compiles no such method: -XX:-DontCompileHugeMethods makes it do so"
                ),
            ),
        }
    }
}
