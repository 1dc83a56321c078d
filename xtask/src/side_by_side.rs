//! Work in several threads, where no time is measured.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Two at a time: the JVMs that are started have threads of their own.
const MOST: usize = 2;

/// What `work` makes of each item, in the items' order.
pub fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let at_once = thread::available_parallelism().map_or(1, |n| n.get().min(MOST));
    let waiting = Mutex::new(items.into_iter().enumerate());
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next()
    };
    let worker = || {
        let mut done = Vec::new();
        while let Some((at, item)) = next() {
            done.push((at, work(item)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
        let mut done = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod side_by_side_tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let squares = map(items.clone(), |n| {
            thread::sleep(std::time::Duration::from_micros(n * 37 % 300));
            n * n
        });
        assert!(
            squares
                .iter()
                .zip(&items)
                .all(|(square, n)| *square == n * n)
        );
        assert_eq!(squares.len(), items.len());
    }
}
