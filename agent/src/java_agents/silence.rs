//! Hooks of an earlier time in a class that comes back: the VM hands a class that has been loaded out with its hooks, and
//! where the class's own code is known no more (it was generated, or a Java agent changed it that is not asked again),
//! Java agents put their code among the hooks. Those are silenced, and the class gets hooks anew, of which
//! a Java agent's code has its own.
//!
//! A hook is a call of the helper class, so this needs no look at code: the constants that name the called methods are
//! pointed at methods that do nothing (`LucceRtWas`), those of inherited helpers at inherited ones. What stands in place
//! of a call of the program goes on doing what it does. Its slot is not known: whatever has a number (`current`, `event`,
//! `park`) asks the VM who calls; the others (`defineClass0`, …), which the JDK's own classes have, find no slot, and what
//! happens in them counts as lost.

use crate::planner::{
    ASKING, CALLED_BY_HOOKS, INHERITED, INHERITED_WAS, INHERITED_WAS_ASKED, INHERITED_WAS_ENTERED,
    WAS, WAS_ASKED, WAS_ENTERED, WAS_SAID,
};

const METHOD_REF: u8 = 10;
const CLASS: u8 = 7;
const NAME_AND_TYPE: u8 = 12;
const UTF8: u8 = 1;
/// Magic and version.
const COUNT: usize = 8;

/// Methods of the helper class that stand in place of a call of the program, and have no number.
const INSTEAD: [&str; 4] = ["defineClass0", "hides", "newBytesFor", "transform"];

/// The class with hooks that say nothing. `None`: it is malformed, its constant pool is full, or it is the one that
/// inherits the helpers to all others.
pub fn silenced(class: &[u8]) -> Option<Vec<u8>> {
    let pool = Pool::read(class)?;
    if pool.this_class()? == b"java/lang/Object" {
        return None;
    }
    let mut out = class.to_vec();
    let mut added = Added::of(&pool);
    for index in 1..pool.entries.len() {
        if let Some(note) = pool.note(index) {
            let at = pool.at(index)? + 1;
            if !note.is_inherited {
                put(&mut out, at, added.class()?)?;
            }
            put(&mut out, at + 2, added.method(&pool, note)?)?;
        }
    }
    put(&mut out, COUNT, u16::try_from(added.next).ok()?)?;
    out.splice(pool.end..pool.end, added.bytes);
    Some(out)
}

/// Where each constant begins; 0 for those that do not exist.
struct Pool<'c> {
    class: &'c [u8],
    entries: Vec<usize>,
    end: usize,
}

impl<'c> Pool<'c> {
    fn read(class: &'c [u8]) -> Option<Pool<'c>> {
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
        (at <= class.len()).then_some(Pool {
            class,
            entries,
            end: at,
        })
    }

    fn at(&self, index: usize) -> Option<usize> {
        self.entries.get(index).copied().filter(|at| *at != 0)
    }

    /// The two indices of a constant of this kind; the second one of a class is whatever follows.
    fn pair(&self, index: usize, tag: u8) -> Option<(usize, usize)> {
        let at = self.at(index)?;
        let first = u16_at(self.class, at + 1)?;
        let second = u16_at(self.class, at + 3)?;
        (*self.class.get(at)? == tag).then_some((first.into(), second.into()))
    }

    fn text(&self, index: usize) -> Option<&'c [u8]> {
        let at = self.at(index)?;
        let length = usize::from(u16_at(self.class, at + 1)?);
        let text = self.class.get(at + 3..at + 3 + length)?;
        (*self.class.get(at)? == UTF8).then_some(text)
    }

    /// The name of the class, which stands behind its flags.
    fn this_class(&self) -> Option<&'c [u8]> {
        let index = u16_at(self.class, self.end + 2)?;
        let (name, _) = self.pair(index.into(), CLASS)?;
        self.text(name)
    }

    /// What this constant calls, if it is a hook that only notes something.
    fn note(&self, index: usize) -> Option<Note> {
        let (class, method) = self.pair(index, METHOD_REF)?;
        let (owner, _) = self.pair(class, CLASS)?;
        let (name, descriptor) = self.pair(method, NAME_AND_TYPE)?;
        let name = self.text(name)?;
        let inherited = name.strip_prefix(INHERITED.as_bytes());
        let note = match inherited {
            Some(note) => note,
            None if calls_hook(self.text(owner)?) => name,
            None => return None,
        };
        let is_one_of = |names: &[&str]| names.iter().any(|name| name.as_bytes() == note);
        (!is_one_of(&INSTEAD)).then_some(Note {
            descriptor,
            is_inherited: inherited.is_some(),
            asks: is_one_of(&ASKING),
        })
    }
}

fn calls_hook(owner: &[u8]) -> bool {
    CALLED_BY_HOOKS
        .iter()
        .any(|class| class.as_bytes() == owner)
}

#[derive(Clone, Copy, PartialEq)]
struct Note {
    /// The index of the constant.
    descriptor: usize,
    is_inherited: bool,
    /// It stands in place of a call of the program.
    asks: bool,
}

/// Constants behind those that are there.
struct Added {
    next: usize,
    bytes: Vec<u8>,
    /// By the text.
    texts: Vec<(&'static str, u16)>,
    /// `LucceRtWas`.
    class: Option<u16>,
    methods: Vec<(Note, u16)>,
}

impl Added {
    fn of(pool: &Pool<'_>) -> Added {
        Added {
            next: pool.entries.len(),
            bytes: Vec::new(),
            texts: Vec::new(),
            class: None,
            methods: Vec::new(),
        }
    }

    fn class(&mut self) -> Option<u16> {
        if self.class.is_none() {
            let name = self.text(WAS)?;
            self.class = Some(self.constant(CLASS, &[name])?);
        }
        self.class
    }

    fn method(&mut self, pool: &Pool<'_>, note: Note) -> Option<u16> {
        if let Some((_, known)) = self.methods.iter().find(|(of, _)| *of == note) {
            return Some(*known);
        }
        let enters = pool.text(note.descriptor)?.ends_with(b"J");
        let name = self.text(match (note.is_inherited, enters) {
            (false, _) if note.asks => WAS_ASKED,
            (true, _) if note.asks => INHERITED_WAS_ASKED,
            (false, false) => WAS_SAID,
            (false, true) => WAS_ENTERED,
            (true, false) => INHERITED_WAS,
            (true, true) => INHERITED_WAS_ENTERED,
        })?;
        let descriptor = u16::try_from(note.descriptor).ok()?;
        let method = self.constant(NAME_AND_TYPE, &[name, descriptor])?;
        self.methods.push((note, method));
        Some(method)
    }

    fn text(&mut self, text: &'static str) -> Option<u16> {
        if let Some((_, known)) = self.texts.iter().find(|(of, _)| *of == text) {
            return Some(*known);
        }
        let index = self.constant(UTF8, &[text.len() as u16])?;
        self.bytes.extend_from_slice(text.as_bytes());
        self.texts.push((text, index));
        Some(index)
    }

    fn constant(&mut self, tag: u8, parts: &[u16]) -> Option<u16> {
        let index = u16::try_from(self.next).ok().filter(|at| *at < u16::MAX)?;
        self.next += 1;
        self.bytes.push(tag);
        self.bytes
            .extend(parts.iter().flat_map(|part| part.to_be_bytes()));
        Some(index)
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    let place = bytes.get_mut(at..at + 2)?;
    place.copy_from_slice(&value.to_be_bytes());
    Some(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lucce_bytecode::{ClassFile, Entry, MethodPlan, Plan, rewrite};

    use super::*;
    use crate::helper_class;
    use crate::planner::{ENTER, EXIT_VM, RT, inherited_methods};

    const PUBLIC_STATIC: u16 = 9;

    fn frames() -> &'static [u8] {
        helper_class::bytes_in_live(RT)
    }

    /// The classes that hooks call.
    fn hooked_classes() -> impl Iterator<Item = &'static [u8]> {
        CALLED_BY_HOOKS.map(helper_class::bytes_in_live).into_iter()
    }

    /// Name and descriptor of each public static method.
    fn offered(bytes: &[u8]) -> BTreeSet<(String, String)> {
        let class = ClassFile::parse(bytes).unwrap();
        let methods = class.methods().iter();
        let offered = methods.filter(|method| method.access & PUBLIC_STATIC == PUBLIC_STATIC);
        offered
            .map(|method| (method.name.to_string(), method.descriptor.to_string()))
            .collect()
    }

    fn calls(bytes: &[u8]) -> Vec<(String, String, String)> {
        let class = ClassFile::parse(bytes).unwrap();
        let methods = class.methods().iter();
        let codes = methods.filter_map(|method| method.code.as_ref());
        let calls = codes.flat_map(|code| class.scan(code).unwrap().calls);
        calls
            .map(|call| {
                (
                    call.owner.to_string(),
                    call.name.to_string(),
                    call.descriptor.to_string(),
                )
            })
            .collect()
    }

    fn silent(name: &str, descriptor: &str) -> (String, String) {
        let silent = match name.starts_with(INHERITED) {
            true => [INHERITED_WAS, INHERITED_WAS_ENTERED, INHERITED_WAS_ASKED],
            false => [WAS_SAID, WAS_ENTERED, WAS_ASKED],
        };
        let kind = match descriptor.ends_with('J') {
            _ if ASKING.contains(&name.trim_start_matches(INHERITED)) => 2,
            enters => usize::from(enters),
        };
        (silent[kind].into(), descriptor.into())
    }

    /// A hook that somebody adds to the helper class is silenced as well.
    #[test]
    fn whatever_hooks_call_has_a_silent_counterpart() {
        let silents = offered(helper_class::bytes_in_live(WAS));
        for (name, descriptor) in hooked_classes().flat_map(offered) {
            let is_there = silents.contains(&silent(&name, &descriptor));
            assert!(is_there || INSTEAD.contains(&&*name), "{name}{descriptor}");
        }
        let inherited: BTreeSet<_> = inherited_methods()
            .iter()
            .map(|method| {
                let name = format!("{}{}", method.prefix, method.helper.name);
                (name, method.helper.descriptor.to_string())
            })
            .collect();
        for (name, descriptor) in &inherited {
            let is_instead = INSTEAD.contains(&name.trim_start_matches(INHERITED));
            let is_there = inherited.contains(&silent(name, descriptor));
            assert!(is_there || is_instead, "{name}{descriptor}");
        }
    }

    /// The helper class calls its own methods, hooks among them.
    #[test]
    fn calls_of_hooks_become_calls_that_do_nothing_and_others_stay() {
        for class in hooked_classes() {
            let after = silenced(class).unwrap();
            let (before, after) = (calls(class), calls(&after));
            assert_eq!(before.len(), after.len());
            let mut count = 0;
            for (old, new) in before.iter().zip(&after) {
                let is_hook = CALLED_BY_HOOKS.contains(&&*old.0);
                if is_hook && !INSTEAD.contains(&&*old.1) {
                    let (name, descriptor) = silent(&old.1, &old.2);
                    assert_eq!(new, &(WAS.into(), name, descriptor));
                    count += 1;
                } else {
                    assert_eq!(new, old);
                }
            }
            assert!(count > 0);
        }
    }

    /// A class of a loader that need not know the helper class.
    #[test]
    fn inherited_hooks_become_inherited_ones_that_do_nothing() {
        let class = ClassFile::parse(frames()).unwrap();
        let mut methods = class.methods().iter();
        let index = methods.position(|method| &*method.name == "pub").unwrap();
        let entry = Entry {
            helper: ENTER,
            argument: None,
        };
        let method = MethodPlan {
            entry: Some(entry),
            exit: Some(EXIT_VM),
            ..MethodPlan::default()
        };
        let plan = Plan {
            methods: [(index, method)].into(),
            inherited: Some(INHERITED),
            ..Plan::default()
        };
        let hooked = rewrite(&class, &plan).unwrap().bytes;
        let inherited = |bytes: &[u8]| {
            let calls = calls(bytes).into_iter();
            let calls = calls.filter(|call| call.1.starts_with(INHERITED));
            calls.collect::<Vec<_>>()
        };
        let before = inherited(&hooked);
        assert_eq!(before.len(), 2);
        let silent = before.into_iter().map(|(owner, name, descriptor)| {
            let (name, descriptor) = silent(&name, &descriptor);
            (owner, name, descriptor)
        });
        let after = silenced(&hooked).unwrap();
        assert_eq!(inherited(&after), silent.collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_class_or_has_a_full_pool_is_left_alone() {
        assert_eq!(silenced(b""), None);
        assert_eq!(silenced(&frames()[..frames().len() / 8]), None);
        // As many constants as a pool can have.
        let pool = Pool::read(frames()).unwrap();
        let mut full = frames().to_vec();
        let missing = usize::from(u16::MAX) - pool.entries.len();
        full.splice(pool.end..pool.end, [3, 0, 0, 0, 0].repeat(missing));
        full[COUNT..COUNT + 2].copy_from_slice(&u16::MAX.to_be_bytes());
        assert!(Pool::read(&full).is_some());
        assert_eq!(silenced(&full), None);
    }
}
