//! Turns a method's plan into the bytes before, in place of and behind its instructions.

use std::iter::Peekable;
use std::ops::Range;
use std::slice::Iter;

use crate::assemble::Assembler;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::opcode;
use crate::plan::{CodeInsertion, EntryHook, HelperMethod, MethodPlan};
use crate::pool::{ConstantPool, PoolAdditions, PoolCapacity};

/// All inserted code of a method. The parts of the arena follow each other:
///
/// ```text
/// entry | before₀ replacement₀ after₀ | before₁ replacement₁ after₁ | … | unwind
/// ```
#[derive(Debug, Default)]
pub(crate) struct CodeEdits {
    arena: Vec<u8>,
    edits: Vec<InstructionEdit>,
    entry: usize,
    unwind: usize,
    /// Stack slots that inserted code needs in addition to the original code's.
    extra_stack: u16,
}

/// The changes at one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstructionEdit {
    before: usize,
    replacement: usize,
    after: usize,
    end: usize,
    /// Whether the replacement, which is then not empty, replaces the instruction.
    pub(crate) replaces: bool,
}

impl CodeEdits {
    pub(crate) fn clear(&mut self) {
        let mut arena = std::mem::take(&mut self.arena);
        let mut edits = std::mem::take(&mut self.edits);
        arena.clear();
        edits.clear();
        *self = Self {
            arena,
            edits,
            ..Self::default()
        };
    }

    pub(crate) fn entry_code(&self) -> &[u8] {
        self.arena_range(0..self.entry)
    }

    pub(crate) fn unwind_code(&self) -> &[u8] {
        self.arena_range(self.unwind..self.arena.len())
    }

    pub(crate) fn extra_stack(&self) -> u16 {
        self.extra_stack
    }

    pub(crate) fn get(&self, index: u32) -> Option<&InstructionEdit> {
        self.edits.get(index as usize)
    }

    pub(crate) fn code_before(&self, edit: &InstructionEdit) -> &[u8] {
        self.arena_range(edit.before..edit.replacement)
    }

    pub(crate) fn replacement_code(&self, edit: &InstructionEdit) -> &[u8] {
        self.arena_range(edit.replacement..edit.after)
    }

    pub(crate) fn code_after(&self, edit: &InstructionEdit) -> &[u8] {
        self.arena_range(edit.after..edit.end)
    }

    fn arena_range(&self, range: Range<usize>) -> &[u8] {
        self.arena.get(range).unwrap_or_default()
    }
}

impl InstructionEdit {
    pub(crate) fn before_len(&self) -> usize {
        self.replacement - self.before
    }

    pub(crate) fn replacement_len(&self) -> usize {
        self.after - self.replacement
    }

    pub(crate) fn after_len(&self) -> usize {
        self.end - self.after
    }
}

/// Walks the instructions together with the plan and writes a [`CodeEdits`].
pub(crate) struct EditPlanner<'x, 'c, 'a, 'p> {
    pool: &'x mut PoolAdditions<'c, 'a, 'p>,
    edits: &'x mut CodeEdits,
    plan: &'x MethodPlan<'p>,
    inserts: Peekable<Iter<'x, (u16, CodeInsertion<'p>)>>,
    /// The new local variable.
    local: u16,
    /// The index of the class's own `Class` constant.
    this_class: u16,
}

impl<'x, 'c, 'a, 'p> EditPlanner<'x, 'c, 'a, 'p> {
    pub(crate) fn new(
        (local, this_class): (u16, u16),
        plan: &'x MethodPlan<'p>,
        pool: &'x mut PoolAdditions<'c, 'a, 'p>,
        edits: &'x mut CodeEdits,
    ) -> Result<Self, BytecodeError> {
        let mut planner = Self {
            inserts: plan.inserts.iter().peekable(),
            local,
            this_class,
            pool,
            edits,
            plan,
        };
        if let Some(entry) = &plan.entry {
            planner.insert_entry(entry)?;
        }
        for kept in 0..plan.kept_count() {
            let kept = planner.kept_local(kept);
            planner.assembler().emit_op(opcode::LCONST_0);
            planner.assembler().lstore(kept);
            planner.require_stack(2);
        }
        for begin in &plan.begin {
            planner.insert_before(begin)?;
        }
        planner.edits.entry = planner.edits.arena.len();
        Ok(planner)
    }

    fn assembler(&mut self) -> Assembler<'_, 'c, 'a, 'p> {
        Assembler {
            out: &mut self.edits.arena,
            pool: self.pool,
        }
    }

    fn insert_entry(&mut self, entry: &EntryHook<'p>) -> Result<(), BytecodeError> {
        let local = self.local;
        let mut asm = self.assembler();
        if let Some(argument) = entry.argument {
            asm.push_int(argument)?;
        }
        asm.call_helper(&entry.helper)?;
        asm.lstore(local);
        self.require_stack(2);
        Ok(())
    }

    /// Returns the index of a variable `C`.
    fn kept_local(&self, kept: u16) -> u16 {
        self.local + 2 * (1 + kept)
    }

    fn require_stack(&mut self, slots: u16) {
        self.edits.extra_stack = self.edits.extra_stack.max(slots);
    }

    /// Returns the index of the edit at this instruction, if it gets one.
    pub(crate) fn plan_instruction(
        &mut self,
        bci: u32,
        op: u8,
        operands: &[u8],
    ) -> Result<Option<u32>, BytecodeError> {
        let exits = self.plan.exit.filter(|_| opcode::is_return(op));
        let has_inserts = self.next_insert_is_at(bci)?;
        if exits.is_none() && !has_inserts {
            return Ok(None);
        }
        let edit = self.build_edit(bci, op, operands, exits)?;
        let index = self.edits.edits.len();
        self.edits.edits.push(edit);
        Ok(u32::try_from(index).ok())
    }

    fn next_insert_is_at(&mut self, bci: u32) -> Result<bool, BytecodeError> {
        match self.inserts.peek() {
            Some((at, _)) if u32::from(*at) < bci => Err(bad_plan(
                "insert not at an instruction, or not in order",
                *at,
            )),
            Some((at, _)) => Ok(u32::from(*at) == bci),
            None => Ok(false),
        }
    }

    fn build_edit(
        &mut self,
        bci: u32,
        op: u8,
        operands: &[u8],
        exits: Option<HelperMethod<'p>>,
    ) -> Result<InstructionEdit, BytecodeError> {
        let here = self.inserts.clone();
        let here = || here.clone().take_while(|(at, _)| u32::from(*at) == bci);
        let before = self.edits.arena.len();
        for (at, insert) in here() {
            check_insertion(self.pool.pool(), *at, insert, op, operands)?;
            self.insert_before(insert)?;
            self.inserts.next();
        }
        self.call_with_local(exits)?;
        let replacement = self.edits.arena.len();
        for (at, insert) in here() {
            let replaced = self.edits.arena.len() > replacement;
            if self.insert_replacement(insert)? && replaced {
                return Err(bad_plan("instruction replaced twice", *at));
            }
        }
        let after = self.edits.arena.len();
        let class_index = operands
            .first_chunk()
            .map(|index| u16::from_be_bytes(*index));
        self.insert_after(here().map(|(_, insert)| insert).collect(), op, class_index)?;
        Ok(InstructionEdit {
            before,
            replacement,
            after,
            end: self.edits.arena.len(),
            replaces: after > replacement,
        })
    }

    /// Loads `N`, while `depth` slots of the insertion are on the stack.
    fn load_local(&mut self, depth: u16) -> Result<(), BytecodeError> {
        if self.plan.entry.is_none() {
            return Err(bad_plan("nothing stores the local without an entry", 0));
        }
        let local = self.local;
        self.assembler().lload(local);
        self.require_stack(depth);
        Ok(())
    }

    /// `lload N; invokestatic H(J)V`
    fn call_with_local(&mut self, helper: Option<HelperMethod<'p>>) -> Result<(), BytecodeError> {
        let Some(helper) = helper else {
            return Ok(());
        };
        self.load_local(2)?;
        self.assembler().call_helper(&helper)
    }

    /// `lload N; push site; invokestatic H(JI)V`; without `N` if the plan has no entry hook.
    fn call_with_site(
        &mut self,
        helper: &HelperMethod<'p>,
        site: i32,
    ) -> Result<(), BytecodeError> {
        match self.plan.entry {
            Some(_) => self.load_local(3)?,
            None => self.require_stack(1),
        }
        self.assembler().push_int(site)?;
        self.assembler().call_helper(helper)
    }

    fn insert_before(&mut self, insert: &CodeInsertion<'p>) -> Result<(), BytecodeError> {
        match insert {
            CodeInsertion::Mark { helper, site } => self.call_with_site(helper, *site),
            CodeInsertion::MarkTwo {
                helper,
                site,
                inner,
            } => {
                self.load_local(4)?;
                self.assembler().push_int(*site)?;
                self.assembler().push_int(*inner)?;
                self.assembler().call_helper(helper)
            }
            CodeInsertion::MarkLocal {
                helper,
                site,
                local,
            } => {
                self.assembler().aload(*local);
                self.require_stack(4);
                self.call_with_site(helper, *site)
            }
            CodeInsertion::MarkTop { helper, site } => {
                self.assembler().emit_op(opcode::DUP);
                self.require_stack(4);
                self.call_with_site(helper, *site)
            }
            CodeInsertion::MarkOwnField {
                helper,
                site,
                field,
            } => {
                let class = self.this_class;
                let mut assembler = self.assembler();
                assembler.aload(0);
                assembler.access_field(opcode::GETFIELD, (class, field))?;
                self.require_stack(5);
                self.call_with_site(helper, *site)
            }
            CodeInsertion::MarkReceiverField {
                helper,
                site,
                field,
            } => {
                let class = self.this_class;
                let mut assembler = self.assembler();
                assembler.emit_op(opcode::DUP2);
                assembler.emit_op(opcode::POP);
                assembler.access_field(opcode::GETFIELD, (class, field))?;
                self.require_stack(5);
                self.call_with_site(helper, *site)
            }
            CodeInsertion::MarkClass { helper, site } => {
                let class = self.this_class;
                self.assembler().load_constant(class);
                self.require_stack(4);
                self.call_with_site(helper, *site)
            }
            CodeInsertion::MarkPair { helper, site } => {
                self.assembler().emit_op(opcode::DUP2);
                self.require_stack(5);
                self.call_with_site(helper, *site)
            }
            CodeInsertion::Before { helper } => self.call_with_local(Some(*helper)),
            _ => Ok(()),
        }
    }

    /// Writes the replacement. Returns whether there is one.
    fn insert_replacement(&mut self, insert: &CodeInsertion<'p>) -> Result<bool, BytecodeError> {
        match insert {
            CodeInsertion::ReplaceWithContext { helper, site } => {
                self.call_with_site(helper, *site)?
            }
            CodeInsertion::Redirect { helper } => self.assembler().call_helper(helper)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the code behind the instruction; the last insertion listed is the innermost. `made`: the class of a
    /// `new`.
    fn insert_after(
        &mut self,
        inserts: Vec<&CodeInsertion<'p>>,
        op: u8,
        class_index: Option<u16>,
    ) -> Result<(), BytecodeError> {
        for insert in inserts.into_iter().rev() {
            match insert {
                CodeInsertion::After { helper, site } => self.call_with_site(helper, *site)?,
                CodeInsertion::AfterLocal {
                    helper,
                    site,
                    local,
                } => {
                    self.assembler().aload(*local);
                    self.require_stack(4);
                    self.call_with_site(helper, *site)?;
                }
                CodeInsertion::AfterStore {
                    helper,
                    site,
                    field,
                } => {
                    let class = self.this_class;
                    self.assembler().aload(0);
                    self.require_stack(4);
                    self.call_with_site(helper, *site)?;
                    self.assembler()
                        .access_field(opcode::PUTFIELD, (class, field))?;
                }
                CodeInsertion::AfterNew { helper } => {
                    self.assembler()
                        .load_constant(class_index.unwrap_or_default());
                    self.load_local(3)?;
                    self.assembler().call_helper(helper)?;
                }
                CodeInsertion::AfterDup { helper, site } => {
                    self.assembler().emit_op(opcode::DUP);
                    self.require_stack(4);
                    self.call_with_site(helper, *site)?;
                }
                CodeInsertion::AfterKeeping { helper, site, kept } => {
                    let kept = self.kept_local((*kept).into());
                    if op != opcode::NEW {
                        self.assembler().emit_op(opcode::DUP);
                    }
                    self.load_local(6)?;
                    let mut assembler = self.assembler();
                    assembler.push_int(*site)?;
                    assembler.lload(kept);
                    assembler.call_helper(helper)?;
                    assembler.lstore(kept);
                }
                CodeInsertion::AfterDup2 { helper, site } => {
                    self.assembler().emit_op(opcode::DUP2);
                    self.require_stack(5);
                    self.call_with_site(helper, *site)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the handler that rethrows, behind the last instruction.
    pub(crate) fn finish(mut self) -> Result<(), BytecodeError> {
        if let Some((at, _)) = self.inserts.next() {
            return Err(bad_plan(
                "insert not at an instruction, or not in order",
                *at,
            ));
        }
        self.edits.unwind = self.edits.arena.len();
        if self.plan.unwind.is_some() {
            self.require_stack(3);
            self.call_with_local(self.plan.unwind)?;
            self.assembler().emit_op(opcode::ATHROW);
        }
        // A number may be the sum of two.
        if self.pool.capacity() == PoolCapacity::Tight {
            self.edits.extra_stack += 1;
        }
        Ok(())
    }
}

/// Checks that an insertion fits its instruction.
fn check_insertion(
    pool: &ConstantPool<'_>,
    at: u16,
    insert: &CodeInsertion<'_>,
    op: u8,
    operands: &[u8],
) -> Result<(), BytecodeError> {
    let is_array = matches!(
        op,
        opcode::NEWARRAY | opcode::ANEWARRAY | opcode::MULTIANEWARRAY
    );
    let fits = match insert {
        CodeInsertion::Mark { .. }
        | CodeInsertion::MarkTwo { .. }
        | CodeInsertion::MarkLocal { .. }
        | CodeInsertion::MarkTop { .. }
        | CodeInsertion::MarkOwnField { .. }
        | CodeInsertion::MarkClass { .. }
        | CodeInsertion::MarkPair { .. }
        | CodeInsertion::Before { .. } => true,
        CodeInsertion::After { .. }
        | CodeInsertion::AfterLocal { .. }
        | CodeInsertion::AfterStore { .. } => opcode::falls_through(op),
        CodeInsertion::AfterNew { .. } => op == opcode::NEW,
        CodeInsertion::AfterKeeping { .. } => is_array || op == opcode::NEW,
        CodeInsertion::AfterDup { .. } => is_array || opcode::is_invoke(op),
        CodeInsertion::AfterDup2 { .. } => opcode::is_invoke(op),
        CodeInsertion::MarkReceiverField { .. } => op == opcode::INVOKEVIRTUAL,
        CodeInsertion::ReplaceWithContext { .. } | CodeInsertion::Redirect { .. } => {
            opcode::is_invoke(op) && !is_constructor_call(pool, op, operands)
        }
    };
    if fits {
        Ok(())
    } else {
        Err(bad_plan("insert does not fit the instruction", at))
    }
}

pub(crate) fn is_constructor_call(pool: &ConstantPool<'_>, op: u8, operands: &[u8]) -> bool {
    let Some(&index) = operands.first_chunk::<2>() else {
        return false;
    };
    let member = || pool.member_ref(u16::from_be_bytes(index)).ok();
    op == opcode::INVOKESPECIAL && member().is_some_and(|member| member.name == b"<init>")
}

#[cold]
fn bad_plan(why: &'static str, at: u16) -> BytecodeError {
    BytecodeError::new(BytecodeErrorKind::BadPlan(why), usize::from(at), "plan")
}
