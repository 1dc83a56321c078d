//! What the VM ignores in annotations is ignored.

use lucce_bytecode::ClassFile;

use crate::assembled::{Assembler, Body, u2};
use lucce_classkit::plans::rewrite_everything;

/// Whether the VM would find the annotation `LA;` of `run` behind this many bytes of others.
fn finds(contents: impl FnOnce(u16, u16) -> Vec<u8>) -> bool {
    let mut asm = Assembler::new("Odd", 61);
    let (ours, name) = (asm.utf8("LA;"), asm.utf8("v"));
    let contents = contents(ours, name);
    let bytes = finish_with(asm, contents);
    assert!(rewrite_everything(&bytes).skipped.is_empty());
    let class = ClassFile::parse(&bytes).expect("the VM reads it, too");
    class.methods()[0].has_annotation("LA;")
}

/// The class with a method `run` that has these annotations.
fn finish_with(mut asm: Assembler, annotations: Vec<u8>) -> Vec<u8> {
    asm.method_with(
        "run",
        "()V",
        &Body {
            code: vec![177],
            ..Body::default()
        },
        &[("RuntimeVisibleAnnotations", annotations)],
    );
    asm.finish()
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn as_much_is_read_as_the_vm_reads() {
    assert!(finds(|ours, _| words(&[1, ours, 0])));
    // The number says two, or none.
    assert!(finds(|ours, _| words(&[2, ours, 0])));
    assert!(!finds(|ours, _| words(&[0, ours, 0])));
    // An unknown tag in it; the name of its element is none.
    assert!(finds(|ours, name| [
        words(&[1, ours, 1, name]),
        vec![b'?', 0, 1]
    ]
    .concat()));
    assert!(!finds(|ours, _| words(&[1, ours, 1, 0])));
    // Behind one that cannot be read nothing is.
    assert!(!finds(|ours, name| [
        words(&[2, name, 1, name]),
        vec![b'?', 0, 1],
        words(&[ours, 0])
    ]
    .concat()));
    assert!(!finds(|_, _| vec![]));
    assert!(!finds(|_, _| vec![0]));
}

/// As deep as the attribute is long: nothing here may call itself for each level.
#[test]
fn values_nest_as_deep_as_they_like() {
    let deep = |levels: usize, inner: fn(u16) -> Vec<u8>| {
        finds(|ours, name| {
            let mut contents = words(&[2, name, 1, name]);
            for _ in 0..levels {
                contents.extend(inner(name));
            }
            contents.extend([b'I', 0, 1]);
            contents.extend(words(&[ours, 0]));
            contents
        })
    };
    for levels in [3, 70, 300_000] {
        assert!(deep(levels, |_| [&[b'['][..], &u2(1)].concat()));
        assert!(deep(levels, |name| [vec![b'@'], words(&[name, 1, name])]
            .concat()));
    }
}

#[test]
fn texts_of_elements_are_read() {
    let mut asm = Assembler::new("Odd", 61);
    let names = ["LA;", "one", "many", "other", "a", "b", "LE;", "C"].map(|text| asm.utf8(text));
    let [of, one, many, other, a, b, enumeration, constant] = names;
    let contents = [
        words(&[2, of, 3, one]),
        vec![b's'],
        words(&[a, many]),
        vec![b'['],
        words(&[3]),
        vec![b's'],
        words(&[b]),
        vec![b'e'],
        words(&[enumeration, constant]),
        // A nested annotation has no text of its own.
        vec![b'@'],
        words(&[of, 1, one]),
        vec![b's'],
        words(&[a, other]),
        vec![b'c'],
        words(&[of]),
        words(&[enumeration, 0]),
    ]
    .concat();
    let bytes = finish_with(asm, contents);
    let class = ClassFile::parse(&bytes).expect("sound");
    let annotations = class.annotations_of_method(&class.methods()[0]);
    let descriptors: Vec<_> = annotations.iter().map(|of| &*of.descriptor).collect();
    assert_eq!(descriptors, ["LA;", "LE;"]);
    assert_eq!(annotations[0].texts("one"), ["a"]);
    assert_eq!(annotations[0].texts("many"), ["b", "C"]);
    assert!(annotations[0].texts("other").is_empty());
    assert!(annotations[0].texts("absent").is_empty());
    assert!(class.annotations().is_empty());
}
