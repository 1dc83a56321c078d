//! Tests that the compiled helper classes contain the methods that hooks call, each with a neutral counterpart.

use std::collections::BTreeSet;

use lucce_bytecode::{ClassFile, ClassPlan, EntryHook, HelperMethod, MethodPlan, rewrite};
use lucce_instrument::helpers::{
    self, ASKING, ENTER, EXIT_VM, FRAMES, HELPER_PREFIX, INHERITED, NOOP, NOOP_ASK, NOOP_ENTER,
    NOOP_PLAIN, PUBLISH,
};
use lucce_instrument::inherited::{
    INHERITED_NOOP, INHERITED_NOOP_ASK, INHERITED_NOOP_ENTER, inherited_methods,
};
use lucce_instrument::kinds::{self, CALLED_BY_HOOKS};
use lucce_instrument::{REPLACEMENT_HELPERS, disable_old_hooks};

use crate::session::helper_class::bytes_in_live;

const IN_LAB: bool = cfg!(feature = "lab");

/// The classes that hooks call: the names, and the bytes with those of the class that is extended.
fn hooked_classes() -> impl Iterator<Item = (&'static str, Vec<&'static [u8]>)> {
    CALLED_BY_HOOKS.iter().filter_map(|class| {
        let own = bytes_in_live(class)?;
        let job = class.strip_prefix(HELPER_PREFIX).unwrap();
        let extended = bytes_in_live(&format!("{HELPER_PREFIX}Product{job}"));
        Some((
            *class,
            [Some(own), extended].into_iter().flatten().collect(),
        ))
    })
}

/// The helpers that hooks of this agent call.
fn common_helpers() -> impl Iterator<Item = HelperMethod<'static>> {
    helpers::all_helpers().chain(helpers::lab_helpers().filter(|_| IN_LAB))
}

const PUBLIC_STATIC: u16 = 9;

/// Name and descriptor of each public static method.
fn public_static_methods(bytes: &[u8]) -> BTreeSet<(String, String)> {
    let class = ClassFile::parse(bytes).unwrap();
    let methods = class.methods().iter();
    let offered = methods.filter(|method| method.access & PUBLIC_STATIC == PUBLIC_STATIC);
    offered
        .map(|method| (method.name.to_string(), method.descriptor.to_string()))
        .collect()
}

fn offered_methods(classes: &[&[u8]]) -> BTreeSet<(String, String)> {
    let each = classes.iter().map(|bytes| public_static_methods(bytes));
    each.flatten().collect()
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct CalledMethod {
    owner: String,
    name: String,
    descriptor: String,
}

fn called_methods(bytes: &[u8]) -> Vec<CalledMethod> {
    let class = ClassFile::parse(bytes).unwrap();
    let methods = class.methods().iter();
    let codes = methods.filter_map(|method| method.code.as_ref());
    let calls = codes.flat_map(|code| class.scan_code(code).unwrap().calls);
    calls
        .map(|call| CalledMethod {
            owner: call.owner.to_string(),
            name: call.name.to_string(),
            descriptor: call.descriptor.to_string(),
        })
        .collect()
}

fn disabled_counterpart(name: &str, descriptor: &str) -> (String, String) {
    let noop = match name.starts_with(INHERITED) {
        true => [INHERITED_NOOP, INHERITED_NOOP_ENTER, INHERITED_NOOP_ASK],
        false => [NOOP_PLAIN, NOOP_ENTER, NOOP_ASK],
    };
    let kind = match descriptor.ends_with('J') {
        _ if ASKING.contains(&name.trim_start_matches(INHERITED)) => 2,
        enters => usize::from(enters),
    };
    (noop[kind].into(), descriptor.into())
}

/// The methods that the hooks' crate names exist, and no other methods that hooks could call.
#[test]
fn what_hooks_call_is_there() {
    // `jdk::intrinsics` has a table of these.
    let is_elsewhere = |name: &str| name == "countCopy";
    let named: BTreeSet<_> = common_helpers()
        .chain(kinds::kind_helpers())
        .map(|helper| (helper.class, helper.name, helper.descriptor))
        .collect();
    let classes: Vec<_> = hooked_classes()
        .map(|(class, bytes)| (class, offered_methods(&bytes)))
        .collect();
    for (class, offered) in &classes {
        for (name, descriptor) in offered {
            let is_named = named.contains(&(*class, &**name, &**descriptor));
            assert!(is_named || is_elsewhere(name), "{class}.{name}{descriptor}");
        }
    }
    for (class, name, descriptor) in named {
        let method = (name.to_string(), descriptor.to_string());
        let of = classes.iter().find(|(known, _)| *known == class);
        assert!(
            of.unwrap().1.contains(&method),
            "{class}.{name}{descriptor}"
        );
    }
}

/// A hook that is added to a helper class has a neutral counterpart.
#[test]
fn whatever_hooks_call_has_a_disabled_counterpart() {
    let noops = public_static_methods(bytes_in_live(NOOP).unwrap());
    for (name, descriptor) in hooked_classes().flat_map(|(_, bytes)| offered_methods(&bytes)) {
        let is_there = noops.contains(&disabled_counterpart(&name, &descriptor));
        assert!(
            is_there || REPLACEMENT_HELPERS.contains(&&*name),
            "{name}{descriptor}"
        );
    }
    let inherited: BTreeSet<_> = inherited_methods(IN_LAB)
        .iter()
        .map(|method| {
            let name = format!("{}{}", method.prefix, method.helper.name);
            (name, method.helper.descriptor.to_string())
        })
        .collect();
    for (name, descriptor) in &inherited {
        let is_instead = REPLACEMENT_HELPERS.contains(&name.trim_start_matches(INHERITED));
        let is_there = inherited.contains(&disabled_counterpart(name, descriptor));
        assert!(is_there || is_instead, "{name}{descriptor}");
    }
}

/// The helper class calls its own methods, hooks among them.
#[test]
fn calls_of_hooks_become_calls_that_do_nothing_and_others_stay() {
    let mut count = 0;
    for class in hooked_classes().flat_map(|(_, bytes)| bytes) {
        let after = disable_old_hooks(class).unwrap();
        let (before, after) = (called_methods(class), called_methods(&after));
        assert_eq!(before.len(), after.len());
        for (old, new) in before.iter().zip(&after) {
            let is_hook = CALLED_BY_HOOKS.contains(&&*old.owner);
            if is_hook && !REPLACEMENT_HELPERS.contains(&&*old.name) {
                let (name, descriptor) = disabled_counterpart(&old.name, &old.descriptor);
                let expected = CalledMethod {
                    owner: NOOP.into(),
                    name,
                    descriptor,
                };
                assert_eq!(new, &expected);
                count += 1;
            } else {
                assert_eq!(new, old);
            }
        }
    }
    assert!(count > 0);
}

/// What the methods that classes inherit do instead of a call of the helper is what the helper does when it is live.
#[test]
#[cfg(not(feature = "lab"))]
fn inherited_hooks_do_what_the_helpers_do() {
    use lucce_bytecode::CodeAttribute;
    use lucce_instrument::helpers::{PUBLISH_HERE, RESTORE};
    use lucce_instrument::inherited::SLOT_BYTES;

    const GETSTATIC: u8 = 178;
    const LDC2_W: u8 = 20;
    let live = ClassFile::parse(bytes_in_live(FRAMES).unwrap()).unwrap();
    let plan = ClassPlan {
        new_methods: inherited_methods(false),
        ..ClassPlan::default()
    };
    let extended = rewrite(&live, &plan).unwrap().bytes;
    let extended = ClassFile::parse(&extended).unwrap();
    let code_of = |prefix: &str, helper: &HelperMethod<'_>| {
        let mut methods = extended.methods().iter();
        let name = format!("{prefix}{}", helper.name);
        let method = methods.find(|one| *one.name == name && one.descriptor == helper.descriptor);
        method.unwrap().code.clone().unwrap()
    };
    // Opcodes without operands; the base is a field where it is a constant in the live class.
    let opcodes = |code: &[u8]| {
        let mut rest = code.iter();
        let mut opcodes = Vec::new();
        while let Some(opcode) = rest.next() {
            let operands = if matches!(opcode, 20 | 178..=184) {
                2
            } else {
                0
            };
            rest.by_ref().take(operands).for_each(drop);
            opcodes.push(if *opcode == LDC2_W {
                GETSTATIC
            } else {
                *opcode
            });
        }
        opcodes
    };
    let calls = |code: &CodeAttribute<'_>| {
        let calls = extended.scan_code(code).unwrap().calls.into_iter();
        let names = calls.map(|call| {
            let name = format!("{}.{}{}", call.owner, call.name, call.descriptor);
            (call.opcode, name)
        });
        names.collect::<Vec<_>>()
    };
    for helper in [ENTER, RESTORE, PUBLISH, PUBLISH_HERE] {
        let [own, inherited] = ["", INHERITED].map(|prefix| code_of(prefix, &helper));
        let calls_helper = calls(&inherited)
            .iter()
            .any(|(_, name)| name.starts_with(HELPER_PREFIX));
        assert!(!calls_helper, "{helper:?}");
        if helper == PUBLISH_HERE {
            // Without the local for the thread, which is asked twice.
            let own: BTreeSet<_> = calls(&own).into_iter().collect();
            assert_eq!(own, calls(&inherited).into_iter().collect());
        } else {
            assert_eq!(calls(&own), calls(&inherited), "{helper:?}");
            let [own, inherited] = [own.bytes, inherited.bytes].map(opcodes);
            assert_eq!(own, inherited, "{helper:?}");
        }
    }
    assert_eq!(SLOT_BYTES, crate::memory::shared_layout::SLOT as i64);
}

/// A class of a loader that may not know the helper class.
#[test]
fn inherited_hooks_become_inherited_ones_that_do_nothing() {
    let class = ClassFile::parse(bytes_in_live(FRAMES).unwrap()).unwrap();
    let mut methods = class.methods().iter();
    let index = methods
        .position(|method| &*method.name == PUBLISH.name)
        .unwrap();
    let entry = EntryHook {
        helper: ENTER,
        argument: None,
    };
    let method = MethodPlan {
        entry: Some(entry),
        exit: Some(EXIT_VM),
        ..MethodPlan::default()
    };
    let plan = ClassPlan {
        methods: [(index, method)].into(),
        inherited: Some(INHERITED),
        ..ClassPlan::default()
    };
    let hooked = rewrite(&class, &plan).unwrap().bytes;
    let inherited = |bytes: &[u8]| {
        let calls = called_methods(bytes).into_iter();
        let calls = calls.filter(|call| call.name.starts_with(INHERITED));
        calls.collect::<Vec<_>>()
    };
    let before = inherited(&hooked);
    assert_eq!(before.len(), 2);
    let noop = before.into_iter().map(|call| {
        let (name, descriptor) = disabled_counterpart(&call.name, &call.descriptor);
        CalledMethod {
            owner: call.owner,
            name,
            descriptor,
        }
    });
    let after = disable_old_hooks(&hooked).unwrap();
    assert_eq!(inherited(&after), noop.collect::<Vec<_>>());
}
