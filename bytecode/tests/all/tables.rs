//! Annotations and line numbers name the same instructions as before, says an independent reader.

use std::fs;

use cafebabe::attributes::{AttributeData, CodeData, TypeAnnotationTarget};

use lucce_classkit::jdks::{self, Folder, source};
use lucce_classkit::plans::rewrite_everything;

/// Per method: the opcodes that type annotations name, and the first opcode of each annotated
/// variable's range and its slot.
fn annotated(code: &CodeData<'_>) -> Vec<(u8, u16)> {
    let opcode = |offset: u16| code.code[usize::from(offset)];
    let mut annotations = vec![];
    for attribute in &code.attributes {
        let AttributeData::RuntimeVisibleTypeAnnotations(all) = &attribute.data else {
            continue;
        };
        for annotation in all {
            match &annotation.target_type {
                TypeAnnotationTarget::Offset { offset } => annotations.push((opcode(*offset), 0)),
                TypeAnnotationTarget::TypeArgument { offset, .. } => {
                    annotations.push((opcode(*offset), 1));
                }
                TypeAnnotationTarget::LocalVar(ranges) => {
                    annotations.extend(ranges.iter().map(|range| (0, range.index)));
                }
                TypeAnnotationTarget::Catch {
                    exception_table_index,
                } => {
                    annotations.push((1, *exception_table_index));
                }
                _ => {}
            }
        }
    }
    annotations
}

fn lines(code: &CodeData<'_>) -> Vec<(u16, u16)> {
    let tables = code.attributes.iter().filter_map(|a| match &a.data {
        AttributeData::LineNumberTable(lines) => Some(lines),
        _ => None,
    });
    tables
        .flatten()
        .map(|line| (line.start_pc, line.line_number))
        .collect()
}

/// Visits the code of every method.
fn codes<T>(bytes: &[u8], visit: impl Fn(&CodeData<'_>) -> T) -> Vec<T> {
    let class = cafebabe::parse_class(bytes).expect("the oracle knows it");
    let attributes = class.methods.iter().flat_map(|m| &m.attributes);
    let codes = attributes.filter_map(|a| match &a.data {
        AttributeData::Code(code) => Some(visit(code)),
        _ => None,
    });
    codes.collect()
}

#[test]
fn tables_follow_the_code() {
    let jdk = jdks::all().pop().expect("a JDK");
    let folder = Folder::create();
    jdk.compile(&folder.0, &["-g"], &[source("Edges.java")]);
    let mut seen = 0;
    for file in fs::read_dir(&folder.0).expect("classes").flatten() {
        let original = fs::read(file.path()).expect("a class");
        let rewritten = rewrite_everything(&original).bytes;
        let expected = codes(&original, annotated);
        assert_eq!(codes(&rewritten, annotated), expected);
        seen += expected.iter().flatten().count();
        let (old, new) = (codes(&original, lines), codes(&rewritten, lines));
        for (old, new) in old.iter().zip(&new) {
            let numbers = |lines: &[(u16, u16)]| lines.iter().map(|l| l.1).collect::<Vec<_>>();
            assert_eq!(numbers(old), numbers(new));
            // The first line takes in the entry code.
            assert_eq!(new.first().map(|l| l.0), old.first().map(|l| l.0));
        }
    }
    println!("{seen} annotated places");
    assert!(seen >= 8);
}
