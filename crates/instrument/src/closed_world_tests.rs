//! Tests that compare the tables of `jdk` with the JDKs of this machine.
//!
//! A callee of an untracked call must have no hook, else `$lucceStack` is not where its caller left it. The tests check this
//! for every call in `java.base`. They also check that the methods named by the tables exist, and that the table of
//! hidden methods is right.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::sync::LazyLock;

use lucce_bytecode::ClassFile;
use lucce_classkit::jdks;
use lucce_options::{MethodSelection, ResourceRules};

use crate::jdk::hidden::is_hidden;
use crate::jdk::leaf_methods::{INVOKE_CLEANER, UNSAFE};
use crate::jdk::roles::has_hidden_annotation;
use crate::jdk::{JdkFact, TESTED_JDKS, all_facts};
use crate::kinds::{ALLOC, CALL, EventKindSet};
use crate::{FrameKind, InstrumentationOptions, MethodInstrumentation, analyze_class};

type Key = (String, String, String);

/// The instrumentation of the methods that a call may reach.
struct CalleeInstrumentation {
    native: bool,
    instrumentation: MethodInstrumentation,
}

#[derive(Default)]
struct ClosedWorld {
    methods: HashMap<Key, CalleeInstrumentation>,
    supers: HashMap<String, String>,
    untracked: HashSet<Key>,
}

/// What the tests need of a JDK.
struct JdkClasses {
    version: u32,
    /// The classes of its `java.base`.
    base: Vec<Vec<u8>>,
    /// The facts that hold for it, by their position in the list.
    facts: BTreeSet<usize>,
    /// Methods for which `@Hidden` and the table disagree.
    hidden_otherwise: Vec<String>,
    /// Whether it has the module of [`JVMCI`]; images of JDKs may omit it.
    has_jvmci: bool,
}

/// The package through which the VM and compilers written in Java communicate.
const JVMCI: &str = "jdk/vm/ci/";

/// All JDKs of this machine, read once.
static JDKS: LazyLock<Vec<JdkClasses>> = LazyLock::new(|| {
    let images = jdks::images();
    std::thread::scope(|scope| {
        let reading: Vec<_> = images
            .iter()
            .map(|jdk| scope.spawn(|| read_jdk(jdk)))
            .collect();
        let read = reading.into_iter().map(|jdk| jdk.join().unwrap());
        read.collect()
    })
});

fn read_jdk(jdk: &jdks::Jdk) -> JdkClasses {
    let named = all_facts();
    let mut read = JdkClasses {
        version: jdk.version,
        base: Vec::new(),
        facts: BTreeSet::new(),
        hidden_otherwise: Vec::new(),
        has_jvmci: false,
    };
    let wanted = |class: &str| {
        let is_of = |fact: &JdkFact| match fact.class.strip_suffix('*') {
            Some(prefix) => class.starts_with(prefix),
            None => class == fact.class,
        };
        named.iter().any(is_of)
    };
    jdk.for_each_class(|class| {
        read.has_jvmci |= class.name.starts_with(JVMCI);
        let is_base = class.module == "java.base" && class.name != "module-info";
        if !is_base && !wanted(&class.name) {
            return;
        }
        let parsed = ClassFile::parse(&class.bytes).unwrap();
        for method in parsed.methods() {
            let (name, descriptor) = (&*method.name, &*method.descriptor);
            let holds =
                |(_, fact): &(usize, &JdkFact)| fact.matches_method(&class.name, name, descriptor);
            let facts = named.iter().enumerate().filter(holds);
            read.facts.extend(facts.map(|(index, _)| index));
            let is_listed = is_hidden(jdk.version, &class.name, name, descriptor);
            if is_base && has_hidden_annotation(method) != is_listed {
                let text = format!("{}.{name}{descriptor}", class.name);
                read.hidden_otherwise.push(text);
            }
        }
        if is_base {
            read.base.push(class.bytes);
        }
    });
    assert!(read.base.len() > 5000, "{} classes", read.base.len());
    read
}

/// A new JDK lacks some methods that rows name; `facts.txt` records which. `BLESS=1` rewrites it.
#[test]
fn the_list_of_facts_is_what_the_jdks_have() {
    let has = |index: usize, version: u32| {
        let jdk = JDKS.iter().find(|jdk| jdk.version == version);
        jdk.is_some_and(|jdk| jdk.facts.contains(&index))
    };
    let mut text =
        String::from("# Table, class, method, and the JDKs that have it: 11, 17, 21, 25.\n");
    for (index, fact) in all_facts().iter().enumerate() {
        let mut line = format!("{} {} {}", fact.table, fact.class, fact.method);
        for version in TESTED_JDKS
            .into_iter()
            .filter(|version| has(index, *version))
        {
            write!(line, " {version}").unwrap();
        }
        writeln!(text, "{line}").unwrap();
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/jdk/facts.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    // Skips JDKs that are not installed, and images without the module of the line's class.
    let of_tested = |version: &u32| JDKS.iter().any(|jdk| jdk.version == *version);
    let tested: Vec<u32> = TESTED_JDKS.into_iter().filter(of_tested).collect();
    let has_jvmci = |version: u32| {
        let mut jdks = JDKS.iter().filter(|jdk| jdk.version == version);
        jdks.any(|jdk| jdk.has_jvmci)
    };
    let without = |line: &str| {
        let is_jvmci = line
            .split(' ')
            .nth(1)
            .is_some_and(|class| class.starts_with(JVMCI));
        let words = line.split(' ');
        let kept = words.filter(|word| {
            word.parse().map_or(true, |version: u32| {
                tested.contains(&version) && (!is_jvmci || has_jvmci(version))
            })
        });
        kept.collect::<Vec<_>>().join(" ")
    };
    let lines = |text: &str| text.lines().skip(1).map(without).collect::<Vec<_>>();
    let expected = std::fs::read_to_string(file).unwrap();
    assert_eq!(lines(&expected), lines(&text));
    let row = |line: &String| line.ends_with(|c: char| c.is_ascii_digit());
    let of_none: Vec<String> = lines(&expected)
        .into_iter()
        .filter(|line| !row(line))
        .collect();
    let all = tested.len() == TESTED_JDKS.len() && [17, 25].into_iter().all(has_jvmci);
    assert!(!all || of_none.is_empty(), "of no JDK: {of_none:#?}");
}

/// `BLESS=1` rewrites the list, if all JDKs are installed.
#[test]
fn the_list_of_natives_is_what_the_jdks_have() {
    const NATIVE: u16 = 0x100;
    let mut natives_by_class: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for bytes in JDKS.iter().flat_map(|jdk| &jdk.base) {
        let class = ClassFile::parse(bytes).unwrap();
        let methods = class.methods().iter();
        let natives = methods.filter(|method| method.access & NATIVE != 0);
        for native in natives.filter(|_| class.name() != UNSAFE) {
            let own = natives_by_class.entry(class.name().to_owned()).or_default();
            own.insert(format!("{}{}", native.name, native.descriptor));
        }
    }
    let line = |(class, own): (&String, &BTreeSet<String>)| {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        format!("{class} {}\n", own.join(" "))
    };
    let text: String = natives_by_class.iter().map(line).collect();
    let all = TESTED_JDKS
        .iter()
        .all(|tried| JDKS.iter().any(|jdk| jdk.version == *tried));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/jdk/natives.txt");
    if std::env::var_os("BLESS").is_some() && all {
        std::fs::write(file, &text).unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap();
    match all {
        true => assert_eq!(expected, text),
        // Skips a JDK that is not installed.
        false => {
            let of = |class: &str| {
                expected
                    .lines()
                    .find(|line| line.split(' ').next() == Some(class))
            };
            let is_known = |class: &str, own: &str| {
                of(class).is_some_and(|line| line.split(' ').any(|expected| expected == own))
            };
            let unknown = natives_by_class
                .iter()
                .flat_map(|(class, own)| own.iter().filter(|own| !is_known(class, own)));
            assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&String>::new());
        }
    }
}

/// The annotations in the class files decide.
#[test]
fn the_table_of_hidden_methods_matches_the_jdks() {
    let jdks = JDKS
        .iter()
        .filter(|jdk| [11, 17, 25].contains(&jdk.version));
    for jdk in jdks {
        assert_eq!(
            jdk.hidden_otherwise,
            Vec::<String>::new(),
            "JDK {}",
            jdk.version
        );
    }
}

fn method_key(owner: &str, name: &str, descriptor: &str) -> Key {
    (owner.into(), name.into(), descriptor.into())
}

impl ClosedWorld {
    /// Analyzes each class as if all classes had been loaded before it.
    fn from_classes(classes: &[ClassFile<'_>], events: EventKindSet) -> ClosedWorld {
        let mut world = ClosedWorld::default();
        loop {
            let before = world.untracked.len();
            for class in classes {
                world.add_class(class, events);
            }
            if world.untracked.len() == before {
                return world;
            }
        }
    }

    fn add_class(&mut self, class: &ClassFile<'_>, events: EventKindSet) {
        let untracked = &self.untracked;
        let wants = InstrumentationOptions {
            resources: &ResourceRules::default(),
            events,
            idle: false,
            trusted: true,
            holds: &|_| true,
            jdk_is_out_of_scope: false,
            methods: &MethodSelection::default(),
            calls_untracked: &|call| {
                untracked.contains(&method_key(&call.owner, &call.name, &call.descriptor))
            },
        };
        let instrumentations = analyze_class(class, wants).unwrap();
        for (method, instrumentation) in class.methods().iter().zip(instrumentations) {
            let key = method_key(class.name(), &method.name, &method.descriptor);
            if instrumentation.untracked && class.name().starts_with("java/") {
                self.untracked.insert(key.clone());
            }
            let native = method.code.is_none();
            self.methods.insert(
                key,
                CalleeInstrumentation {
                    native,
                    instrumentation,
                },
            );
        }
        if let Some(of) = class.super_name() {
            self.supers.insert(class.name().into(), of.into());
        }
    }

    fn resolve_method(
        &self,
        owner: &str,
        name: &str,
        descriptor: &str,
    ) -> Option<&CalleeInstrumentation> {
        let mut class = owner;
        loop {
            if let Some(found) = self.methods.get(&method_key(class, name, descriptor)) {
                return Some(found);
            }
            class = self.supers.get(class)?;
        }
    }

    fn is_throwable(&self, class: &str) -> bool {
        class == "java/lang/Throwable"
            || self
                .supers
                .get(class)
                .is_some_and(|of| self.is_throwable(of))
    }

    /// Returns the untracked calls whose callees have hooks.
    fn unhooked_calls(&self, class: &ClassFile<'_>) -> Vec<String> {
        let mut calls = Vec::new();
        for method in class.methods() {
            let Some(code) = &method.code else { continue };
            let own = &self.methods[&method_key(class.name(), &method.name, &method.descriptor)]
                .instrumentation;
            let is_unsafe = class.name() == UNSAFE && method.name != INVOKE_CLEANER;
            if own.transparent || own.frame == FrameKind::Leaf && !is_leaf(own) && !is_unsafe {
                continue;
            }
            let scan = class.scan_code(code).unwrap();
            let hooked = |bci| own.places.iter().any(|place| place.bci == bci);
            for call in scan.calls.iter().filter(|call| !hooked(call.bci)) {
                // A method that throws does not continue; it makes the exception's text first.
                let throws = is_unsafe && call.owner == "java/lang/StringBuilder"
                    || call.name == "<init>" && self.is_throwable(&call.owner);
                let called = self.resolve_method(&call.owner, &call.name, &call.descriptor);
                let is_safe = called.is_none_or(|called| {
                    called.native
                        || called.instrumentation.frame == FrameKind::VmEntered
                        || call.owner == UNSAFE && call.name != INVOKE_CLEANER
                        || is_leaf(&called.instrumentation)
                });
                if !throws && !is_safe {
                    let from = format!("{}.{}", class.name(), method.name);
                    calls.push(format!(
                        "{from} calls {}.{}{}",
                        call.owner, call.name, call.descriptor
                    ));
                }
            }
        }
        calls
    }
}

fn is_leaf(instrumentation: &MethodInstrumentation) -> bool {
    instrumentation.frame == FrameKind::Leaf
        && instrumentation.places.is_empty()
        && instrumentation.restores.is_empty()
}

#[test]
fn what_is_called_without_a_hook_has_none() {
    assert!(!JDKS.is_empty());
    std::thread::scope(|scope| {
        for jdk in &*JDKS {
            scope.spawn(|| check_classes(&jdk.base));
        }
    });
}

fn check_classes(classes: &[Vec<u8>]) {
    let classes = classes.iter().map(|class| ClassFile::parse(class));
    let classes: Vec<_> = classes.map(Result::unwrap).collect();
    let others = EventKindSet::select(|kind| {
        let has_its_own_turn = [ALLOC.mask_bit, CALL.mask_bit].contains(&kind.mask_bit);
        kind.has_hooks && !has_its_own_turn
    });
    let none = EventKindSet::default();
    for events in [none, none.with_kind(&ALLOC), none.with_kind(&CALL), others] {
        let world = ClosedWorld::from_classes(&classes, events);
        assert!(
            events.contains(&CALL) || world.untracked.len() > 1000,
            "{} untracked methods",
            world.untracked.len()
        );
        let open: Vec<String> = classes
            .iter()
            .flat_map(|class| world.unhooked_calls(class))
            .collect();
        assert!(open.is_empty(), "{}", open.join("\n"));
    }
}
