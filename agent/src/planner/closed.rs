//! What is called without a hook must have none, or the pointer is not where its caller left it: looked up for
//! every call in the JDK's base module.

use std::collections::{HashMap, HashSet};

use lucce_bytecode::ClassFile;

use super::leaves::{INVOKE_CLEANER, UNSAFE};
use super::{FrameKind, Shape, Wants, shapes};
use crate::options::Events;

#[path = "../../../bytecode/tests/all/jdk.rs"]
#[expect(
    dead_code,
    reason = "the tests of bytecode compile and keep files, too"
)]
mod jdk;

type Key = (String, String, String);

/// What a call may find.
struct Found {
    native: bool,
    shape: Shape,
}

#[derive(Default)]
struct Known {
    methods: HashMap<Key, Found>,
    supers: HashMap<String, String>,
    quiet: HashSet<Key>,
}

/// The classes of its `java.base`.
fn classes(jdk: &jdk::Jdk) -> Vec<Vec<u8>> {
    let mut classes = Vec::new();
    jdk.for_each_class(|class| {
        if class.module == "java.base" && class.name != "module-info" {
            classes.push(class.bytes);
        }
    });
    assert!(classes.len() > 5000, "{} classes", classes.len());
    classes
}

fn key(owner: &str, name: &str, descriptor: &str) -> Key {
    (owner.into(), name.into(), descriptor.into())
}

impl Known {
    /// As if all classes had been loaded before each of them.
    fn of(classes: &[Vec<u8>], events: &Events) -> Known {
        let mut known = Known::default();
        loop {
            let before = known.quiet.len();
            for bytes in classes {
                known.add(bytes, events);
            }
            if known.quiet.len() == before {
                return known;
            }
        }
    }

    fn add(&mut self, bytes: &[u8], events: &Events) {
        let class = ClassFile::parse(bytes).unwrap();
        let quiet = &self.quiet;
        let wants = Wants {
            events,
            idle: false,
            trusted: true,
            holds: &|_| true,
            jdk_is_out_of_scope: false,
            calls_quiet: &|call| quiet.contains(&key(&call.owner, &call.name, &call.descriptor)),
        };
        let shapes = shapes(&class, wants).unwrap();
        for (method, shape) in class.methods().iter().zip(shapes) {
            let key = key(class.name(), &method.name, &method.descriptor);
            if shape.quiet && class.name().starts_with("java/") {
                self.quiet.insert(key.clone());
            }
            let native = method.code.is_none();
            self.methods.insert(key, Found { native, shape });
        }
        if let Some(of) = class.super_name() {
            self.supers.insert(class.name().into(), of.into());
        }
    }

    fn resolve(&self, owner: &str, name: &str, descriptor: &str) -> Option<&Found> {
        let mut class = owner;
        loop {
            if let Some(found) = self.methods.get(&key(class, name, descriptor)) {
                return Some(found);
            }
            class = self.supers.get(class)?;
        }
    }

    fn is_thrown(&self, class: &str) -> bool {
        class == "java/lang/Throwable"
            || self.supers.get(class).is_some_and(|of| self.is_thrown(of))
    }

    /// Calls without a hook of methods that have some.
    fn open_ends(&self, bytes: &[u8]) -> Vec<String> {
        let class = ClassFile::parse(bytes).unwrap();
        let mut found = Vec::new();
        for method in class.methods() {
            let Some(code) = &method.code else { continue };
            let own = &self.methods[&key(class.name(), &method.name, &method.descriptor)].shape;
            let is_unsafe = class.name() == UNSAFE && method.name != INVOKE_CLEANER;
            if own.transparent || own.frame == FrameKind::Leaf && !is_leaf(own) && !is_unsafe {
                continue;
            }
            let scan = class.scan(code).unwrap();
            let hooked = |bci| own.places.iter().any(|place| place.bci == bci);
            for call in scan.calls.iter().filter(|call| !hooked(call.bci)) {
                // Whoever throws does not go on; its text is made first.
                let throws = is_unsafe && call.owner == "java/lang/StringBuilder"
                    || call.name == "<init>" && self.is_thrown(&call.owner);
                let called = self.resolve(&call.owner, &call.name, &call.descriptor);
                let is_safe = called.is_none_or(|called| {
                    called.native
                        || called.shape.frame == FrameKind::Vm
                        || call.owner == UNSAFE && call.name != INVOKE_CLEANER
                        || is_leaf(&called.shape)
                });
                if !throws && !is_safe {
                    let from = format!("{}.{}", class.name(), method.name);
                    found.push(format!(
                        "{from} calls {}.{}{}",
                        call.owner, call.name, call.descriptor
                    ));
                }
            }
        }
        found
    }
}

fn is_leaf(shape: &Shape) -> bool {
    shape.frame == FrameKind::Leaf && shape.places.is_empty() && shape.restores.is_empty()
}

#[test]
fn what_is_called_without_a_hook_has_none() {
    let jdks = jdk::images();
    assert!(!jdks.is_empty());
    for jdk in &jdks {
        check(&classes(jdk));
    }
}

fn check(classes: &[Vec<u8>]) {
    let of = |set: fn(&mut Events)| {
        let mut events = Events::default();
        set(&mut events);
        events
    };
    let waiting =
        |events: &mut Events| (events.lock, events.io, events.thread) = (true, true, true);
    for events in [
        of(|_| {}),
        of(|events| events.alloc = true),
        of(|events| events.call = true),
        of(waiting),
    ] {
        let known = Known::of(classes, &events);
        assert!(
            events.call || known.quiet.len() > 1000,
            "{} quiet methods",
            known.quiet.len()
        );
        let open: Vec<String> = classes
            .iter()
            .flat_map(|bytes| known.open_ends(bytes))
            .collect();
        assert!(open.is_empty(), "{}", open.join("\n"));
    }
}
