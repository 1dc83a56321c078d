//! Locks that measure how long threads wait for them.
//!
//! Each kind of lock is known by the type that it protects. [`lock_waits`] has all kinds that a thread has waited for.
//!
//! A thread that has a reader-writer lock must not acquire it again: a writer that waits in between stops both. The lab's agent
//! and unit tests panic there, whether or not a writer waits.

use std::any::type_name;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{
    Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};

use lucce_callgraph::LockWait;

/// Maximum number of kinds, more than the agent has. Further kinds would share the last entry.
const KINDS: usize = 64;

/// The waits for all locks that protect one type.
struct LockKind {
    name: OnceLock<&'static str>,
    wait: LockWait,
}

static LOCK_KINDS: [LockKind; KINDS] = [const {
    LockKind {
        name: OnceLock::new(),
        wait: LockWait::new(),
    }
}; KINDS];

/// A mutex whose waits are measured. A panic of a holder leaves it usable.
#[derive(Default)]
pub struct WatchedMutex<T>(Mutex<T>);

impl<T> WatchedMutex<T> {
    pub const fn new(value: T) -> WatchedMutex<T> {
        WatchedMutex(Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        acquire_measured::<T, _>(self.0.try_lock(), || {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        })
    }

    /// For threads that must not wait. `None`: another thread holds the lock.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A reader-writer lock whose waits are measured. A panic of a holder leaves it usable.
#[derive(Default)]
pub struct WatchedRwLock<T>(RwLock<T>);

impl<T> WatchedRwLock<T> {
    pub const fn new(value: T) -> WatchedRwLock<T> {
        WatchedRwLock(RwLock::new(value))
    }

    pub fn read(&self) -> ReadGuard<'_, T> {
        let held = HeldLock::register(&self.0);
        let guard = acquire_measured::<T, _>(self.0.try_read(), || {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        });
        LockGuard { guard, _held: held }
    }

    pub fn write(&self) -> WriteGuard<'_, T> {
        let held = HeldLock::register(&self.0);
        let guard = acquire_measured::<T, _>(self.0.try_write(), || {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        });
        LockGuard { guard, _held: held }
    }
}

/// Access to what a [`WatchedRwLock`] protects, by the standard library's guard.
pub struct LockGuard<G> {
    guard: G,
    _held: HeldLock,
}

pub type ReadGuard<'l, T> = LockGuard<RwLockReadGuard<'l, T>>;
pub type WriteGuard<'l, T> = LockGuard<RwLockWriteGuard<'l, T>>;

impl<G: Deref> Deref for LockGuard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for LockGuard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// Whether threads record the reader-writer locks that they have. The product does not.
const RECORDS_HELD_LOCKS: bool = cfg!(any(test, feature = "lab"));

thread_local! {
    /// Addresses of the reader-writer locks that the thread has or waits for.
    static HELD: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A reader-writer lock that the thread has or waits for.
struct HeldLock(usize);

impl HeldLock {
    /// # Panics
    /// The thread has the lock.
    fn register<T>(lock: &RwLock<T>) -> HeldLock {
        let held = HeldLock((&raw const *lock).addr());
        if RECORDS_HELD_LOCKS {
            // At the end of a thread its variables are gone: nothing is recorded.
            let is_held = HELD.try_with(|all| {
                let mut all = all.borrow_mut();
                let is_held = all.contains(&held.0);
                all.push(held.0);
                is_held
            });
            assert!(
                !is_held.unwrap_or(false),
                "a thread acquires a reader-writer lock that it has"
            );
        }
        held
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if RECORDS_HELD_LOCKS {
            let _ = HELD.try_with(|all| {
                let mut all = all.borrow_mut();
                if let Some(last) = all.iter().rposition(|lock| *lock == self.0) {
                    all.swap_remove(last);
                }
            });
        }
    }
}

fn acquire_measured<T, G>(attempt: Result<G, TryLockError<G>>, block: impl FnOnce() -> G) -> G {
    match attempt {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let wait = &find_lock_kind(type_name::<T>()).wait;
            wait.acquire_lock(|| None, block)
        }
    }
}

#[cold]
fn find_lock_kind(name: &'static str) -> &'static LockKind {
    let last = &LOCK_KINDS[KINDS - 1];
    let is_same = |kind: &&LockKind| *kind.name.get_or_init(|| name) == name;
    LOCK_KINDS.iter().find(is_same).unwrap_or(last)
}

/// The waits for one kind of lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockKindWaits {
    /// The protected type, each path with its last module only, such as `registry::CodeRegistry`.
    pub name: String,
    pub waits: u64,
    pub longest_ns: u64,
}

/// The waits for each kind of lock since the process began.
pub fn lock_waits() -> impl Iterator<Item = LockKindWaits> {
    LOCK_KINDS.iter().map_while(|kind| {
        Some(LockKindWaits {
            name: shorten_paths(kind.name.get()?),
            waits: kind.wait.wait_count(),
            longest_ns: kind.wait.longest_ns(),
        })
    })
}

/// A type's name with the last two segments of each path.
fn shorten_paths(name: &str) -> String {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let (path, after) = rest.split_at(rest.find(|c| !is_path(c)).unwrap_or(rest.len()));
        let second = path.rmatch_indices("::").nth(1);
        short.push_str(second.map_or(path, |(at, _)| path.get(at + 2..).unwrap_or(path)));
        let (between, next) = after.split_at(after.find(is_path).unwrap_or(after.len()));
        short.push_str(between);
        rest = next;
    }
    short
}

#[cfg(test)]
mod locks_tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    struct Protected;

    #[test]
    fn a_wait_is_counted_for_the_protected_type() {
        let lock = WatchedMutex::new(Protected);
        let name = "locks_tests::Protected";
        drop(lock.lock());
        assert!(lock_waits().all(|kind| kind.name != name));

        // A thread that is not scheduled meanwhile need not wait, so it is repeated.
        while lock_waits().all(|kind| kind.name != name) {
            let held = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _guard = lock.lock();
                    held.wait();
                    std::thread::sleep(Duration::from_millis(20));
                });
                held.wait();
                drop(lock.lock());
            });
        }
        let waits = lock_waits().find(|kind| kind.name == name).unwrap();
        assert_eq!(waits.waits, 1);
        assert!(waits.longest_ns > 0);
    }

    #[test]
    fn a_panic_leaves_the_lock_usable() {
        let lock = WatchedRwLock::new(1);
        let panicked = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _guard = lock.write();
                panic!("under the lock");
            });
            thread.join().is_err()
        });
        assert!(panicked);
        *lock.write() += 1;
        assert_eq!(*lock.read(), 2);
    }

    #[test]
    #[should_panic(expected = "a reader-writer lock that it has")]
    fn a_lock_is_not_acquired_again_by_its_reader() {
        let lock = WatchedRwLock::new(1);
        let _first = lock.read();
        drop(lock.read());
    }

    #[test]
    fn a_released_lock_is_acquired_again() {
        let (lock, other) = (WatchedRwLock::new(1), WatchedRwLock::new(2));
        for _ in 0..2 {
            *lock.write() += *other.read();
        }
        assert_eq!(*lock.read(), 5);
    }

    #[test]
    fn names_are_short() {
        for (name, short) in [
            ("lucce::registry::Book", "registry::Book"),
            ("alloc::vec::Vec<a::b::C, d::E>", "vec::Vec<b::C, d::E>"),
            ("(i64, a::b::C)", "(i64, b::C)"),
            ("bool", "bool"),
        ] {
            assert_eq!(shorten_paths(name), short);
        }
    }
}
