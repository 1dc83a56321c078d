//! Random programs, and the plain stack that every number is checked against.
#![allow(dead_code, reason = "each test binary uses its part")]

use lucce_callgraph::*;
use proptest::prelude::*;

/// Few methods and sites, so that recursion and polymorphism are common.
const METHODS: u32 = 6;
const SITES: u32 = 3;

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Call { site: u32, callee: MethodId },
    Event { site: u32 },
    Return,
}

/// An action of one of several threads.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub thread: usize,
    pub action: Action,
}

pub const THREADS: usize = 3;

/// A number that was handed out, and what it must mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    pub id: ContextId,
    pub last: MethodId,
    pub plain: Vec<ContextFrame>,
}

/// A thread with a plain stack: the naive oracle.
#[derive(Clone, Default)]
pub struct Thread {
    stack: Vec<Live>,
}

#[derive(Clone, Copy)]
struct Live {
    method: MethodId,
    ctx: ContextId,
    /// Where it calls from.
    site: SiteId,
}

impl Thread {
    /// Performs the action; returns the number that it gave, if any.
    pub fn act<J: GraphJournal>(
        &mut self,
        encoder: &ContextEncoder<J>,
        action: Action,
    ) -> Option<Given> {
        match action {
            Action::Call { site, callee } => Some(self.call(encoder, site, callee)),
            Action::Event { site } => self.event(encoder, site),
            Action::Return => {
                self.stack.pop();
                None
            }
        }
    }

    fn call<J: GraphJournal>(
        &mut self,
        encoder: &ContextEncoder<J>,
        site: u32,
        callee: MethodId,
    ) -> Given {
        let ctx = match self.stack.last_mut() {
            None => encoder.root_context(callee),
            Some(top) => {
                top.site = site_of(top.method, site);
                encoder.encode_call(top.ctx, top.site, top.method, callee)
            }
        };
        let given = Given {
            id: ctx,
            last: callee,
            plain: self.plain(),
        };
        self.stack.push(Live {
            method: callee,
            ctx,
            site: SiteId::NONE,
        });
        given
    }

    fn event<J: GraphJournal>(&mut self, encoder: &ContextEncoder<J>, site: u32) -> Option<Given> {
        let top = self.stack.last_mut()?;
        top.site = site_of(top.method, site);
        let id = encoder.encode_event(top.ctx, top.site, top.method);
        Some(Given {
            id,
            last: MethodId::EVENT,
            plain: self.plain(),
        })
    }

    /// The frames, innermost first.
    fn plain(&self) -> Vec<ContextFrame> {
        let frame = |live: &Live| ContextFrame {
            site: live.site,
            method: live.method,
        };
        self.stack.iter().rev().map(frame).collect()
    }
}

fn site_of(method: MethodId, site: u32) -> SiteId {
    SiteId(method.0 * SITES + site + 1)
}

/// All numbers that a program's turns give.
pub fn run<J: GraphJournal>(encoder: &ContextEncoder<J>, turns: &[Turn]) -> Vec<Given> {
    let mut threads = vec![Thread::default(); THREADS];
    let act = |turn: &Turn| threads[turn.thread].act(encoder, turn.action);
    turns.iter().filter_map(act).collect()
}

/// Checks a number against the plain stack, unless it is the honest "unknown".
pub fn check(given: &Given, decoded: Result<Vec<ContextFrame>, DecodeError>) {
    if given.id != ContextId::UNKNOWN {
        assert_eq!(
            decoded.as_ref(),
            Ok(&given.plain),
            "{:?} of {:?}",
            given.id,
            given.last
        );
    }
}

pub fn replay(layout: ContextLayout, changes: &[GraphChange]) -> VersionedGraph {
    let mut graph = VersionedGraph::new(layout);
    for change in changes {
        assert_eq!(graph.apply_change(*change), Ok(()), "{change:?}");
    }
    graph
}

pub const TINY: [ContextLayout; 4] = [
    ContextLayout::new(4, 6, 6),
    ContextLayout::new(3, 3, 4),
    ContextLayout::new(2, 1, 1),
    ContextLayout::new(6, 2, 8),
];

pub fn tiny() -> impl Strategy<Value = ContextLayout> {
    prop::sample::select(TINY.to_vec())
}

pub fn layouts() -> impl Strategy<Value = ContextLayout> {
    prop_oneof![tiny(), Just(ContextLayout::DEFAULT)]
}

/// Any policy, with an intern table that does not forget in such short programs.
pub fn policies() -> impl Strategy<Value = EncodingPolicy> {
    let any = (0..200u32, 0..8u64, 0..20u32, 0..12u32, 1..=100u32, 0..12u32).prop_map(
        |(growth_percent, slack, unroll, max_node_bits, epoch_percent, more)| EncodingPolicy {
            growth_percent,
            slack,
            unroll,
            max_node_bits,
            epoch_percent,
            more_anchor_bits: more,
            anchor_budget: 1 << 16,
            ..EncodingPolicy::LUCCE
        },
    );
    prop_oneof![any, Just(EncodingPolicy::LUCCE), Just(EncodingPolicy::CCT)]
}

/// Any policy, with an intern table that forgets all the time.
pub fn forgetful() -> impl Strategy<Value = EncodingPolicy> {
    (policies(), 1..20usize).prop_map(|(policy, anchor_budget)| EncodingPolicy {
        anchor_budget,
        ..policy
    })
}

fn action() -> impl Strategy<Value = Action> {
    let method = || (1..=METHODS).prop_map(MethodId);
    prop_oneof![
        4 => (0..SITES, method()).prop_map(|(site, callee)| Action::Call { site, callee }),
        2 => (0..SITES).prop_map(|site| Action::Event { site }),
        3 => Just(Action::Return),
    ]
}

pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 1..300)
}

pub fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (0..THREADS, action()).prop_map(|(thread, action)| Turn { thread, action });
    prop::collection::vec(turn, 1..500)
}

pub fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
