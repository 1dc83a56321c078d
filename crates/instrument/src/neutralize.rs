//! Disables earlier hooks in the bytes of a loaded class.
//!
//! The VM returns a loaded class with its hooks. Where the class's original code is not known, Java agents insert their
//! code among these hooks. This happens if the class was generated, or if a Java agent changed it that is not asked
//! again. The hooks are then neutralized and the class gets new hooks, which also cover the Java agent's code.
//!
//! A hook is a call of the helper class, so the code itself need not change. The constants that name the called methods
//! are redirected to methods that do nothing (`LucceRtNoop`), and inherited helpers to inherited ones.
//!
//! Helpers that replace a call of the program still perform it, but do not know their slot. `current`, `event` and
//! `park`, which need a context, ask the VM for the caller. The others (`defineClass0`, …), used by the JDK's own
//! classes, find no slot, and their events are dropped.

use crate::helpers::{ASKING, INHERITED, NOOP, NOOP_ASK, NOOP_ENTER, NOOP_PLAIN};
use crate::inherited::{INHERITED_NOOP, INHERITED_NOOP_ASK, INHERITED_NOOP_ENTER};
use crate::kinds::CALLED_BY_HOOKS;

const METHOD_REF: u8 = 10;
const CLASS: u8 = 7;
const NAME_AND_TYPE: u8 = 12;
const UTF8: u8 = 1;
/// Magic and version.
const COUNT: usize = 8;

/// Helper methods that replace a call of the program and need no context.
pub const REPLACEMENT_HELPERS: [&str; 4] =
    ["defineClass0", "hideFrames", "newBytesFor", "transform"];

/// Returns the class with hooks that do nothing.
///
/// `None`: the class is malformed, its constant pool is full, or it is `java.lang.Object`, which holds the inherited
/// helpers.
pub fn neutralize_class(class: &[u8]) -> Option<Vec<u8>> {
    let pool = RawConstantPool::read_pool(class)?;
    if pool.this_class()? == b"java/lang/Object" {
        return None;
    }
    let mut out = class.to_vec();
    let mut added = NoopConstants::behind_pool(&pool);
    for index in 1..pool.entries.len() {
        if let Some(note) = pool.hook_call(index) {
            let at = pool.offset_of(index)? + 1;
            if !note.is_inherited {
                put_u16(&mut out, at, added.noop_class()?)?;
            }
            put_u16(&mut out, at + 2, added.noop_method(&pool, note)?)?;
        }
    }
    put_u16(&mut out, COUNT, u16::try_from(added.next).ok()?)?;
    out.splice(pool.end..pool.end, added.bytes);
    Some(out)
}

/// The offsets of a class's constants; 0 for indices without one.
pub(crate) struct RawConstantPool<'c> {
    class: &'c [u8],
    entries: Vec<usize>,
    end: usize,
}

impl<'c> RawConstantPool<'c> {
    /// Reads the constants of a class; the bytes may end behind the constants.
    pub(crate) fn read_pool(class: &'c [u8]) -> Option<RawConstantPool<'c>> {
        let count = usize::from(u16_at(class, COUNT)?);
        let mut entries = vec![0];
        let mut at = COUNT + 2;
        while entries.len() < count {
            let (size, is_wide) = match *class.get(at)? {
                UTF8 => (2 + usize::from(u16_at(class, at + 1)?), false),
                3 | 4 | 9 | METHOD_REF | 11 | NAME_AND_TYPE | 17 | 18 => (4, false),
                5 | 6 => (8, true),
                CLASS | 8 | 16 | 19 | 20 => (2, false),
                15 => (3, false),
                _ => return None,
            };
            entries.push(at);
            if is_wide {
                entries.push(0);
            }
            at += 1 + size;
        }
        (at <= class.len()).then_some(RawConstantPool {
            class,
            entries,
            end: at,
        })
    }

    fn offset_of(&self, index: usize) -> Option<usize> {
        self.entries.get(index).copied().filter(|at| *at != 0)
    }

    /// Returns the two indices of a constant with this tag. For a class, the second is the bytes that follow.
    fn index_pair(&self, index: usize, tag: u8) -> Option<(usize, usize)> {
        let at = self.offset_of(index)?;
        let first = u16_at(self.class, at + 1)?;
        let second = u16_at(self.class, at + 3)?;
        (*self.class.get(at)? == tag).then_some((first.into(), second.into()))
    }

    fn utf8_at(&self, index: usize) -> Option<&'c [u8]> {
        let at = self.offset_of(index)?;
        let length = usize::from(u16_at(self.class, at + 1)?);
        let text = self.class.get(at + 3..at + 3 + length)?;
        (*self.class.get(at)? == UTF8).then_some(text)
    }

    /// Returns the name of the class, which follows its flags.
    fn this_class(&self) -> Option<&'c [u8]> {
        let index = u16_at(self.class, self.end + 2)?;
        let (name, _) = self.index_pair(index.into(), CLASS)?;
        self.utf8_at(name)
    }

    /// Returns the helper that this constant calls.
    fn called_helper(&self, index: usize) -> Option<CalledHelper<'c>> {
        let (class, method) = self.index_pair(index, METHOD_REF)?;
        let (owner, _) = self.index_pair(class, CLASS)?;
        let (name, descriptor) = self.index_pair(method, NAME_AND_TYPE)?;
        let name = self.utf8_at(name)?;
        let inherited = name.strip_prefix(INHERITED.as_bytes());
        let name = match inherited {
            Some(name) => name,
            None if calls_hook(self.utf8_at(owner)?) => name,
            None => return None,
        };
        Some(CalledHelper {
            name,
            descriptor,
            is_inherited: inherited.is_some(),
        })
    }

    /// Whether this constant calls the helper with this name.
    pub(crate) fn calls_helper(&self, index: usize, helper: &str) -> bool {
        let called = self.called_helper(index);
        called.is_some_and(|called| called.name == helper.as_bytes())
    }

    /// Returns the call of this constant, if it is a hook that replaces no call of the program.
    fn hook_call(&self, index: usize) -> Option<HookCall> {
        let called = self.called_helper(index)?;
        let is_one_of = |names: &[&str]| names.iter().any(|name| name.as_bytes() == called.name);
        (!is_one_of(&REPLACEMENT_HELPERS)).then_some(HookCall {
            descriptor: called.descriptor,
            is_inherited: called.is_inherited,
            asks: is_one_of(&ASKING),
        })
    }
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
    descriptor: usize,
    is_inherited: bool,
}

#[derive(Clone, Copy, PartialEq)]
struct HookCall {
    /// The constant's index.
    descriptor: usize,
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
    fn behind_pool(pool: &RawConstantPool<'_>) -> NoopConstants {
        NoopConstants {
            next: pool.entries.len(),
            bytes: Vec::new(),
            texts: Vec::new(),
            class: None,
            methods: Vec::new(),
        }
    }

    fn noop_class(&mut self) -> Option<u16> {
        if self.class.is_none() {
            let name = self.intern_text(NOOP)?;
            self.class = Some(self.add_constant(CLASS, &[name])?);
        }
        self.class
    }

    fn noop_method(&mut self, pool: &RawConstantPool<'_>, note: HookCall) -> Option<u16> {
        if let Some((_, known)) = self.methods.iter().find(|(of, _)| *of == note) {
            return Some(*known);
        }
        let enters = pool.utf8_at(note.descriptor)?.ends_with(b"J");
        let name = self.intern_text(match (note.is_inherited, enters) {
            (false, _) if note.asks => NOOP_ASK,
            (true, _) if note.asks => INHERITED_NOOP_ASK,
            (false, false) => NOOP_PLAIN,
            (false, true) => NOOP_ENTER,
            (true, false) => INHERITED_NOOP,
            (true, true) => INHERITED_NOOP_ENTER,
        })?;
        let descriptor = u16::try_from(note.descriptor).ok()?;
        let method = self.add_constant(NAME_AND_TYPE, &[name, descriptor])?;
        self.methods.push((note, method));
        Some(method)
    }

    fn intern_text(&mut self, text: &'static str) -> Option<u16> {
        if let Some((_, known)) = self.texts.iter().find(|(of, _)| *of == text) {
            return Some(*known);
        }
        let index = self.add_constant(UTF8, &[text.len() as u16])?;
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
    use super::UTF8;

    pub(crate) fn utf8(text: &str) -> Vec<u8> {
        let mut bytes = vec![UTF8];
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
mod tests {
    use super::constants::{pair, utf8};
    use super::*;
    use crate::helpers::{FRAMES, PUBLISH};

    /// A class that calls a hook, padded with numbers to a constant pool count of `count`.
    fn class(count: u16) -> Vec<u8> {
        let constants = [
            utf8(FRAMES),
            vec![CLASS, 0, 1],
            utf8(PUBLISH.name),
            utf8("(JI)V"),
            pair(NAME_AND_TYPE, 3, 4),
            pair(METHOD_REF, 2, 5),
            utf8("Program"),
            vec![CLASS, 0, 7],
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
        assert!(neutralize_class(&small).is_some_and(|silenced| silenced != small));
        assert_eq!(neutralize_class(b""), None);
        assert_eq!(neutralize_class(&small[..small.len() / 4]), None);
        let full = class(u16::MAX);
        assert!(RawConstantPool::read_pool(&full).is_some());
        assert_eq!(neutralize_class(&full), None);
    }
}
