//! Classes and methods that the agent was not given, into the book when one is first seen on a stack: those that were
//! loaded without the agent, and methods that Flight Recorder has made.

use std::sync::OnceLock;

use crate::book::{Loader, NewClass};
use crate::stack::Stack;
use lucce_hooks::Shape;
use lucce_hooks::jdk::hidden;
use lucce_vm::Jvmti;

use jvmti_bindings::sys::jni::jclass;

/// `None`: there are no ids left, or the VM does not say what is in the class.
pub fn add(stack: &Stack, class: jclass, loader: Loader, name: &str) -> Option<()> {
    let jvmti = stack.jvmti;
    let methods: Vec<Told> = jvmti
        .methods(class)
        .into_iter()
        .map(|method| told(jvmti, method))
        .collect::<Option<_>>()?;
    let release = release(jvmti);
    let shapes: Vec<Shape> = methods
        .iter()
        .map(|method| {
            let hidden = hidden::is_hidden(release, name, &method.name, &method.descriptor);
            Shape::without_hooks(hidden && stack.loaders.is_trusted(loader))
        })
        .collect();
    let methods: Vec<_> = methods
        .iter()
        .map(|told| (&*told.name, &*told.descriptor, told.access))
        .collect();
    let source = jvmti.source_file(class);
    let mut book = stack.book_mut();
    let is_known = |(name_of_method, descriptor, _): &(&str, &str, u16)| {
        let class = book.class_named(loader, name);
        class.is_some_and(|class| {
            book.find_method(class, name_of_method, descriptor)
                .is_some()
        })
    };
    if book.class_named(loader, name).is_some() && methods.iter().all(is_known) {
        // Another thread was faster.
        return Some(());
    }
    let new = NewClass {
        name,
        source: source.as_deref(),
        loader,
        methods: &methods,
        shapes: &shapes,
    };
    book.add(&new).map(drop)
}

/// Adds a method that Flight Recorder has put into a class of the book after its hooks: it has none. `class`: the class's id.
/// Returns the method's id. `None`: there are no ids left.
pub fn add_method(
    stack: &Stack,
    class: u32,
    (name, descriptor): (&str, &str),
    access: u16,
) -> Option<u32> {
    let mut book = stack.book_mut();
    let info = book.class(class)?;
    let loader = info.loader;
    let class_name = book.text(info.name).to_owned();
    let source = info.source.map(|source| book.text(source).to_owned());
    let ids = book.add(&NewClass {
        name: &class_name,
        source: source.as_deref(),
        loader,
        methods: &[(name, descriptor, access)],
        shapes: &[Shape::without_hooks(false)],
    })?;
    // The name is that of the class with hooks, as before.
    book.give(loader, class);
    Some(ids.first_method)
}

struct Told {
    name: String,
    descriptor: String,
    access: u16,
}

fn told(jvmti: Jvmti, method: jvmti_bindings::sys::jni::jmethodID) -> Option<Told> {
    let (name, descriptor) = jvmti.method_name(method)?;
    let access = jvmti.modifiers(method);
    Some(Told {
        name,
        descriptor,
        access,
    })
}

/// The JDK's feature release. 0: the VM does not say.
pub fn release(jvmti: Jvmti) -> u32 {
    static RELEASE: OnceLock<u32> = OnceLock::new();
    *RELEASE.get_or_init(|| {
        let version = jvmti.system_property(c"java.vm.specification.version");
        version.and_then(|text| text.parse().ok()).unwrap_or(0)
    })
}
