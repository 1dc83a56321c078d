//! Integers that are changed after a class has been rewritten.

use lucce_bytecode::{
    ClassFile, ClassPlan, CodeInsertion, EntryHook, MethodPlan, RewrittenClass, rewrite,
};

use crate::assembled::{Assembler, Body};
use lucce_classkit::plans::{MARK, hook};

const CALLS: usize = 300;

/// A method that calls, and so many constants.
fn class(constants: u16) -> Vec<u8> {
    let mut asm = Assembler::new("Calls", 50);
    let code = asm.calling(CALLS);
    asm.method(
        "calls",
        "()V",
        &Body {
            code,
            stack: 0,
            ..Body::default()
        },
    );
    asm.fill(constants);
    asm.finish()
}

fn rewritten(bytes: &[u8], first: i32) -> RewrittenClass {
    let class = ClassFile::parse(bytes).expect("a sound class");
    let calls = class
        .scan_code(class.methods()[0].code.as_ref().expect("code"))
        .expect("sound")
        .calls;
    let mark = |(site, bci): (i32, u16)| (bci, CodeInsertion::Mark { helper: MARK, site });
    let one = MethodPlan {
        entry: Some(EntryHook {
            helper: hook("enter", "(I)J"),
            // One that an instruction has.
            argument: Some(7),
        }),
        inserts: (first..)
            .zip(calls.iter().map(|call| call.bci))
            .map(mark)
            .collect(),
        ..MethodPlan::default()
    };
    let mut plan = ClassPlan::default();
    plan.methods.insert(0, one);
    rewrite(&class, &plan).expect("it fits")
}

#[test]
fn other_integers_make_the_class_that_has_them() {
    // With ids of one byte and of two for constants.
    for constants in [0, 250, 60_000] {
        let plain = class(constants);
        let (first, other) = (1 << 28, 70_000);
        let mut done = rewritten(&plain, first);
        let integers = done.integers.expect("there is room");
        let values: Vec<i32> = integers.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, (first..).take(CALLS).collect::<Vec<_>>());
        for (at, value) in &integers {
            let place = &mut done.bytes[*at..*at + 4];
            assert_eq!(place, value.to_be_bytes());
            place.copy_from_slice(&(value - first + other).to_be_bytes());
        }
        assert!(done.bytes == rewritten(&plain, other).bytes, "{constants}");
    }
}

#[test]
fn computed_integers_have_no_pool_positions() {
    let plain = class(65_500);
    assert_eq!(rewritten(&plain, 1 << 28).integers, None);
    // None is needed.
    assert_eq!(rewritten(&plain, 100).integers, Some(Vec::new()));
}
