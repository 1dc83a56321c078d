//! Constants that events of a chunk name by their numbers: threads, stacks, methods, classes, names. 0 is none.

use std::collections::HashMap;

use crate::proto::Once;
use crate::run::{Frame, Run};

use super::chunk::Bytes;
use super::metadata::id;

/// What frames of methods with code and of native ones are.
const JAVA: (u64, &str) = (1, "JIT compiled");
const NATIVE: (u64, &str) = (2, "Native");

#[derive(Default)]
pub struct Pools {
    threads: Pool<u32>,
    stacks: Pool<u32>,
    methods: Pool<(u64, u64, u64)>,
    classes: Pool<String>,
    symbols: Pool<String>,
    /// By frame, its method and line.
    frames: HashMap<u32, FrameKey>,
    thread_bytes: Bytes,
    stack_bytes: Bytes,
    method_bytes: Bytes,
    class_bytes: Bytes,
    symbol_bytes: Bytes,
}

#[derive(Clone, Copy)]
struct FrameKey {
    method: u64,
    line: u64,
    kind: u64,
}

struct Pool<K>(Once<K>);

impl<K: std::hash::Hash + Eq> Default for Pool<K> {
    fn default() -> Self {
        Pool(Once::from(1))
    }
}

impl Pools {
    /// About how many bytes they will be.
    pub fn size(&self) -> usize {
        self.stack_bytes.len() + self.method_bytes.len() + self.symbol_bytes.len()
    }

    pub fn thread(&mut self, run: &Run, thread: Option<u32>) -> u64 {
        let Some(thread) = thread else { return 0 };
        let (number, is_new) = self.threads.0.number(thread);
        if is_new {
            let name = run.threads.get(thread as usize).map_or("", String::as_str);
            let to = &mut self.thread_bytes;
            to.number(number);
            to.text(name);
            to.number(0);
            to.text(name);
            to.number(u64::from(thread) + 1);
        }
        number
    }

    pub fn stack(&mut self, run: &Run, node: u32) -> u64 {
        if node == Run::ROOT {
            return 0;
        }
        let (number, is_new) = self.stacks.0.number(node);
        if is_new {
            let mut frames = Bytes::default();
            let mut count = 0;
            for frame in run.stack(node) {
                let place = self.frame(run, frame);
                frames.number(place.method);
                frames.number(place.line);
                frames.number(0);
                frames.number(place.kind);
                count += 1;
            }
            let to = &mut self.stack_bytes;
            to.number(number);
            // Not cut off.
            to.byte(0);
            to.number(count);
            to.append(&frames);
        }
        number
    }

    fn frame(&mut self, run: &Run, number: u32) -> FrameKey {
        if let Some(known) = self.frames.get(&number) {
            return *known;
        }
        let place = run.frames.get(number as usize).map(|frame| FrameKey {
            method: self.method(frame),
            line: frame.line().map_or(0, u64::from),
            kind: if frame.is_native() { NATIVE.0 } else { JAVA.0 },
        });
        let place = place.unwrap_or(FrameKey {
            method: 0,
            line: 0,
            kind: JAVA.0,
        });
        self.frames.insert(number, place);
        place
    }

    fn method(&mut self, frame: &Frame) -> u64 {
        let class = self.class(frame.class.replace('.', "/"));
        let name = self.symbol(&frame.method);
        let descriptor = self.symbol(&frame.descriptor);
        let (number, is_new) = self.methods.0.number((class, name, descriptor));
        if is_new {
            // No modifiers, and not hidden.
            for part in [number, class, name, descriptor, 0] {
                self.method_bytes.number(part);
            }
            self.method_bytes.byte(0);
        }
        number
    }

    /// The class of this name, as class files have it; none: 0.
    pub fn class(&mut self, name: String) -> u64 {
        if name.is_empty() {
            return 0;
        }
        let symbol = self.symbol(&name);
        let (number, is_new) = self.classes.0.number(name);
        if is_new {
            for part in [number, 0, symbol, 0] {
                self.class_bytes.number(part);
            }
        }
        number
    }

    fn symbol(&mut self, text: &str) -> u64 {
        let (number, is_new) = self.symbols.0.number(text.to_owned());
        if is_new {
            self.symbol_bytes.number(number);
            self.symbol_bytes.text(text);
        }
        number
    }

    /// The event that has all pools.
    pub fn write(self, at: u64, to: &mut Bytes) {
        let mut kinds = Bytes::default();
        for (number, text) in [JAVA, NATIVE] {
            kinds.number(number);
            kinds.text(text);
        }
        let pools = [
            (id::FRAME_TYPE, 2, kinds),
            (id::THREAD, self.threads.0.len(), self.thread_bytes),
            (id::STACK, self.stacks.0.len(), self.stack_bytes),
            (id::METHOD, self.methods.0.len(), self.method_bytes),
            (id::CLASS, self.classes.0.len(), self.class_bytes),
            (id::SYMBOL, self.symbols.0.len(), self.symbol_bytes),
        ];
        // A reader takes a pool without constants for damage.
        let pools: Vec<_> = pools
            .into_iter()
            .filter(|(_, count, _)| *count > 0)
            .collect();
        let mut event = Bytes::default();
        // Its type; when; how long; no pools before these.
        for number in [1, at, 0, 0] {
            event.number(number);
        }
        event.byte(1);
        event.number(pools.len() as u64);
        for (of, count, bytes) in &pools {
            event.number(*of);
            event.number(*count);
            event.append(bytes);
        }
        to.sized(&event);
    }
}

/// A type as class files name its class: `byte[]` is `[B`, and `a.B (enter)` is `a/B`.
pub fn descriptor(what: &str) -> String {
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
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_in_class_files() {
        let names = ["byte[]", "a.B$C", "a.B[][]", "a.B (enter)", "long[][]", ""].map(descriptor);
        assert_eq!(names, ["[B", "a/B$C", "[[La/B;", "a/B", "[[J", ""]);
    }
}
