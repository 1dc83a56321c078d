//! Whatever hooks call in the helper class, as it was compiled, has a silent counterpart there.

use std::collections::BTreeSet;

use lucce_bytecode::{ClassFile, Entry, MethodPlan, Plan, rewrite};
use lucce_hooks::helpers::{ASKING, ENTER, EXIT_VM, RT, WAS, WAS_ASKED, WAS_ENTERED, WAS_SAID};
use lucce_hooks::inherited::{
    PREFIX as INHERITED, SILENT_ASKED as INHERITED_WAS_ASKED,
    SILENT_ENTERED as INHERITED_WAS_ENTERED, SILENT_SAID as INHERITED_WAS,
    methods as inherited_methods,
};
use lucce_hooks::{INSTEAD, silenced};

use crate::session::edition::Edition;
use crate::session::helper_class;

/// The helper classes as events are recorded, and the one with the silent counterparts.
fn helper() -> &'static [u8] {
    let live = Edition {
        live: true,
        ..Edition::BOOT
    };
    helper_class::bytes_of(live).unwrap()[0]
}

fn silent_class() -> &'static [u8] {
    helper_class::nested(c"java/lang/LucceRt$Was").unwrap()
}

const PUBLIC_STATIC: u16 = 9;

/// Name and descriptor of each public static method.
fn offered(bytes: &[u8]) -> BTreeSet<(String, String)> {
    let class = ClassFile::parse(bytes).unwrap();
    let methods = class.methods().iter();
    let offered = methods.filter(|method| method.access & PUBLIC_STATIC == PUBLIC_STATIC);
    offered
        .map(|method| (method.name.to_string(), method.descriptor.to_string()))
        .collect()
}

fn calls(bytes: &[u8]) -> Vec<(String, String, String)> {
    let class = ClassFile::parse(bytes).unwrap();
    let methods = class.methods().iter();
    let codes = methods.filter_map(|method| method.code.as_ref());
    let calls = codes.flat_map(|code| class.scan(code).unwrap().calls);
    calls
        .map(|call| {
            (
                call.owner.to_string(),
                call.name.to_string(),
                call.descriptor.to_string(),
            )
        })
        .collect()
}

fn silent(name: &str, descriptor: &str) -> (String, String) {
    let silent = match name.starts_with(INHERITED) {
        true => [INHERITED_WAS, INHERITED_WAS_ENTERED, INHERITED_WAS_ASKED],
        false => [WAS_SAID, WAS_ENTERED, WAS_ASKED],
    };
    let kind = match descriptor.ends_with('J') {
        _ if ASKING.contains(&name.trim_start_matches(INHERITED)) => 2,
        enters => usize::from(enters),
    };
    (silent[kind].into(), descriptor.into())
}

/// A hook that somebody adds to the helper class is silenced as well.
#[test]
fn whatever_hooks_call_has_a_silent_counterpart() {
    let (hooks, silents) = (offered(helper()), offered(silent_class()));
    for (name, descriptor) in hooks {
        let is_there = silents.contains(&silent(&name, &descriptor));
        assert!(is_there || INSTEAD.contains(&&*name), "{name}{descriptor}");
    }
    let inherited: BTreeSet<_> = inherited_methods()
        .iter()
        .map(|method| {
            let name = format!("{}{}", method.prefix, method.helper.name);
            (name, method.helper.descriptor.to_string())
        })
        .collect();
    for (name, descriptor) in &inherited {
        let is_instead = INSTEAD.contains(&name.trim_start_matches(INHERITED));
        let is_there = inherited.contains(&silent(name, descriptor));
        assert!(is_there || is_instead, "{name}{descriptor}");
    }
}

/// The helper class calls its own methods, hooks among them.
#[test]
fn calls_of_hooks_become_calls_that_do_nothing_and_others_stay() {
    let after = silenced(helper()).unwrap();
    let (before, after) = (calls(helper()), calls(&after));
    assert_eq!(before.len(), after.len());
    let mut silenced = 0;
    for (old, new) in before.iter().zip(&after) {
        if old.0 == RT && !INSTEAD.contains(&&*old.1) {
            let (name, descriptor) = silent(&old.1, &old.2);
            assert_eq!(new, &(WAS.into(), name, descriptor));
            silenced += 1;
        } else {
            assert_eq!(new, old);
        }
    }
    assert!(silenced > 0);
}

/// A class of a loader that need not know the helper class.
#[test]
fn inherited_hooks_become_inherited_ones_that_do_nothing() {
    let class = ClassFile::parse(helper()).unwrap();
    let mut methods = class.methods().iter();
    let index = methods.position(|method| &*method.name == "pub").unwrap();
    let entry = Entry {
        helper: ENTER,
        argument: None,
    };
    let method = MethodPlan {
        entry: Some(entry),
        exit: Some(EXIT_VM),
        ..MethodPlan::default()
    };
    let plan = Plan {
        methods: [(index, method)].into(),
        inherited: Some(INHERITED),
        ..Plan::default()
    };
    let hooked = rewrite(&class, &plan).unwrap().bytes;
    let inherited = |bytes: &[u8]| {
        let calls = calls(bytes).into_iter();
        let calls = calls.filter(|call| call.1.starts_with(INHERITED));
        calls.collect::<Vec<_>>()
    };
    let before = inherited(&hooked);
    assert_eq!(before.len(), 2);
    let silent = before.into_iter().map(|(owner, name, descriptor)| {
        let (name, descriptor) = silent(&name, &descriptor);
        (owner, name, descriptor)
    });
    let after = silenced(&hooked).unwrap();
    assert_eq!(inherited(&after), silent.collect::<Vec<_>>());
}
