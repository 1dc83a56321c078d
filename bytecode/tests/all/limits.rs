//! Limits of the class file format, and plans that cannot be carried out.

use lucce_bytecode::{
    BytecodeErrorKind, ClassFile, ClassPlan, CodeInsertion, LONGEST_COMPILED, MethodPlan, NewField,
    RewrittenClass, rewrite,
};

use crate::assembled::{self, Assembler, Body};
use lucce_classkit::plans::{
    ALLOC, ARRAY, BEFORE, CONCAT, MARK, MARK_TWO, entry, hook, rewrite_everything,
};

/// `run` has so many `nop`, then returns; a small method follows.
fn with_long_method(nops: usize) -> Vec<u8> {
    let mut asm = Assembler::new("Long", 52);
    let long = [vec![0; nops], vec![177]].concat();
    for (name, code) in [("run", long), ("short", vec![177])] {
        asm.method(
            name,
            "()V",
            &Body {
                code,
                ..Body::default()
            },
        );
    }
    asm.finish()
}

fn code_lengths(bytes: &[u8]) -> Vec<usize> {
    let class = ClassFile::parse(bytes).expect("sound");
    let codes = class.methods().iter().filter_map(|m| m.code.as_ref());
    codes.map(|code| code.bytes.len()).collect()
}

#[test]
fn a_method_that_cannot_grow_is_left_alone() {
    let original = with_long_method(65_534);
    let rewritten = rewrite_everything(&original);
    let [(0, error)] = rewritten.skipped.as_slice() else {
        panic!("{:?}", rewritten.skipped);
    };
    assert_eq!(error.kind, BytecodeErrorKind::MethodTooLarge);
    let lengths = code_lengths(&rewritten.bytes);
    assert_eq!(lengths[0], 65_535);
    assert!(lengths[1] > 10);
}

/// The VM refuses such a class; the error names the cause, not a place behind the code.
#[test]
fn a_method_above_the_limit_is_too_large() {
    for nops in [65_535, 65_536, 70_000, 140_000] {
        let original = with_long_method(nops);
        let rewritten = rewrite_everything(&original);
        let skipped = rewritten
            .skipped
            .iter()
            .map(|(at, error)| (*at, error.kind));
        assert_eq!(
            skipped.collect::<Vec<_>>(),
            [(0, BytecodeErrorKind::MethodTooLarge)],
            "{nops}"
        );
        assert_eq!(code_lengths(&rewritten.bytes)[0], nops + 1);
    }
}

/// Which methods HotSpot compiles without hooks only.
#[test]
fn methods_that_outgrow_the_compilers_are_reported() {
    let added = code_lengths(&rewrite_everything(&with_long_method(0)).bytes)[0] - 1;
    for (before, outgrown) in [
        (LONGEST_COMPILED - added, false),
        (LONGEST_COMPILED - added + 1, true),
        (LONGEST_COMPILED, true),
        (LONGEST_COMPILED + 1, false),
    ] {
        let rewritten = rewrite_everything(&with_long_method(before - 1));
        let expected = if outgrown { &[0][..] } else { &[] };
        assert_eq!(rewritten.outgrown, expected, "{before}");
        assert_eq!(code_lengths(&rewritten.bytes)[0], before + added);
    }
}

/// What fits exactly is rewritten.
#[test]
fn a_method_may_grow_to_the_last_byte() {
    let added = code_lengths(&rewrite_everything(&with_long_method(0)).bytes)[0] - 1;
    for (nops, fits) in [(65_534 - added, true), (65_535 - added, false)] {
        let rewritten = rewrite_everything(&with_long_method(nops));
        assert_eq!(rewritten.skipped.is_empty(), fits, "{added}");
    }
}

#[test]
fn far_branches_do_become_wide() {
    let far = assembled::all()
        .into_iter()
        .filter(|(name, _)| name.starts_with("Far"));
    for (name, bytes) in far {
        let rewritten = rewrite_everything(&bytes);
        assert!(rewritten.skipped.is_empty(), "{name}");
        let (before, after) = (code_lengths(&bytes)[1], code_lengths(&rewritten.bytes)[1]);
        assert!(
            before < 0x7fff && after > 0x8fff,
            "{name}: {before}, {after}"
        );
    }
}

#[test]
fn a_full_pool_leaves_the_class_as_it_is() {
    let mut asm = Assembler::new("Full", 52);
    asm.method(
        "run",
        "()V",
        &Body {
            code: vec![177],
            ..Body::default()
        },
    );
    while asm.count < 65_530 {
        asm.constant(3, &[0; 4]);
    }
    let bytes = asm.finish();
    let class = ClassFile::parse(&bytes).expect("sound");
    let plan = ClassPlan {
        methods: [(
            0,
            MethodPlan {
                entry: Some(entry(0)),
                ..MethodPlan::default()
            },
        )]
        .into(),
        ..ClassPlan::default()
    };
    let done = rewrite(&class, &plan).expect("a copy");
    let skipped = done.skipped.first().map(|(_, error)| error.kind);
    assert_eq!(skipped, Some(BytecodeErrorKind::PoolFull));
    assert!(done.bytes == bytes);
    let fields = vec![
        NewField {
            name: "none",
            descriptor: "J",
            access: 1
        };
        9
    ];
    let wanted = ClassPlan {
        fields,
        ..ClassPlan::default()
    };
    assert!(rewrite(&class, &wanted).is_ok());
    assert_eq!(
        rewrite(&class, &ClassPlan::default())
            .expect("a copy")
            .bytes,
        bytes
    );
}

#[test]
fn fields_are_appended() {
    let field = |name| NewField {
        name,
        descriptor: "J",
        access: 0x1080,
    };
    let plan = ClassPlan {
        fields: vec![field("$fp"), field("$other")],
        ..ClassPlan::default()
    };
    let original = with_long_method(3);
    let class = ClassFile::parse(&original).expect("sound");
    let rewritten = rewrite(&class, &plan).expect("fields fit");
    let read = cafebabe::parse_class(&rewritten.bytes).expect("the oracle knows it");
    let names: Vec<_> = read
        .fields
        .iter()
        .map(|field| field.name.to_string())
        .collect();
    assert_eq!(names, ["$fp", "$other"]);
    assert_eq!(read.fields[0].access_flags.bits(), 0x1080);
}

/// One method: `iconst_1; newarray int; pop; new Object; pop; return`.
fn with_plan(name: &str, plan: MethodPlan<'_>) -> RewrittenClass {
    let mut asm = Assembler::new("Planned", 52);
    let object = asm.class("java/lang/Object").to_be_bytes();
    let code = vec![4, 188, 10, 87, 187, object[0], object[1], 87, 177];
    asm.method(
        name,
        "()V",
        &Body {
            code,
            ..Body::default()
        },
    );
    let bytes = asm.finish();
    let class = ClassFile::parse(&bytes).expect("sound");
    let plan = ClassPlan {
        methods: [(0, plan)].into(),
        ..ClassPlan::default()
    };
    rewrite(&class, &plan).expect("the class can be rewritten")
}

#[test]
fn plans_that_do_not_fit_skip_the_method() {
    let site = 1;
    let mark = CodeInsertion::Mark { helper: MARK, site };
    let after = CodeInsertion::After {
        helper: ALLOC,
        site,
    };
    let dup = CodeInsertion::AfterDup {
        helper: ARRAY,
        site,
    };
    let insertion = CodeInsertion::AfterNew {
        helper: hook("made", "(Ljava/lang/Class;J)V"),
    };
    let redirect = CodeInsertion::Redirect { helper: CONCAT };
    for (inserts, fits) in [
        (vec![(0, mark), (4, after), (8, mark)], true),
        (vec![(1, dup), (1, mark), (4, mark), (4, after)], true),
        (vec![(2, mark)], false),
        (vec![(4, mark), (0, mark)], false),
        (vec![(9, mark)], false),
        (vec![(8, after)], false),
        (vec![(4, dup)], false),
        (vec![(1, insertion)], false),
        (vec![(4, redirect)], false),
    ] {
        let plan = MethodPlan {
            entry: Some(entry(0)),
            inserts,
            ..MethodPlan::default()
        };
        let rewritten = with_plan("run", plan.clone());
        assert_eq!(rewritten.skipped.is_empty(), fits, "{plan:?}");
        let entry = None;
        let without_entry = with_plan("run", MethodPlan { entry, ..plan });
        assert_eq!(without_entry.skipped.is_empty(), fits);
    }
}

#[test]
fn without_an_entry_there_is_no_local_and_hooks_are_given_the_site_alone() {
    let site = 7;
    let mark = CodeInsertion::Mark {
        helper: hook("mark", "(I)V"),
        site,
    };
    let dup = CodeInsertion::AfterDup {
        helper: hook("array", "([II)V"),
        site,
    };
    let plan = MethodPlan {
        inserts: vec![(1, dup), (8, mark)],
        ..MethodPlan::default()
    };
    let rewritten = with_plan("run", plan);
    assert!(rewritten.skipped.is_empty());
    let class = ClassFile::parse(&rewritten.bytes).expect("sound");
    let code = class.methods()[0].code.as_ref().expect("code");
    let (iconst_1, bipush, invokestatic, dup) = (4, 16, 184, 89);
    let expected = [iconst_1, 188, 10, dup, bipush, 7, invokestatic];
    assert_eq!(code.bytes[..expected.len()], expected);
    let expected = [87, bipush, 7, invokestatic];
    assert_eq!(code.bytes[13..13 + expected.len()], expected);
    assert_eq!(code.max_locals, 0);
}

/// What takes nothing but the local, or two numbers behind it, cannot do without.
#[test]
fn an_insertion_that_needs_the_local_skips_a_method_that_keeps_none() {
    let needs = [
        CodeInsertion::Before { helper: BEFORE },
        CodeInsertion::MarkTwo {
            helper: MARK_TWO,
            site: 1,
            inner: 2,
        },
    ];
    for insert in needs {
        let plan = MethodPlan {
            inserts: vec![(0, insert)],
            ..MethodPlan::default()
        };
        assert_eq!(with_plan("run", plan).skipped.len(), 1, "{insert:?}");
    }
}

#[test]
fn constructors_get_no_unwind_handler() {
    let plan = MethodPlan {
        entry: Some(entry(0)),
        unwind: Some(hook("unwind", "(J)V")),
        ..MethodPlan::default()
    };
    assert_eq!(with_plan("<init>", plan.clone()).skipped.len(), 1);
    assert!(with_plan("run", plan).skipped.is_empty());
}

#[test]
fn plans_for_other_classes_are_refused() {
    let bytes = with_long_method(1);
    let class = ClassFile::parse(&bytes).expect("sound");
    let plan = ClassPlan {
        methods: [(2, MethodPlan::default())].into(),
        ..ClassPlan::default()
    };
    assert!(rewrite(&class, &plan).is_err());
}
