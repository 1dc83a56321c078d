//! Types of a recording: what each event and each constant is made of, as the JDK's own are.

use std::collections::HashMap;

use crate::run::Kind;

use super::chunk::Bytes;

/// What an event has beside time, thread and stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    /// `objectClass`, `weight`
    Allocation,
    /// `monitorClass` or `parkedClass`, `address`
    Monitor,
    /// `message`, `thrownClass`
    Thrown,
    /// `path`, `bytesRead` or `bytesWritten`
    File,
    /// `host`, `bytesRead` or `bytesWritten`
    Socket,
    /// Nothing
    Slept,
    /// `throwables` alone: it has no thread and no stack
    Throwables,
    /// `kind`, `type`, `value`
    Other,
}

/// An event's type.
#[derive(Clone, Copy)]
pub struct Shape {
    pub id: u64,
    name: &'static str,
    label: &'static str,
    /// As the JDK files it.
    category: &'static [&'static str],
    pub fields: Fields,
}

const APPLICATION: &[&str] = &["Java Application"];

const SHAPES: [Shape; 13] = [
    shape(
        101,
        "jdk.ObjectAllocationSample",
        "Object Allocation Sample",
        Fields::Allocation,
    ),
    shape(
        102,
        "jdk.JavaMonitorEnter",
        "Java Monitor Blocked",
        Fields::Monitor,
    ),
    shape(
        103,
        "jdk.JavaMonitorWait",
        "Java Monitor Wait",
        Fields::Monitor,
    ),
    shape(104, "jdk.ThreadPark", "Java Thread Park", Fields::Monitor),
    shape(
        105,
        "jdk.JavaExceptionThrow",
        "Java Exception",
        Fields::Thrown,
    ),
    shape(106, "jdk.FileRead", "File Read", Fields::File),
    shape(107, "jdk.FileWrite", "File Write", Fields::File),
    shape(108, "jdk.SocketRead", "Socket Read", Fields::Socket),
    shape(109, "jdk.SocketWrite", "Socket Write", Fields::Socket),
    Shape {
        category: &["lucce"],
        ..shape(110, "lucce.Event", "Event", Fields::Other)
    },
    // None of these two is written: a log does not say which class is an error, nor who sleeps. Views want the types.
    shape(111, "jdk.JavaErrorThrow", "Java Error", Fields::Thrown),
    shape(113, "jdk.ThreadSleep", "Java Thread Sleep", Fields::Slept),
    THROWABLES,
];

/// How many were thrown until then.
pub const THROWABLES: Shape = Shape {
    category: &["Java Application", "Statistics"],
    ..shape(
        112,
        "jdk.ExceptionStatistics",
        "Exception Statistics",
        Fields::Throwables,
    )
};

const fn shape(id: u64, name: &'static str, label: &'static str, fields: Fields) -> Shape {
    Shape {
        id,
        name,
        label,
        category: APPLICATION,
        fields,
    }
}

impl Shape {
    /// Of events that Flight Recorder has no type for: lucce's own.
    pub fn of(kind: Option<&Kind>, what: &str) -> Shape {
        let name = kind.and_then(|kind| (kind.words.jfr)(what));
        let name = name.unwrap_or("lucce.Event");
        let [first, ..] = SHAPES;
        let mut shapes = SHAPES.into_iter();
        shapes.find(|shape| shape.name == name).unwrap_or(first)
    }
}

impl Fields {
    pub fn lasts(self) -> bool {
        matches!(
            self,
            Fields::Monitor | Fields::File | Fields::Socket | Fields::Slept
        )
    }
}

/// Numbers of types that are no events.
pub mod id {
    pub const BOOLEAN: u64 = 4;
    pub const INT: u64 = 10;
    pub const LONG: u64 = 11;
    pub const STRING: u64 = 20;
    pub const CLASS: u64 = 21;
    pub const THREAD: u64 = 22;
    pub const LOADER: u64 = 23;
    pub const FRAME_TYPE: u64 = 24;
    pub const STACK: u64 = 26;
    pub const FRAME: u64 = 27;
    pub const METHOD: u64 = 28;
    pub const SYMBOL: u64 = 30;
    pub const LABEL: u64 = 200;
    pub const CATEGORY: u64 = 201;
    pub const TIMESTAMP: u64 = 202;
    pub const TIMESPAN: u64 = 203;
    pub const AMOUNT: u64 = 204;
    pub const ADDRESS: u64 = 205;
}

/// A field: name, type, and what it is written as.
type Field = (&'static str, u64, As);

#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    /// In place.
    Is,
    /// By its number in the pool of its type.
    Pooled,
    /// Many, in place.
    Many,
    /// Numbers with a meaning.
    Ticks,
    Lasting,
    Bytes,
    Hex,
}

use As::{Hex, Is, Lasting, Many, Pooled, Ticks};

/// Types that are no events: number, name, whether one field stands for the whole, fields.
const TYPES: &[(u64, &str, bool, &[Field])] = &[
    (id::BOOLEAN, "boolean", false, &[]),
    (id::INT, "int", false, &[]),
    (id::LONG, "long", false, &[]),
    (id::STRING, "java.lang.String", false, &[]),
    (
        id::CLASS,
        "java.lang.Class",
        false,
        &[
            ("classLoader", id::LOADER, Pooled),
            ("name", id::SYMBOL, Pooled),
            ("modifiers", id::INT, Is),
        ],
    ),
    (
        id::THREAD,
        "java.lang.Thread",
        false,
        &[
            ("osName", id::STRING, Is),
            ("osThreadId", id::LONG, Is),
            ("javaName", id::STRING, Is),
            ("javaThreadId", id::LONG, Is),
        ],
    ),
    (
        id::LOADER,
        "jdk.types.ClassLoader",
        false,
        &[("type", id::CLASS, Pooled), ("name", id::SYMBOL, Pooled)],
    ),
    (
        id::FRAME_TYPE,
        "jdk.types.FrameType",
        true,
        &[("description", id::STRING, Is)],
    ),
    (
        id::STACK,
        "jdk.types.StackTrace",
        false,
        &[("truncated", id::BOOLEAN, Is), ("frames", id::FRAME, Many)],
    ),
    (
        id::FRAME,
        "jdk.types.StackFrame",
        false,
        &[
            ("method", id::METHOD, Pooled),
            ("lineNumber", id::INT, Is),
            ("bytecodeIndex", id::INT, Is),
            ("type", id::FRAME_TYPE, Pooled),
        ],
    ),
    (
        id::METHOD,
        "jdk.types.Method",
        false,
        &[
            ("type", id::CLASS, Pooled),
            ("name", id::SYMBOL, Pooled),
            ("descriptor", id::SYMBOL, Pooled),
            ("modifiers", id::INT, Is),
            ("hidden", id::BOOLEAN, Is),
        ],
    ),
    (
        id::SYMBOL,
        "jdk.types.Symbol",
        true,
        &[("string", id::STRING, Is)],
    ),
];

/// Annotations: number, name, the type of `value`, whether there are many.
const ANNOTATIONS: [(u64, &str, Option<bool>); 6] = [
    (id::LABEL, "jdk.jfr.Label", Some(false)),
    (id::CATEGORY, "jdk.jfr.Category", Some(true)),
    (id::TIMESTAMP, "jdk.jfr.Timestamp", Some(false)),
    (id::TIMESPAN, "jdk.jfr.Timespan", Some(false)),
    (id::AMOUNT, "jdk.jfr.DataAmount", Some(false)),
    (id::ADDRESS, "jdk.jfr.MemoryAddress", None),
];

/// An element of the tree that the metadata is.
struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Element>,
}

impl Element {
    fn new(name: &'static str) -> Self {
        Element {
            name,
            attributes: Vec::new(),
            children: Vec::new(),
        }
    }

    fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.attributes.push((key, value.to_string()));
        self
    }

    fn holding(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        self.children.extend(children);
        self
    }
}

/// The metadata event.
pub fn write(at: u64, to: &mut Bytes) {
    let root = Element::new("root").holding([
        Element::new("metadata").holding(classes()),
        Element::new("region")
            .with("locale", "en_US")
            .with("gmtOffset", 0),
    ]);
    let mut texts = Texts::default();
    let mut tree = Bytes::default();
    texts.element(&root, &mut tree);
    let mut event = Bytes::default();
    // Its type; when; how long; a number for this set of types.
    for number in [0, at, 0, 1, texts.list.len() as u64] {
        event.number(number);
    }
    texts.list.iter().for_each(|text| event.text(text));
    event.append(&tree);
    to.sized(&event);
}

fn classes() -> Vec<Element> {
    let types = TYPES.iter().map(|(id, name, is_simple, fields)| {
        let class = Element::new("class").with("id", id).with("name", name);
        let class = if *is_simple {
            class.with("simpleType", true)
        } else {
            class
        };
        class.holding(fields.iter().map(field))
    });
    let annotations = ANNOTATIONS.iter().map(|(id, name, value)| {
        let class = Element::new("class").with("id", id).with("name", name);
        let class = class.with("superType", "java.lang.annotation.Annotation");
        class.holding(value.iter().map(|many| {
            let how = if *many { Many } else { Is };
            field(&("value", id::STRING, how))
        }))
    });
    let events = SHAPES.iter().map(|shape| {
        Element::new("class")
            .with("id", shape.id)
            .with("name", shape.name)
            .with("superType", "jdk.jfr.Event")
            .holding([
                annotation(id::LABEL).with("value", shape.label),
                category(shape),
            ])
            .holding(fields(shape.fields, shape.name).iter().map(field))
    });
    types.chain(annotations).chain(events).collect()
}

const PATH: Field = ("path", id::STRING, Is);
const HOST: Field = ("host", id::STRING, Is);
const READ: Field = ("bytesRead", id::LONG, As::Bytes);
const WRITTEN: Field = ("bytesWritten", id::LONG, As::Bytes);

fn fields(of: Fields, name: &str) -> Vec<Field> {
    let mut fields: Vec<Field> = vec![("startTime", id::LONG, Ticks)];
    if of.lasts() {
        fields.push(("duration", id::LONG, Lasting));
    }
    if of == Fields::Throwables {
        fields.push(("throwables", id::LONG, Is));
        return fields;
    }
    fields.extend([
        ("eventThread", id::THREAD, Pooled),
        ("stackTrace", id::STACK, Pooled),
    ]);
    let own: &[Field] = match of {
        Fields::Allocation => &[
            ("objectClass", id::CLASS, Pooled),
            ("weight", id::LONG, As::Bytes),
        ],
        Fields::Monitor if name == "jdk.ThreadPark" => &[
            ("parkedClass", id::CLASS, Pooled),
            ("address", id::LONG, Hex),
        ],
        Fields::Monitor => &[
            ("monitorClass", id::CLASS, Pooled),
            ("address", id::LONG, Hex),
        ],
        Fields::Thrown => &[
            ("message", id::STRING, Is),
            ("thrownClass", id::CLASS, Pooled),
        ],
        Fields::File if name == "jdk.FileRead" => &[PATH, READ],
        Fields::File => &[PATH, WRITTEN],
        Fields::Socket if name == "jdk.SocketRead" => &[HOST, READ],
        Fields::Socket => &[HOST, WRITTEN],
        Fields::Slept | Fields::Throwables => &[],
        Fields::Other => &[
            ("kind", id::STRING, Is),
            ("type", id::STRING, Is),
            ("value", id::LONG, Is),
        ],
    };
    fields.extend(own);
    fields.extend([("count", id::LONG, Is), ("context", id::LONG, Hex)]);
    fields
}

fn field((name, of, how): &Field) -> Element {
    let field = Element::new("field").with("name", name).with("class", of);
    match how {
        As::Is => field,
        As::Pooled => field.with("constantPool", true),
        As::Many => field.with("dimension", 1),
        As::Ticks => field.holding([annotation(id::TIMESTAMP).with("value", "TICKS")]),
        As::Lasting => field.holding([annotation(id::TIMESPAN).with("value", "TICKS")]),
        As::Bytes => field.holding([annotation(id::AMOUNT).with("value", "BYTES")]),
        As::Hex => field.holding([annotation(id::ADDRESS)]),
    }
}

fn annotation(of: u64) -> Element {
    Element::new("annotation").with("class", of)
}

fn category(shape: &Shape) -> Element {
    let keys = ["value-0", "value-1"];
    let named = keys.into_iter().zip(shape.category);
    named.fold(annotation(id::CATEGORY), |element, (key, name)| {
        element.with(key, name)
    })
}

/// Texts of the tree, each once.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    known: HashMap<String, u64>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        let next = self.list.len() as u64;
        let number = *self.known.entry(text.to_owned()).or_insert(next);
        if number == next {
            self.list.push(text.to_owned());
        }
        number
    }

    fn element(&mut self, element: &Element, to: &mut Bytes) {
        to.number(self.number(element.name));
        to.number(element.attributes.len() as u64);
        for (key, value) in &element.attributes {
            to.number(self.number(key));
            to.number(self.number(value));
        }
        to.number(element.children.len() as u64);
        element
            .children
            .iter()
            .for_each(|child| self.element(child, to));
    }
}
