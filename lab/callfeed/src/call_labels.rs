//! Labels for calls and routines: dense numbers in order of first use.

use std::collections::HashMap;

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_decoder::CodeSymbols;
use lucce_kcontexts::CallLabel;

/// A called routine: a method, or the allocated type at the end of a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CallTarget {
    Method(MethodId),
    Type(String),
}

/// A call: a site and its callee. A thread's first method is called at [`SiteId::ENTRY`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SiteCall {
    pub site: SiteId,
    /// The callee's label.
    pub routine: CallLabel,
}

/// Labels of routines, and labels of calls.
#[derive(Default)]
pub struct CallLabels {
    routines: LabelTable<CallTarget>,
    calls: LabelTable<SiteCall>,
}

struct LabelTable<T> {
    list: Vec<T>,
    index: HashMap<T, CallLabel>,
}

impl<T> Default for LabelTable<T> {
    fn default() -> Self {
        let (list, index) = (Vec::new(), HashMap::new());
        LabelTable { list, index }
    }
}

impl<T: Clone + Eq + std::hash::Hash> LabelTable<T> {
    fn get_or_insert(&mut self, what: T) -> CallLabel {
        let next = CallLabel(self.list.len() as u32);
        *self.index.entry(what).or_insert_with_key(|what| {
            self.list.push(what.clone());
            next
        })
    }
}

impl CallLabels {
    /// The label of a call; adds the call if it is new.
    pub fn label_call(&mut self, site: SiteId, routine: CallTarget) -> CallLabel {
        let routine = self.routines.get_or_insert(routine);
        self.calls.get_or_insert(SiteCall { site, routine })
    }

    /// The call with this label.
    #[must_use]
    pub fn find_call(&self, call: CallLabel) -> Option<SiteCall> {
        self.calls.list.get(call.0 as usize).copied()
    }

    /// The routine of each call, indexed by the call's label.
    #[must_use]
    pub fn routine_of_each(&self) -> Vec<CallLabel> {
        self.calls.list.iter().map(|call| call.routine).collect()
    }

    /// Number of calls.
    #[must_use]
    pub fn call_count(&self) -> u32 {
        self.calls.list.len() as u32
    }

    /// A routine's name: `a.b.C.m`, or a type.
    #[must_use]
    pub fn routine_name(&self, code: &CodeSymbols, routine: CallLabel) -> String {
        match self.routines.list.get(routine.0 as usize) {
            Some(CallTarget::Method(method)) => code.method_name(*method),
            Some(CallTarget::Type(name)) => name.clone(),
            None => "?".to_owned(),
        }
    }

    /// A routine's frame while it calls from `site`: `a.b.C.m(C.java:12)`.
    #[must_use]
    pub fn frame_name(&self, code: &CodeSymbols, routine: CallLabel, site: SiteId) -> String {
        match self.routines.list.get(routine.0 as usize) {
            Some(&CallTarget::Method(method)) => code
                .resolve_frame(ContextFrame { site, method })
                .to_string(),
            _ => self.routine_name(code, routine),
        }
    }
}
