//! Finds hooks in code as the VM runs it: before a call, and at the entry of a method.

use lucce_bytecode::{ConstantPool, call_bcis};

use crate::helpers::{ENTER_VM_LATER, PUBLISH, PUBLISH_RARE};
use crate::old_hooks::calls_helper;

const INVOKESTATIC: u8 = 0xb8;
/// Length of an `invokestatic` with its constant's index, in bytes.
const CALL: u16 = 3;

/// Whether the instruction at `at` is a call and the one before it the call hook, which moved `$lucceStack` to the callee's
/// slot.
///
/// `pool` has the constants of the class, `count` is their number plus one (JVMS 4.1).
#[must_use]
pub fn is_published_call(code: &[u8], at: u16, count: u16, pool: &[u8]) -> bool {
    let class = class_beginning(count, pool);
    let hook = || {
        let pool = ConstantPool::read_from_class(&class).ok()?;
        let before = at.checked_sub(CALL)?;
        let places = call_bcis(code);
        let is_call = |bci| places.binary_search(&bci).is_ok();
        let hook = code.get(usize::from(before)..usize::from(at))?;
        let &[INVOKESTATIC, high, low] = hook else {
            return None;
        };
        let constant = u16::from_be_bytes([high, low]);
        let mut hooks = [PUBLISH, PUBLISH_RARE].into_iter();
        let is_hook = hooks.any(|hook| calls_helper(&pool, constant, hook.name));
        Some(is_call(before) && is_call(at) && is_hook)
    };
    hook() == Some(true)
}

/// Returns the location behind the entry hook, if it is that of a deferred VM entry. `pool` and `count`: as in
/// [`is_published_call`].
#[must_use]
pub fn deferred_entry_end(code: &[u8], count: u16, pool: &[u8]) -> Option<u16> {
    let &[INVOKESTATIC, high, low, ..] = code else {
        return None;
    };
    let class = class_beginning(count, pool);
    let pool = ConstantPool::read_from_class(&class).ok()?;
    let constant = u16::from_be_bytes([high, low]);
    calls_helper(&pool, constant, ENTER_VM_LATER.name).then_some(CALL)
}

/// The beginning of a class file: magic, version, constants.
fn class_beginning(count: u16, pool: &[u8]) -> Vec<u8> {
    let mut class = vec![0; 8];
    class.extend(count.to_be_bytes());
    class.extend(pool);
    class
}

#[cfg(test)]
mod published_calls_tests {
    use super::*;
    use crate::helpers::{FRAMES, INHERITED};
    use crate::old_hooks::constants::{pair, utf8};

    /// Constants of a class that calls two methods of `owner`: `first`, with number 10, and `other`, with 11.
    fn pool(owner: &str, first: &str) -> (u16, Vec<u8>) {
        let constants = [
            utf8(owner),
            vec![7, 0, 1],
            utf8(first),
            utf8("other"),
            utf8("(JI)V"),
            pair(12, 3, 5),
            pair(12, 4, 5),
            // A constant that takes two indices.
            [vec![5], vec![0; 8]].concat(),
            pair(10, 2, 6),
            pair(10, 2, 7),
        ];
        (constants.len() as u16 + 2, constants.concat())
    }

    /// `lload_1`, `iconst_2`, a call of this constant, `aload_0`'s place taken by the program's own call, `return`.
    fn code(hook: u8) -> Vec<u8> {
        vec![0x1f, 0x05, 0xb8, 0, hook, 0xb6, 0, 11, 0xb1]
    }

    #[test]
    fn a_deferred_entry_is_known_by_its_first_instruction() {
        let (count, pool) = pool(FRAMES, ENTER_VM_LATER.name);
        let [entry, other] = [10, 11].map(|hook| [0xb8, 0, hook, 0x40]);
        assert_eq!(deferred_entry_end(&entry, count, &pool), Some(3));
        assert_eq!(deferred_entry_end(&other, count, &pool), None);
        // The hook is not the first instruction.
        assert_eq!(deferred_entry_end(&code(10), count, &pool), None);
        assert_eq!(deferred_entry_end(&[0xb8, 0], count, &pool), None);
    }

    #[test]
    fn a_call_is_announced_by_the_hook_right_before_it() {
        let inherited = format!("{INHERITED}{}", PUBLISH.name);
        for (owner, first) in [
            (FRAMES, PUBLISH.name),
            (FRAMES, PUBLISH_RARE.name),
            ("java/lang/Object", &inherited),
        ] {
            let (count, pool) = pool(owner, first);
            let places = (0..12).filter(|at| is_published_call(&code(10), *at, count, &pool));
            assert_eq!(places.collect::<Vec<_>>(), [5], "{owner}.{first}");
        }
    }

    #[test]
    fn nothing_else_announces_a_call() {
        let (count, hooks) = pool(FRAMES, PUBLISH.name);
        // Another helper method, a missing constant, and constants of other kinds.
        for constant in [11, 99, 8, 9, 0] {
            assert!(!is_published_call(&code(constant), 5, count, &hooks));
        }
        for (owner, first) in [
            ("Program", PUBLISH.name),
            (FRAMES, "publish"),
            (FRAMES, "enter"),
            (crate::helpers::NOOP, crate::helpers::NOOP_PLAIN),
            ("java/lang/Object", crate::inherited::INHERITED_NOOP),
        ] {
            let (count, pool) = pool(owner, first);
            assert!(
                !is_published_call(&code(10), 5, count, &pool),
                "{owner}.{first}"
            );
        }
        // No call behind it; three preceding bytes that are no instruction; truncated code.
        let no_call = [0x1f, 0x05, 0xb8, 0, 10, 0xb1];
        let operand = [0x11, 0xb8, 0, 0x05, 0xb6, 0, 11, 0xb1];
        assert!(!is_published_call(&no_call, 5, count, &hooks));
        assert!(!is_published_call(&operand, 4, count, &hooks));
        assert!(!is_published_call(&code(10)[..4], 5, count, &hooks));
        assert!(!is_published_call(&code(10), 5, count, &hooks[..20]));
        assert!(!is_published_call(&code(10), 2, count, &hooks));
        assert!(!is_published_call(&code(10), u16::MAX, count, &hooks));
    }
}
