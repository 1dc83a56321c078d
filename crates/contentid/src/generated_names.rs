//! Removes the parts of generated names that differ from run to run.
//!
//! Generators number their classes in the order of creation, or name them by random texts or addresses. Two runs of one
//! program then have different names for the same class. `#` replaces such a part. Two classes of one generator thereby
//! get the same name, which is the price of comparing runs.

use std::borrow::Cow;

/// The variable part behind a generator's mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GeneratedTail {
    /// `12`
    Digits,
    /// `12`, `12__14`
    Numbers,
    /// `12`, `5f2c`
    Hex,
    /// `12`, `xY7c`
    Letters,
}

use GeneratedTail::{Digits, Hex, Letters, Numbers};

impl GeneratedTail {
    fn accepts_char(self, c: char) -> bool {
        match self {
            Digits => c.is_ascii_digit(),
            Numbers => c.is_ascii_digit() || c == '_',
            Hex => c.is_ascii_hexdigit(),
            Letters => c.is_ascii_alphanumeric(),
        }
    }
}

/// Marks in class names, the variable part behind them, and the generator. The first mark that fits at a position
/// counts.
const MARKS: [(&str, GeneratedTail, &str); 29] = [
    (
        "/0x",
        Hex,
        "hidden classes of the JVM: the address of the class",
    ),
    (
        "$$Lambda$",
        Digits,
        "lambdas up to JDK 20, numbered as they are linked",
    ),
    (
        "jdk.proxy",
        Digits,
        "java.lang.reflect.Proxy from JDK 16: a package for each loader",
    ),
    (
        "$Proxy",
        Digits,
        "java.lang.reflect.Proxy, numbered as they are made",
    ),
    (
        "jdk.internal.reflect.GeneratedMethodAccessor",
        Digits,
        "reflection up to JDK 21",
    ),
    (
        "jdk.internal.reflect.GeneratedConstructorAccessor",
        Digits,
        "reflection up to JDK 21",
    ),
    (
        "jdk.internal.reflect.GeneratedSerializationConstructorAccessor",
        Digits,
        "serialization up to JDK 21",
    ),
    ("$$EnhancerBySpringCGLIB$$", Hex, "Spring up to 5"),
    ("$$FastClassBySpringCGLIB$$", Hex, "Spring up to 5"),
    ("$$SpringCGLIB$$", Digits, "Spring from 6"),
    ("$$EnhancerByCGLIB$$", Hex, "CGLIB"),
    ("$$FastClassByCGLIB$$", Hex, "CGLIB"),
    ("$$KeyFactoryByCGLIB$$", Hex, "CGLIB"),
    ("$ByteBuddy$", Letters, "Byte Buddy"),
    ("$HibernateProxy$", Letters, "Hibernate, by Byte Buddy"),
    (
        "$HibernateInstantiator$",
        Letters,
        "Hibernate, by Byte Buddy",
    ),
    (
        "$HibernateAccessOptimizer$",
        Letters,
        "Hibernate, by Byte Buddy",
    ),
    ("$HibernateBasicProxy$", Letters, "Hibernate, by Byte Buddy"),
    ("$MockitoMock$", Letters, "Mockito, by Byte Buddy"),
    ("$auxiliary$", Letters, "Byte Buddy's helpers of a class"),
    ("_$$_jvst", Letters, "Javassist's proxies"),
    ("_$$_javassist_", Digits, "Javassist's proxies"),
    (
        "$eval",
        Digits,
        "Clojure, what is evaluated at its prompt or loaded as source",
    ),
    (
        "$fn__",
        Numbers,
        "Clojure's functions, numbered as they are compiled",
    ),
    ("$iter__", Numbers, "Clojure's loops over sequences"),
    ("$reify__", Numbers, "Clojure's objects"),
    (
        "org.python.pycode._pyx",
        Digits,
        "Jython's modules, numbered as they are compiled",
    ),
    ("GregorSamsa", Digits, "XSLT's translets"),
    ("$line", Digits, "Scala's prompt"),
];

/// Marks in method names, for ids without lines: edits elsewhere in a file change these numbers.
const METHOD_MARKS: [(&str, GeneratedTail, &str); 1] =
    [("access$", Digits, "javac's accessors up to JDK 10")];

/// Returns a class name as it is hashed: `a.b.C$$EnhancerBySpringCGLIB$$1f3a` becomes
/// `a.b.C$$EnhancerBySpringCGLIB$$#`.
#[must_use]
pub fn normalize_class(name: &str) -> Cow<'_, str> {
    replace_tails(name, &MARKS)
}

/// Returns a method name as it is hashed without lines.
///
/// javac numbers the lambdas of a class in their order, so `lambda$main$3` becomes `lambda$main$#`.
#[must_use]
pub fn normalize_method(name: &str) -> Cow<'_, str> {
    let lambda = name
        .strip_prefix("lambda$")
        .and_then(|_| name.rsplit_once('$'));
    match lambda {
        Some((of, number)) if is_digits(number) && of != "lambda" => Cow::Owned(format!("{of}$#")),
        _ => replace_tails(name, &METHOD_MARKS),
    }
}

/// Returns a descriptor as it is hashed: with the classes of [`normalize_class`].
#[must_use]
pub fn normalize_descriptor(text: &str) -> Cow<'_, str> {
    if let Cow::Borrowed(_) = replace_tails(&text.replace('/', "."), &MARKS) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name_on)) = rest.split_once('L') {
        let (name, behind) = name_on.split_once(';').unwrap_or((name_on, ""));
        shown.push_str(before);
        shown.push('L');
        shown.push_str(&normalize_class(&name.replace('/', ".")).replace('.', "/"));
        if name.len() < name_on.len() {
            shown.push(';');
        }
        rest = behind;
    }
    Cow::Owned(shown + rest)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

fn replace_tails<'a>(name: &'a str, marks: &[(&str, GeneratedTail, &str)]) -> Cow<'a, str> {
    let mut shown = String::new();
    let mut copied = 0;
    let mut at = 0;
    // Many names are examined, and marks begin at few positions.
    let begins = |byte: u8| {
        marks
            .iter()
            .any(|(mark, ..)| mark.as_bytes().first() == Some(&byte))
    };
    while let Some(next) = name.bytes().skip(at).position(begins) {
        at += next;
        let rest = name.get(at..).unwrap_or_default();
        let mark_end = marks.iter().find_map(|(mark, tail, _)| {
            let behind = rest.strip_prefix(mark)?;
            let length = behind
                .find(|c| !tail.accepts_char(c))
                .unwrap_or(behind.len());
            (length > 0).then_some((mark.len(), length))
        });
        match mark_end {
            Some((mark, tail)) => {
                shown.push_str(name.get(copied..at + mark).unwrap_or_default());
                shown.push('#');
                at += mark + tail;
                copied = at;
            }
            // Marks begin with ASCII.
            None => at += 1,
        }
    }
    match copied {
        0 => Cow::Borrowed(name),
        _ => Cow::Owned(shown + name.get(copied..).unwrap_or_default()),
    }
}

#[cfg(test)]
mod generated_names_tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        let shown = [
            ("a.B$$Lambda$14/0x00007f1c2c0bd000", "a.B$$Lambda$#/0x#"),
            ("a.B$$Lambda/0x00007f1c2c0bd000", "a.B$$Lambda/0x#"),
            (
                "java.lang.invoke.LambdaForm$MH/0x0000000800c04400",
                "java.lang.invoke.LambdaForm$MH/0x#",
            ),
            ("jdk.proxy2.$Proxy31", "jdk.proxy#.$Proxy#"),
            ("com.sun.proxy.$Proxy7", "com.sun.proxy.$Proxy#"),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor12",
                "jdk.internal.reflect.GeneratedMethodAccessor#",
            ),
            (
                "a.B$$EnhancerBySpringCGLIB$$5f2c11ab",
                "a.B$$EnhancerBySpringCGLIB$$#",
            ),
            ("a.B$$SpringCGLIB$$0", "a.B$$SpringCGLIB$$#"),
            (
                "a.B$MockitoMock$1183888521$auxiliary$x7Yc12aB",
                "a.B$MockitoMock$#$auxiliary$#",
            ),
            ("user$eval1234$fn__1240", "user$eval#$fn__#"),
            ("user$f$iter__1240__1244$fn__1245", "user$f$iter__#$fn__#"),
        ];
        for (name, without) in shown {
            assert_eq!(normalize_class(name), without);
        }
    }

    #[test]
    fn names_of_a_program_stay() {
        for name in [
            "a.B$1",
            "a.Proxy12",
            "a.B$Inner2",
            "Lambda14",
            "a.B__x",
            "a.B__2",
            "a.\u{1F600}$é",
        ] {
            assert!(matches!(normalize_class(name), Cow::Borrowed(same) if same == name));
        }
    }

    #[test]
    fn lambdas_are_not_numbered_without_lines() {
        assert_eq!(normalize_method("lambda$main$3"), "lambda$main$#");
        assert_eq!(normalize_method("lambda$a$b$12"), "lambda$a$b$#");
        assert_eq!(
            normalize_method("lambda$3"),
            "lambda$3",
            "no javac makes it"
        );
        assert_eq!(normalize_method("access$100"), "access$#");
        assert_eq!(normalize_method("main"), "main");
    }

    #[test]
    fn classes_in_descriptors_are_named_alike() {
        assert_eq!(normalize_descriptor("(I[La/B;J)V"), "(I[La/B;J)V");
        assert_eq!(
            normalize_descriptor("(Ljdk/proxy2/$Proxy3;I)La/L;"),
            "(Ljdk/proxy#/$Proxy#;I)La/L;"
        );
        assert_eq!(
            normalize_descriptor("L/$Proxy1"),
            "L/$Proxy#",
            "no descriptor, and no panic"
        );
    }
}
