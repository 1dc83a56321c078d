//! The oracle: the VM's own stack trace against the decoded number, frame by frame.

use std::fmt::Write;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::Mismatch;
use lucce_tracelog::escape::Text;

use crate::book::names::external;
use crate::book::{Book, NATIVE};
use crate::options::Level;
use crate::stack::Stack;
use crate::stack::alike::Pair;
use crate::stack::frames::{Frame, MethodKind, Walk};
use crate::stack::scopes;
use lucce_vm::Env;

/// How many mismatches are written down; all are counted.
const MOST_RECORDS: u64 = 1000;

/// A frame as traces show it: ids of names, and the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shown {
    class: crate::book::Name,
    method: crate::book::Name,
    line: i32,
}

/// Compares what `number` decodes to with the current thread's stack. The innermost `returned`
/// frames have returned already: the event was counted on their behalf.
pub fn compare(stack: &Stack, env: Env, number: ContextId, returned: usize) {
    compare_with(stack, Walk::new(stack, env, 256), number, returned);
}

/// Compares the number with the current thread's `frames`. Nothing is compared if the VM does not say them.
pub fn compare_with(stack: &Stack, frames: Walk<'_>, number: ContextId, returned: usize) {
    let (env, own) = (frames.env(), frames.own());
    let Some(raw) = frames.raw() else {
        return;
    };
    let at = stack.compared() + 1;
    let pair = Pair::of(number, returned, &raw);
    let Err(age) = stack.alike.holds(pair) else {
        return;
    };
    let mut real = stack.frames.resolve_all(stack, env, &raw);
    real.drain(..own.min(real.len()));
    real.retain(|frame| frame.method.kind != MethodKind::Hidden);
    let decoded = stack.encoder.decode(number, MethodId::EVENT);
    let book = stack.book();
    let same = match &decoded {
        Ok(frames) => {
            let frames = frames.get(..stack.tasks.own(frames)).unwrap_or_default();
            // Below a scope the trace goes on in another thread.
            let above = real.iter().position(|frame| {
                let shown = frame.shown();
                shown.is_some_and(|(method, _)| scopes::goes_on(&book, method.0))
            });
            let shown = above.map_or(real.len(), |at| at + 1);
            let expected = real.iter().take(shown).map(|frame| expected(&book, frame));
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
    if stack.mismatched() >= MOST_RECORDS {
        return;
    }
    let expected = real.iter().fold(String::new(), |text, frame| {
        expected_line(text, &book, frame)
    });
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

/// `None`: the VM shows a frame that the book does not know.
fn expected(book: &Book, frame: &Frame) -> Option<Shown> {
    let (id, line) = frame.shown()?;
    let info = book.method(id.0)?;
    Some(Shown {
        class: book.class(info.class)?.name,
        method: info.name,
        line,
    })
}

/// Frames that are left alone on purpose are in no trace, unless they were put there by an upcall.
fn found(book: &Book, site: u32) -> Option<Shown> {
    let info = book.site(site)?;
    let method = book.method(info.method)?;
    Some(Shown {
        class: book.class(method.class)?.name,
        method: method.name,
        line: book.line(&info),
    })
}

fn expected_line(mut text: String, book: &Book, frame: &Frame) -> String {
    match expected(book, frame) {
        Some(shown) => show(text, book, shown),
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
        Some(shown) => show(text, book, shown),
        None => text + "\tat an unknown site\n",
    }
}

fn show(mut text: String, book: &Book, shown: Shown) -> String {
    let class = external(book.text(shown.class));
    let (class, method) = (Text(&class), Text(book.text(shown.method)));
    let _ = match shown.line {
        NATIVE => writeln!(text, "\tat {class}.{method}(Native Method)"),
        line => writeln!(text, "\tat {class}.{method}:{line}"),
    };
    text
}
