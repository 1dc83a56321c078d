//! Names of classes and methods, and lines of sites, as the log records them.

mod id_table;
mod interner;

use std::collections::HashMap;

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_contentid::{ContentDetail, FrameId};
use lucce_tracelog::{
    ClassId, ClassRecord, ClassSource, CodeSourceId, CodeSourceRecord, LoaderId, LogRecord,
    MethodRecord, SiteKind, SiteRecord,
};

use self::id_table::{AscendingIdTable, grow_by_quarter};
use self::interner::{TextId, TextInterner};
use crate::frame::{CodeOrigin, StackFrame, marker_text};

const ACC_NATIVE: u16 = 0x0100;

/// The method of the frame that separates a task's frames from the frames of the thread that submitted it. No program has
/// this method; see the agent's `stack/tasks.rs`.
const SUBMISSION_FRAME: (&str, &str) = ("java.lang.LucceRt$Tasks", "submitted");

/// All classes, methods and sites of a log. A program may load a million classes, so an entry takes about as much memory
/// as its record takes in the log.
#[derive(Default)]
pub struct CodeSymbols {
    texts: TextInterner,
    classes: AscendingIdTable<ClassSymbol>,
    methods: AscendingIdTable<MethodSymbol>,
    sites: AscendingIdTable<SiteSymbol>,
    /// All line tables, concatenated: the first bytecode index of each entry, and its line.
    lines: Vec<(u16, u16)>,
    /// Bytes of one object, for sites with events.
    sizes: HashMap<SiteId, u64>,
    submission_method: Option<MethodId>,
    /// The locations of code sources.
    locations: HashMap<CodeSourceId, TextId>,
    /// Where classes were loaded from, if the log says it.
    class_sources: AscendingIdTable<CodeSourceId>,
}

struct ClassSymbol {
    name: TextId,
    source_file: Option<TextId>,
    /// Whether the boot loader defined it.
    is_boot: bool,
    origin: CodeOrigin,
}

/// A class of the log, for rules about its origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedClass<'c> {
    /// `a.b.C$D`
    pub name: &'c str,
    pub is_boot: bool,
    /// The URL of its code source, if the log has it.
    pub location: Option<&'c str>,
}

struct MethodSymbol {
    class: ClassId,
    name: TextId,
    descriptor: TextId,
    is_native: bool,
    /// Its part of [`CodeSymbols::lines`]: index of the first entry, and number of entries.
    lines: (u32, u32),
}

/// A place in a method.
struct SiteSymbol {
    bci: i32,
    /// [`NO_LINE`]: the line is in the method's table.
    line: i32,
    /// The [`TextId`] of the allocated type's Java name; [`NO_TYPE`]: the site does not allocate.
    allocated: u32,
}

/// No record has this line: Java's lines have 16 bits, and the marks for special lines are small.
const NO_LINE: i32 = i32::MIN;
const NO_TYPE: u32 = u32::MAX;

impl CodeSymbols {
    /// Adds a record about code; ignores other records.
    pub fn add_record(&mut self, record: LogRecord<'_>) {
        match record {
            LogRecord::Class(r) => self.add_class(r),
            LogRecord::CodeSource(r) => self.add_code_source(&r),
            LogRecord::ClassSource(r) => self.add_class_source(r),
            LogRecord::Method(r) => self.add_method(r),
            LogRecord::Site(r) => self.add_site(r),
            LogRecord::SiteSize(r) => self.add_site_size(r.site, r.bytes),
            _ => {}
        }
    }

    pub(crate) fn add_class(&mut self, class: ClassRecord<'_>) {
        let info = ClassSymbol {
            name: self.texts.intern_text(&class.name),
            source_file: class.source_file.map(|name| self.texts.intern_text(&name)),
            is_boot: class.loader == LoaderId::default(),
            origin: CodeOrigin::default(),
        };
        self.classes.insert(class.id.0, info);
    }

    pub(crate) fn add_code_source(&mut self, source: &CodeSourceRecord<'_>) {
        let location = self.texts.intern_text(&source.location);
        self.locations.insert(source.id, location);
    }

    pub(crate) fn add_class_source(&mut self, class: ClassSource) {
        self.class_sources.insert(class.class.0, class.source);
    }

    pub(crate) fn add_method(&mut self, method: MethodRecord<'_>) {
        let start = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        for line in method.lines.iter() {
            grow_by_quarter(&mut self.lines);
            self.lines.push(*line);
        }
        let info = MethodSymbol {
            class: method.class,
            name: self.texts.intern_text(&method.name),
            descriptor: self.texts.intern_text(&method.descriptor),
            is_native: method.access & ACC_NATIVE != 0,
            lines: (start, method.lines.len() as u32),
        };
        let of = self.classes.get(info.class.0);
        let class = of.map(|class| self.texts.get(class.name));
        if class.is_some_and(|class| (class, &*method.name) == SUBMISSION_FRAME) {
            self.submission_method = Some(method.id);
        }
        self.methods.insert(method.id.0, info);
    }

    pub(crate) fn add_site(&mut self, site: SiteRecord<'_>) {
        let allocated = match &site.kind {
            SiteKind::New(descriptor) | SiteKind::Array(descriptor) => {
                self.texts.intern_text(&type_name(descriptor)).to_u32()
            }
            _ => NO_TYPE,
        };
        let info = SiteSymbol {
            bci: site.bci,
            line: site.line.unwrap_or(NO_LINE),
            allocated,
        };
        self.sites.insert(site.id.0, info);
    }

    pub(crate) fn add_site_size(&mut self, site: SiteId, bytes: u64) {
        self.sizes.insert(site, bytes);
    }

    /// Whether the frame separates a task's frames from the frames of the thread that submitted it.
    #[must_use]
    pub fn is_submission_frame(&self, frame: ContextFrame) -> bool {
        self.submission_method == Some(frame.method)
    }

    /// Resolves a frame's names and line. A method that the log does not explain is named by its number.
    #[must_use]
    pub fn resolve_frame(&self, frame: ContextFrame) -> StackFrame {
        let (class, method) = self.class_and_method(frame.method);
        let line = self.resolve_line(frame);
        let text = |id| self.texts.get(id).to_owned();
        StackFrame {
            class: class.map_or_else(|| "?".to_owned(), |class| text(class.name)),
            method: method.map_or_else(|| format!("method{}", frame.method.0), |m| text(m.name)),
            file: class.and_then(|class| class.source_file).map(text),
            line,
            origin: class.map_or(CodeOrigin::default(), |class| class.origin),
        }
    }

    /// A method's qualified name: `a.b.C.m`; of a frame that no program has, what it says.
    #[must_use]
    pub fn method_name(&self, method: MethodId) -> String {
        let text = |id| self.texts.get(id);
        match self.class_and_method(method) {
            (Some(class), Some(info)) => {
                let (class, method) = (text(class.name), text(info.name));
                let marker = marker_text(class, method);
                marker.map_or_else(|| format!("{class}.{method}"), str::to_owned)
            }
            (_, Some(info)) => format!("?.{}", text(info.name)),
            (_, None) => format!("?.method{}", method.0),
        }
    }

    /// A method's descriptor, such as `(I)V`. Empty: the log does not explain the method.
    #[must_use]
    pub fn method_descriptor(&self, method: MethodId) -> &str {
        let info = self.methods.get(method.0);
        info.map_or("", |info| self.texts.get(info.descriptor))
    }

    /// The content id of a frame. `shown`: the frame as [`CodeSymbols::resolve_frame`] returns it.
    #[must_use]
    pub fn frame_id(
        &self,
        frame: ContextFrame,
        shown: &StackFrame,
        detail: ContentDetail,
    ) -> FrameId {
        shown.frame_id(self.method_descriptor(frame.method), detail)
    }

    /// All methods whose class has a name in the log, with that name.
    pub(crate) fn classes_of_methods(&self) -> impl Iterator<Item = (MethodId, &str)> {
        self.methods.iter().filter_map(|(id, info)| {
            let class = self.classes.get(info.class.0)?;
            Some((MethodId(id), self.texts.get(class.name)))
        })
    }

    /// All classes of the log.
    pub(crate) fn loaded_classes(&self) -> impl Iterator<Item = LoadedClass<'_>> {
        self.classes.iter().map(|(id, info)| {
            let source = self.class_sources.get(id);
            let location = source.and_then(|source| self.locations.get(source));
            LoadedClass {
                name: self.texts.get(info.name),
                is_boot: info.is_boot,
                location: location.map(|text| self.texts.get(*text)),
            }
        })
    }

    /// Whether the log has no location of any class.
    #[must_use]
    pub fn has_no_locations(&self) -> bool {
        self.locations.is_empty()
    }

    /// Sets the origin of each class, in the order of [`loaded_classes`](Self::loaded_classes).
    pub(crate) fn set_class_origins(&mut self, origins: &[CodeOrigin]) {
        for (class, origin) in self.classes.values_mut().zip(origins) {
            class.origin = *origin;
        }
    }

    /// Whose code a method is.
    #[must_use]
    pub fn method_origin(&self, method: MethodId) -> CodeOrigin {
        let (class, _) = self.class_and_method(method);
        class.map_or(CodeOrigin::default(), |class| class.origin)
    }

    /// A key that is equal for overloads: methods for which [`method_name`](Self::method_name) is the same.
    pub(crate) fn name_key(&self, method: MethodId) -> impl std::hash::Hash + use<> {
        match self.class_and_method(method) {
            (class, Some(info)) => (class.map(|class| class.name), Some(info.name), 0),
            (_, None) => (None, None, method.0),
        }
    }

    fn class_and_method(&self, method: MethodId) -> (Option<&ClassSymbol>, Option<&MethodSymbol>) {
        let info = self.methods.get(method.0);
        let class = info.and_then(|info| self.classes.get(info.class.0));
        (class, info)
    }

    fn resolve_line(&self, frame: ContextFrame) -> i32 {
        let site = self.sites.get(frame.site.0);
        let method = self.methods.get(frame.method.0);
        match (site, method) {
            (Some(site), _) if site.line != NO_LINE => site.line,
            (_, Some(method)) if method.is_native => StackFrame::NATIVE,
            (Some(site), Some(method)) => line_of_bci(self.method_lines(method), site.bci),
            _ => StackFrame::UNKNOWN,
        }
    }

    fn method_lines(&self, method: &MethodSymbol) -> &[(u16, u16)] {
        let start = method.lines.0 as usize;
        let end = start + method.lines.1 as usize;
        self.lines.get(start..end).unwrap_or_default()
    }

    /// The Java name of the type that `site` allocates.
    #[must_use]
    pub fn allocated_type(&self, site: SiteId) -> Option<&str> {
        let number = self.sites.get(site.0)?.allocated;
        (number != NO_TYPE).then(|| self.texts.get(TextId::from_u32(number)))
    }

    /// Bytes of one object that `site` allocates, if all have the same size.
    #[must_use]
    pub fn object_size(&self, site: SiteId) -> Option<u64> {
        self.sizes.get(&site).copied()
    }

    #[must_use]
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }

    #[must_use]
    pub fn method_count(&self) -> usize {
        self.methods.len()
    }

    #[must_use]
    pub fn site_count(&self) -> usize {
        self.sites.len()
    }
}

/// The line of the last entry at or before `bci`, by HotSpot's look-up: tables need not be sorted.
fn line_of_bci(lines: &[(u16, u16)], bci: i32) -> i32 {
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

/// Converts a descriptor to a Java type name: `[Ljava/lang/String;` is `java.lang.String[]`.
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
                // In a hidden class's name, before its number.
                '.' => '/',
                other => other,
            };
            class.unwrap_or(element).chars().map(named).collect()
        }
    };
    name + &"[]".repeat(dimensions)
}

#[cfg(test)]
mod code_tests {
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
        let at = |bci| line_of_bci(&lines, bci);
        assert_eq!([at(-1), at(0), at(3), at(4), at(7)], [-1, 10, 10, 11, 11]);
        assert_eq!(
            [at(8), at(19), at(20), at(21), at(70_000)],
            [12, 12, 9, 8, 8]
        );
        assert_eq!(line_of_bci(&[(5, 1)], 4), -1);
        assert_eq!(line_of_bci(&[], 4), -1);
    }

    #[test]
    fn what_the_log_does_not_know_has_a_name_too() {
        let frame = ContextFrame {
            site: SiteId(1),
            method: MethodId(7),
        };
        let text = CodeSymbols::default().resolve_frame(frame).to_string();
        assert_eq!(text, "?.method7(Unknown Source)");
        assert_eq!(CodeSymbols::default().method_name(MethodId(7)), "?.method7");
    }
}
