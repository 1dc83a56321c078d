//! The types of a recording: the fields of each event and each constant, as in the JDK.

use std::collections::HashMap;

use crate::run::ExportEventKind;

use super::chunk::JfrBuffer;

/// The fields of an event beyond time, thread and stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum JfrEventFields {
    /// `objectClass`, `weight`
    Allocation,
    /// `monitorClass` or `parkedClass`, `address`
    Monitor,
    /// `message`, `thrownClass`
    Exception,
    /// `path`, `bytesRead` or `bytesWritten`
    File,
    /// `host`, `bytesRead` or `bytesWritten`
    Socket,
    /// No fields.
    Sleep,
    /// Only `throwables`; no thread and no stack.
    ExceptionStatistics,
    /// `kind`, `type`, `value`
    Other,
}

/// An event's type.
#[derive(Clone, Copy)]
pub struct JfrEventType {
    pub id: u64,
    name: &'static str,
    label: &'static str,
    /// The JDK's category.
    category: &'static [&'static str],
    pub fields: JfrEventFields,
}

const APPLICATION: &[&str] = &["Java Application"];

const EVENT_TYPES: [JfrEventType; 13] = [
    event_type(
        101,
        "jdk.ObjectAllocationSample",
        "Object Allocation Sample",
        JfrEventFields::Allocation,
    ),
    event_type(
        102,
        "jdk.JavaMonitorEnter",
        "Java Monitor Blocked",
        JfrEventFields::Monitor,
    ),
    event_type(
        103,
        "jdk.JavaMonitorWait",
        "Java Monitor Wait",
        JfrEventFields::Monitor,
    ),
    event_type(
        104,
        "jdk.ThreadPark",
        "Java Thread Park",
        JfrEventFields::Monitor,
    ),
    event_type(
        105,
        "jdk.JavaExceptionThrow",
        "Java Exception",
        JfrEventFields::Exception,
    ),
    event_type(106, "jdk.FileRead", "File Read", JfrEventFields::File),
    event_type(107, "jdk.FileWrite", "File Write", JfrEventFields::File),
    event_type(108, "jdk.SocketRead", "Socket Read", JfrEventFields::Socket),
    event_type(
        109,
        "jdk.SocketWrite",
        "Socket Write",
        JfrEventFields::Socket,
    ),
    JfrEventType {
        category: &["lucce"],
        ..event_type(110, "lucce.Event", "Event", JfrEventFields::Other)
    },
    // These two are never written: a log does not say which class is an error, nor which thread sleeps. Views require
    // the types.
    event_type(
        111,
        "jdk.JavaErrorThrow",
        "Java Error",
        JfrEventFields::Exception,
    ),
    event_type(
        113,
        "jdk.ThreadSleep",
        "Java Thread Sleep",
        JfrEventFields::Sleep,
    ),
    EXCEPTION_STATISTICS,
];

/// The number of exceptions thrown until then.
pub const EXCEPTION_STATISTICS: JfrEventType = JfrEventType {
    category: &["Java Application", "Statistics"],
    ..event_type(
        112,
        "jdk.ExceptionStatistics",
        "Exception Statistics",
        JfrEventFields::ExceptionStatistics,
    )
};

const fn event_type(
    id: u64,
    name: &'static str,
    label: &'static str,
    fields: JfrEventFields,
) -> JfrEventType {
    JfrEventType {
        id,
        name,
        label,
        category: APPLICATION,
        fields,
    }
}

impl JfrEventType {
    /// Returns the type of an event; lucce's own type if Flight Recorder has none for it.
    pub fn for_kind(kind: Option<&ExportEventKind>, what: &str) -> JfrEventType {
        let name = kind.and_then(|kind| (kind.tool_names.jfr)(what));
        let name = name.unwrap_or("lucce.Event");
        let [first, ..] = EVENT_TYPES;
        let mut event_types = EVENT_TYPES.into_iter();
        event_types
            .find(|event_type| event_type.name == name)
            .unwrap_or(first)
    }
}

impl JfrEventFields {
    pub fn has_duration(self) -> bool {
        matches!(
            self,
            JfrEventFields::Monitor
                | JfrEventFields::File
                | JfrEventFields::Socket
                | JfrEventFields::Sleep
        )
    }
}

/// Ids of types that are no events.
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

#[derive(Clone, Copy)]
struct MetadataField {
    name: &'static str,
    type_id: u64,
    encoding: FieldEncoding,
}

const fn field(name: &'static str, type_id: u64, encoding: FieldEncoding) -> MetadataField {
    MetadataField {
        name,
        type_id,
        encoding,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldEncoding {
    /// In place.
    Inline,
    /// By its index in the pool of its type.
    ConstantPool,
    /// An array in place.
    Array,
    /// Numbers with a unit.
    Ticks,
    Duration,
    Bytes,
    Address,
}

use FieldEncoding::{Address, Array, ConstantPool, Duration, Inline, Ticks};

/// Types that are no events: id, name, whether a single field represents it, fields.
const TYPES: &[(u64, &str, bool, &[MetadataField])] = &[
    (id::BOOLEAN, "boolean", false, &[]),
    (id::INT, "int", false, &[]),
    (id::LONG, "long", false, &[]),
    (id::STRING, "java.lang.String", false, &[]),
    (
        id::CLASS,
        "java.lang.Class",
        false,
        &[
            field("classLoader", id::LOADER, ConstantPool),
            field("name", id::SYMBOL, ConstantPool),
            field("modifiers", id::INT, Inline),
        ],
    ),
    (
        id::THREAD,
        "java.lang.Thread",
        false,
        &[
            field("osName", id::STRING, Inline),
            field("osThreadId", id::LONG, Inline),
            field("javaName", id::STRING, Inline),
            field("javaThreadId", id::LONG, Inline),
        ],
    ),
    (
        id::LOADER,
        "jdk.types.ClassLoader",
        false,
        &[
            field("type", id::CLASS, ConstantPool),
            field("name", id::SYMBOL, ConstantPool),
        ],
    ),
    (
        id::FRAME_TYPE,
        "jdk.types.FrameType",
        true,
        &[field("description", id::STRING, Inline)],
    ),
    (
        id::STACK,
        "jdk.types.StackTrace",
        false,
        &[
            field("truncated", id::BOOLEAN, Inline),
            field("frames", id::FRAME, Array),
        ],
    ),
    (
        id::FRAME,
        "jdk.types.StackFrame",
        false,
        &[
            field("method", id::METHOD, ConstantPool),
            field("lineNumber", id::INT, Inline),
            field("bytecodeIndex", id::INT, Inline),
            field("type", id::FRAME_TYPE, ConstantPool),
        ],
    ),
    (
        id::METHOD,
        "jdk.types.Method",
        false,
        &[
            field("type", id::CLASS, ConstantPool),
            field("name", id::SYMBOL, ConstantPool),
            field("descriptor", id::SYMBOL, ConstantPool),
            field("modifiers", id::INT, Inline),
            field("hidden", id::BOOLEAN, Inline),
        ],
    ),
    (
        id::SYMBOL,
        "jdk.types.Symbol",
        true,
        &[field("string", id::STRING, Inline)],
    ),
];

/// Annotations: id, name, type of `value`, whether it is an array.
const ANNOTATIONS: [(u64, &str, Option<bool>); 6] = [
    (id::LABEL, "jdk.jfr.Label", Some(false)),
    (id::CATEGORY, "jdk.jfr.Category", Some(true)),
    (id::TIMESTAMP, "jdk.jfr.Timestamp", Some(false)),
    (id::TIMESPAN, "jdk.jfr.Timespan", Some(false)),
    (id::AMOUNT, "jdk.jfr.DataAmount", Some(false)),
    (id::ADDRESS, "jdk.jfr.MemoryAddress", None),
];

/// An element of the metadata tree.
struct MetadataElement {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<MetadataElement>,
}

impl MetadataElement {
    fn new(name: &'static str) -> Self {
        MetadataElement {
            name,
            attributes: Vec::new(),
            children: Vec::new(),
        }
    }

    fn with_attribute(mut self, key: &'static str, value: impl ToString) -> Self {
        self.attributes.push((key, value.to_string()));
        self
    }

    fn with_children(mut self, children: impl IntoIterator<Item = MetadataElement>) -> Self {
        self.children.extend(children);
        self
    }
}

/// Writes the metadata event.
pub fn write_metadata(at: u64, to: &mut JfrBuffer) {
    let root = MetadataElement::new("root").with_children([
        MetadataElement::new("metadata").with_children(class_elements()),
        MetadataElement::new("region")
            .with_attribute("locale", "en_US")
            .with_attribute("gmtOffset", 0),
    ]);
    let mut texts = MetadataStrings::default();
    let mut tree = JfrBuffer::default();
    texts.write_element(&root, &mut tree);
    let mut event = JfrBuffer::default();
    // Its type; its time; its duration; the id of this set of types.
    for number in [0, at, 0, 1, texts.list.len() as u64] {
        event.push_number(number);
    }
    texts.list.iter().for_each(|text| event.push_text(text));
    event.push_buffer(&tree);
    to.push_sized(&event);
}

fn class_elements() -> Vec<MetadataElement> {
    let types = TYPES.iter().map(|(id, name, is_simple, fields)| {
        let class = MetadataElement::new("class")
            .with_attribute("id", id)
            .with_attribute("name", name);
        let class = if *is_simple {
            class.with_attribute("simpleType", true)
        } else {
            class
        };
        class.with_children(fields.iter().map(field_element))
    });
    let annotations = ANNOTATIONS.iter().map(|(id, name, value)| {
        let class = MetadataElement::new("class")
            .with_attribute("id", id)
            .with_attribute("name", name);
        let class = class.with_attribute("superType", "java.lang.annotation.Annotation");
        class.with_children(value.iter().map(|many| {
            let how = if *many { Array } else { Inline };
            field_element(&field("value", id::STRING, how))
        }))
    });
    let events = EVENT_TYPES.iter().map(|event_type| {
        MetadataElement::new("class")
            .with_attribute("id", event_type.id)
            .with_attribute("name", event_type.name)
            .with_attribute("superType", "jdk.jfr.Event")
            .with_children([
                annotation_element(id::LABEL).with_attribute("value", event_type.label),
                category_element(event_type),
            ])
            .with_children(
                event_fields(event_type.fields, event_type.name)
                    .iter()
                    .map(field_element),
            )
    });
    types.chain(annotations).chain(events).collect()
}

const PATH: MetadataField = field("path", id::STRING, Inline);
const HOST: MetadataField = field("host", id::STRING, Inline);
const READ: MetadataField = field("bytesRead", id::LONG, FieldEncoding::Bytes);
const WRITTEN: MetadataField = field("bytesWritten", id::LONG, FieldEncoding::Bytes);

fn event_fields(of: JfrEventFields, name: &str) -> Vec<MetadataField> {
    let mut fields: Vec<MetadataField> = vec![field("startTime", id::LONG, Ticks)];
    if of.has_duration() {
        fields.push(field("duration", id::LONG, Duration));
    }
    if of == JfrEventFields::ExceptionStatistics {
        fields.push(field("throwables", id::LONG, Inline));
        return fields;
    }
    fields.extend([
        field("eventThread", id::THREAD, ConstantPool),
        field("stackTrace", id::STACK, ConstantPool),
    ]);
    let own: &[MetadataField] = match of {
        JfrEventFields::Allocation => &[
            field("objectClass", id::CLASS, ConstantPool),
            field("weight", id::LONG, FieldEncoding::Bytes),
        ],
        JfrEventFields::Monitor if name == "jdk.ThreadPark" => &[
            field("parkedClass", id::CLASS, ConstantPool),
            field("address", id::LONG, Address),
        ],
        JfrEventFields::Monitor => &[
            field("monitorClass", id::CLASS, ConstantPool),
            field("address", id::LONG, Address),
        ],
        JfrEventFields::Exception => &[
            field("message", id::STRING, Inline),
            field("thrownClass", id::CLASS, ConstantPool),
        ],
        JfrEventFields::File if name == "jdk.FileRead" => &[PATH, READ],
        JfrEventFields::File => &[PATH, WRITTEN],
        JfrEventFields::Socket if name == "jdk.SocketRead" => &[HOST, READ],
        JfrEventFields::Socket => &[HOST, WRITTEN],
        JfrEventFields::Sleep | JfrEventFields::ExceptionStatistics => &[],
        JfrEventFields::Other => &[
            field("kind", id::STRING, Inline),
            field("type", id::STRING, Inline),
            field("value", id::LONG, Inline),
        ],
    };
    fields.extend(own);
    fields.extend([
        field("count", id::LONG, Inline),
        field("context", id::LONG, Address),
    ]);
    fields
}

fn field_element(field: &MetadataField) -> MetadataElement {
    let element = MetadataElement::new("field")
        .with_attribute("name", field.name)
        .with_attribute("class", field.type_id);
    match field.encoding {
        FieldEncoding::Inline => element,
        FieldEncoding::ConstantPool => element.with_attribute("constantPool", true),
        FieldEncoding::Array => element.with_attribute("dimension", 1),
        FieldEncoding::Ticks => element
            .with_children([annotation_element(id::TIMESTAMP).with_attribute("value", "TICKS")]),
        FieldEncoding::Duration => element
            .with_children([annotation_element(id::TIMESPAN).with_attribute("value", "TICKS")]),
        FieldEncoding::Bytes => {
            element.with_children([annotation_element(id::AMOUNT).with_attribute("value", "BYTES")])
        }
        FieldEncoding::Address => element.with_children([annotation_element(id::ADDRESS)]),
    }
}

fn annotation_element(of: u64) -> MetadataElement {
    MetadataElement::new("annotation").with_attribute("class", of)
}

fn category_element(event_type: &JfrEventType) -> MetadataElement {
    let keys = ["value-0", "value-1"];
    let named = keys.into_iter().zip(event_type.category);
    named.fold(annotation_element(id::CATEGORY), |element, (key, name)| {
        element.with_attribute(key, name)
    })
}

/// The texts of the tree, each once.
#[derive(Default)]
struct MetadataStrings {
    list: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl MetadataStrings {
    fn intern_text(&mut self, text: &str) -> u64 {
        let next = self.list.len() as u64;
        let number = *self.numbers.entry(text.to_owned()).or_insert(next);
        if number == next {
            self.list.push(text.to_owned());
        }
        number
    }

    fn write_element(&mut self, element: &MetadataElement, to: &mut JfrBuffer) {
        to.push_number(self.intern_text(element.name));
        to.push_number(element.attributes.len() as u64);
        for (key, value) in &element.attributes {
            to.push_number(self.intern_text(key));
            to.push_number(self.intern_text(value));
        }
        to.push_number(element.children.len() as u64);
        element
            .children
            .iter()
            .for_each(|child| self.write_element(child, to));
    }
}
