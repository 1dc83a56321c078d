//! A rewrite with nothing to insert returns the input, for every class of every JDK here.

use std::time::{Duration, Instant};

use lucce_bytecode::{ClassFile, ClassPlan, MethodPlan, rewrite};

use lucce_classkit::jdks;

/// An empty plan copies methods; empty method plans decode and write them anew.
fn laid_out_anew(class: &ClassFile<'_>) -> ClassPlan<'static> {
    let with_code = |&index: &usize| class.methods().get(index).is_some_and(|m| m.code.is_some());
    ClassPlan {
        methods: (0..class.methods().len())
            .filter(with_code)
            .map(|index| (index, MethodPlan::default()))
            .collect(),
        ..ClassPlan::default()
    }
}

#[test]
fn nothing_to_insert_changes_nothing() {
    for jdk in jdks::images() {
        let (mut classes, mut methods, mut same) = (0, 0, 0);
        let mut time = [Duration::ZERO; 2];
        jdk.for_each_class(|one| {
            let started = Instant::now();
            let class = ClassFile::parse(&one.bytes).expect(&one.name);
            let copied = rewrite(&class, &ClassPlan::default()).expect(&one.name);
            time[0] += started.elapsed();
            assert!(copied.bytes == one.bytes, "{} differs", one.name);
            let started = Instant::now();
            let anew = rewrite(&class, &laid_out_anew(&class)).expect(&one.name);
            time[1] += started.elapsed();
            assert!(anew.skipped.is_empty(), "{}: {:?}", one.name, anew.skipped);
            classes += 1;
            methods += class.methods().len();
            same += usize::from(anew.bytes == one.bytes);
            if anew.bytes != one.bytes {
                println!("not the same when laid out anew: {}", one.name);
            }
        });
        println!(
            "JDK {}: {classes} classes ({methods} methods) copied in {:?}; {same} the same laid out anew in {:?}",
            jdk.version, time[0], time[1],
        );
        // Compilers other than javac do not always write the shortest frame.
        assert!(classes > jdk.least_classes() && same * 1000 >= classes * 999);
    }
}
