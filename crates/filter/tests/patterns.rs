//! The pattern language against a plain definition of it.

use lucce_filter::{ClassFilter, MethodPattern, PatternList};
use proptest::prelude::*;

fn matches(patterns: &str, class: &str) -> bool {
    PatternList::parse(patterns).unwrap().matches_class(class)
}

#[test]
fn a_package_with_a_star_means_all_below() {
    for class in ["org.h2.Driver", "org/h2/mvstore/MVMap", "org.h2.a.B$C"] {
        assert!(matches("org.h2.*", class), "{class}");
    }
    for class in ["org.h2", "org.h2x.Driver", "com.org.h2.Driver"] {
        assert!(!matches("org.h2.*", class), "{class}");
    }
}

#[test]
fn a_class_is_meant_with_its_nested_ones() {
    assert!(matches("com.acme.Foo", "com/acme/Foo"));
    assert!(matches("com.acme.Foo", "com.acme.Foo$1$Inner"));
    assert!(!matches("com.acme.Foo", "com.acme.FooBar"));
    assert!(!matches("com.acme.Foo", "com.acme.Foo.Bar"));
    assert!(!matches("com.acme", "com.acme.Foo"));
}

#[test]
fn stars_stand_anywhere() {
    assert!(matches("*.internal.*", "a.b.internal.C"));
    assert!(!matches("*.internal.*", "internal.C"));
    assert!(matches("*Test", "a.b.MyTest"));
    assert!(!matches("*Test", "a.b.MyTest$1"));
    assert!(matches("a*b*b", "a.b.b"));
    assert!(!matches("a*b*b", "a.b"));
    assert!(matches("*", "anything"));
    assert!(matches("a**c", "a.b.c"));
}

#[test]
fn lists_are_joined_by_plus_and_exclusion_wins() {
    let filter = ClassFilter {
        include: PatternList::parse("org.h2.*+com.acme.Foo").unwrap(),
        exclude: PatternList::parse("org.h2.value.*").unwrap(),
    };
    assert!(filter.admits_class("org/h2/Driver"));
    assert!(filter.admits_class("com.acme.Foo$Bar"));
    assert!(!filter.admits_class("org/h2/value/Value"));
    assert!(!filter.admits_class("java/lang/String"));
    assert!(ClassFilter::default().admits_class("java/lang/String"));
    assert!(ClassFilter::default().is_open() && !filter.is_open());
}

#[test]
fn malformed_patterns_are_refused_by_name() {
    for (bad, why) in [
        ("", "is empty"),
        ("a.B+", "is empty"),
        ("org/h2/*", "dots, not slashes"),
        ("org.h2.", "org.h2.*"),
        (".a", "is empty"),
        ("a..b", "is empty"),
        ("a.B.m()", "not methods"),
        ("a.B#m", "not methods"),
        ("a.?", "only wildcard"),
        ("a b", "no class name"),
        ("a\nb", "no class name"),
        ("[a.B", "only wildcard"),
    ] {
        let message = PatternList::parse(bad).unwrap_err().to_string();
        assert!(message.contains(why), "{bad}: {message}");
    }
    let message = PatternList::parse("a.B+c/D").unwrap_err().to_string();
    assert!(message.contains("'c/D'"), "{message}");
}

#[test]
fn a_method_is_named_behind_its_class() {
    let matches = |pattern: &str, class: &str, method: &str| {
        let pattern = MethodPattern::parse(pattern).unwrap();
        assert_eq!(
            MethodPattern::parse(&pattern.to_string()).as_ref(),
            Ok(&pattern)
        );
        pattern.matches_method(class, method)
    };
    assert!(matches("java.lang.System.gc", "java/lang/System", "gc"));
    assert!(!matches("java.lang.System.gc", "java/lang/System", "gc$1"));
    assert!(!matches("java.lang.System.gc", "java/lang/Systems", "gc"));
    assert!(matches("com.acme.Repo.*", "com.acme.Repo", "find"));
    assert!(matches("com.acme.Repo.*", "com.acme.Repo$Page", "<init>"));
    assert!(!matches("com.acme.Repo.*", "com.acme.Repo.Other", "find"));
    assert!(matches("com.acme.*.find*", "com/acme/a/B", "findAll"));
    assert!(!matches("com.acme.*.find", "com/acme/a/B", "findAll"));
    assert!(matches("Main.<init>", "Main", "<init>"));
    assert!(!matches("Main.<init>", "Main", "<clinit>"));
    assert!(matches("*.*", "a.B", "c"));
    for (bad, why) in [
        ("find", "CLASS.METHOD"),
        ("", "CLASS.METHOD"),
        ("a.B.", "no method has such a name"),
        ("a.B.m()", "no method has such a name"),
        ("a.B.<init", "no method has such a name"),
        ("a.B.<x>", "no method has such a name"),
        ("a/B.m", "dots, not slashes"),
        (".m", "is empty"),
    ] {
        let message = MethodPattern::parse(bad).unwrap_err().to_string();
        assert!(message.contains(why), "{bad}: {message}");
    }
}

/// The definition, character by character.
fn plain(pattern: &[u8], class: &[u8]) -> bool {
    match (pattern, class) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=class.len()).any(|at| plain(rest, &class[at..])),
        ([p, pattern @ ..], [c, class @ ..]) => {
            (p == c || (*p, *c) == (b'.', b'/')) && plain(pattern, class)
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn as_defined(pattern in "[ab$.*]{1,8}", class in "[ab$./]{0,12}") {
        if let Ok(patterns) = PatternList::parse(&pattern) {
            let nested = class.match_indices('$').map(|(at, _)| &class[..at]);
            let heads = nested.filter(|_| !pattern.contains('*')).chain([&*class]);
            let expected = heads.into_iter().any(|head| plain(pattern.as_bytes(), head.as_bytes()));
            prop_assert_eq!(patterns.matches_class(&class), expected);
        }
    }

    #[test]
    fn any_name_can_be_matched(pattern in any::<String>(), class in any::<String>()) {
        if let Ok(patterns) = PatternList::parse(&pattern) {
            let _ = patterns.matches_class(&class);
        }
    }
}
