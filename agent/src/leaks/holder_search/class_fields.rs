//! The fields of a class, numbered as heap walks number them.

use jvmti_bindings::sys::jni::jclass;
use lucce_jvmti::{JniEnvironment, Jvmti};

/// The fields of a class, as heap walks number them: superclasses' fields come first. The fields of all interfaces take the
/// lowest numbers (JVMTI, `jvmtiHeapReferenceInfoField`).
pub(super) struct ClassFields {
    first: i32,
    /// The declaring class and the name of each field.
    fields: Vec<(String, String)>,
}

impl ClassFields {
    pub(super) fn from_class(tools: Jvmti, env: JniEnvironment, class: jclass) -> ClassFields {
        let mut line = vec![env.new_local(class)];
        let is_interface = tools.is_interface(class);
        while let Some(last) = line.last().filter(|_| !is_interface) {
            let above = env.superclass(*last);
            if above.is_null() {
                break;
            }
            line.push(above);
        }
        let mut interfaces = Vec::new();
        for class in &line {
            add_interfaces((tools, env), *class, &mut interfaces);
        }
        let counts = interfaces.iter().map(|of| tools.class_fields(*of).len());
        let first = counts.sum::<usize>() as i32;
        let mut fields = Vec::new();
        for class in line.iter().rev() {
            let owner = tools.class_signature(*class).unwrap_or_default();
            for field in tools.class_fields(*class) {
                let name = tools.field_name(*class, field).unwrap_or_default();
                fields.push((owner.clone(), name));
            }
        }
        for class in line.into_iter().chain(interfaces) {
            env.delete_local(class);
        }
        ClassFields { first, fields }
    }

    pub(super) fn find_number(&self, name: &str) -> Option<i32> {
        let at = self.fields.iter().position(|(_, of)| of == name)?;
        Some(self.first + at as i32)
    }

    pub(super) fn get(&self, number: i32) -> Option<&(String, String)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.fields.get(at)
    }
}

/// Adds the interfaces of a class and their superinterfaces, each once.
fn add_interfaces((tools, env): (Jvmti, JniEnvironment), class: jclass, all: &mut Vec<jclass>) {
    for interface in tools.class_interfaces(class) {
        if all.iter().any(|known| env.is_same(*known, interface)) {
            env.delete_local(interface);
            continue;
        }
        all.push(interface);
        add_interfaces((tools, env), interface, all);
    }
}
