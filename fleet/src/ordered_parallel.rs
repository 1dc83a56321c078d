//! What other threads make, taken in order.

use std::sync::mpsc::sync_channel;
use std::thread;

/// Makes something of each item on `threads` threads, and hands it over in the items' order. Each thread is at most one item ahead
/// of what is taken.
///
/// # Errors
/// The first of `take`; nothing more is made then.
///
/// # Panics
/// As `make` does.
pub fn process_in_order<T: Sync, M: Send, E>(
    items: &[T],
    threads: usize,
    make: impl Fn(&T) -> M + Sync,
    mut take: impl FnMut(&T, M) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.iter().try_for_each(|item| take(item, make(item)));
    }
    thread::scope(|scope| {
        let make = &make;
        let receivers = (0..threads).map(|first| {
            let (sender, receiver) = sync_channel(0);
            scope.spawn(move || {
                let mut own = items.iter().skip(first).step_by(threads);
                // Until nobody takes it.
                own.try_for_each(|item| sender.send(make(item)))
            });
            receiver
        });
        let receivers: Vec<_> = receivers.collect();
        for (item, receiver) in items.iter().zip(receivers.iter().cycle()) {
            // A thread that has panicked sends nothing: the scope panics, too.
            let Ok(result) = receiver.recv() else { break };
            take(item, result)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod ordered_parallel_tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_is_made_comes_in_order_whatever_the_number_of_threads() {
        for items in [0, 1, 2, 7, 100] {
            let items: Vec<usize> = (0..items).collect();
            for threads in [0, 1, 2, 3, 200] {
                let mut taken = Vec::new();
                let make = |item: &usize| item * 2;
                let all: Result<(), ()> = process_in_order(&items, threads, make, |item, made| {
                    taken.push((*item, made));
                    Ok(())
                });
                let expected: Vec<_> = items.iter().map(|item| (*item, item * 2)).collect();
                assert_eq!((all, taken), (Ok(()), expected), "{threads} threads");
            }
        }
    }

    #[test]
    fn an_error_ends_what_is_being_made() {
        let items: Vec<usize> = (0..1000).collect();
        let count = AtomicUsize::new(0);
        let make = |item: &usize| {
            count.fetch_add(1, Ordering::Relaxed);
            *item
        };
        let failed = process_in_order(&items, 3, make, |_, item| match item {
            5 => Err("the sixth"),
            _ => Ok(()),
        });
        assert_eq!(failed, Err("the sixth"));
        // Six were taken, and each thread was one ahead.
        assert!(count.load(Ordering::Relaxed) <= 6 + 3);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_is_not_lost() {
        let make = |item: &usize| assert_ne!(*item, 3);
        let _ = process_in_order(&[1, 2, 3, 4], 2, make, |_, ()| Ok::<(), ()>(()));
    }
}
