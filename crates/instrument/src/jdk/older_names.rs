//! Names that JDK 11 has in place of those of later JDKs.
//!
//! The helper classes are compiled against a later JDK. Origin: the classes of JDK 11, and the names that its
//! `libjvm.so` has for annotations.

/// The annotation of methods that the VM omits from stack traces, in JDK 11.
pub const HIDDEN: &str = "Ljava/lang/invoke/LambdaForm$Hidden;";

/// A later name, and that of JDK 11. A name may be the beginning of others, which differ in the same way.
const NAMES_OF_11: [(&str, &str); 3] = [
    (
        "jdk/internal/vm/annotation/Hidden",
        "java/lang/invoke/LambdaForm$Hidden",
    ),
    (
        "jdk/internal/access/JavaLangAccess",
        "jdk/internal/misc/JavaLangAccess",
    ),
    // Methods of Unsafe.
    ("getReference", "getObject"),
];

/// Returns what helper classes must be renamed to in this JDK: later name and own name. `release`: the JDK's feature
/// version, such as 11.
#[must_use]
pub fn older_names(release: u32) -> &'static [(&'static str, &'static str)] {
    match release {
        ..=11 => &NAMES_OF_11,
        _ => &[],
    }
}

#[cfg(test)]
mod older_names_tests {
    use super::*;

    #[test]
    fn only_jdk_11_has_other_names() {
        assert!(older_names(17).is_empty() && older_names(25).is_empty());
        let hidden = older_names(11)
            .iter()
            .find(|(later, _)| crate::jdk::roles::HIDDEN.contains(later));
        let own = hidden.map(|(_, own)| format!("L{own};"));
        assert_eq!(own.as_deref(), Some(HIDDEN));
    }
}
