//! Adds classes and methods to the code registry when they are first seen on a stack. These are classes that were
//! loaded without the agent, and methods that Flight Recorder added.

use std::sync::OnceLock;

use crate::registry::{ClassDefinition, ClassLoaderId};
use crate::stack::StackParts;
use lucce_instrument::MethodInstrumentation;
use lucce_instrument::jdk::hidden;
use lucce_jvmti::Jvmti;

use jvmti_bindings::sys::jni::jclass;

/// Adds a class with its methods. `None`: no ids are left, or the VM does not report the methods.
pub fn add_class(
    agent: StackParts<'_>,
    class: jclass,
    loader: ClassLoaderId,
    name: &str,
) -> Option<()> {
    let jvmti = agent.core.jvmti;
    let methods: Vec<MethodSignature> = jvmti
        .class_methods(class)
        .into_iter()
        .map(|method| read_signature(jvmti, method))
        .collect::<Option<_>>()?;
    let release = jdk_release(jvmti);
    let instrumentations: Vec<MethodInstrumentation> = methods
        .iter()
        .map(|method| {
            let hidden = hidden::is_hidden(release, name, &method.name, &method.descriptor);
            MethodInstrumentation::without_hooks(hidden && agent.core.loaders.is_trusted(loader))
        })
        .collect();
    let methods: Vec<_> = methods
        .iter()
        .map(|method| (&*method.name, &*method.descriptor, method.access))
        .collect();
    let source = jvmti.source_file(class);
    let mut registry = agent.core.registry_mut();
    let is_known = |(name_of_method, descriptor, _): &(&str, &str, u16)| {
        let class = registry.find_class(loader, name);
        class.is_some_and(|class| {
            registry
                .find_method(class, name_of_method, descriptor)
                .is_some()
        })
    };
    if registry.find_class(loader, name).is_some() && methods.iter().all(is_known) {
        // Another thread has added it meanwhile.
        return Some(());
    }
    let new = ClassDefinition {
        name,
        source: source.as_deref(),
        loader,
        methods: &methods,
        instrumentations: &instrumentations,
    };
    registry.add_class(&new).map(drop)
}

/// Adds a method that Flight Recorder inserted into a registered class after the hooks; it has no hooks. `class` is
/// the class's id. Returns the method's id. `None`: no ids are left.
pub fn add_method(
    agent: StackParts<'_>,
    class: u32,
    (name, descriptor): (&str, &str),
    access: u16,
) -> Option<u32> {
    let mut registry = agent.core.registry_mut();
    let info = registry.class(class)?;
    let loader = info.loader;
    let class_name = registry.name_text(info.name).to_owned();
    let source = info
        .source
        .map(|source| registry.name_text(source).to_owned());
    let ids = registry.add_class(&ClassDefinition {
        name: &class_name,
        source: source.as_deref(),
        loader,
        methods: &[(name, descriptor, access)],
        instrumentations: &[MethodInstrumentation::without_hooks(false)],
    })?;
    // The name still leads to the class with hooks.
    registry.link_loader(loader, class);
    Some(ids.first_method)
}

struct MethodSignature {
    name: String,
    descriptor: String,
    access: u16,
}

fn read_signature(
    jvmti: Jvmti,
    method: jvmti_bindings::sys::jni::jmethodID,
) -> Option<MethodSignature> {
    let (name, descriptor) = jvmti.method_name(method)?;
    let access = jvmti.method_modifiers(method);
    Some(MethodSignature {
        name,
        descriptor,
        access,
    })
}

/// The JDK's feature release. 0: the VM does not report it.
pub fn jdk_release(jvmti: Jvmti) -> u32 {
    static RELEASE: OnceLock<u32> = OnceLock::new();
    *RELEASE.get_or_init(|| {
        let version = jvmti.system_property(c"java.vm.specification.version");
        version.and_then(|text| text.parse().ok()).unwrap_or(0)
    })
}
