//! From a method's plan to the bytes that go before, in place of and behind its instructions.

use std::iter::Peekable;
use std::ops::Range;
use std::slice::Iter;

use crate::assemble::Assembler;
use crate::error::{Error, ErrorKind};
use crate::opcode;
use crate::plan::{Entry, Helper, Insert, MethodPlan};
use crate::pool::{Additions, Pool, Room};

/// All inserted code of a method. The parts of the arena follow each other:
///
/// ```text
/// entry | before₀ replacement₀ after₀ | before₁ replacement₁ after₁ | … | unwind
/// ```
#[derive(Debug, Default)]
pub(crate) struct Edits {
    arena: Vec<u8>,
    edits: Vec<Edit>,
    entry: usize,
    unwind: usize,
    /// Stack slots that inserted code needs above what the original code has there.
    extra_stack: u16,
}

/// The changes at one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit {
    before: usize,
    replacement: usize,
    after: usize,
    end: usize,
    /// The replacement stands for the instruction (it is never empty then).
    pub(crate) replaces: bool,
}

impl Edits {
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

    pub(crate) fn entry(&self) -> &[u8] {
        self.part(0..self.entry)
    }

    pub(crate) fn unwind(&self) -> &[u8] {
        self.part(self.unwind..self.arena.len())
    }

    pub(crate) fn extra_stack(&self) -> u16 {
        self.extra_stack
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Edit> {
        self.edits.get(index as usize)
    }

    pub(crate) fn before(&self, edit: &Edit) -> &[u8] {
        self.part(edit.before..edit.replacement)
    }

    pub(crate) fn replacement(&self, edit: &Edit) -> &[u8] {
        self.part(edit.replacement..edit.after)
    }

    pub(crate) fn after(&self, edit: &Edit) -> &[u8] {
        self.part(edit.after..edit.end)
    }

    fn part(&self, range: Range<usize>) -> &[u8] {
        self.arena.get(range).unwrap_or_default()
    }
}

impl Edit {
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

/// Walks the instructions together with the plan and writes an [`Edits`].
pub(crate) struct Planner<'x, 'c, 'a, 'p> {
    pool: &'x mut Additions<'c, 'a, 'p>,
    edits: &'x mut Edits,
    plan: &'x MethodPlan<'p>,
    inserts: Peekable<Iter<'x, (u16, Insert<'p>)>>,
    /// The new local variable.
    local: u16,
}

impl<'x, 'c, 'a, 'p> Planner<'x, 'c, 'a, 'p> {
    pub(crate) fn new(
        local: u16,
        plan: &'x MethodPlan<'p>,
        pool: &'x mut Additions<'c, 'a, 'p>,
        edits: &'x mut Edits,
    ) -> Result<Self, Error> {
        let mut planner = Self {
            inserts: plan.inserts.iter().peekable(),
            local,
            pool,
            edits,
            plan,
        };
        if let Some(entry) = &plan.entry {
            planner.entry(entry)?;
        }
        Ok(planner)
    }

    fn asm(&mut self) -> Assembler<'_, 'c, 'a, 'p> {
        Assembler {
            out: &mut self.edits.arena,
            pool: self.pool,
        }
    }

    fn entry(&mut self, entry: &Entry<'p>) -> Result<(), Error> {
        let local = self.local;
        let mut asm = self.asm();
        if let Some(argument) = entry.argument {
            asm.push(argument)?;
        }
        asm.call(&entry.helper)?;
        asm.lstore(local);
        self.edits.entry = self.edits.arena.len();
        self.needs_stack(2);
        Ok(())
    }

    fn needs_stack(&mut self, slots: u16) {
        self.edits.extra_stack = self.edits.extra_stack.max(slots);
    }

    /// The index of the edit at this instruction, if it gets one.
    pub(crate) fn instruction(
        &mut self,
        bci: u32,
        op: u8,
        operands: &[u8],
    ) -> Result<Option<u32>, Error> {
        let exits = self.plan.exit.filter(|_| opcode::is_return(op));
        let has_inserts = self.next_insert_is_at(bci)?;
        if exits.is_none() && !has_inserts {
            return Ok(None);
        }
        let edit = self.edit(bci, op, operands, exits)?;
        let index = self.edits.edits.len();
        self.edits.edits.push(edit);
        Ok(u32::try_from(index).ok())
    }

    fn next_insert_is_at(&mut self, bci: u32) -> Result<bool, Error> {
        match self.inserts.peek() {
            Some((at, _)) if u32::from(*at) < bci => Err(bad_plan(
                "insert not at an instruction, or not in order",
                *at,
            )),
            Some((at, _)) => Ok(u32::from(*at) == bci),
            None => Ok(false),
        }
    }

    fn edit(
        &mut self,
        bci: u32,
        op: u8,
        operands: &[u8],
        exits: Option<Helper<'p>>,
    ) -> Result<Edit, Error> {
        let here = self.inserts.clone();
        let here = || here.clone().take_while(|(at, _)| u32::from(*at) == bci);
        let before = self.edits.arena.len();
        for (at, insert) in here() {
            check(self.pool.pool(), *at, insert, op, operands)?;
            self.insert_before(insert)?;
            self.inserts.next();
        }
        self.with_local(exits)?;
        let replacement = self.edits.arena.len();
        for (at, insert) in here() {
            let replaced = self.edits.arena.len() > replacement;
            if self.insert_instead(insert)? && replaced {
                return Err(bad_plan("instruction replaced twice", *at));
            }
        }
        let after = self.edits.arena.len();
        let made = operands
            .first_chunk()
            .map(|index| u16::from_be_bytes(*index));
        self.inserts_after(here().map(|(_, insert)| insert).collect(), made)?;
        Ok(Edit {
            before,
            replacement,
            after,
            end: self.edits.arena.len(),
            replaces: after > replacement,
        })
    }

    /// Loads `N` behind `depth` slots that the insertion pushes around it.
    fn load_local(&mut self, depth: u16) -> Result<(), Error> {
        if self.plan.entry.is_none() {
            return Err(bad_plan("nothing stores the local without an entry", 0));
        }
        let local = self.local;
        self.asm().lload(local);
        self.needs_stack(depth);
        Ok(())
    }

    /// `lload N; invokestatic H(J)V`
    fn with_local(&mut self, helper: Option<Helper<'p>>) -> Result<(), Error> {
        let Some(helper) = helper else {
            return Ok(());
        };
        self.load_local(2)?;
        self.asm().call(&helper)
    }

    /// `lload N; push site; invokestatic H(JI)V`; without `N` where the plan has no entry.
    fn with_site(&mut self, helper: &Helper<'p>, site: i32) -> Result<(), Error> {
        match self.plan.entry {
            Some(_) => self.load_local(3)?,
            None => self.needs_stack(1),
        }
        self.asm().push(site)?;
        self.asm().call(helper)
    }

    fn insert_before(&mut self, insert: &Insert<'p>) -> Result<(), Error> {
        match insert {
            Insert::Mark { helper, site } => self.with_site(helper, *site),
            Insert::MarkTwo {
                helper,
                site,
                inner,
            } => {
                self.load_local(4)?;
                self.asm().push(*site)?;
                self.asm().push(*inner)?;
                self.asm().call(helper)
            }
            Insert::MarkLocal {
                helper,
                site,
                local,
            } => {
                self.asm().aload(*local);
                self.needs_stack(4);
                self.with_site(helper, *site)
            }
            Insert::MarkTop { helper, site } => {
                self.asm().op(opcode::DUP);
                self.needs_stack(4);
                self.with_site(helper, *site)
            }
            Insert::MarkPair { helper, site } => {
                self.asm().op(opcode::DUP2);
                self.needs_stack(5);
                self.with_site(helper, *site)
            }
            Insert::Before { helper } => self.with_local(Some(*helper)),
            _ => Ok(()),
        }
    }

    /// Whether the insertion replaces the instruction.
    fn insert_instead(&mut self, insert: &Insert<'p>) -> Result<bool, Error> {
        match insert {
            Insert::ReplaceWithContext { helper, site } => self.with_site(helper, *site)?,
            Insert::Redirect { helper } => self.asm().call(helper)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The last one listed is the innermost. `made`: of a `new`, where the pool has the class.
    fn inserts_after(&mut self, inserts: Vec<&Insert<'p>>, made: Option<u16>) -> Result<(), Error> {
        for insert in inserts.into_iter().rev() {
            match insert {
                Insert::After { helper, site } => self.with_site(helper, *site)?,
                Insert::AfterNew { helper } => {
                    self.asm().load_constant(made.unwrap_or_default());
                    self.load_local(3)?;
                    self.asm().call(helper)?;
                }
                Insert::AfterDup { helper, site } => {
                    self.asm().op(opcode::DUP);
                    self.needs_stack(4);
                    self.with_site(helper, *site)?;
                }
                Insert::AfterDup2 { helper, site } => {
                    self.asm().op(opcode::DUP2);
                    self.needs_stack(5);
                    self.with_site(helper, *site)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Behind the last instruction: the handler that rethrows.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if let Some((at, _)) = self.inserts.next() {
            return Err(bad_plan(
                "insert not at an instruction, or not in order",
                *at,
            ));
        }
        self.edits.unwind = self.edits.arena.len();
        if self.plan.unwind.is_some() {
            self.needs_stack(3);
            self.with_local(self.plan.unwind)?;
            self.asm().op(opcode::ATHROW);
        }
        // A number may be the sum of two.
        if self.pool.room() == Room::Tight {
            self.edits.extra_stack += 1;
        }
        Ok(())
    }
}

/// Whether an insertion fits its instruction.
fn check(
    pool: &Pool<'_>,
    at: u16,
    insert: &Insert<'_>,
    op: u8,
    operands: &[u8],
) -> Result<(), Error> {
    let is_array = matches!(
        op,
        opcode::NEWARRAY | opcode::ANEWARRAY | opcode::MULTIANEWARRAY
    );
    let fits = match insert {
        Insert::Mark { .. }
        | Insert::MarkTwo { .. }
        | Insert::MarkLocal { .. }
        | Insert::MarkTop { .. }
        | Insert::MarkPair { .. }
        | Insert::Before { .. } => true,
        Insert::After { .. } => opcode::falls_through(op),
        Insert::AfterNew { .. } => op == opcode::NEW,
        Insert::AfterDup { .. } => is_array || opcode::is_invoke(op),
        Insert::AfterDup2 { .. } => opcode::is_invoke(op),
        Insert::ReplaceWithContext { .. } | Insert::Redirect { .. } => {
            opcode::is_invoke(op) && !is_constructor_call(pool, op, operands)
        }
    };
    if fits {
        Ok(())
    } else {
        Err(bad_plan("insert does not fit the instruction", at))
    }
}

pub(crate) fn is_constructor_call(pool: &Pool<'_>, op: u8, operands: &[u8]) -> bool {
    let Some(&index) = operands.first_chunk::<2>() else {
        return false;
    };
    let member = || pool.member(u16::from_be_bytes(index)).ok();
    op == opcode::INVOKESPECIAL && member().is_some_and(|member| member.name == b"<init>")
}

#[cold]
fn bad_plan(why: &'static str, at: u16) -> Error {
    Error::new(ErrorKind::BadPlan(why), usize::from(at), "plan")
}
