//! What sites, methods and classes are called, and which line a site is on.

use std::collections::HashMap;

use lucce_callgraph::{Frame, MethodId, SiteId};
use lucce_tracelog::{Class, ClassId, Method, Record, Site, SiteKind};

use crate::frame::StackFrame;

const ACC_NATIVE: u16 = 0x0100;

/// The method of the frame that stands between those of a task and those of the thread that submitted it. No
/// program has it: the agent's `tasks.rs` says what it means.
const SUBMITTED: (&str, &str) = ("java.lang.LucceRt$Tasks", "submitted");

/// Everything that the log says about code.
#[derive(Default)]
pub struct Code {
    classes: HashMap<ClassId, ClassInfo>,
    methods: HashMap<MethodId, MethodInfo>,
    sites: HashMap<SiteId, SiteInfo>,
    sizes: HashMap<SiteId, u64>,
    submitted: Option<MethodId>,
}

struct ClassInfo {
    name: String,
    source_file: Option<String>,
}

struct MethodInfo {
    class: ClassId,
    name: String,
    descriptor: String,
    is_native: bool,
    lines: Box<[(u16, u16)]>,
}

/// A place in a method.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteInfo {
    pub method: MethodId,
    pub bci: i32,
    line: Option<i32>,
    pub what: What,
}

/// What happens at a site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The type as Java writes it: `java.lang.String`, `int[]`.
    Allocation(String),
    Call,
    Native,
    Current,
    Other,
}

impl Code {
    /// What a record says of code; other records say nothing here.
    pub(crate) fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Class(r) => self.class(r),
            Record::Method(r) => self.method(r),
            Record::Site(r) => self.site(r),
            Record::SiteSize(r) => self.site_size(r.site, r.bytes),
            _ => {}
        }
    }

    pub(crate) fn class(&mut self, class: Class<'_>) {
        let info = ClassInfo {
            name: class.name.into_owned(),
            source_file: class.source_file.map(Into::into),
        };
        self.classes.insert(class.id, info);
    }

    pub(crate) fn method(&mut self, method: Method<'_>) {
        let info = MethodInfo {
            class: method.class,
            name: method.name.into_owned(),
            descriptor: method.descriptor.into_owned(),
            is_native: method.access & ACC_NATIVE != 0,
            lines: method.lines.into_owned().into(),
        };
        let of = self.classes.get(&info.class);
        if of.is_some_and(|class| (&*class.name, &*info.name) == SUBMITTED) {
            self.submitted = Some(method.id);
        }
        self.methods.insert(method.id, info);
    }

    pub(crate) fn site(&mut self, site: Site<'_>) {
        let info = SiteInfo {
            method: site.method,
            bci: site.bci,
            line: site.line,
            what: what(&site.what),
        };
        self.sites.insert(site.id, info);
    }

    pub(crate) fn site_size(&mut self, site: SiteId, bytes: u64) {
        self.sizes.insert(site, bytes);
    }

    /// The method whose frames [`is_between`](Self::is_between) is true of.
    #[must_use]
    pub(crate) fn between(&self) -> Option<MethodId> {
        self.submitted
    }

    /// Whether the frame stands between those of a task and those of the thread that submitted it.
    #[must_use]
    pub fn is_between(&self, frame: Frame) -> bool {
        self.submitted == Some(frame.method)
    }

    /// What a frame is called; what the log does not know is named by its number.
    #[must_use]
    pub fn frame(&self, frame: Frame) -> StackFrame {
        let (class, method) = self.names(frame.method);
        let line = self.line(frame);
        StackFrame {
            class: class.map_or_else(|| "?".to_owned(), |class| class.name.clone()),
            method: method.map_or_else(|| format!("method{}", frame.method.0), |m| m.name.clone()),
            file: class.and_then(|class| class.source_file.clone()),
            line,
        }
    }

    /// `a.b.C.m`
    #[must_use]
    pub fn method_name(&self, method: MethodId) -> String {
        match self.names(method) {
            (Some(class), Some(info)) => format!("{}.{}", class.name, info.name),
            (_, Some(info)) => format!("?.{}", info.name),
            (_, None) => format!("?.method{}", method.0),
        }
    }

    /// `(I)V`; empty: the log does not know the method.
    #[must_use]
    pub fn descriptor(&self, method: MethodId) -> &str {
        self.methods
            .get(&method)
            .map_or("", |info| &info.descriptor)
    }

    /// Every method with its class, where the log names it.
    pub(crate) fn classes_of_methods(&self) -> impl Iterator<Item = (MethodId, &str)> {
        self.methods.iter().filter_map(|(id, info)| {
            let class = self.classes.get(&info.class)?;
            Some((*id, class.name.as_str()))
        })
    }

    fn names(&self, method: MethodId) -> (Option<&ClassInfo>, Option<&MethodInfo>) {
        let info = self.methods.get(&method);
        (info.and_then(|info| self.classes.get(&info.class)), info)
    }

    /// Class, method and line of a frame; the number of a method that the log does not know.
    pub(crate) fn shown(&self, frame: Frame) -> Result<(&str, &str, i32), MethodId> {
        match self.names(frame.method) {
            (Some(class), Some(method)) => Ok((&class.name, &method.name, self.line(frame))),
            _ => Err(frame.method),
        }
    }

    fn line(&self, frame: Frame) -> i32 {
        let site = self.sites.get(&frame.site);
        let method = self.methods.get(&frame.method);
        match (site, method) {
            (
                Some(SiteInfo {
                    line: Some(line), ..
                }),
                _,
            ) => *line,
            (_, Some(method)) if method.is_native => StackFrame::NATIVE,
            (Some(site), Some(method)) => line_at(&method.lines, site.bci),
            _ => StackFrame::UNKNOWN,
        }
    }

    #[must_use]
    pub fn site_info(&self, site: SiteId) -> Option<&SiteInfo> {
        self.sites.get(&site)
    }

    /// The type that is allocated at `site`.
    #[must_use]
    pub fn allocated(&self, site: SiteId) -> Option<&str> {
        match &self.sites.get(&site)?.what {
            What::Allocation(name) => Some(name),
            _ => None,
        }
    }

    /// What one object from `site` takes, if that is always the same.
    #[must_use]
    pub fn size(&self, site: SiteId) -> Option<u64> {
        self.sizes.get(&site).copied()
    }

    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    #[must_use]
    pub fn methods(&self) -> usize {
        self.methods.len()
    }

    #[must_use]
    pub fn sites(&self) -> usize {
        self.sites.len()
    }
}

/// The line of the last entry at or before `bci`, as HotSpot looks it up: tables need not be sorted.
fn line_at(lines: &[(u16, u16)], bci: i32) -> i32 {
    let before = lines.iter().filter(|(start, _)| i32::from(*start) <= bci);
    let mut best: Option<(u16, u16)> = None;
    for &(start, line) in before {
        if i32::from(start) == bci {
            return line.into();
        }
        if best.is_none_or(|(best, _)| start >= best) {
            best = Some((start, line));
        }
    }
    best.map_or(StackFrame::UNKNOWN, |(_, line)| line.into())
}

fn what(kind: &SiteKind<'_>) -> What {
    match kind {
        SiteKind::New(descriptor) | SiteKind::Array(descriptor) => {
            What::Allocation(type_name(descriptor))
        }
        SiteKind::Call => What::Call,
        SiteKind::Native => What::Native,
        SiteKind::Current => What::Current,
        SiteKind::Other => What::Other,
    }
}

/// A descriptor as Java writes the type: `[Ljava/lang/String;` is `java.lang.String[]`.
#[must_use]
pub fn type_name(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let dimensions = descriptor.len() - element.len();
    let name = match element {
        "B" => "byte".to_owned(),
        "C" => "char".to_owned(),
        "D" => "double".to_owned(),
        "F" => "float".to_owned(),
        "I" => "int".to_owned(),
        "J" => "long".to_owned(),
        "S" => "short".to_owned(),
        "Z" => "boolean".to_owned(),
        _ => {
            let class = element.strip_prefix('L').and_then(|c| c.strip_suffix(';'));
            let named = |character| match character {
                '/' => '.',
                // Of a hidden class, before its number.
                '.' => '/',
                other => other,
            };
            class.unwrap_or(element).chars().map(named).collect()
        }
    };
    name + &"[]".repeat(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_in_java() {
        assert_eq!(type_name("Ljava/lang/String;"), "java.lang.String");
        assert_eq!(type_name("[[La/B$C;"), "a.B$C[][]");
        assert_eq!(type_name("[J"), "long[]");
        assert_eq!(type_name("a/B"), "a.B");
    }

    #[test]
    fn lines_are_looked_up_as_the_jvm_does() {
        let lines = [(0, 10), (8, 12), (4, 11), (20, 9), (20, 8)];
        let at = |bci| line_at(&lines, bci);
        assert_eq!([at(-1), at(0), at(3), at(4), at(7)], [-1, 10, 10, 11, 11]);
        assert_eq!(
            [at(8), at(19), at(20), at(21), at(70_000)],
            [12, 12, 9, 8, 8]
        );
        assert_eq!(line_at(&[(5, 1)], 4), -1);
        assert_eq!(line_at(&[], 4), -1);
    }

    #[test]
    fn what_the_log_does_not_know_has_a_name_too() {
        let frame = Frame {
            site: SiteId(1),
            method: MethodId(7),
        };
        let text = Code::default().frame(frame).to_string();
        assert_eq!(text, "?.method7(Unknown Source)");
        assert_eq!(Code::default().method_name(MethodId(7)), "?.method7");
    }
}
