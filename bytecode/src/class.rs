//! The `ClassFile` structure (JVMS 4.1) and its methods (JVMS 4.6).

use std::borrow::Cow;
use std::ops::Range;

use crate::annotations::{self, AnnotationTexts};
use crate::code::CodeAttribute;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::mutf8;
use crate::pool::ConstantPool;
use crate::reader::ClassFileReader;
use crate::scan::CodeScan;

/// First major version whose methods have a `StackMapTable`; older VMs do not read it.
pub(crate) const FIRST_WITH_FRAMES: u16 = 50;
const MAGIC: u32 = 0xCAFE_BABE;

/// A parsed view of a class file; it borrows the bytes.
///
/// Parsing finds the structures; code is decoded by [`ClassFile::scan_code`] and [`crate::rewrite()`].
#[derive(Debug)]
pub struct ClassFile<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) pool: ConstantPool<'a>,
    pub(crate) this_class: u16,
    pub(crate) fields_count: u16,
    /// From `access_flags` up to `fields_count`.
    pub(crate) head: Range<usize>,
    /// All `field_info` structures.
    pub(crate) fields: Range<usize>,
    /// From `methods_count` on to the end of the last method.
    pub(crate) methods_at: usize,
    pub(crate) methods_end: usize,
    major: u16,
    access: u16,
    super_class: u16,
    interfaces: Vec<u16>,
    methods: Vec<ClassFileMethod<'a>>,
    source_file: Option<u16>,
    /// Its `RuntimeVisibleAnnotations`.
    annotations: Option<ClassFileReader<'a>>,
    name: Cow<'a, str>,
}

/// A `method_info` (JVMS 4.6).
#[derive(Debug)]
pub struct ClassFileMethod<'a> {
    /// The unqualified name.
    pub name: Cow<'a, str>,
    /// The descriptor.
    pub descriptor: Cow<'a, str>,
    /// The access flags.
    pub access: u16,
    /// Absent in native and abstract methods.
    pub code: Option<CodeAttribute<'a>>,
    /// Types of its `RuntimeVisibleAnnotations`.
    annotations: Vec<&'a [u8]>,
    /// The last of these attributes.
    annotation_body: Option<ClassFileReader<'a>>,
    /// The whole `method_info`.
    pub(crate) span: Range<usize>,
    pub(crate) raw_name: &'a [u8],
    pub(crate) raw_descriptor: &'a [u8],
}

impl<'a> ClassFile<'a> {
    /// Finds the structures of a class file.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BytecodeError> {
        let mut reader = ClassFileReader::new(bytes, 0, "class file");
        if reader.u4()? != MAGIC {
            return Err(reader.error_here(BytecodeErrorKind::BadMagic));
        }
        let (_minor, major) = (reader.u2()?, reader.u2()?);
        let pool = ConstantPool::parse(bytes, &mut reader)?;
        let head_start = reader.offset();
        let (access, this_class, super_class) = (reader.u2()?, reader.u2()?, reader.u2()?);
        let interfaces = (0..reader.u2()?)
            .map(|_| reader.u2())
            .collect::<Result<Vec<_>, _>>()?;
        let head = head_start..reader.offset();
        let fields_count = reader.u2()?;
        let fields = skip_fields(&mut reader, fields_count)?;
        let methods_at = reader.offset();
        let methods = (0..reader.u2()?)
            .map(|_| ClassFileMethod::parse(&pool, &mut reader))
            .collect::<Result<Vec<_>, _>>()?;
        let methods_end = reader.offset();
        // More bytes may follow: the VM decides whether that is valid.
        let (source_file, annotations) = read_class_attributes(&pool, &mut reader)?;
        Ok(Self {
            name: mutf8::decode(pool.class_name(this_class)?),
            bytes,
            pool,
            this_class,
            fields_count,
            head,
            fields,
            methods_at,
            methods_end,
            major,
            access,
            super_class,
            interfaces,
            methods,
            source_file,
            annotations,
        })
    }

    /// Whether the VM verifies a method without its frames if verification with them fails (JVMS 4.10).
    pub(crate) fn has_optional_frames(&self) -> bool {
        self.major == FIRST_WITH_FRAMES
    }

    /// Returns a reader from the access flags on.
    pub(crate) fn reader_after_pool(&self) -> ClassFileReader<'a> {
        let rest = self.bytes.get(self.head.start..).unwrap_or_default();
        ClassFileReader::new(rest, self.head.start, "class file")
    }

    /// The internal name: `java/lang/Object`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The superclass's internal name; none for `java/lang/Object` and module descriptors.
    pub fn super_name(&self) -> Option<Cow<'a, str>> {
        self.pool
            .class_name(self.super_class)
            .ok()
            .map(mutf8::decode)
    }

    /// Whether a constant contains this text; it may be the name of a class, or part of one.
    pub fn mentions_text(&self, text: &str) -> bool {
        let mut windows = self.pool.entries().windows(text.len().max(1));
        windows.any(|window| window == text.as_bytes())
    }

    /// The access flags.
    pub fn access(&self) -> u16 {
        self.access
    }

    /// Returns a class constant through which static methods of `java/lang/Object` can be called.
    ///
    /// It is the superclass, which was loaded before, so no class loader is asked. (For the class's own name the loader
    /// may be asked: HotSpot looks up classes that reflection's accessors name in their loader's parent.)
    pub(crate) fn super_class_index(&self) -> u16 {
        self.super_class
    }

    /// The major version: 61 for Java 17.
    pub fn major(&self) -> u16 {
        self.major
    }

    /// Returns the value of the `SourceFile` attribute (JVMS 4.7.10).
    pub fn source_file(&self) -> Option<Cow<'a, str>> {
        self.pool.text_at(self.source_file?).ok()
    }

    /// Internal names of the direct superinterfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = Cow<'a, str>> + '_ {
        self.interfaces
            .iter()
            .filter_map(|&index| self.pool.class_name(index).ok().map(mutf8::decode))
    }

    /// Reads the class's run-time visible annotations.
    pub fn annotations(&self) -> Vec<AnnotationTexts<'a>> {
        self.read_annotations(self.annotations)
    }

    /// Reads the run-time visible annotations of one of the class's methods.
    pub fn annotations_of_method(&self, method: &ClassFileMethod<'a>) -> Vec<AnnotationTexts<'a>> {
        self.read_annotations(method.annotation_body)
    }

    fn read_annotations(&self, body: Option<ClassFileReader<'a>>) -> Vec<AnnotationTexts<'a>> {
        body.map_or_else(Vec::new, |body| {
            annotations::read_annotations(&self.pool, body)
        })
    }

    /// All methods; a [`crate::ClassPlan`] names them by index in this slice.
    pub fn methods(&self) -> &[ClassFileMethod<'a>] {
        &self.methods
    }

    /// Whether the class has a field of this name.
    pub fn has_field(&self, name: &str) -> bool {
        let fields = self.bytes.get(self.fields.clone()).unwrap_or_default();
        let mut reader = ClassFileReader::new(fields, self.fields.start, "fields");
        let mut names = (0..self.fields_count).map_while(|_| field_name(&mut reader).ok());
        names.any(|index| self.pool.text_at(index).is_ok_and(|text| text == name))
    }

    /// Decodes a method's code for a planner.
    pub fn scan_code(&self, code: &CodeAttribute<'a>) -> Result<CodeScan<'a>, BytecodeError> {
        CodeScan::from_code(&self.pool, code)
    }
}

/// Returns the name index of the field at the reader's position.
fn field_name(reader: &mut ClassFileReader<'_>) -> Result<u16, BytecodeError> {
    reader.take_bytes(2)?;
    let name = reader.u2()?;
    reader.take_bytes(2)?;
    skip_attributes(reader)?;
    Ok(name)
}

fn skip_fields(
    reader: &mut ClassFileReader<'_>,
    count: u16,
) -> Result<Range<usize>, BytecodeError> {
    let start = reader.offset();
    for _ in 0..count {
        reader.take_bytes(6)?;
        skip_attributes(reader)?;
    }
    Ok(start..reader.offset())
}

fn skip_attributes(reader: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
    for _ in 0..reader.u2()? {
        reader.take_bytes(2)?;
        reader.read_block()?;
    }
    Ok(())
}

/// Returns the index of the `SourceFile`'s name, and the `RuntimeVisibleAnnotations`.
fn read_class_attributes<'a>(
    pool: &ConstantPool<'a>,
    reader: &mut ClassFileReader<'a>,
) -> Result<(Option<u16>, Option<ClassFileReader<'a>>), BytecodeError> {
    let (mut source_file, mut annotations) = (None, None);
    for _ in 0..reader.u2()? {
        let name = reader.u2()?;
        let mut body = reader.read_block()?;
        match pool.utf8(name)? {
            b"SourceFile" => source_file = Some(body.u2()?),
            b"RuntimeVisibleAnnotations" => annotations = Some(body),
            _ => {}
        }
    }
    Ok((source_file, annotations))
}

impl<'a> ClassFileMethod<'a> {
    fn parse(
        pool: &ConstantPool<'a>,
        reader: &mut ClassFileReader<'a>,
    ) -> Result<Self, BytecodeError> {
        let start = reader.offset();
        let access = reader.u2()?;
        let raw_name = pool.utf8(reader.u2()?)?;
        let raw_descriptor = pool.utf8(reader.u2()?)?;
        let mut method = Self {
            name: mutf8::decode(raw_name),
            descriptor: mutf8::decode(raw_descriptor),
            access,
            code: None,
            annotations: Vec::new(),
            annotation_body: None,
            span: start..start,
            raw_name,
            raw_descriptor,
        };
        for _ in 0..reader.u2()? {
            method.parse_attribute(pool, reader)?;
        }
        method.span.end = reader.offset();
        Ok(method)
    }

    fn parse_attribute(
        &mut self,
        pool: &ConstantPool<'a>,
        reader: &mut ClassFileReader<'a>,
    ) -> Result<(), BytecodeError> {
        let name = pool.utf8(reader.u2()?)?;
        let body = reader.read_block()?;
        match name {
            b"Code" if self.code.is_some() => Err(body.error_here(BytecodeErrorKind::Trailing)),
            b"Code" => {
                self.code = Some(CodeAttribute::parse(body)?);
                Ok(())
            }
            b"RuntimeVisibleAnnotations" => {
                annotations::collect_annotation_types(pool, body, &mut self.annotations);
                self.annotation_body = Some(body);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the method is static.
    pub fn is_static(&self) -> bool {
        self.access & 0x0008 != 0
    }

    /// Whether the method has a run-time visible annotation of a type such as `Ljava/lang/Deprecated;`.
    pub fn has_annotation(&self, descriptor: &str) -> bool {
        let wanted = mutf8::encode(descriptor);
        self.annotations.iter().any(|found| **found == *wanted)
    }
}
