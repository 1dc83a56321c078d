//! Reassembles the class: everything that the plan does not change is copied.

use std::ops::Range;

use crate::assemble::Assembler;
use crate::bounds::{BoundsChecker, parameter_slots};
use crate::class::{ClassFile, ClassFileMethod};
use crate::code::CodeAttribute;
use crate::edits::{CodeEdits, EditPlanner};
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::frames::NewLocals;
use crate::indices;
use crate::layout::{self, BranchWidth, CodeLayout};
use crate::plan::{ClassPlan, MethodPlan, NewField, NewMethod};
use crate::pool::{InheritedHelpers, PoolAdditions, PoolCapacity};
use crate::reader::ClassFileReader;
use crate::tables::{CodeTableWriter, write_with_length};

/// A rewritten class.
#[derive(Debug)]
pub struct RewrittenClass {
    /// The class file.
    pub bytes: Vec<u8>,
    /// Methods that were left unchanged, by index, with the reason: usually that they would be too large.
    pub skipped: Vec<(usize, BytecodeError)>,
    /// Methods, by index, that exceed [`LONGEST_COMPILED`] only since the rewrite.
    pub outgrown: Vec<usize>,
    /// The integers that are too large for an instruction, each in its own constant: the offset of its four bytes in
    /// the class file, and its value.
    ///
    /// Changing these bytes changes nothing else. `None`: the constant pool had too little room, and some integers are
    /// computed from others.
    pub integers: Option<Vec<(usize, i32)>>,
}

/// Length in bytes of the longest code that HotSpot's compilers accept (`HugeMethodLimit`). Longer methods are only
/// interpreted, unless `-XX:-DontCompileHugeMethods` is set.
pub const LONGEST_COMPILED: usize = 8000;

/// The stack of a new method, unless its parameters need more.
const NEW_METHOD_STACK: u16 = 8;

/// Executes a plan. With an empty plan, the result is the original class.
///
/// # Errors
/// The class cannot be rewritten at all: it refers to missing constants, the plan names missing methods, or there is no
/// room for new fields.
pub fn rewrite(
    class: &ClassFile<'_>,
    plan: &ClassPlan<'_>,
) -> Result<RewrittenClass, BytecodeError> {
    rewrite_with(class, plan, BranchWidth::AsNeeded)
}

/// As [`rewrite`], with every branch in its wide form. Otherwise only huge methods need that; tests use it on all code.
#[doc(hidden)]
pub fn rewrite_all_wide(
    class: &ClassFile<'_>,
    plan: &ClassPlan<'_>,
) -> Result<RewrittenClass, BytecodeError> {
    rewrite_with(class, plan, BranchWidth::AllWide)
}

fn rewrite_with(
    class: &ClassFile<'_>,
    plan: &ClassPlan<'_>,
    branches: BranchWidth,
) -> Result<RewrittenClass, BytecodeError> {
    if let Some((&index, _)) = plan.methods.range(class.methods().len()..).next() {
        return Err(BytecodeError::new(
            BytecodeErrorKind::BadPlan("no such method"),
            index,
            "plan",
        ));
    }
    match rewrite_in(class, plan, branches, PoolCapacity::Ample) {
        Err(error) if error.kind == BytecodeErrorKind::PoolFull => {
            rewrite_in(class, plan, branches, PoolCapacity::Tight)
        }
        done => done,
    }
}

fn rewrite_in(
    class: &ClassFile<'_>,
    plan: &ClassPlan<'_>,
    branches: BranchWidth,
    room: PoolCapacity,
) -> Result<RewrittenClass, BytecodeError> {
    let inherited = plan.inherited.map(|prefix| InheritedHelpers {
        owner: class.super_class_index(),
        prefix,
    });
    let mut rewriter = ClassRewriter {
        class,
        branches,
        pool: PoolAdditions::new(&class.pool, room, inherited),
        skipped: Vec::new(),
        outgrown: Vec::new(),
        bounds: BoundsChecker::default(),
        edits: CodeEdits::default(),
        layout: CodeLayout::default(),
    };
    let fields = rewriter.write_new_fields(&plan.fields)?;
    let mut methods = rewriter.rewrite_methods(plan)?;
    rewriter.append_new_methods(&plan.new_methods, &mut methods)?;
    if rewriter.pool.count() > class.pool.count() {
        indices::check_indices(class)?;
    }
    Ok(RewrittenClass {
        bytes: rewriter.assemble_class(&fields, plan.fields.len(), &methods)?,
        integers: rewriter.added_integers(),
        skipped: rewriter.skipped,
        outgrown: rewriter.outgrown,
    })
}

/// The offset of the first constant: behind magic, version and count.
const POOL_AT: usize = 10;

struct ClassRewriter<'c, 'a, 'p> {
    class: &'c ClassFile<'a>,
    branches: BranchWidth,
    pool: PoolAdditions<'c, 'a, 'p>,
    skipped: Vec<(usize, BytecodeError)>,
    outgrown: Vec<usize>,
    // Reused from method to method.
    bounds: BoundsChecker,
    edits: CodeEdits,
    layout: CodeLayout,
}

impl<'c, 'a, 'p> ClassRewriter<'c, 'a, 'p> {
    fn class_bytes(&self, range: Range<usize>) -> &'a [u8] {
        self.class.bytes.get(range).unwrap_or_default()
    }

    /// `field_info` structures without attributes (JVMS 4.5).
    fn write_new_fields(&mut self, fields: &[NewField<'p>]) -> Result<Vec<u8>, BytecodeError> {
        let mut out = Vec::new();
        for field in fields {
            let name = self.pool.intern_text(field.name)?;
            let descriptor = self.pool.intern_text(field.descriptor)?;
            for value in [field.access, name, descriptor, 0] {
                out.extend(value.to_be_bytes());
            }
        }
        Ok(out)
    }

    /// Returns everything from `methods_count` to the last method.
    fn rewrite_methods(&mut self, plan: &ClassPlan<'p>) -> Result<Vec<u8>, BytecodeError> {
        let class = self.class;
        let size = class.methods_end - class.methods_at;
        let mut out = Vec::with_capacity(size + size / 2);
        let mut copied = class.methods_at;
        for (&index, method_plan) in &plan.methods {
            let Some(method) = class.methods().get(index) else {
                continue;
            };
            out.extend(self.class_bytes(copied..method.span.start));
            copied = method.span.start;
            let (start, mark) = (out.len(), self.pool.checkpoint());
            match self.rewrite_method(method, method_plan, &mut out) {
                Ok(()) => {
                    copied = method.span.end;
                    if self.has_outgrown(method) {
                        self.outgrown.push(index);
                    }
                }
                Err(error)
                    if error.kind == BytecodeErrorKind::PoolFull && self.has_ample_room() =>
                {
                    return Err(error);
                }
                Err(error) => {
                    out.truncate(start);
                    self.pool.roll_back_to(mark);
                    self.skipped.push((index, error));
                }
            }
        }
        out.extend(self.class_bytes(copied..class.methods_end));
        Ok(out)
    }

    /// Appends methods to bytes that begin with `methods_count`.
    fn append_new_methods(
        &mut self,
        new: &[NewMethod<'p>],
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        if new.is_empty() {
            return Ok(());
        }
        let count = self.class.methods().len() + new.len();
        let count = u16::try_from(count).map_err(|_| bad_plan("too many methods"))?;
        for method in new {
            self.append_new_method(method, out)?;
        }
        if let Some(slot) = out.get_mut(..2) {
            slot.copy_from_slice(&count.to_be_bytes());
        }
        Ok(())
    }

    fn append_new_method(
        &mut self,
        method: &NewMethod<'p>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let helper = &method.helper;
        let name = self
            .pool
            .intern_text(&format!("{}{}", method.prefix, helper.name))?;
        let descriptor = self.pool.intern_text(helper.descriptor)?;
        for value in [method.access, name, descriptor, 2] {
            out.extend(value.to_be_bytes());
        }
        let mut code = Vec::new();
        let mut asm = Assembler {
            out: &mut code,
            pool: &mut self.pool,
        };
        let slots = parameter_slots(helper.descriptor.as_bytes())?;
        match method.code {
            [] => asm.forward_arguments(helper)?,
            code => asm.emit_instructions(code)?,
        }
        let attribute = self.pool.intern_utf8(b"Code")?;
        write_with_length(out, attribute, |out| {
            for value in [slots.max(NEW_METHOD_STACK), slots] {
                out.extend(value.to_be_bytes());
            }
            out.extend((code.len() as u32).to_be_bytes());
            out.extend(&code);
            // No handlers and no attributes.
            out.extend([0; 4]);
            Ok(())
        })?;
        let annotation = self.pool.intern_text(method.annotation)?;
        let attribute = self.pool.intern_utf8(b"RuntimeVisibleAnnotations")?;
        write_with_length(out, attribute, |out| {
            for value in [1, annotation, 0] {
                out.extend(value.to_be_bytes());
            }
            Ok(())
        })
    }

    /// Whether the last rewritten method has outgrown [`LONGEST_COMPILED`].
    fn has_outgrown(&self, method: &ClassFileMethod<'_>) -> bool {
        let before = method.code.as_ref().map_or(0, |code| code.bytes.len());
        before <= LONGEST_COMPILED && self.code_len() > LONGEST_COMPILED
    }

    /// Returns the length of its code in bytes.
    fn code_len(&self) -> usize {
        self.layout.end_offset() as usize + self.edits.unwind_code().len()
    }

    fn has_ample_room(&self) -> bool {
        self.pool.capacity() == PoolCapacity::Ample
    }

    /// Copies a `method_info` around its new code.
    fn rewrite_method(
        &mut self,
        method: &'c ClassFileMethod<'a>,
        plan: &MethodPlan<'p>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let Some(code) = &method.code else {
            return Err(bad_plan("method without code"));
        };
        if plan.unwind.is_some() && method.raw_name == b"<init>" {
            return Err(bad_plan("no unwind handler in a constructor"));
        }
        let local = self.bounds.check_method(self.class, method, code)?;
        // The name and the length of the attribute precede its contents.
        let (start, body) = (code.body.offset() - 6, code.body);
        out.extend(self.class_bytes(method.span.start..start));
        let mut header =
            ClassFileReader::new(self.class_bytes(start..body.offset()), start, "code");
        write_with_length(out, header.u2()?, |out| {
            self.write_code_attribute(method, code, (plan, local), out)
        })?;
        out.extend(self.class_bytes(body.offset() + body.remaining_bytes().len()..method.span.end));
        Ok(())
    }

    /// The contents of a `Code` attribute (JVMS 4.7.3).
    fn write_code_attribute(
        &mut self,
        method: &'c ClassFileMethod<'a>,
        code: &'c CodeAttribute<'a>,
        (plan, local): (&MethodPlan<'p>, u16),
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        self.edits.clear();
        let planner = EditPlanner::new(
            (local, self.class.this_class),
            plan,
            &mut self.pool,
            &mut self.edits,
        )?;
        self.layout.decode_code(code, planner)?;
        self.layout.arrange_code(code, &self.edits, self.branches)?;
        let max_stack = grow_limit(code.max_stack, self.edits.extra_stack(), code)?;
        let local = plan.entry.map(|_| NewLocals {
            first: local,
            count: 1 + plan.kept_count(),
        });
        let max_locals = match local {
            Some(new) => grow_limit(new.first, 2 * new.count, code)?.max(code.max_locals),
            None => code.max_locals,
        };
        for value in [max_stack, max_locals] {
            out.extend(value.to_be_bytes());
        }
        out.extend((self.code_len() as u32).to_be_bytes());
        layout::write_code(out, &self.layout, code, &self.edits)?;
        let mut tables = CodeTableWriter {
            class: self.class,
            method,
            code,
            plan,
            local,
            more_locals: max_locals - code.max_locals,
            layout: &self.layout,
            edits: &self.edits,
            pool: &mut self.pool,
        };
        tables.write_exceptions(out)?;
        tables.write_attributes(out)
    }

    /// See [`RewrittenClass::integers`].
    fn added_integers(&self) -> Option<Vec<(usize, i32)>> {
        let added = POOL_AT + self.class.pool.entries().len();
        let integers = self.pool.added_integers().iter();
        let placed = || integers.map(|(at, value)| (added + at, *value)).collect();
        self.has_ample_room().then(placed)
    }

    /// The `ClassFile` structure (JVMS 4.1).
    fn assemble_class(
        &self,
        fields: &[u8],
        count: usize,
        methods: &[u8],
    ) -> Result<Vec<u8>, BytecodeError> {
        let class = self.class;
        let size = class.bytes.len() + self.pool.bytes().len() + fields.len() + methods.len();
        let mut out = Vec::with_capacity(size);
        out.extend(self.class_bytes(0..8));
        // Additions never exceed the limit.
        out.extend((self.pool.count() as u16).to_be_bytes());
        out.extend(class.pool.entries());
        out.extend(self.pool.bytes());
        out.extend(self.class_bytes(class.head.clone()));
        let fields_count = u16::try_from(count).ok();
        let fields_count = fields_count.and_then(|count| class.fields_count.checked_add(count));
        let fields_count = fields_count.ok_or_else(|| bad_plan("too many fields"))?;
        out.extend(fields_count.to_be_bytes());
        out.extend(self.class_bytes(class.fields.clone()));
        out.extend(fields);
        out.extend(methods);
        out.extend(self.class_bytes(class.methods_end..class.bytes.len()));
        Ok(out)
    }
}

fn grow_limit(old: u16, extra: u16, code: &CodeAttribute<'_>) -> Result<u16, BytecodeError> {
    let too_large = || BytecodeError::new(BytecodeErrorKind::MethodTooLarge, code.offset(), "code");
    old.checked_add(extra).ok_or_else(too_large)
}

#[cold]
fn bad_plan(why: &'static str) -> BytecodeError {
    BytecodeError::new(BytecodeErrorKind::BadPlan(why), 0, "plan")
}
