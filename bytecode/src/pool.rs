//! The constant pool (JVMS 4.4): read in place, and only appended to.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::mutf8;
use crate::plan::HelperMethod;
use crate::reader::ClassFileReader;

pub(crate) const UTF8: u8 = 1;
pub(crate) const INTEGER: u8 = 3;
pub(crate) const FLOAT: u8 = 4;
pub(crate) const LONG: u8 = 5;
pub(crate) const DOUBLE: u8 = 6;
pub(crate) const CLASS: u8 = 7;
pub(crate) const STRING: u8 = 8;
pub(crate) const FIELDREF: u8 = 9;
pub(crate) const METHODREF: u8 = 10;
pub(crate) const INTERFACE_METHODREF: u8 = 11;
pub(crate) const NAME_AND_TYPE: u8 = 12;
pub(crate) const METHOD_HANDLE: u8 = 15;
pub(crate) const METHOD_TYPE: u8 = 16;
pub(crate) const DYNAMIC: u8 = 17;
pub(crate) const INVOKE_DYNAMIC: u8 = 18;
const MODULE: u8 = 19;
const PACKAGE: u8 = 20;

/// The constants of a class, as they are in its file.
#[derive(Debug)]
pub struct ConstantPool<'a> {
    /// The class file up to the end of the pool.
    bytes: &'a [u8],
    /// Offset of each entry's tag; 0 if an index has no entry.
    offsets: Vec<u32>,
}

/// A field or method reference, or the name and type of a dynamic constant (without an owner).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberRef<'a> {
    pub(crate) owner: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) descriptor: &'a [u8],
}

impl<'a> ConstantPool<'a> {
    /// Tag of a text (JVMS 4.4.7).
    pub const UTF8: u8 = UTF8;
    /// Tag of a class (JVMS 4.4.1).
    pub const CLASS: u8 = CLASS;
    /// Tag of a method of a class (JVMS 4.4.2).
    pub const METHODREF: u8 = METHODREF;
    /// Tag of a name with a descriptor (JVMS 4.4.6).
    pub const NAME_AND_TYPE: u8 = NAME_AND_TYPE;
    /// Offset of `constant_pool_count` in a class file, behind magic and version.
    pub const COUNT_OFFSET: usize = 8;

    /// Reads the constants of a class alone. The bytes may end behind them; magic and version are not checked.
    pub fn read_from_class(bytes: &'a [u8]) -> Result<Self, BytecodeError> {
        let mut reader = ClassFileReader::new(bytes, 0, "class file");
        reader.take_bytes(Self::COUNT_OFFSET)?;
        Self::parse(bytes, &mut reader)
    }

    /// Reads from `constant_pool_count` on and leaves the reader behind the last entry.
    pub(crate) fn parse(
        file: &'a [u8],
        reader: &mut ClassFileReader<'a>,
    ) -> Result<Self, BytecodeError> {
        let count = usize::from(reader.u2()?);
        let mut offsets = vec![0; count];
        let mut slots = offsets.iter_mut().skip(1);
        while let Some(slot) = slots.next() {
            *slot = u32::try_from(reader.offset())
                .map_err(|_| reader.error_here(BytecodeErrorKind::Truncated))?;
            let tag = reader.u1()?;
            let len = match tag {
                UTF8 => usize::from(reader.u2()?),
                INTEGER | FLOAT | FIELDREF..=NAME_AND_TYPE | DYNAMIC | INVOKE_DYNAMIC => 4,
                LONG | DOUBLE => 8,
                CLASS | STRING | METHOD_TYPE | MODULE | PACKAGE => 2,
                METHOD_HANDLE => 3,
                _ => return Err(reader.error_here(BytecodeErrorKind::BadConstantTag(tag))),
            };
            reader.take_bytes(len)?;
            // Longs and doubles take two indices; the second is unusable (JVMS 4.4.5). It must exist: otherwise it
            // would be the index of the first appended constant.
            if matches!(tag, LONG | DOUBLE) && slots.next().is_none() {
                return Err(reader.error_here(BytecodeErrorKind::Truncated));
            }
        }
        let bytes = file.get(..reader.offset()).unwrap_or(file);
        Ok(Self { bytes, offsets })
    }

    /// `constant_pool_count`: the number of indices, with the unused index 0.
    pub fn count(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the entries as they are in the file.
    pub(crate) fn entries(&self) -> &'a [u8] {
        self.bytes.get(10..).unwrap_or_default()
    }

    /// Returns the offset behind the last constant in the class file.
    pub fn end_offset(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the offset of a constant's tag in the class file. `None`: the index has no constant.
    pub fn constant_offset(&self, index: u16) -> Option<usize> {
        let offset = self.offsets.get(usize::from(index)).copied()?;
        (offset != 0).then_some(offset as usize)
    }

    /// Returns the tag of a constant.
    pub fn tag(&self, index: u16) -> Result<u8, BytecodeError> {
        self.entry(index).map(|(tag, _)| tag)
    }

    /// Tag and contents of an entry.
    pub(crate) fn entry(&self, index: u16) -> Result<(u8, ClassFileReader<'a>), BytecodeError> {
        let offset = self.offsets.get(usize::from(index)).copied().unwrap_or(0) as usize;
        match self.bytes.get(offset..) {
            Some(rest) if offset != 0 => {
                let mut reader = ClassFileReader::new(rest, offset, "constant");
                Ok((reader.u1()?, reader))
            }
            _ => Err(bad_constant(index)),
        }
    }

    fn entry_with_tag(&self, index: u16, tag: u8) -> Result<ClassFileReader<'a>, BytecodeError> {
        match self.entry(index)? {
            (found, reader) if found == tag => Ok(reader),
            _ => Err(bad_constant(index)),
        }
    }

    /// Returns the bytes of a text, in the modified UTF-8 of class files.
    pub fn utf8(&self, index: u16) -> Result<&'a [u8], BytecodeError> {
        let mut reader = self.entry_with_tag(index, UTF8)?;
        let len = usize::from(reader.u2()?);
        reader.take_bytes(len)
    }

    pub(crate) fn text_at(&self, index: u16) -> Result<Cow<'a, str>, BytecodeError> {
        self.utf8(index).map(mutf8::decode)
    }

    /// Returns the internal name of a class constant.
    pub fn class_name(&self, index: u16) -> Result<&'a [u8], BytecodeError> {
        let name = self.entry_with_tag(index, CLASS)?.u2()?;
        self.utf8(name)
    }

    fn name_and_type(&self, index: u16) -> Result<(&'a [u8], &'a [u8]), BytecodeError> {
        let mut reader = self.entry_with_tag(index, NAME_AND_TYPE)?;
        let (name, descriptor) = (reader.u2()?, reader.u2()?);
        Ok((self.utf8(name)?, self.utf8(descriptor)?))
    }

    /// Reads any kind of field, method or dynamic reference.
    pub(crate) fn member_ref(&self, index: u16) -> Result<MemberRef<'a>, BytecodeError> {
        let (tag, mut reader) = self.entry(index)?;
        let first = reader.u2()?;
        let owner = match tag {
            FIELDREF | METHODREF | INTERFACE_METHODREF => self.class_name(first)?,
            DYNAMIC | INVOKE_DYNAMIC => b"",
            _ => return Err(bad_constant(index)),
        };
        let (name, descriptor) = self.name_and_type(reader.u2()?)?;
        Ok(MemberRef {
            owner,
            name,
            descriptor,
        })
    }

    /// Returns the constants to which a constant refers; 0: none.
    pub fn referenced_indices(&self, index: u16) -> Result<[u16; 2], BytecodeError> {
        let (tag, mut reader) = self.entry(index)?;
        Ok(match tag {
            CLASS | STRING | METHOD_TYPE | MODULE | PACKAGE => [reader.u2()?, 0],
            FIELDREF..=NAME_AND_TYPE => [reader.u2()?, reader.u2()?],
            METHOD_HANDLE => {
                reader.u1()?;
                [reader.u2()?, 0]
            }
            DYNAMIC | INVOKE_DYNAMIC => {
                reader.u2()?;
                [reader.u2()?, 0]
            }
            _ => [0, 0],
        })
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = u16> + use<> {
        1..=u16::try_from(self.count().saturating_sub(1)).unwrap_or(u16::MAX)
    }
}

#[cold]
fn bad_constant(index: u16) -> BytecodeError {
    BytecodeError::new(BytecodeErrorKind::BadConstant(index), 0, "constant pool")
}

/// Constants to append to an existing pool, each at most once.
///
/// If there is little room, existing texts and integers of the class are reused, and integers without room are computed
/// from others: see [`PoolAdditions::near_integer`].
/// there is no room are made of others: see [`PoolAdditions::near_integer`].
#[derive(Debug)]
pub(crate) struct PoolAdditions<'c, 'a, 'p> {
    pool: &'c ConstantPool<'a>,
    bytes: Vec<u8>,
    next: usize,
    capacity: PoolCapacity,
    texts: HashMap<Cow<'a, [u8]>, u16>,
    integers: BTreeMap<i32, u16>,
    /// The added integers, with the offset of their four bytes in `bytes`.
    added_integers: Vec<(usize, i32)>,
    /// `Class` constants by name, including those of the original pool once it was searched.
    classes: HashMap<Cow<'a, [u8]>, u16>,
    classes_indexed: bool,
    /// A class has few helpers: searching is faster than hashing three strings.
    helpers: Vec<(HelperMethod<'p>, u16)>,
    inherited: Option<InheritedHelpers<'p>>,
}

/// For inherited helpers: the class constant to name, and the prefix of their names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InheritedHelpers<'p> {
    pub(crate) owner: u16,
    pub(crate) prefix: &'p str,
}

/// How much room the pool has for constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolCapacity {
    /// Each integer can have a constant.
    Ample,
    /// Not every integer can have a constant.
    Tight,
}

/// The state of the additions at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolCheckpoint {
    bytes: usize,
    next: usize,
}

/// `constant_pool_count` is a u2, so the last usable index is 65,534.
const FULL: usize = u16::MAX as usize;

/// Enough for the additions of most classes.
const FIRST_BYTES: usize = 512;

/// If room is tight, this many constants are reserved for helpers and others that need one.
const KEPT_FOR_HELPERS: usize = 64;

impl<'c, 'a, 'p> PoolAdditions<'c, 'a, 'p> {
    pub(crate) fn new(
        pool: &'c ConstantPool<'a>,
        room: PoolCapacity,
        inherited: Option<InheritedHelpers<'p>>,
    ) -> Self {
        let mut new = Self {
            pool,
            bytes: Vec::with_capacity(FIRST_BYTES),
            next: pool.count(),
            capacity: room,
            texts: HashMap::new(),
            integers: BTreeMap::new(),
            added_integers: Vec::new(),
            classes: HashMap::new(),
            classes_indexed: false,
            helpers: Vec::new(),
            inherited,
        };
        if room == PoolCapacity::Tight {
            new.reuse_existing();
        }
        new
    }

    /// Registers the constants that the class has.
    fn reuse_existing(&mut self) {
        for index in self.pool.indices() {
            match self.pool.entry(index) {
                Ok((UTF8, _)) => {
                    let text = self.pool.utf8(index).unwrap_or_default();
                    self.texts.entry(Cow::Borrowed(text)).or_insert(index);
                }
                Ok((INTEGER, mut reader)) => {
                    self.integers
                        .entry(reader.i4().unwrap_or_default())
                        .or_insert(index);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn pool(&self) -> &'c ConstantPool<'a> {
        self.pool
    }

    pub(crate) fn capacity(&self) -> PoolCapacity {
        self.capacity
    }

    /// The new `constant_pool_count`.
    pub(crate) fn count(&self) -> usize {
        self.next
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn added_integers(&self) -> &[(usize, i32)] {
        &self.added_integers
    }

    pub(crate) fn checkpoint(&self) -> PoolCheckpoint {
        PoolCheckpoint {
            bytes: self.bytes.len(),
            next: self.next,
        }
    }

    /// Removes everything that was added since; nothing uses it.
    pub(crate) fn roll_back_to(&mut self, mark: PoolCheckpoint) {
        if self.next == mark.next {
            return;
        }
        let stays = |index: u16| usize::from(index) < mark.next;
        self.bytes.truncate(mark.bytes);
        self.next = mark.next;
        self.texts.retain(|_, index| stays(*index));
        self.integers.retain(|_, index| stays(*index));
        self.added_integers.retain(|(at, _)| *at < mark.bytes);
        self.classes.retain(|_, index| stays(*index));
        self.helpers.retain(|(_, index)| stays(*index));
    }

    fn add_constant(&mut self, tag: u8, contents: &[&[u8]]) -> Result<u16, BytecodeError> {
        let index = u16::try_from(self.next).map_err(|_| self.full())?;
        if self.next >= FULL {
            return Err(self.full());
        }
        self.bytes.push(tag);
        for part in contents {
            self.bytes.extend_from_slice(part);
        }
        self.next += 1;
        Ok(index)
    }

    fn full(&self) -> BytecodeError {
        BytecodeError::new(
            BytecodeErrorKind::PoolFull,
            self.pool.bytes.len(),
            "constant pool",
        )
    }

    pub(crate) fn intern_utf8(&mut self, text: &[u8]) -> Result<u16, BytecodeError> {
        if let Some(&index) = self.texts.get(text) {
            return Ok(index);
        }
        let len = u16::try_from(text.len()).map_err(|_| {
            BytecodeError::new(
                BytecodeErrorKind::BadPlan("name too long"),
                0,
                "constant pool",
            )
        })?;
        let index = self.add_constant(UTF8, &[&len.to_be_bytes(), text])?;
        self.texts.insert(Cow::Owned(text.to_vec()), index);
        Ok(index)
    }

    pub(crate) fn intern_text(&mut self, text: &str) -> Result<u16, BytecodeError> {
        self.intern_utf8(&mutf8::encode(text))
    }

    pub(crate) fn intern_integer(&mut self, value: i32) -> Result<u16, BytecodeError> {
        if let Some(&index) = self.integers.get(&value) {
            return Ok(index);
        }
        // Behind its tag.
        let at = self.bytes.len() + 1;
        let index = self.add_constant(INTEGER, &[&value.to_be_bytes()])?;
        self.integers.insert(value, index);
        self.added_integers.push((at, value));
        Ok(index)
    }

    /// If room is tight: returns an integer constant within reach of a `sipush` from `value`, and the distance. `None`:
    /// there is none, and no room for one.
    pub(crate) fn near_integer(&mut self, value: i32) -> Option<(u16, i16)> {
        let from = value.saturating_sub(i32::from(i16::MAX));
        let to = value.saturating_sub(i32::from(i16::MIN));
        let nearest = self.integers.range(from..=to).next();
        let (near, index) = match nearest {
            Some((near, index)) => (*near, *index),
            None if self.next + KEPT_FOR_HELPERS < FULL => (to, self.intern_integer(to).ok()?),
            None => return None,
        };
        let distance = i16::try_from(value.checked_sub(near)?).ok()?;
        Some((index, distance))
    }

    /// Returns a `Class` constant, the class's own one if it has it.
    pub(crate) fn intern_class(&mut self, name: &[u8]) -> Result<u16, BytecodeError> {
        self.index_existing_classes();
        if let Some(&index) = self.classes.get(name) {
            return Ok(index);
        }
        let text = self.intern_utf8(name)?;
        let index = self.add_constant(CLASS, &[&text.to_be_bytes()])?;
        self.classes.insert(Cow::Owned(name.to_vec()), index);
        Ok(index)
    }

    fn index_existing_classes(&mut self) {
        if std::mem::replace(&mut self.classes_indexed, true) {
            return;
        }
        for index in self.pool.indices() {
            if let Ok(name) = self.pool.class_name(index) {
                self.classes.entry(Cow::Borrowed(name)).or_insert(index);
            }
        }
    }

    /// Adds a `Long`, which takes two indices.
    pub(crate) fn add_long(&mut self, value: i64) -> Result<u16, BytecodeError> {
        let index = self.add_constant(LONG, &[&value.to_be_bytes()])?;
        self.next += 1;
        match self.next > FULL {
            true => Err(self.full()),
            false => Ok(index),
        }
    }

    /// Adds a `Fieldref` to a field of this class.
    pub(crate) fn add_field(
        &mut self,
        class: u16,
        name: &str,
        descriptor: &str,
    ) -> Result<u16, BytecodeError> {
        let name = self.intern_text(name)?.to_be_bytes();
        let descriptor = self.intern_text(descriptor)?.to_be_bytes();
        let both = self.add_constant(NAME_AND_TYPE, &[&name, &descriptor])?;
        self.add_constant(FIELDREF, &[&class.to_be_bytes(), &both.to_be_bytes()])
    }

    /// Returns a `Methodref` to a static helper.
    pub(crate) fn intern_method(
        &mut self,
        helper: &HelperMethod<'p>,
    ) -> Result<u16, BytecodeError> {
        if let Some((_, index)) = self.helpers.iter().find(|(known, _)| known == helper) {
            return Ok(*index);
        }
        let index = self.add_method(helper)?;
        self.helpers.push((*helper, index));
        Ok(index)
    }

    fn add_method(&mut self, helper: &HelperMethod<'_>) -> Result<u16, BytecodeError> {
        let (owner, name) = match self.inherited {
            Some(InheritedHelpers { owner, prefix }) => (
                owner,
                self.intern_text(&format!("{prefix}{}", helper.name))?,
            ),
            None => {
                let owner = self.intern_class(&mutf8::encode(helper.class))?;
                (owner, self.intern_text(helper.name)?)
            }
        };
        let (owner, name) = (owner.to_be_bytes(), name.to_be_bytes());
        let descriptor = self.intern_text(helper.descriptor)?.to_be_bytes();
        let both = self.add_constant(NAME_AND_TYPE, &[&name, &descriptor])?;
        self.add_constant(METHODREF, &[&owner, &both.to_be_bytes()])
    }
}
