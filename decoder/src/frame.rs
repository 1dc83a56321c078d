//! A resolved frame, with the fields of `java.lang.StackTraceElement`.

use std::fmt;
use std::hash::{Hash, Hasher};

use lucce_contentid::{ContentDetail, FrameId, FrameText};
pub use lucce_filter::is_jdk_name;
use serde::{Serialize, Serializer};

use crate::escape::EscapedText;

/// Whose code a class is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CodeOrigin {
    /// The program's own.
    Application,
    /// A library of the program.
    #[default]
    Library,
    /// The JDK, or code that it generates.
    Jdk,
}

impl CodeOrigin {
    /// The origin of a class that is not the program's own, by its name alone.
    #[must_use]
    pub fn from_foreign_name(class: &str) -> CodeOrigin {
        match is_jdk_name(class) {
            true => CodeOrigin::Jdk,
            false => CodeOrigin::Library,
        }
    }
}

/// Frames are equal if all but the origin is: a class may be the program's own in one run, and a library's in another.
#[derive(Clone, Debug, Serialize)]
pub struct StackFrame {
    /// `a.b.C$D`
    pub class: String,
    pub method: String,
    pub file: Option<String>,
    /// The line; [`NATIVE`](Self::NATIVE) and [`UNKNOWN`](Self::UNKNOWN) have Java's values.
    pub line: i32,
    /// In JSON: `"own": true` of the program's own code.
    #[serde(
        rename = "own",
        skip_serializing_if = "is_not_own",
        serialize_with = "serialize_own"
    )]
    pub origin: CodeOrigin,
}

fn is_not_own(origin: &CodeOrigin) -> bool {
    *origin != CodeOrigin::Application
}

fn serialize_own<S: Serializer>(origin: &CodeOrigin, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(!is_not_own(origin))
}

impl PartialEq for StackFrame {
    fn eq(&self, other: &StackFrame) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for StackFrame {}

impl Hash for StackFrame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl StackFrame {
    pub const UNKNOWN: i32 = -1;
    pub const NATIVE: i32 = -2;

    /// What tells frames apart.
    fn identity(&self) -> (&str, &str, Option<&str>, i32) {
        (&self.class, &self.method, self.file.as_deref(), self.line)
    }

    /// Whether it is the program's own code.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.origin == CodeOrigin::Application
    }

    /// The frame's content id. `descriptor`: the method's descriptor.
    #[must_use]
    pub fn frame_id(&self, descriptor: &str, detail: ContentDetail) -> FrameId {
        let text = FrameText {
            class: &self.class,
            method: &self.method,
            descriptor,
            line: self.line,
        };
        FrameId::from_frame(text, detail)
    }

    /// What a frame says that no program has: it stands between a frame and callers that are not on the stack.
    #[must_use]
    pub fn marker_text(&self) -> Option<&'static str> {
        marker_text(&self.class, &self.method)
    }

    /// Whether it is code of the JDK.
    #[must_use]
    pub fn is_jdk_frame(&self) -> bool {
        self.origin == CodeOrigin::Jdk
    }

    /// The innermost frame of own code; without one, the innermost that is not the JDK's; without one, the innermost.
    pub fn innermost_application_frame<'f>(
        innermost_first: impl IntoIterator<Item = &'f StackFrame>,
    ) -> Option<&'f StackFrame> {
        let (mut first, mut library) = (None, None);
        for frame in innermost_first {
            first = first.or(Some(frame));
            match frame.origin {
                _ if frame.is_lucce_frame() => {}
                CodeOrigin::Application => return Some(frame),
                CodeOrigin::Library => library = library.or(Some(frame)),
                CodeOrigin::Jdk => {}
            }
        }
        library.or(first)
    }

    /// Whether it belongs to lucce's Java API for tags, which programs call.
    fn is_lucce_frame(&self) -> bool {
        const CALLED: [&str; 2] = ["io.lucce.CallContext", "io.lucce.Allocations"];
        let outer = self.class.split('$').next().unwrap_or_default();
        CALLED.contains(&outer)
    }

    /// The qualified method name `a.b.C.m`, not escaped for output.
    #[must_use]
    pub fn qualified_method(&self) -> String {
        format!("{}.{}", self.class, self.method)
    }
}

/// [`StackFrame::marker_text`] of a frame by its names.
pub(crate) fn marker_text(class: &str, method: &str) -> Option<&'static str> {
    match (class, method) {
        ("java.lang.LucceRt$Tasks", "assembled") => Some("(assembled at)"),
        ("java.lang.LucceRt$Tasks", "unknownCaller") => Some("(caller not known)"),
        ("java.lang.LucceRt$Tasks", "threadCaller") => {
            Some("(caller not known, frames of the thread follow)")
        }
        _ => None,
    }
}

/// Prints the frame like the JVM, so that IDEs link it: `a.b.C.m(C.java:12)`. Names are escaped.
impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.marker_text() {
            return f.write_str(text);
        }
        write!(
            f,
            "{}.{}(",
            EscapedText(&self.class),
            EscapedText(&self.method)
        )?;
        match (&self.file, self.line) {
            (_, Self::NATIVE) => f.write_str("Native Method)"),
            (Some(file), 0..) => write!(f, "{}:{})", EscapedText(file), self.line),
            (Some(file), _) => write!(f, "{})", EscapedText(file)),
            (None, _) => f.write_str("Unknown Source)"),
        }
    }
}

#[cfg(test)]
mod frame_tests {
    use super::*;

    fn text(file: Option<&str>, line: i32) -> String {
        let (class, method) = ("a.b.C".into(), "<init>".into());
        let file = file.map(str::to_owned);
        StackFrame {
            class,
            method,
            file,
            line,
            origin: CodeOrigin::default(),
        }
        .to_string()
    }

    #[test]
    fn a_frame_between_others_says_why_it_is_there() {
        let frame = |class: &str, method: &str| StackFrame {
            class: class.into(),
            method: method.into(),
            file: None,
            line: -1,
            origin: CodeOrigin::Jdk,
        };
        let between = "java.lang.LucceRt$Tasks";
        assert_eq!(frame(between, "assembled").to_string(), "(assembled at)");
        assert_eq!(
            frame(between, "unknownCaller").to_string(),
            "(caller not known)"
        );
        assert_eq!(
            frame(between, "threadCaller").to_string(),
            "(caller not known, frames of the thread follow)"
        );
        assert_eq!(frame("a.B", "assembled").marker_text(), None);
    }

    #[test]
    fn own_code_comes_before_libraries_and_the_jdk() {
        let frame = |class: &&str| StackFrame {
            class: (*class).into(),
            method: "m".into(),
            file: None,
            line: 1,
            origin: match class.starts_with("own.") {
                true => CodeOrigin::Application,
                false => CodeOrigin::from_foreign_name(class),
            },
        };
        let of = |classes: &[&str]| {
            let frames: Vec<_> = classes.iter().map(frame).collect();
            StackFrame::innermost_application_frame(&frames).map(|frame| frame.class.clone())
        };
        assert_eq!(
            of(&["java.util.List", "a.B", "own.C", "own.D"]).unwrap(),
            "own.C"
        );
        assert_eq!(of(&["java.util.List", "a.B", "a.C"]).unwrap(), "a.B");
        assert_eq!(of(&["own.B", "java.util.List"]).unwrap(), "own.B");
        assert_eq!(
            of(&["java.util.List", "java.lang.Thread"]).unwrap(),
            "java.util.List"
        );
        let tagged = ["java.util.List", "io.lucce.CallContext$Scope", "own.B"];
        assert_eq!(of(&tagged).unwrap(), "own.B");
        assert_eq!(of(&["javaland.Fiddle"]).unwrap(), "javaland.Fiddle");
        assert_eq!(of(&[]), None);
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
