//! `CallContext.Scope`: frames that go on in the context of another thread.
//!
//! `Scope.run` is given the context that it would have if it were called from where the scope was
//! taken: one step in the graph, put where the helper class keeps the memo of a frame's context. So
//! whatever it calls has numbers that decode to the frames above `Scope.run`, and then to those of the
//! other thread. When it ends, the memo goes. Not with `tracking=cct`, whose memos are nodes of the
//! thread's own tree.
use lucce_callgraph::{ContextId, Frame, MethodId};

use crate::book::Book;
use crate::stack::Stack;

const CLASS: &str = "io/lucce/CallContext$Scope";
/// Takes the number for its caller.
const CAPTURE: &str = "capture";
/// In these, what is called goes on elsewhere.
const GOING_ON: [&str; 2] = ["run", "call"];

/// The context of a frame of `method` that goes on from where `number` was taken.
pub fn going_on(stack: &Stack, number: ContextId, method: MethodId) -> Option<ContextId> {
    let taken = stack.comparison.is_off().then(|| taken_at(stack, number));
    let (caller, frame) = taken.flatten()?;
    Some(stack.encoder.step(caller, frame.site, frame.method, method))
}

/// The frame in which a number was taken, and its context.
fn taken_at(stack: &Stack, number: ContextId) -> Option<(ContextId, Frame)> {
    let (context, frame) = stack.encoder.caller(number, MethodId::EVENT).ok()??;
    // The book is let go before the graph is asked: who changes the graph holds it, and then wants the book.
    let is_capture = name(&stack.book(), frame.method.0)? == (CLASS, CAPTURE);
    match is_capture {
        true => stack.encoder.caller(context, frame.method).ok()?,
        false => Some((context, frame)),
    }
}

/// Whether traces may go on elsewhere below a frame of the method.
pub fn goes_on(book: &Book, method: u32) -> bool {
    name(book, method).is_some_and(|(class, name)| class == CLASS && GOING_ON.contains(&name))
}

fn name(book: &Book, method: u32) -> Option<(&str, &str)> {
    let info = book.method(method)?;
    let class = book.class(info.class)?;
    Some((book.text(class.name), book.text(info.name)))
}
