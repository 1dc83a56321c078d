//! The current thread's frames with the lines that a `Throwable` has.
//!
//! If a frame runs old code of a class, JVMTI has a separate method for it only if the instructions differ. If only
//! lines moved, the VM reports the new method, which has other lines than the frame. A `Throwable` keeps the
//! version of each frame's class, and so has the right line. It costs many microseconds and has at most the innermost
//! 1,024 frames (`MaxJavaStackTraceDepth`). No Java code runs: the agent calls the native methods that `Throwable`
//! calls.

use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{jmethodID, jobject, jvalue};

use crate::stack::StackParts;
use crate::stack::late_classes::jdk_release;
use lucce_jvmti::{FieldId, JniEnvironment, Jvmti};

/// One `StackTraceElement`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceElement {
    /// `a.b.C`
    pub class: String,
    pub method: String,
    pub line: i32,
}

/// Classes, methods and fields to make a `Throwable` and to read its frames. Classes are global references.
#[derive(Default)]
pub struct ThrowableTraces(OnceLock<Option<TraceClasses>>);

/// References and ids as integers, so that all threads can use them.
#[derive(Clone, Copy)]
struct TraceClasses {
    throwables: usize,
    fill: usize,
    depth: FieldId,
    backtrace: FieldId,
    elements: usize,
    initialize: usize,
    /// Whether the native method that makes elements takes the backtrace and its depth; otherwise it takes the
    /// `Throwable`.
    has_depth: bool,
    class: FieldId,
    method: FieldId,
    line: FieldId,
}

impl ThrowableTraces {
    /// Looks up all classes. The VM must be initialised, and the current thread must not run code of the program.
    pub fn prepare_classes(&self, jvmti: Jvmti, env: JniEnvironment) {
        self.0
            .get_or_init(|| TraceClasses::find_classes(jvmti, env));
    }

    /// The frames of a `Throwable` made now, innermost first. `None`: this VM's `Throwable` is unknown, or an
    /// exception is pending.
    pub fn read_current(&self, env: JniEnvironment) -> Option<Vec<TraceElement>> {
        let classes = self.0.get().copied().flatten()?;
        match env.has_exception() {
            true => None,
            false => classes.read_new_throwable(env),
        }
    }

    /// Deletes the references, when the agent leaves the VM.
    pub fn release_classes(&self, env: JniEnvironment) {
        if let Some(classes) = self.0.get().copied().flatten() {
            env.delete_global(classes.throwables as jobject);
            env.delete_global(classes.elements as jobject);
        }
    }
}

/// The current thread's trace; its allocations are excluded from coverage.
pub fn read_trace(agent: StackParts<'_>, env: JniEnvironment) -> Option<Vec<TraceElement>> {
    agent
        .counters
        .coverage
        .exclude_allocations(env, || agent.stack.throwables.read_current(env))
}

impl TraceClasses {
    fn find_classes(jvmti: Jvmti, env: JniEnvironment) -> Option<TraceClasses> {
        let throwables = env.find_class(c"java/lang/Throwable")?;
        let elements = env.find_class(c"java/lang/StackTraceElement")?;
        let field =
            |class, name, descriptor| env.field_id(class, name, descriptor).map(FieldId::new);
        let text = c"Ljava/lang/String;";
        let has_depth = jdk_release(jvmti) >= 21;
        let descriptor = match has_depth {
            true => c"([Ljava/lang/StackTraceElement;Ljava/lang/Object;I)V",
            false => c"([Ljava/lang/StackTraceElement;Ljava/lang/Throwable;)V",
        };
        let fill = c"fillInStackTrace";
        let initialize = env.static_method_id(elements, c"initStackTraceElements", descriptor)?;
        let classes = TraceClasses {
            fill: env.method_id(throwables, fill, c"(I)Ljava/lang/Throwable;")? as usize,
            depth: field(throwables, c"depth", c"I")?,
            backtrace: field(throwables, c"backtrace", c"Ljava/lang/Object;")?,
            throwables: env.new_global(throwables) as usize,
            initialize: initialize as usize,
            has_depth,
            class: field(elements, c"declaringClass", text)?,
            method: field(elements, c"methodName", text)?,
            line: field(elements, c"lineNumber", c"I")?,
            elements: env.new_global(elements) as usize,
        };
        env.delete_local(throwables);
        env.delete_local(elements);
        Some(classes)
    }

    fn read_new_throwable(&self, env: JniEnvironment) -> Option<Vec<TraceElement>> {
        let thrown = env.allocate_object(self.throwables as jobject)?;
        let trace = self.read_thrown(env, thrown);
        env.delete_local(thrown);
        trace
    }

    fn read_thrown(&self, env: JniEnvironment, thrown: jobject) -> Option<Vec<TraceElement>> {
        let fill = self.fill as jmethodID;
        env.delete_local(env.call_object(thrown, fill, &[jvalue { i: 0 }])?);
        let depth = env.get_int(thrown, self.depth.as_raw());
        let array = env.new_objects(self.elements as jobject, depth)?;
        let trace = self.read_elements(env, thrown, (array, depth));
        env.delete_local(array);
        trace
    }

    fn read_elements(
        &self,
        env: JniEnvironment,
        thrown: jobject,
        (array, depth): (jobject, i32),
    ) -> Option<Vec<TraceElement>> {
        for index in 0..depth {
            let element = env.allocate_object(self.elements as jobject)?;
            env.set_element(array, index, element);
            env.delete_local(element);
        }
        let (elements, initialize) = (self.elements as jobject, self.initialize as jmethodID);
        let filled = if self.has_depth {
            let backtrace = env.get_object(thrown, self.backtrace.as_raw());
            let arguments = [
                jvalue { l: array },
                jvalue { l: backtrace },
                jvalue { i: depth },
            ];
            let filled = env.call_void(elements, initialize, &arguments);
            env.delete_local(backtrace);
            filled
        } else {
            let arguments = [jvalue { l: array }, jvalue { l: thrown }];
            env.call_void(elements, initialize, &arguments)
        };
        if !filled {
            env.clear_exception();
            return None;
        }
        let read = |index: i32| {
            let element = env.get_element(array, index);
            let text = |field: FieldId| {
                let string = env.get_object(element, field.as_raw());
                let text = (!string.is_null()).then(|| env.read_string(string, i32::MAX as usize));
                env.delete_local(string);
                text.unwrap_or_default()
            };
            let read = TraceElement {
                class: text(self.class),
                method: text(self.method),
                line: env.get_int(element, self.line.as_raw()),
            };
            env.delete_local(element);
            read
        };
        Some((0..depth).map(read).collect())
    }
}

/// What a trace contains for a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceLine {
    Line(i32),
    /// The trace has frames below this one, but not this one: a hidden frame, or a constructor of the `Throwable`.
    NotShown,
    /// The trace ends above the frame.
    TooDeep,
}

/// Matches a trace with frames, given as class (`a.b.C`) and method, innermost first. The trace may have frames that
/// the caller omits.
pub fn match_lines<'f>(
    trace: &[TraceElement],
    frames: impl Iterator<Item = (&'f str, &'f str)>,
) -> Vec<TraceLine> {
    /// Maximum number of adjacent frames that only the trace has.
    const MOST_LEFT_OUT: usize = 8;
    let mut rest = trace;
    let find = |(class, method): (&str, &str)| {
        let is_that = |element: &TraceElement| element.class == class && element.method == method;
        let at = rest.iter().take(MOST_LEFT_OUT + 1).position(is_that);
        let Some((at, element)) = at.and_then(|at| Some((at, rest.get(at)?))) else {
            return TraceLine::TooDeep;
        };
        rest = rest.get(at + 1..).unwrap_or_default();
        TraceLine::Line(element.line)
    };
    let mut lines: Vec<TraceLine> = frames.map(find).collect();
    let is_found = |line: &TraceLine| matches!(line, TraceLine::Line(_));
    let last = lines.iter().rposition(is_found).unwrap_or(0);
    for line in lines.iter_mut().take(last) {
        if *line == TraceLine::TooDeep {
            *line = TraceLine::NotShown;
        }
    }
    lines
}

#[cfg(test)]
mod throwable_trace_tests {
    use super::*;

    fn element((method, line): (&str, i32)) -> TraceElement {
        TraceElement {
            class: "a.B".into(),
            method: method.into(),
            line,
        }
    }

    #[test]
    fn frames_find_their_lines_past_hidden_ones_and_those_that_were_left_out() {
        let trace = [("f", 1), ("helper", 2), ("f", 3), ("g", 4)].map(element);
        let frames = ["hidden", "f", "hidden", "f", "g", "deep"];
        let lines = match_lines(&trace, frames.iter().map(|method| ("a.B", *method)));
        let (not_shown, line) = (TraceLine::NotShown, TraceLine::Line);
        let expected = [
            not_shown,
            line(1),
            not_shown,
            line(3),
            line(4),
            TraceLine::TooDeep,
        ];
        assert_eq!(lines, expected);
        let others = match_lines(&trace, [("a.C", "f")].into_iter());
        assert_eq!(others, [TraceLine::TooDeep]);
    }
}
