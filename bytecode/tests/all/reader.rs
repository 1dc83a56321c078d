//! An independent reader accepts the classes with all hooks on.

use lucce_bytecode::ClassFile;

use lucce_classkit::jdks;
use lucce_classkit::plans::rewrite_everything;

#[test]
fn everything_on_is_readable() {
    for jdk in jdks::images() {
        let (mut classes, mut refused, mut skipped) = (0, 0, 0);
        let (mut before, mut after) = (0, 0);
        jdk.for_each_class(|one| {
            let rewritten = rewrite_everything(&one.bytes);
            for (method, error) in &rewritten.skipped {
                println!("skipped {}[{method}]: {error}", one.name);
            }
            skipped += rewritten.skipped.len();
            before += one.bytes.len();
            after += rewritten.bytes.len();
            let class = ClassFile::parse(&rewritten.bytes).expect(&one.name);
            for code in class.methods().iter().filter_map(|m| m.code.as_ref()) {
                class.scan_code(code).expect(&one.name);
            }
            classes += 1;
            // What the oracle does not know in the original it need not know in the result.
            if cafebabe::parse_class(&one.bytes).is_err() {
                refused += 1;
            } else if let Err(error) = cafebabe::parse_class(&rewritten.bytes) {
                panic!("{}: {error}", one.name);
            }
        });
        println!(
            "JDK {}: {classes} classes grew from {before} to {after} bytes; {skipped} methods skipped; the oracle knows all but {refused}",
            jdk.version
        );
        assert!(classes > jdk.least_classes());
    }
}
