//! The code that hooks add to classes of a program.

use std::path::Path;

use lucce_bytecode::{ClassFile, rewrite};
use lucce_instrument::{
    EventKindSet, HookOptions, InstrumentationOptions, analyze_class, plan_class,
};
use lucce_options::{MethodSelection, ResourceRules};

use crate::rewrite::{class_files, read_classes};

/// Bytes of code for each thousand hooks, and what they are of.
pub fn code_bytes(folder: &Path, kinds: EventKindSet) -> String {
    let (mut added, mut hooks) = (0, 0);
    for bytes in read_classes(&class_files(folder)) {
        let class = ClassFile::parse(&bytes).expect("a class file");
        let options = InstrumentationOptions {
            events: kinds,
            idle: kinds == EventKindSet::default(),
            trusted: false,
            holds: &|_| true,
            jdk_is_out_of_scope: false,
            methods: &MethodSelection::default(),
            resources: &ResourceRules::default(),
            calls_untracked: &|_| false,
        };
        let methods = analyze_class(&class, options).expect("sound code");
        hooks += methods
            .iter()
            .map(|method| method.places.len())
            .sum::<usize>();
        let hook_options = HookOptions {
            kinds,
            ..HookOptions::default()
        };
        let plan = plan_class(&class, &methods, 0, 0, &|_| 0, hook_options);
        let rewritten = rewrite(&class, &plan).expect("a class that can be rewritten");
        assert!(rewritten.skipped.is_empty(), "a method without its hooks");
        let rewritten = ClassFile::parse(&rewritten.bytes).expect("our own class file");
        added += code_length(&rewritten) - code_length(&class);
    }
    assert!(hooks > 0, "no place for a hook");
    format!(
        "{} bytes a thousand hooks, {hooks} hooks",
        added * 1000 / hooks
    )
}

fn code_length(class: &ClassFile<'_>) -> usize {
    let codes = class
        .methods()
        .iter()
        .filter_map(|method| method.code.as_ref());
    codes.map(|code| code.bytes.len()).sum()
}
