//! Code that breaks a limit of its class stays as it is, so that the VM refuses it: hooks raise limits.

use lucce_bytecode::{BytecodeErrorKind, ClassFile, rewrite};

use crate::assembled::{Assembler, Body, u2};
use lucce_classkit::plans::{everything, rewrite_everything};

/// `run` with this body, and what it may call: `none()V`, `one(J)I`.
fn class(
    major: u16,
    descriptor: &str,
    body: impl FnOnce(&mut Assembler, [u16; 2]) -> Body,
) -> Vec<u8> {
    let mut asm = Assembler::new("Odd", major);
    let this = asm.this;
    let calls = [("none", "()V"), ("one", "(J)I")].map(|(name, of)| asm.method_ref(this, name, of));
    let body = body(&mut asm, calls);
    asm.method("run", descriptor, &body);
    asm.finish()
}

/// Whether hooks go into the method. If not it is as it was.
fn is_hooked(bytes: &[u8]) -> bool {
    let rewritten = rewrite_everything(bytes);
    let code = |bytes: &[u8]| {
        let class = ClassFile::parse(bytes).expect("sound");
        let code = class.methods()[0].code.clone().expect("code");
        (code.bytes.to_vec(), code.max_stack, code.max_locals)
    };
    let hooked = rewritten.skipped.is_empty();
    assert_eq!(hooked, code(bytes) != code(&rewritten.bytes));
    hooked
}

fn plain(code: &[u8], stack: u16, locals: u16) -> Body {
    Body {
        code: code.to_vec(),
        stack,
        locals,
        ..Body::default()
    }
}

/// Each is sound with these limits, and not with smaller ones.
#[test]
fn limits_are_kept_to_the_last_slot() {
    let cases: [(&str, &[u8], u16, u16); 22] = [
        ("store a long", &[9, 63, 177], 2, 2),
        ("load a long", &[9, 64, 31, 88, 177], 2, 3),
        ("load an int", &[3, 59, 26, 87, 177], 1, 1),
        ("store a reference far", &[1, 58, 9, 177], 1, 10),
        ("store a double far", &[14, 57, 9, 177], 2, 11),
        ("iinc", &[3, 54, 5, 132, 5, 1, 177], 1, 6),
        ("wide store", &[9, 196, 55, 1, 0, 177], 2, 258),
        (
            "wide iinc",
            &[3, 196, 54, 1, 0, 196, 132, 1, 0, 0, 1, 177],
            1,
            257,
        ),
        ("dup", &[3, 89, 88, 177], 2, 0),
        ("dup2_x2", &[9, 9, 94, 88, 88, 88, 177], 6, 0),
        ("dup_x1", &[3, 4, 90, 87, 88, 177], 3, 0),
        ("long constant", &[9, 88, 177], 2, 0),
        ("a branch", &[3, 153, 0, 3, 177], 1, 0),
        (
            "both ways",
            &[3, 153, 0, 8, 9, 88, 167, 0, 5, 3, 87, 177],
            2,
            0,
        ),
        (
            "only from behind",
            &[167, 0, 6, 9, 88, 177, 3, 153, 255, 252, 177],
            2,
            0,
        ),
        (
            "a switch",
            &[
                3, 170, 0, 0, 0, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 19, 9, 88, 177,
            ],
            2,
            0,
        ),
        ("a subroutine", &[168, 0, 4, 177, 75, 169, 0], 1, 1),
        (
            "a wide ret",
            &[201, 0, 0, 0, 6, 177, 58, 9, 196, 169, 0, 9],
            1,
            10,
        ),
        ("comparison", &[9, 9, 148, 87, 177], 4, 0),
        ("an array", &[4, 188, 10, 87, 177], 1, 0),
        ("a thrown null", &[1, 191], 1, 0),
        ("an unused local", &[3, 60, 177], 1, 2),
    ];
    for (name, code, stack, locals) in cases {
        let hooked =
            |stack, locals| is_hooked(&class(48, "()V", |_, _| plain(code, stack, locals)));
        assert!(hooked(stack, locals), "{name}");
        assert!(hooked(stack + 1, locals + 1), "{name}");
        assert!(!hooked(stack - 1, locals), "{name}: stack");
        if locals > 0 {
            assert!(!hooked(stack, locals - 1), "{name}: locals");
        }
    }
}

/// Hooks move switches and write zeros before their operands, which would make the class one that the VM takes.
#[test]
fn older_verifiers_want_zeros_before_the_operands_of_switches() {
    // Both at 1, where two bytes stand before the operands.
    let table = |padding| {
        let head = [3, 170, 0, padding];
        let rest = [0, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 19, 177];
        head.into_iter().chain(rest).collect::<Vec<u8>>()
    };
    let lookup = |padding| vec![3, 171, padding, 0, 0, 0, 0, 11, 0, 0, 0, 0, 177];
    // Where control never comes, at 2 with one byte.
    let dead = |padding| vec![177, 3, 171, padding, 0, 0, 0, 10, 0, 0, 0, 0, 177];
    let switches = [table, lookup, dead] as [fn(u8) -> Vec<u8>; 3];
    for (at, switch) in switches.into_iter().enumerate() {
        let hooked =
            |padding, major| is_hooked(&class(major, "()V", |_, _| plain(&switch(padding), 2, 1)));
        for major in [46, 48, 49] {
            assert!(hooked(0, major), "{at}, version {major}");
            assert!(!hooked(1, major), "{at}, version {major}");
            assert!(!hooked(0x80, major), "{at}, version {major}");
        }
        assert!(!hooked(1, 50), "{at}");
        assert_eq!(hooked(1, 51), hooked(0, 51), "{at}");
        assert_eq!(hooked(1, 61), hooked(0, 61), "{at}");
    }
}

#[test]
fn arguments_and_calls_count() {
    let call = |stack, locals| {
        class(48, "(J)V", |_, [none, one]| {
            let [none, one] = [none, one].map(u16::to_be_bytes);
            let code = [&[184][..], &none, &[9, 184], &one, &[87, 177]].concat();
            plain(&code, stack, locals)
        })
    };
    assert!(is_hooked(&call(2, 2)));
    assert!(!is_hooked(&call(1, 2)));
    assert!(!is_hooked(&call(2, 1)));
    assert!(!is_hooked(&call(2, 0)));
}

#[test]
fn what_control_does_must_make_sense() {
    let handler = |stack| {
        class(48, "()V", |_, _| Body {
            handlers: vec![[0, 1, 2, 0]],
            ..plain(&[0, 177, 191], stack, 0)
        })
    };
    assert!(is_hooked(&handler(1)));
    assert!(!is_hooked(&handler(0)));
    // Into the handler that hooks put behind the code, with what it wants on the stack.
    for code in [&[1][..], &[0], &[3, 153, 255, 255], &[1, 167, 0, 3]] {
        assert!(
            !is_hooked(&class(48, "()V", |_, _| plain(code, 2, 0))),
            "{code:?}"
        );
    }
    for (name, code) in [
        ("two depths", &[3, 153, 0, 4, 3, 177][..]),
        ("nothing to pop", &[87, 177]),
        ("into an instruction", &[3, 153, 255, 254, 177]),
        ("a loop that grows", &[3, 167, 255, 255]),
        ("before the code", &[167, 255, 250]),
        (
            "a subroutine that leaves more",
            &[168, 0, 4, 177, 75, 3, 169, 0],
        ),
    ] {
        assert!(
            !is_hooked(&class(48, "()V", |_, _| plain(code, 8, 8))),
            "{name}"
        );
    }
    // Without verification such code may be there; what is never reached has no depth.
    assert!(is_hooked(&class(48, "()V", |_, _| plain(
        &[177, 87, 87, 0],
        1,
        0
    ))));
}

/// From version 50 on the VM verifies what control never reaches.
#[test]
fn frames_are_kept_in_bounds() {
    // 0: return; 1: lconst_0, pop2, return, with a frame.
    let dead = |frames: &[u8], stack| {
        let frames = Some(frames.to_vec());
        class(52, "()V", |_, _| Body {
            frames,
            ..plain(&[177, 9, 88, 177], stack, 1)
        })
    };
    assert!(is_hooked(&dead(&[0, 1, 1], 2)));
    assert!(!is_hooked(&dead(&[0, 1, 1], 1)));
    // What the frame has on the stack.
    assert!(!is_hooked(&dead(&[0, 1, 65, 4], 3)));
    assert!(is_hooked(&dead(&[0, 1, 65, 4], 4)));
    // Its locals: an int, a long.
    assert!(is_hooked(&dead(&[0, 1, 252, 0, 1, 1], 2)));
    assert!(!is_hooked(&dead(&[0, 1, 252, 0, 1, 4], 2)));
}

#[test]
fn broken_frames_matter_where_the_vm_reads_them() {
    for (major, hooked) in [(48, true), (49, true), (50, true), (51, false), (61, false)] {
        for frames in [
            &[0, 3, 200][..],
            &[0, 1],
            &[0, 1, 0, 9],
            &[0, 1, 2],
            &[0, 1, 248, 0, 1],
        ] {
            let bytes = class(major, "()V", |_, _| Body {
                frames: Some(frames.to_vec()),
                ..plain(&[17, 0, 1, 87, 177], 1, 0)
            });
            let parsed = ClassFile::parse(&bytes).expect("sound");
            let done = rewrite(&parsed, &everything(&parsed));
            let is_hooked = done.as_ref().is_ok_and(|done| done.skipped.is_empty());
            assert_eq!(is_hooked, hooked, "{major} {frames:?}");
        }
    }
}

/// The appended constants would give these indices a meaning.
#[test]
fn nothing_names_a_constant_behind_the_pool() {
    let name = |at: usize| u2(at).to_vec();
    let refused = |bytes: &[u8]| {
        let class = ClassFile::parse(bytes).expect("sound");
        match rewrite(&class, &everything(&class)) {
            Ok(done) => panic!("{:?}", done.skipped),
            Err(error) => error.kind == BytecodeErrorKind::OutOfBounds,
        }
    };
    // Instructions; the last constant is number `count - 1`.
    for (op, more) in [(19, 0), (20, 0), (178, 0), (181, 0), (192, 0), (193, 0)] {
        let built = |behind: u16| {
            class(48, "()V", |asm, _| {
                // `method` adds names: of the method, its descriptor, and two attributes.
                let index = (asm.count + 3 + behind).to_be_bytes();
                let mut code = vec![177, op];
                code.extend(index);
                code.resize(code.len() + more, 0);
                code.push(177);
                plain(&code, 2, 2)
            })
        };
        assert!(refused(&built(1)), "{op}");
        assert!(refused(&built(9)), "{op}");
        let bytes = built(0);
        let class = ClassFile::parse(&bytes).expect("sound");
        assert!(rewrite(&class, &everything(&class)).is_ok(), "{op}");
    }
    // Attributes of the class, with a first index far behind the pool, and with one in it.
    let beyond = name(200);
    let cases: [(&str, u16, Vec<u8>); 11] = [
        ("SourceFile", 45, beyond.clone()),
        ("Signature", 49, beyond.clone()),
        ("NestHost", 55, beyond.clone()),
        ("NestMembers", 55, [name(1), beyond.clone()].concat()),
        (
            "PermittedSubclasses",
            61,
            [name(1), beyond.clone()].concat(),
        ),
        ("EnclosingMethod", 49, [name(1), beyond.clone()].concat()),
        (
            "InnerClasses",
            45,
            [name(1), name(1), name(0), beyond.clone(), name(0)].concat(),
        ),
        (
            "BootstrapMethods",
            51,
            [name(1), name(1), name(1), beyond.clone()].concat(),
        ),
        (
            "Record",
            60,
            [name(1), name(1), beyond.clone(), name(0)].concat(),
        ),
        (
            "RuntimeVisibleAnnotations",
            49,
            [name(1), beyond.clone(), name(0)].concat(),
        ),
        (
            "RuntimeInvisibleTypeAnnotations",
            52,
            [name(1), vec![0x10], name(0), vec![0], beyond, name(0)].concat(),
        ),
    ];
    for (attribute, since, contents) in cases {
        let built = |major: u16, contents: &[u8]| {
            let mut asm = Assembler::new("Odd", major);
            asm.method("run", "()V", &plain(&[177], 0, 0));
            asm.class_attribute(attribute, contents);
            asm.finish()
        };
        assert!(refused(&built(since, &contents)), "{attribute}");
        if since > 45 {
            // Not one of this version's attributes: anything may be in it.
            assert!(is_hooked(&built(45, &contents)), "{attribute}");
        }
        let sound: Vec<u8> = contents
            .iter()
            .map(|b| if *b == 200 { 1 } else { *b })
            .collect();
        assert!(is_hooked(&built(since, &sound)), "{attribute}");
    }
}

#[test]
fn wrong_debug_information_stays_wrong() {
    // start, length, name, descriptor, index; the VM wants start < 3, end <= 3 and index < 2.
    for (start, length, index, sound) in [
        (0, 3, 1, true),
        (1, 2, 0, true),
        (3, 0, 0, false),
        (0, 4, 0, false),
        (9, 1, 0, false),
        (0, 3, 2, false),
        (0, 3, 65_535, false),
    ] {
        let bytes = class(48, "()V", |asm, _| {
            let (name, int) = (asm.utf8("x"), asm.utf8("I"));
            let entry = [start, length, name, int, index]
                .map(u16::to_be_bytes)
                .concat();
            Body {
                attributes: vec![
                    ("LocalVariableTable", [u2(1).to_vec(), entry].concat()),
                    (
                        "LineNumberTable",
                        [1, start, 7].map(u16::to_be_bytes).concat(),
                    ),
                ],
                ..plain(&[0, 0, 177], 1, 2)
            }
        });
        let rewritten = rewrite_everything(&bytes);
        assert!(rewritten.skipped.is_empty());
        let class = ClassFile::parse(&rewritten.bytes).expect("sound");
        let code = class.methods()[0].code.as_ref().expect("code");
        let parsed = cafebabe::parse_class(&rewritten.bytes).expect("readable");
        let cafebabe::attributes::AttributeData::Code(read) = &parsed.methods[0].attributes[0].data
        else {
            panic!("no code");
        };
        let (len, locals) = (code.bytes.len(), usize::from(code.max_locals));
        for attribute in &read.attributes {
            match &attribute.data {
                cafebabe::attributes::AttributeData::LocalVariableTable(all) => {
                    let one = &all[0];
                    let (from, to) = (usize::from(one.start_pc), usize::from(one.length));
                    let is_sound =
                        from < len && from + to <= len && usize::from(one.index) < locals;
                    assert_eq!(is_sound, sound, "{start} {length} {index}");
                }
                cafebabe::attributes::AttributeData::LineNumberTable(all) => {
                    assert_eq!(usize::from(all[0].start_pc) < len, start < 3);
                }
                _ => {}
            }
        }
    }
}
