//! A frame as `java.lang.StackTraceElement` has it.

use std::fmt;

use serde::Serialize;

use crate::escape::Text;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct StackFrame {
    /// `a.b.C$D`
    pub class: String,
    pub method: String,
    pub file: Option<String>,
    /// [`NATIVE`](Self::NATIVE) and [`UNKNOWN`](Self::UNKNOWN) as in Java.
    pub line: i32,
}

impl StackFrame {
    pub const UNKNOWN: i32 = -1;
    pub const NATIVE: i32 = -2;

    /// Whether the JDK has packages of this name; the class may be the program's own all the same.
    #[must_use]
    pub fn is_of_the_jdk(&self) -> bool {
        let of_the_jdk = ["java.", "javax.", "jdk.", "sun.", "com.sun."];
        of_the_jdk.iter().any(|name| self.class.starts_with(name))
    }

    /// `a.b.C.m`, as it is, not for output.
    #[must_use]
    pub fn called(&self) -> String {
        format!("{}.{}", self.class, self.method)
    }
}

/// As the JVM prints it, so that IDEs link it: `a.b.C.m(C.java:12)`; names are escaped.
impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}(", Text(&self.class), Text(&self.method))?;
        match (&self.file, self.line) {
            (_, Self::NATIVE) => f.write_str("Native Method)"),
            (Some(file), 0..) => write!(f, "{}:{})", Text(file), self.line),
            (Some(file), _) => write!(f, "{})", Text(file)),
            (None, _) => f.write_str("Unknown Source)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(file: Option<&str>, line: i32) -> String {
        let (class, method) = ("a.b.C".into(), "<init>".into());
        let file = file.map(str::to_owned);
        StackFrame {
            class,
            method,
            file,
            line,
        }
        .to_string()
    }

    #[test]
    fn printed_as_java_prints_it() {
        assert_eq!(text(Some("C.java"), 12), "a.b.C.<init>(C.java:12)");
        assert_eq!(text(Some("C.java"), -1), "a.b.C.<init>(C.java)");
        assert_eq!(text(Some("C.java"), -2), "a.b.C.<init>(Native Method)");
        assert_eq!(text(None, 12), "a.b.C.<init>(Unknown Source)");
        assert_eq!(text(None, -2), "a.b.C.<init>(Native Method)");
    }
}
