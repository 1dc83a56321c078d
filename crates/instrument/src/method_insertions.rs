//! Insertions of one method, before they are part of its plan.

use lucce_bytecode::{CodeInsertion, MethodPlan};

/// Insertions of one method, each with its bytecode index.
pub type InsertsAt = Vec<(u16, CodeInsertion<'static>)>;

/// Insertions of one method, for the lists of a [`MethodPlan`].
#[derive(Default)]
pub struct MethodInsertions {
    /// They run once: a jump to the first instruction does not reach them.
    pub(crate) begin: Vec<CodeInsertion<'static>>,
    pub(crate) inserts: InsertsAt,
}

impl MethodInsertions {
    pub(crate) fn from_places(
        inserts: impl IntoIterator<Item = (u16, CodeInsertion<'static>)>,
    ) -> Self {
        Self {
            begin: Vec::new(),
            inserts: inserts.into_iter().collect(),
        }
    }

    /// Adds hooks of a place. `at_entry`: they run once, at the entry of the method.
    pub(crate) fn add_hooks(&mut self, hooks: InsertsAt, at_entry: bool) {
        match at_entry {
            true => self.begin.extend(hooks.into_iter().map(|(_, hook)| hook)),
            false => self.inserts.extend(hooks),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.begin.is_empty() && self.inserts.is_empty()
    }

    pub(crate) fn add_to(self, method: &mut MethodPlan<'static>) {
        method.begin.extend(self.begin);
        method.inserts.extend(self.inserts);
        method.inserts.sort_by_key(|(bci, _)| *bci);
    }
}
