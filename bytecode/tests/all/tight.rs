//! Classes whose constant pool has little room.

use lucce_bytecode::{
    BytecodeErrorKind, ClassFile, ClassPlan, CodeInsertion, EntryHook, MethodPlan, rewrite,
};

use crate::assembled::{Assembler, Body};
use lucce_classkit::plans::{MARK, entry, hook};

const CALLS: usize = 3000;
const METHODS: usize = 20;

/// Methods that call, and a pool with room for so many more constants.
fn class(free: u16) -> Vec<u8> {
    let mut asm = Assembler::new("Full", 50);
    let code = asm.calling(CALLS);
    for n in 0..METHODS {
        let code = code.clone();
        asm.method(
            &format!("m{n}"),
            "()V",
            &Body {
                code,
                stack: 0,
                ..Body::default()
            },
        );
    }
    asm.fill(u16::MAX - free);
    asm.finish()
}

fn plan(class: &ClassFile<'_>) -> ClassPlan<'static> {
    let mut plan = ClassPlan::default();
    for (index, method) in class.methods().iter().enumerate() {
        let scan = class
            .scan_code(method.code.as_ref().expect("code"))
            .expect("sound");
        let first = 1_000_000 + (index * CALLS) as i32;
        let mark = |(n, bci): (usize, u16)| {
            let site = first + n as i32;
            (bci, CodeInsertion::Mark { helper: MARK, site })
        };
        let one = MethodPlan {
            entry: Some(EntryHook {
                helper: hook("enter", "(I)J"),
                argument: Some(70_000 * index as i32),
            }),
            inserts: scan
                .calls
                .iter()
                .map(|call| call.bci)
                .enumerate()
                .map(mark)
                .collect(),
            ..MethodPlan::default()
        };
        plan.methods.insert(index, one);
    }
    plan
}

#[test]
fn sites_need_no_constant_each() {
    // Fewer than sites, then fewer than it takes to name a helper.
    for (free, left_out) in [
        (40_000, 0),
        (1000, 0),
        (200, 0),
        (70, 0),
        (40, 0),
        (12, 0),
        (10, 0),
        (9, METHODS),
        (5, METHODS),
        (0, METHODS),
    ] {
        let bytes = class(free);
        let parsed = ClassFile::parse(&bytes).expect("sound");
        let done = rewrite(&parsed, &plan(&parsed)).expect("possible");
        assert_eq!(
            done.skipped.len(),
            left_out,
            "{free}: {:?}",
            done.skipped.first()
        );
        assert!(
            done.skipped
                .iter()
                .all(|(_, error)| error.kind == BytecodeErrorKind::PoolFull)
        );
        let again = ClassFile::parse(&done.bytes).expect("sound");
        if left_out == METHODS {
            assert!(done.bytes == bytes);
        }
        for (method, before) in again.methods().iter().zip(parsed.methods()) {
            let calls = again
                .scan_code(method.code.as_ref().expect("code"))
                .expect("sound")
                .calls;
            let marks = calls.iter().filter(|call| call.name == "mark").count();
            assert_eq!(
                marks,
                if left_out == 0 { CALLS } else { 0 },
                "{}",
                before.name
            );
        }
    }
}

/// What does not fit is left out, not what comes after it.
#[test]
fn only_methods_that_do_not_fit_are_left_out() {
    let bytes = class(12);
    let parsed = ClassFile::parse(&bytes).expect("sound");
    let mut plan = plan(&parsed);
    // The second method wants helpers for which there is no room any more.
    if let Some(second) = plan.methods.get_mut(&1) {
        second.exit = Some(hook("exit", "(J)V"));
        second.entry = Some(entry(0));
    }
    let done = rewrite(&parsed, &plan).expect("possible");
    let skipped: Vec<_> = done.skipped.iter().map(|(index, _)| *index).collect();
    assert_eq!(skipped, [1]);
}
