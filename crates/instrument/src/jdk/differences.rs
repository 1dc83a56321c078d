//! Finds differences between a class of the running JDK and the tested JDKs.
//!
//! In another JDK, a method that the tables name may be renamed or missing, and a class may have unknown natives.

use lucce_bytecode::ClassFile;

use super::facts::{FACTS, JdkFact};
use super::leaf_methods::UNSAFE;

/// The JDKs whose natives, and whose methods that the VM calls or replaces, were examined.
pub const TESTED_JDKS: [u32; 4] = [11, 17, 21, 25];

/// All natives of their `java.base`: `CLASS NAME+DESCRIPTOR …`. Natives of `Unsafe` are omitted; it has no hooks.
const NATIVES: &str = include_str!("natives.txt");

/// Returns the latest tested JDK that is not newer than this one, or the first tested JDK.
#[must_use]
pub fn closest_tested_jdk(feature: u32) -> u32 {
    let mut earlier = TESTED_JDKS.into_iter().rev();
    earlier
        .find(|tried| *tried <= feature)
        .unwrap_or(TESTED_JDKS[0])
}

/// Returns a message for each method that JDK `like` has and the class lacks, and for each unknown native method.
#[must_use]
pub fn find_differences(class: &ClassFile<'_>, like: u32) -> Vec<String> {
    let name = class.name();
    let shown = name.replace('/', ".");
    let has = |fact: &JdkFact| {
        let mut methods = class.methods().iter();
        methods.any(|method| fact.matches_method(name, &method.name, &method.descriptor))
    };
    let mut missing: Vec<String> = facts_of_class(name, like)
        .filter(|fact| !has(fact))
        .map(|fact| {
            let method = fact.method.split(['(', '*']).next().unwrap_or_default();
            format!(
                "this JDK has no {shown}.{method}, which JDK {like} has: what does its work may be missing or have wrong traces"
            )
        })
        .collect();
    missing.dedup();
    let unknown = native_methods(class).filter(|native| !is_known_native(name, native));
    let unknown = unknown.map(|native| {
        format!(
            "{shown}.{native} is a native method that lucce does not know: objects that it makes are not counted, and \
             traces of Java code that it calls may be wrong"
        )
    });
    missing.into_iter().chain(unknown).collect()
}

/// Returns the facts about the class in this JDK.
fn facts_of_class(class: &str, jdk: u32) -> impl Iterator<Item = JdkFact> {
    let facts = FACTS.lines().filter(|line| !line.starts_with('#'));
    facts.filter_map(move |line| {
        let mut words = line.split(' ');
        let (table, owner, method) = (words.next()?, words.next()?, words.next()?);
        let has_it = words.any(|version| version.parse() == Ok(jdk));
        (owner == class && has_it).then(|| JdkFact {
            table,
            class: owner.into(),
            method: method.into(),
        })
    })
}

fn native_methods(class: &ClassFile<'_>) -> impl Iterator<Item = String> {
    const NATIVE: u16 = 0x100;
    let methods = class.methods().iter();
    let natives = methods.filter(|method| method.access & NATIVE != 0);
    natives.map(|method| format!("{}{}", method.name, method.descriptor))
}

/// Whether a native method is known. Packages without a listed native belong to other modules, which have no list.
fn is_known_native(class: &str, native: &str) -> bool {
    let package_of = |class: &str| {
        class
            .rsplit_once('/')
            .map_or("", |(package, _)| package)
            .to_owned()
    };
    let package = package_of(class);
    let mut is_of_the_base = false;
    for line in NATIVES.lines() {
        let mut words = line.split(' ');
        let owner = words.next().unwrap_or_default();
        is_of_the_base |= package_of(owner) == package;
        if owner == class {
            return words.any(|word| word == native);
        }
    }
    !is_of_the_base || class == UNSAFE
}

#[cfg(test)]
mod differences_tests {
    use super::*;

    #[test]
    fn natives_are_known_by_class_name_and_descriptor() {
        let thread = "java/lang/Thread";
        assert!(is_known_native(thread, "currentThread()Ljava/lang/Thread;"));
        assert!(!is_known_native(
            thread,
            "currentThread(I)Ljava/lang/Thread;"
        ));
        assert!(!is_known_native("java/lang/New", "made()V"));
        assert!(is_known_native(
            "java/util/prefs/FileSystemPreferences",
            "chmod(Ljava/lang/String;I)I"
        ));
        assert!(is_known_native(UNSAFE, "getInt(Ljava/lang/Object;J)I"));
    }

    #[test]
    fn facts_are_those_of_a_jdk() {
        let of = |jdk| {
            let facts = facts_of_class("java/lang/ClassLoader", jdk);
            facts.map(|fact| fact.method).collect::<Vec<_>>()
        };
        assert!(of(17).contains(&"checkPackageAccess".to_owned()));
        assert!(!of(25).contains(&"checkPackageAccess".to_owned()));
        assert!(of(25).contains(&"getResourceAsByteArray".to_owned()));
        assert_eq!(
            [11, 16, 17, 20, 24, 25, 26].map(closest_tested_jdk),
            [11, 11, 17, 17, 21, 25, 25]
        );
    }
}
