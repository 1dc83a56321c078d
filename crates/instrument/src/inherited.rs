//! Helpers for classes whose loader cannot find the helper class.
//!
//! A loader may restrict the classes that it resolves: it would refuse `java/lang/LucceRt`, or notice the request. So
//! classes of a program's own loaders call the helpers through `java/lang/Object`, from which every class inherits
//! them. The constant names the superclass, which is loaded already, so the VM does not ask the loader.
//!
//! The methods are static and synthetic, and reflection does not show them. They are public because code of interfaces
//! may not call protected methods.

use lucce_bytecode::{HelperMethod, NewMethod};

use crate::helpers::{
    ALLOC, ALLOC_HERE, ARRAYS, ARRAYS_OF, ASKING, CALLED, CALLED_VM, CHANGED, CLONED, CLONES,
    CURRENT, ENTER, ENTER_AT, ENTER_VM, EVENT, EXIT, EXIT_VM, INHERITED, MADE, MADE_ALL, MADE_HERE,
    PUB, PUB_HERE, PUB_UNSAID, RESTORE, SCOPE, SCOPE_END, UNSEEN_COPY, UNSEEN_NEW, UNWIND_VM, WAS,
    WAS_ASKED, WAS_ENTERED, WAS_SAID, array_helper,
};
use crate::jdk::intrinsics::INTRINSICS;
use crate::kinds::{self, EventHooks};

/// The names of the methods of `WAS`, with the prefix [`INHERITED`].
pub const INHERITED_WAS: &str = "$lucce$was";
pub const INHERITED_WAS_ENTERED: &str = "$lucce$entered";
pub const INHERITED_WAS_ASKED: &str = "$lucce$asked";

/// Returns the methods to add to `java/lang/Object`: all helpers that a class of a program's own loader may call.
pub fn inherited_methods() -> Vec<NewMethod<'static>> {
    const PUBLIC_STATIC_SYNTHETIC: u16 = 0x1009;
    let arrays = ARRAYS_OF.iter();
    let arrays = arrays.flat_map(|of| [false, true].map(|here| array_helper(of, here)));
    let mut helpers = vec![
        ENTER,
        ENTER_AT,
        ENTER_VM,
        EXIT,
        EXIT_VM,
        UNWIND_VM,
        RESTORE,
        PUB,
        PUB_HERE,
        PUB_UNSAID,
        CHANGED,
        ALLOC,
        ALLOC_HERE,
        ARRAYS,
        CURRENT,
        EVENT,
        CALLED,
        CALLED_VM,
        SCOPE,
        SCOPE_END,
        CLONES,
        CLONED,
        MADE,
        MADE_ALL,
        MADE_HERE,
        UNSEEN_COPY,
        UNSEEN_NEW,
    ];
    helpers.extend(arrays);
    helpers.extend(kinds::all_event_hooks().flat_map(EventHooks::inherited_helpers));
    for intrinsic in INTRINSICS {
        if !helpers.contains(&intrinsic.counting_helper) {
            helpers.push(intrinsic.counting_helper);
        }
    }
    let mut silent: Vec<HelperMethod<'_>> = Vec::new();
    for helper in &helpers {
        let disabled = noop_helper(helper);
        if !silent.contains(&disabled) {
            silent.push(disabled);
        }
    }
    helpers.extend(silent);
    let method = |helper| NewMethod {
        prefix: INHERITED,
        helper,
        access: PUBLIC_STATIC_SYNTHETIC,
        annotation: "Ljdk/internal/vm/annotation/ForceInline;",
    };
    helpers.into_iter().map(method).collect()
}

/// Returns the disabled form of this helper.
fn noop_helper(helper: &HelperMethod<'static>) -> HelperMethod<'static> {
    HelperMethod {
        class: WAS,
        name: match helper.descriptor.ends_with('J') {
            _ if ASKING.contains(&helper.name) => WAS_ASKED,
            true => WAS_ENTERED,
            false => WAS_SAID,
        },
        descriptor: helper.descriptor,
    }
}

#[cfg(test)]
mod inherited_tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_helper_is_inherited_once() {
        let methods = inherited_methods();
        let keys: HashSet<_> = methods
            .iter()
            .map(|one| (one.helper.name, one.helper.descriptor))
            .collect();
        assert_eq!(keys.len(), methods.len());
    }
}
