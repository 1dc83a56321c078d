//! Helpers for classes whose loader cannot find the helper class.
//!
//! A loader may restrict the classes that it resolves: it would refuse `java/lang/LucceRt`, or notice the request. So
//! classes of a program's own loaders call the helpers through `java/lang/Object`, from which every class inherits
//! them. The constant names the superclass, which is loaded already, so the VM does not ask the loader.
//!
//! The methods are static and synthetic, and reflection does not show them. They are public because code of interfaces
//! may not call protected methods.

use lucce_bytecode::{HelperMethod, NewInstruction, NewMethod};

use crate::helpers::{
    AFTER_CLONE, ALLOC, ALLOC_HERE, ALLOC_KEEPING, ARRAYS, ARRAYS_OF, ASKING, BEFORE_CLONE,
    BEFORE_RESTRICTED, BEFORE_RESUME, BEFORE_SIGNAL, BEGIN_SCOPE, CODE_CHANGED, COUNT_CREATED,
    COUNT_CREATED_HERE, COUNT_OBJECT, COUNT_OBJECTS, CREATE_CONTINUATION, CREATE_OPERATOR, CURRENT,
    END_SCOPE, ENTER, ENTER_COUNTED, ENTER_VM, ENTER_VM_COUNTED, ENTER_VM_LATER, EVENT, EXIT_VM,
    INHERITED, NOOP, NOOP_ASK, NOOP_ENTER, NOOP_PLAIN, PUBLISH, PUBLISH_HERE, PUBLISH_RARE,
    PUBLISH_RARE_HERE, PUBLISH_UNTRACKED, RESTORE, UNSEEN_COPY, UNSEEN_NEW, array_helper,
    helper_of, keeping_array_helper, lab_helpers,
};
use crate::jdk::intrinsics::INTRINSICS;
use crate::kinds::{self, EventHooks};

/// The names of the methods of [`NOOP`], with the prefix [`INHERITED`].
pub const INHERITED_NOOP: &str = "$lucce$noop";
pub const INHERITED_NOOP_ENTER: &str = "$lucce$enterNoop";
pub const INHERITED_NOOP_ASK: &str = "$lucce$askVm";

/// Returns the methods to add to `java/lang/Object`: all helpers that a class of a program's own loader may call.
/// `in_lab`: also the hooks that only the lab's agent inserts.
pub fn inherited_methods(in_lab: bool) -> Vec<NewMethod<'static>> {
    const PUBLIC_STATIC_SYNTHETIC: u16 = 0x1009;
    let arrays = ARRAYS_OF.iter();
    let arrays = arrays.flat_map(|of| [false, true].map(|here| array_helper(of, here)));
    let mut helpers = vec![
        ENTER,
        ENTER_VM,
        ENTER_VM_LATER,
        EXIT_VM,
        RESTORE,
        PUBLISH,
        PUBLISH_HERE,
        PUBLISH_RARE,
        PUBLISH_RARE_HERE,
        PUBLISH_UNTRACKED,
        CODE_CHANGED,
        ALLOC,
        ALLOC_HERE,
        ALLOC_KEEPING,
        ARRAYS,
        CURRENT,
        EVENT,
        ENTER_COUNTED,
        ENTER_VM_COUNTED,
        BEGIN_SCOPE,
        END_SCOPE,
        CREATE_CONTINUATION,
        CREATE_OPERATOR,
        BEFORE_SIGNAL,
        BEFORE_RESTRICTED,
        BEFORE_RESUME,
        BEFORE_CLONE,
        AFTER_CLONE,
        COUNT_OBJECT,
        COUNT_OBJECTS,
        COUNT_CREATED,
        COUNT_CREATED_HERE,
        UNSEEN_COPY,
        UNSEEN_NEW,
    ];
    helpers.extend(arrays);
    helpers.extend(ARRAYS_OF.iter().map(|of| keeping_array_helper(of)));
    helpers.extend(lab_helpers().filter(|_| in_lab));
    helpers.extend(kinds::all_event_hooks().flat_map(EventHooks::inherited_helpers));
    for intrinsic in INTRINSICS {
        if !helpers.contains(&intrinsic.counting_helper) {
            helpers.push(intrinsic.counting_helper);
        }
    }
    let mut noops: Vec<HelperMethod<'_>> = Vec::new();
    for helper in &helpers {
        let noop = noop_helper(helper);
        if !noops.contains(&noop) {
            noops.push(noop);
        }
    }
    helpers.extend(noops);
    let method = |helper| NewMethod {
        prefix: INHERITED,
        helper,
        code: match in_lab {
            true => &[],
            false => inherited_code(&helper),
        },
        access: PUBLIC_STATIC_SYNTHETIC,
        annotation: "Ljdk/internal/vm/annotation/ForceInline;",
    };
    helpers.into_iter().map(method).collect()
}

const UNSAFE: &str = "jdk/internal/misc/Unsafe";
const MEMORY: &str = "java/lang/LucceRtFrames$Memory";
const THREAD: &str = "java/lang/Thread";

const ACONST_NULL: NewInstruction<'_> = NewInstruction::Plain(1);
const LLOAD_0: NewInstruction<'_> = NewInstruction::Plain(30);
const ILOAD_0: NewInstruction<'_> = NewInstruction::Plain(26);
const ILOAD_2: NewInstruction<'_> = NewInstruction::Plain(28);
const DUP: NewInstruction<'_> = NewInstruction::Plain(89);
const LADD: NewInstruction<'_> = NewInstruction::Plain(97);
const I2L: NewInstruction<'_> = NewInstruction::Plain(133);
const LRETURN: NewInstruction<'_> = NewInstruction::Plain(173);
const RETURN: NewInstruction<'_> = NewInstruction::Plain(177);
const GET_UNSAFE: NewInstruction<'_> =
    NewInstruction::Field(178, MEMORY, "U", "Ljdk/internal/misc/Unsafe;");
const GET_BASE: NewInstruction<'_> = NewInstruction::Field(178, MEMORY, "BASE_ADDRESS", "J");
const GET_STACK: NewInstruction<'_> = NewInstruction::Field(180, THREAD, "$lucceStack", "J");
const SET_STACK: NewInstruction<'_> = NewInstruction::Field(181, THREAD, "$lucceStack", "J");
const CURRENT_THREAD: NewInstruction<'_> = NewInstruction::Call(
    184,
    helper_of(THREAD, "currentThread", "()Ljava/lang/Thread;"),
);
const PUT_LONG: NewInstruction<'_> =
    NewInstruction::Call(182, helper_of(UNSAFE, "putLong", "(Ljava/lang/Object;JJ)V"));
const ADD_SLOT: NewInstruction<'_> = NewInstruction::Long(SLOT_BYTES);
/// Bytes of a slot, as the helper classes have it.
pub const SLOT_BYTES: i64 = 16;

/// Returns the code of a frequent helper, as its live variant has it. Own loaders' classes run when the hooks are live.
///
/// The compilers need time for each call that they inline, and a tier 3 method counts it.
fn inherited_code(helper: &HelperMethod<'_>) -> &'static [NewInstruction<'static>] {
    match *helper {
        ENTER => &[CURRENT_THREAD, GET_STACK, LRETURN],
        RESTORE => &[CURRENT_THREAD, LLOAD_0, SET_STACK, RETURN],
        PUBLISH => &[
            GET_UNSAFE,
            ACONST_NULL,
            LLOAD_0,
            GET_BASE,
            LADD,
            ILOAD_2,
            I2L,
            PUT_LONG,
            CURRENT_THREAD,
            LLOAD_0,
            ADD_SLOT,
            LADD,
            SET_STACK,
            RETURN,
        ],
        PUBLISH_HERE => &[
            GET_UNSAFE,
            ACONST_NULL,
            CURRENT_THREAD,
            GET_STACK,
            GET_BASE,
            LADD,
            ILOAD_0,
            I2L,
            PUT_LONG,
            CURRENT_THREAD,
            DUP,
            GET_STACK,
            ADD_SLOT,
            LADD,
            SET_STACK,
            RETURN,
        ],
        _ => &[],
    }
}

/// Returns the disabled form of this helper.
fn noop_helper(helper: &HelperMethod<'static>) -> HelperMethod<'static> {
    HelperMethod {
        class: NOOP,
        name: match helper.descriptor.ends_with('J') {
            _ if ASKING.contains(&helper.name) => NOOP_ASK,
            true => NOOP_ENTER,
            false => NOOP_PLAIN,
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
        let methods = inherited_methods(true);
        let keys: HashSet<_> = methods
            .iter()
            .map(|one| (one.helper.name, one.helper.descriptor))
            .collect();
        assert_eq!(keys.len(), methods.len());
    }
}
