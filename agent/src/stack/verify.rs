//! The oracle: the VM's own stack trace against the decoded number, frame by frame.
//!
//! Lines are those that the VM says at that moment; where the code of a class was replaced, those of a `Throwable`
//! (`throwable_trace`), as frames may run older code. Nothing that a trace is made of is read for it.

use std::fmt::Write;
use std::sync::Arc;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::Mismatch;
use lucce_tracelog::escape::Text;

use crate::book::names::external;
use crate::book::{Book, NATIVE};
use crate::memory::counter::count;
use crate::options::Level;
use crate::stack::Stack;
use crate::stack::alike::Pair;
use crate::stack::frames::{MethodKind, Resolved, Walk, can_watch, line_at};
use crate::stack::scopes;
use crate::stack::throwable_trace::{TraceLine, match_lines, read_trace};
use lucce_vm::{Env, FrameInfo};

/// How many mismatches are written down; all are counted.
const MOST_RECORDS: u64 = 1000;

/// A frame as traces show it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Shown {
    /// `a/b/C`
    class: String,
    method: String,
    line: i32,
}

/// A frame as the VM has it now, which is asked for the line each time.
struct TrueFrame {
    method: Arc<Resolved>,
    line: i32,
}

/// Compares what `number` decodes to with the current thread's stack. The innermost `returned`
/// frames have returned already: the event was counted on their behalf.
pub fn compare(stack: &Stack, env: Env, number: ContextId, returned: usize) {
    compare_with(stack, Walk::new(stack, env, 256), number, returned);
}

/// Compares the number with the current thread's `frames`.
///
/// An event without a number is dropped, and has no trace that could be wrong. It is not compared, nor is one whose frames
/// the VM does not give.
pub fn compare_with(stack: &Stack, frames: Walk<'_>, number: ContextId, returned: usize) {
    let (env, own, stands) = (frames.env(), frames.own(), frames.stands_elsewhere());
    if number == ContextId::UNKNOWN {
        count(&stack.counts.dropped_uncompared);
        return;
    }
    let Some(raw) = frames.raw() else {
        count(&stack.counts.frames_unknown);
        return;
    };
    let at = stack.compared() + 1;
    let pair = Pair::of(number, returned, &raw);
    let Err(age) = stack.alike.holds(pair) else {
        return;
    };
    let mut real = true_frames(stack, env, &raw, stands);
    real.retain(|frame| frame.method.kind != MethodKind::Helper);
    real.drain(..own.min(real.len()));
    real.retain(|frame| frame.method.kind != MethodKind::Hidden);
    let decoded = stack.encoder.decode(number, MethodId::EVENT);
    let book = stack.book();
    let same = match &decoded {
        Ok(frames) => {
            let frames = frames.get(..stack.tasks.own(frames)).unwrap_or_default();
            // Below a scope the trace goes on in another thread.
            let above = real.iter().position(|frame| {
                let method = frame.method.id();
                method.is_some_and(|method| scopes::goes_on(&book, method.0))
            });
            let shown = above.map_or(real.len(), |at| at + 1);
            let expected = real.iter().take(shown).map(expected);
            let shown = above.map_or(usize::MAX, |at| at + 1);
            let found = frames
                .iter()
                .skip(returned)
                .take(shown)
                .filter_map(|frame| found(&book, frame.site.0))
                .map(Some);
            expected.eq(found)
        }
        Err(_) => false,
    };
    if same {
        stack.alike.add(pair, age);
        return;
    }
    stack.alike.remove(pair);
    if stack.mismatched() >= MOST_RECORDS {
        return;
    }
    let expected = real.iter().fold(String::new(), expected_line);
    let decoded = match decoded {
        Ok(frames) => frames.iter().fold(String::new(), |text, frame| {
            found_line(text, &book, frame.site.0)
        }),
        Err(error) => format!("\t{error}\n"),
    };
    drop(book);
    stack.say(
        Level::Debug,
        &format!("mismatch {number}\nexpected\n{expected}decoded\n{decoded}"),
    );
    stack.note(Mismatch {
        id: number,
        expected: expected.into(),
        decoded: decoded.into(),
        at,
    });
}

/// What the VM says of its frames at this moment: nothing is kept, and nothing is taken from what is verified but the names
/// of methods, which never change, and which of them traces show. `stands`: the innermost frame stands elsewhere than the VM says.
fn true_frames(stack: &Stack, env: Env, raw: &[FrameInfo], stands: bool) -> Vec<TrueFrame> {
    let frame = |info: &FrameInfo| {
        let method = stack.frames.resolve(stack, env, info.method);
        let line = match stack.jvmti.is_native(info.method) {
            true => NATIVE,
            false => {
                let mut lines = stack.jvmti.lines(info.method);
                lines.sort_by_key(|(start, _)| *start);
                line_at(&lines, info.location)
            }
        };
        TrueFrame { method, line }
    };
    let mut frames: Vec<TrueFrame> = raw.iter().map(frame).collect();
    // The agent itself replaces its helper class, whose frames are in no trace.
    let shown = raw.iter().zip(&frames);
    let mut shown = shown.filter(|(_, frame)| frame.method.kind != MethodKind::Helper);
    if !shown.any(|(info, _)| was_replaced(stack, env, info)) {
        return frames;
    }
    // Frames of old code may have other lines than their methods say.
    let Some(trace) = read_trace(stack, env) else {
        return frames;
    };
    let classes: Vec<String> = frames
        .iter()
        .map(|frame| external(&frame.method.class_name))
        .collect();
    let names = classes.iter().zip(&frames);
    let names = names.map(|(class, frame)| (class.as_str(), frame.method.method_name.as_str()));
    let lines = match_lines(&trace, names);
    for (frame, line) in frames.iter_mut().zip(lines).skip(usize::from(stands)) {
        if let TraceLine::Line(line) = line {
            frame.line = line;
        }
    }
    frames
}

/// Whether the code of the frame's class was ever replaced.
fn was_replaced(stack: &Stack, env: Env, info: &FrameInfo) -> bool {
    if !can_watch(stack, env) {
        return false;
    }
    let field = stack.frames.versions.field();
    let class = stack.jvmti.declaring_class(info.method);
    let (Some(field), Some(class)) = (field, class) else {
        return false;
    };
    let count = env.get_int(class, field.id());
    env.forget(class);
    count > 0
}

/// `None`: the VM shows a frame that the book does not know.
fn expected(frame: &TrueFrame) -> Option<Shown> {
    frame.method.id()?;
    Some(Shown {
        class: frame.method.class_name.clone(),
        method: frame.method.method_name.clone(),
        line: frame.line,
    })
}

/// Frames that are left alone on purpose are in no trace, unless they were put there by an upcall.
fn found(book: &Book, site: u32) -> Option<Shown> {
    let info = book.site(site)?;
    let method = book.method(info.method)?;
    Some(Shown {
        class: book.text(book.class(method.class)?.name).to_string(),
        method: book.text(method.name).to_string(),
        line: book.line(&info),
    })
}

fn expected_line(mut text: String, frame: &TrueFrame) -> String {
    match expected(frame) {
        Some(shown) => show(text, &shown),
        None => {
            let method = &frame.method;
            let _ = writeln!(
                text,
                "\tat {}.{}(not in the book)",
                Text(&external(&method.class_name)),
                Text(&method.method_name)
            );
            text
        }
    }
}

fn found_line(text: String, book: &Book, site: u32) -> String {
    match found(book, site) {
        Some(shown) => show(text, &shown),
        None => text + "\tat an unknown site\n",
    }
}

fn show(mut text: String, shown: &Shown) -> String {
    let class = external(&shown.class);
    let (class, method) = (Text(&class), Text(&shown.method));
    let _ = match shown.line {
        NATIVE => writeln!(text, "\tat {class}.{method}(Native Method)"),
        line => writeln!(text, "\tat {class}.{method}:{line}"),
    };
    text
}
