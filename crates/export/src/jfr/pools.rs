//! Constants to which a chunk's events refer by index: threads, stacks, methods, classes, names. 0 is none.

use std::collections::HashMap;

use crate::proto::InternTable;
use crate::run::{ExportFrame, ExportRun};

use super::chunk::JfrBuffer;
use super::metadata::id;

/// Frame types of methods with code and of native methods.
const JAVA: (u64, &str) = (1, "JIT compiled");
const NATIVE: (u64, &str) = (2, "Native");

#[derive(Default)]
pub struct JfrConstantPools {
    threads: JfrConstantPool<u32>,
    stacks: JfrConstantPool<u32>,
    methods: JfrConstantPool<(u64, u64, u64)>,
    classes: JfrConstantPool<String>,
    symbols: JfrConstantPool<String>,
    /// Indexed by frame: its method and line.
    frames: HashMap<u32, JfrFrame>,
    thread_bytes: JfrBuffer,
    stack_bytes: JfrBuffer,
    method_bytes: JfrBuffer,
    class_bytes: JfrBuffer,
    symbol_bytes: JfrBuffer,
}

#[derive(Clone, Copy)]
struct JfrFrame {
    method: u64,
    line: u64,
    kind: u64,
}

struct JfrConstantPool<K>(InternTable<K>);

impl<K: std::hash::Hash + Eq> Default for JfrConstantPool<K> {
    fn default() -> Self {
        JfrConstantPool(InternTable::with_first_number(1))
    }
}

impl JfrConstantPools {
    /// Returns about how many bytes the pools will need.
    pub fn estimate_bytes(&self) -> usize {
        self.stack_bytes.len() + self.method_bytes.len() + self.symbol_bytes.len()
    }

    pub fn intern_thread(&mut self, run: &ExportRun, thread: Option<u32>) -> u64 {
        let Some(thread) = thread else { return 0 };
        let (number, is_new) = self.threads.0.intern(thread);
        if is_new {
            let name = run.threads.get(thread as usize).map_or("", String::as_str);
            let to = &mut self.thread_bytes;
            to.push_number(number);
            to.push_text(name);
            to.push_number(0);
            to.push_text(name);
            to.push_number(u64::from(thread) + 1);
        }
        number
    }

    pub fn intern_stack(&mut self, run: &ExportRun, node: u32) -> u64 {
        if node == ExportRun::ROOT {
            return 0;
        }
        let (number, is_new) = self.stacks.0.intern(node);
        if is_new {
            let mut frames = JfrBuffer::default();
            let mut count = 0;
            for frame in run.stack_frames(node) {
                let place = self.intern_frame(run, frame);
                frames.push_number(place.method);
                frames.push_number(place.line);
                frames.push_number(0);
                frames.push_number(place.kind);
                count += 1;
            }
            let to = &mut self.stack_bytes;
            to.push_number(number);
            // Not truncated.
            to.push_byte(0);
            to.push_number(count);
            to.push_buffer(&frames);
        }
        number
    }

    fn intern_frame(&mut self, run: &ExportRun, number: u32) -> JfrFrame {
        if let Some(known) = self.frames.get(&number) {
            return *known;
        }
        let place = run.frames.get(number as usize).map(|frame| JfrFrame {
            method: self.intern_method(frame),
            line: frame.line_number().map_or(0, u64::from),
            kind: if frame.is_native() { NATIVE.0 } else { JAVA.0 },
        });
        let place = place.unwrap_or(JfrFrame {
            method: 0,
            line: 0,
            kind: JAVA.0,
        });
        self.frames.insert(number, place);
        place
    }

    fn intern_method(&mut self, frame: &ExportFrame) -> u64 {
        let class = self.intern_class(frame.class.replace('.', "/"));
        let name = self.intern_symbol(&frame.method);
        let descriptor = self.intern_symbol(&frame.descriptor);
        let (number, is_new) = self.methods.0.intern((class, name, descriptor));
        if is_new {
            // No modifiers, not hidden.
            for part in [number, class, name, descriptor, 0] {
                self.method_bytes.push_number(part);
            }
            self.method_bytes.push_byte(0);
        }
        number
    }

    /// Returns the index of the class with this name in class-file form; an empty name: 0.
    pub fn intern_class(&mut self, name: String) -> u64 {
        if name.is_empty() {
            return 0;
        }
        let symbol = self.intern_symbol(&name);
        let (number, is_new) = self.classes.0.intern(name);
        if is_new {
            for part in [number, 0, symbol, 0] {
                self.class_bytes.push_number(part);
            }
        }
        number
    }

    fn intern_symbol(&mut self, text: &str) -> u64 {
        let (number, is_new) = self.symbols.0.intern(text.to_owned());
        if is_new {
            self.symbol_bytes.push_number(number);
            self.symbol_bytes.push_text(text);
        }
        number
    }

    /// Writes the event with all pools.
    pub fn write_pools(self, at: u64, to: &mut JfrBuffer) {
        let mut kinds = JfrBuffer::default();
        for (number, text) in [JAVA, NATIVE] {
            kinds.push_number(number);
            kinds.push_text(text);
        }
        let pools = [
            (id::FRAME_TYPE, 2, kinds),
            (id::THREAD, self.threads.0.len(), self.thread_bytes),
            (id::STACK, self.stacks.0.len(), self.stack_bytes),
            (id::METHOD, self.methods.0.len(), self.method_bytes),
            (id::CLASS, self.classes.0.len(), self.class_bytes),
            (id::SYMBOL, self.symbols.0.len(), self.symbol_bytes),
        ];
        // Readers treat an empty pool as damage.
        let pools: Vec<_> = pools
            .into_iter()
            .filter(|(_, count, _)| *count > 0)
            .collect();
        let mut event = JfrBuffer::default();
        // Its type; its time; its duration; no earlier pools.
        for number in [1, at, 0, 0] {
            event.push_number(number);
        }
        event.push_byte(1);
        event.push_number(pools.len() as u64);
        for (of, count, bytes) in &pools {
            event.push_number(*of);
            event.push_number(*count);
            event.push_buffer(bytes);
        }
        to.push_sized(&event);
    }
}

/// Returns a type's name in class-file form: `byte[]` is `[B`, and `a.B (enter)` is `a/B`.
pub fn internal_class_name(what: &str) -> String {
    let name = what.split(' ').next().unwrap_or_default();
    let element = name.trim_end_matches("[]");
    let dimensions = (name.len() - element.len()) / 2;
    let inner = element.replace('.', "/");
    if dimensions == 0 {
        return inner;
    }
    let element = match element {
        "byte" => "B".to_owned(),
        "char" => "C".to_owned(),
        "double" => "D".to_owned(),
        "float" => "F".to_owned(),
        "int" => "I".to_owned(),
        "long" => "J".to_owned(),
        "short" => "S".to_owned(),
        "boolean" => "Z".to_owned(),
        _ => format!("L{inner};"),
    };
    "[".repeat(dimensions) + &element
}

#[cfg(test)]
mod pools_tests {
    use super::*;

    #[test]
    fn types_are_named_as_in_class_files() {
        let names =
            ["byte[]", "a.B$C", "a.B[][]", "a.B (enter)", "long[][]", ""].map(internal_class_name);
        assert_eq!(names, ["[B", "a/B$C", "[[La/B;", "a/B", "[[J", ""]);
    }
}
