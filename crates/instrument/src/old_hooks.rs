//! Disables earlier hooks in the bytes of a loaded class.
//!
//! The VM returns a loaded class with its hooks. Where the class's original code is not known, Java agents insert their
//! code among these hooks. This happens if the class was generated, or if a Java agent changed it that is not asked
//! again. The hooks are then disabled, and the class gets new hooks, which also cover the Java agent's code.
//!
//! A hook is a call of the helper class, so the code itself need not change. The constants that name the called methods
//! are redirected to methods that do nothing (`LucceRtNoop`), and inherited helpers to inherited ones.
//!
//! Helpers that replace a call of the program still perform it, but do not know their slot. `current`, `event` and
//! `park`, which need a context, ask the VM for the caller. The others (`defineClass0`, …), used by the JDK's own
//! classes, find no slot, and their events are dropped.

use lucce_bytecode::ConstantPool;

use crate::helpers::{ASKING, INHERITED, NOOP, NOOP_ASK, NOOP_ENTER, NOOP_PLAIN};
use crate::inherited::{INHERITED_NOOP, INHERITED_NOOP_ASK, INHERITED_NOOP_ENTER};
use crate::kinds::CALLED_BY_HOOKS;

/// Helper methods that replace a call of the program and need no context.
pub const REPLACEMENT_HELPERS: [&str; 5] = [
    "defineAnonymousClass",
    "defineClass0",
    "hideFrames",
    "newBytesFor",
    "transform",
];

/// Returns the class with hooks that do nothing.
///
/// `None`: the class is malformed, its constant pool is full, or it is `java.lang.Object`, which holds the inherited
/// helpers.
pub fn disable_old_hooks(class: &[u8]) -> Option<Vec<u8>> {
    let pool = ConstantPool::read_from_class(class).ok()?;
    let end = pool.end_offset();
    // The access flags precede the class's own constant.
    let this_class = u16_at(class, end + 2)?;
    if pool.class_name(this_class).ok()? == b"java/lang/Object" {
        return None;
    }
    let mut out = class.to_vec();
    let mut added = NoopConstants::behind_pool(&pool);
    for index in 1..u16::try_from(pool.count()).ok()? {
        if let Some(note) = hook_call(&pool, index) {
            let at = pool.constant_offset(index)? + 1;
            if !note.is_inherited {
                put_u16(&mut out, at, added.noop_class()?)?;
            }
            put_u16(&mut out, at + 2, added.noop_method(&pool, note)?)?;
        }
    }
    put_u16(
        &mut out,
        ConstantPool::COUNT_OFFSET,
        u16::try_from(added.next).ok()?,
    )?;
    out.splice(end..end, added.bytes);
    Some(out)
}

/// Whether this constant calls the helper with this name.
pub(crate) fn calls_helper(pool: &ConstantPool<'_>, index: u16, helper: &str) -> bool {
    let called = called_helper(pool, index);
    called.is_some_and(|called| called.name == helper.as_bytes())
}

/// Returns the helper that this constant calls.
fn called_helper<'c>(pool: &ConstantPool<'c>, index: u16) -> Option<CalledHelper<'c>> {
    let [class, method] = read_pair(pool, index, ConstantPool::METHODREF)?;
    let owner = pool.class_name(class).ok()?;
    let [name, descriptor] = read_pair(pool, method, ConstantPool::NAME_AND_TYPE)?;
    let name = pool.utf8(name).ok()?;
    let inherited = name.strip_prefix(INHERITED.as_bytes());
    let name = match inherited {
        Some(name) => name,
        None if calls_hook(owner) => name,
        None => return None,
    };
    Some(CalledHelper {
        name,
        descriptor,
        is_inherited: inherited.is_some(),
    })
}

/// Returns the call of this constant, if it is a hook that replaces no call of the program.
fn hook_call(pool: &ConstantPool<'_>, index: u16) -> Option<HookCall> {
    let called = called_helper(pool, index)?;
    let is_one_of = |names: &[&str]| names.iter().any(|name| name.as_bytes() == called.name);
    (!is_one_of(&REPLACEMENT_HELPERS)).then_some(HookCall {
        descriptor: called.descriptor,
        is_inherited: called.is_inherited,
        asks: is_one_of(&ASKING),
    })
}

/// Returns the two indices of a constant with this tag.
fn read_pair(pool: &ConstantPool<'_>, index: u16, tag: u8) -> Option<[u16; 2]> {
    let is_wanted = pool.tag(index).ok()? == tag;
    is_wanted.then(|| pool.referenced_indices(index).ok())?
}

fn calls_hook(owner: &[u8]) -> bool {
    CALLED_BY_HOOKS
        .iter()
        .any(|class| class.as_bytes() == owner)
}

/// A helper that a constant calls.
struct CalledHelper<'c> {
    /// Without [`INHERITED`].
    name: &'c [u8],
    /// The constant's index.
    descriptor: u16,
    is_inherited: bool,
}

#[derive(Clone, Copy, PartialEq)]
struct HookCall {
    /// The constant's index.
    descriptor: u16,
    is_inherited: bool,
    /// It replaces a call of the program and asks the VM for the caller.
    asks: bool,
}

/// New constants behind the existing ones.
struct NoopConstants {
    next: usize,
    bytes: Vec<u8>,
    /// Indices by text.
    texts: Vec<(&'static str, u16)>,
    /// `LucceRtNoop`.
    class: Option<u16>,
    methods: Vec<(HookCall, u16)>,
}

impl NoopConstants {
    fn behind_pool(pool: &ConstantPool<'_>) -> NoopConstants {
        NoopConstants {
            next: pool.count(),
            bytes: Vec::new(),
            texts: Vec::new(),
            class: None,
            methods: Vec::new(),
        }
    }

    fn noop_class(&mut self) -> Option<u16> {
        if self.class.is_none() {
            let name = self.intern_text(NOOP)?;
            self.class = Some(self.add_constant(ConstantPool::CLASS, &[name])?);
        }
        self.class
    }

    fn noop_method(&mut self, pool: &ConstantPool<'_>, note: HookCall) -> Option<u16> {
        if let Some((_, known)) = self.methods.iter().find(|(of, _)| *of == note) {
            return Some(*known);
        }
        let enters = pool.utf8(note.descriptor).ok()?.ends_with(b"J");
        let name = self.intern_text(match (note.is_inherited, enters) {
            (false, _) if note.asks => NOOP_ASK,
            (true, _) if note.asks => INHERITED_NOOP_ASK,
            (false, false) => NOOP_PLAIN,
            (false, true) => NOOP_ENTER,
            (true, false) => INHERITED_NOOP,
            (true, true) => INHERITED_NOOP_ENTER,
        })?;
        let method = self.add_constant(ConstantPool::NAME_AND_TYPE, &[name, note.descriptor])?;
        self.methods.push((note, method));
        Some(method)
    }

    fn intern_text(&mut self, text: &'static str) -> Option<u16> {
        if let Some((_, known)) = self.texts.iter().find(|(of, _)| *of == text) {
            return Some(*known);
        }
        let index = self.add_constant(ConstantPool::UTF8, &[text.len() as u16])?;
        self.bytes.extend_from_slice(text.as_bytes());
        self.texts.push((text, index));
        Some(index)
    }

    fn add_constant(&mut self, tag: u8, parts: &[u16]) -> Option<u16> {
        let index = u16::try_from(self.next).ok().filter(|at| *at < u16::MAX)?;
        self.next += 1;
        self.bytes.push(tag);
        self.bytes
            .extend(parts.iter().flat_map(|part| part.to_be_bytes()));
        Some(index)
    }
}

fn put_u16(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    let place = bytes.get_mut(at..at + 2)?;
    place.copy_from_slice(&value.to_be_bytes());
    Some(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

/// Constants in the format of class files.
#[cfg(test)]
pub(crate) mod constants {
    use lucce_bytecode::ConstantPool;

    pub(crate) fn utf8(text: &str) -> Vec<u8> {
        let mut bytes = vec![ConstantPool::UTF8];
        bytes.extend((text.len() as u16).to_be_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    /// A constant of two indices.
    pub(crate) fn pair(tag: u8, a: u8, b: u8) -> Vec<u8> {
        vec![tag, 0, a, 0, b]
    }
}

#[cfg(test)]
mod old_hooks_tests {
    use super::constants::{pair, utf8};
    use super::*;
    use crate::helpers::{FRAMES, PUBLISH};

    /// A class that calls a hook, padded with numbers to a constant pool count of `count`.
    fn class(count: u16) -> Vec<u8> {
        let constants = [
            utf8(FRAMES),
            vec![ConstantPool::CLASS, 0, 1],
            utf8(PUBLISH.name),
            utf8("(JI)V"),
            pair(ConstantPool::NAME_AND_TYPE, 3, 4),
            pair(ConstantPool::METHODREF, 2, 5),
            utf8("Program"),
            vec![ConstantPool::CLASS, 0, 7],
        ];
        let numbers = usize::from(count) - 1 - constants.len();
        let mut bytes = vec![0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 52];
        bytes.extend(count.to_be_bytes());
        bytes.extend(constants.concat());
        bytes.extend([3, 0, 0, 0, 0].repeat(numbers));
        // Flags, this class, no superclass, nothing else.
        bytes.extend([0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn what_is_no_class_or_has_a_full_pool_is_left_alone() {
        let small = class(20);
        assert!(disable_old_hooks(&small).is_some_and(|disabled| disabled != small));
        assert_eq!(disable_old_hooks(b""), None);
        assert_eq!(disable_old_hooks(&small[..small.len() / 4]), None);
        let full = class(u16::MAX);
        assert!(ConstantPool::read_from_class(&full).is_ok());
        assert_eq!(disable_old_hooks(&full), None);
    }
}
