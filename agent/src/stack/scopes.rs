//! `CallContext.Scope`: frames that go on in the context of another thread.
//!
//! `Scope.run` is given the context that it would have if it were called from where the scope was
//! taken: one step in the graph, put where the helper class keeps the memo of a frame's context. So
//! whatever it calls has numbers that decode to the frames above `Scope.run`, and then to those of the
//! other thread. When it ends, the memo goes. Not with `tracking=cct`, whose memos are nodes of the
//! thread's own tree.
use std::sync::RwLockReadGuard;

use lucce_callgraph::{ContextId, Encoder, Frame, Journal, MethodId};

use crate::book::Book;
use crate::stack::Stack;

const CLASS: &str = "io/lucce/CallContext$Scope";
/// Takes the number for its caller.
const CAPTURE: &str = "capture";
/// In these, what is called goes on elsewhere.
const GOING_ON: [&str; 2] = ["run", "call"];

/// The context of a frame of `method` that goes on from where `number` was taken.
pub fn going_on(stack: &Stack, number: ContextId, method: MethodId) -> Option<ContextId> {
    let taken = stack
        .comparison
        .is_off()
        .then(|| taken_at(&stack.encoder, || stack.book(), number));
    let (caller, frame) = taken.flatten()?;
    Some(stack.encoder.step(caller, frame.site, frame.method, method))
}

/// The frame in which a number was taken, and its context.
fn taken_at<'b, J: Journal>(
    encoder: &Encoder<J>,
    book: impl FnOnce() -> RwLockReadGuard<'b, Book>,
    number: ContextId,
) -> Option<(ContextId, Frame)> {
    let (context, frame) = encoder.caller(number, MethodId::EVENT).ok()??;
    // The book is let go before the graph is asked: who changes the graph holds it, and then wants the book.
    let is_capture = name(&book(), frame.method.0)? == (CLASS, CAPTURE);
    match is_capture {
        true => encoder.caller(context, frame.method).ok()?,
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, RwLock};
    use std::thread;
    use std::time::Duration;

    use lucce_callgraph::{Change, Layout, Policy, Refused, SiteId};
    use lucce_hooks::Shape;

    use super::*;
    use crate::book::{Loader, NewClass};

    /// As the agent's: the graph is changed with the book at hand.
    struct WithBook(Arc<RwLock<Book>>);

    impl Journal for WithBook {
        fn append(&mut self, _: Change) -> Result<(), Refused> {
            drop(self.0.read().unwrap());
            Ok(())
        }
    }

    const TAKEN: SiteId = SiteId(100);
    const CALLED: SiteId = SiteId(101);

    /// Two read the frame in which a number was taken, one changes the graph, one the book.
    #[test]
    fn nobody_waits_for_another_for_ever() {
        let mut book = Book::default();
        let ids = book.add(&NewClass {
            name: CLASS,
            source: None,
            loader: Loader::BOOT,
            methods: &[(CAPTURE, "()V", 0), ("main", "()V", 0)],
            shapes: &[Shape::none(), Shape::none()],
        });
        let capture = MethodId(ids.unwrap().first_method);
        let main = MethodId(capture.0 + 1);
        let book = Arc::new(RwLock::new(book));
        let journal = WithBook(Arc::clone(&book));
        let encoder = Arc::new(Encoder::new(Layout::DEFAULT, Policy::LUCCE, journal));
        let root = encoder.root(main);
        let number = encoder.event(encoder.step(root, CALLED, main, capture), TAKEN, capture);

        let (ended, all) = channel();
        for role in 0..4 {
            let (book, encoder) = (Arc::clone(&book), Arc::clone(&encoder));
            let ended = ended.clone();
            thread::spawn(move || {
                let mut right = true;
                for at in 0..200_000 {
                    // What is seen first changes the graph.
                    let site = SiteId(1000 + at);
                    match role {
                        0 => drop(encoder.event(root, site, main)),
                        1 => drop(book.write().unwrap()),
                        _ => {
                            let taken = taken_at(&encoder, || book.read().unwrap(), number);
                            right &= taken.is_some_and(|(context, frame)| {
                                (context, frame.site) == (root, CALLED)
                            });
                        }
                    }
                }
                ended.send(right).unwrap();
            });
        }
        for _ in 0..4 {
            let right = all.recv_timeout(Duration::from_secs(60));
            assert_eq!(right, Ok(true), "threads wait for each other");
        }
    }
}
