//! Random programs, and the definition of k-context profiling (Definitions 1 to 3) to the letter.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod recorded;

use std::collections::{BTreeMap, BTreeSet};

use lucce_kcontexts::*;
use proptest::prelude::*;

/// Labels of a path. In profiles and forests: the callee first.
pub type Path = Vec<u32>;
/// How often each path is activated.
pub type Profile = BTreeMap<Path, u64>;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A call that counts so much.
    Call(u32, u64),
    Return,
}

#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub thread: u64,
    pub step: Step,
}

/// Calls to the listener only what a program can do: nothing is left that was not entered.
pub fn run(turns: &[Turn], listener: &mut impl CallListener) {
    let mut depths: BTreeMap<u64, usize> = BTreeMap::new();
    for turn in turns {
        let (thread, depth) = (
            TraceThreadId(turn.thread),
            depths.entry(turn.thread).or_default(),
        );
        match turn.step {
            Step::Call(label, weight) => {
                listener
                    .enter_call(thread, CallLabel(label).into())
                    .unwrap();
                listener.add_count(thread, weight).unwrap();
                *depth += 1;
            }
            Step::Return if *depth > 0 => {
                listener.leave_call(thread).unwrap();
                *depth -= 1;
            }
            Step::Return => {}
        }
    }
}

pub fn tree_of(turns: &[Turn]) -> CallingContextTree {
    let mut tree = CallingContextTree::new();
    run(turns, &mut tree);
    tree
}

pub fn slabs_of(turns: &[Turn], k: u32) -> SlabForest {
    let mut slabs = SlabForest::new(k).unwrap();
    run(turns, &mut slabs);
    slabs
}

/// Plain stacks; `activated` defines what they report.
#[derive(Default)]
pub struct Oracle {
    stacks: BTreeMap<TraceThreadId, Path>,
    /// Every stack that something was counted for, root first, and the sum.
    pub stacks_counted: Profile,
    /// Every stack that ever was.
    pub contexts: BTreeSet<Path>,
}

impl CallListener for Oracle {
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        let stack = self.stacks.entry(thread).or_default();
        stack.push(callee.label.0);
        self.contexts.insert(stack.clone());
        Ok(())
    }

    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError> {
        *self
            .stacks_counted
            .entry(self.stacks[&thread].clone())
            .or_default() += weight;
        Ok(())
    }

    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
        self.stacks.get_mut(&thread).unwrap().pop();
        Ok(())
    }
}

pub fn oracle(turns: &[Turn]) -> Oracle {
    let mut oracle = Oracle::default();
    run(turns, &mut oracle);
    oracle
}

impl Oracle {
    /// Definition 3: `c(π)` for every activated path of length at most k.
    pub fn profile(&self, k: usize) -> Profile {
        let mut profile = Profile::new();
        for (stack, weight) in self
            .stacks_counted
            .iter()
            .filter(|(_, weight)| **weight > 0)
        {
            for length in 1..=stack.len().min(k.saturating_add(1)) {
                let path = stack.iter().rev().take(length).copied().collect();
                *profile.entry(path).or_default() += weight;
            }
        }
        profile
    }

    /// The counters of distinct maximal k-contexts.
    pub fn k_contexts(&self, k: usize) -> Vec<u64> {
        let mut contexts = Profile::new();
        for (stack, weight) in self
            .stacks_counted
            .iter()
            .filter(|(_, weight)| **weight > 0)
        {
            let path = stack.iter().rev().take(k + 1).copied().collect();
            *contexts.entry(path).or_default() += weight;
        }
        contexts.into_values().collect()
    }
}

/// All root paths of a forest and their counters.
pub fn paths<C>(forest: &LabelForest<C>) -> Profile {
    let path = |node| {
        let mut path: Path = forest.labels_upwards(node).map(|label| label.0).collect();
        path.reverse();
        (path, forest.count(node))
    };
    forest.nodes().map(path).collect()
}

pub fn calls(text: &str) -> Vec<Turn> {
    let step = |c: char| match c {
        '.' => Step::Return,
        c => Step::Call(u32::from(c), 1),
    };
    let turn = |c| Turn {
        thread: 0,
        step: step(c),
    };
    text.chars().map(turn).collect()
}

/// `"abc"`: the path ⟨a, b, c⟩, read backwards as forests hold it.
pub fn path(text: &str) -> Path {
    text.chars().rev().map(u32::from).collect()
}

/// Few routines, so that recursion (of thread roots too) and repeated paths are common.
pub fn turns() -> impl Strategy<Value = Vec<Turn>> {
    turns_with(prop_oneof![8 => Just(1u64), 1 => 0..4u64])
}

fn turns_with(weight: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Turn>> {
    let step = prop_oneof![
        5 => (0..6u32, weight).prop_map(|(label, weight)| Step::Call(label, weight)),
        4 => Just(Step::Return),
    ];
    let turn = (prop_oneof![6 => Just(0u64), 1 => 1..3u64], step);
    let turn = turn.prop_map(|(thread, step)| Turn { thread, step });
    prop::collection::vec(turn, 1..400)
}

/// As the paper has it: each call counts 1, and the first routine is not called again.
pub fn plain_turns() -> impl Strategy<Value = Vec<Turn>> {
    turns_with(Just(1)).prop_map(|turns| {
        let mut plain = vec![Turn {
            thread: 0,
            step: Step::Call(100, 1),
        }];
        let mut depth = 0;
        for turn in turns {
            match turn.step {
                Step::Return if depth == 0 => continue,
                Step::Return => depth -= 1,
                Step::Call(..) => depth += 1,
            }
            plain.push(Turn { thread: 0, ..turn });
        }
        plain
    })
}

pub fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
