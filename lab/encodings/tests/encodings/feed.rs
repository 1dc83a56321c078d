//! Feeds an encoding with a program's calls, and keeps the plain stacks beside it.

use lucce_callgraph::numbering::*;
use lucce_callgraph::*;
use lucce_encodings::*;
use proptest::prelude::*;

pub const MAIN: ProgramThreadId = ProgramThreadId(0);

/// Methods of the examples: one letter each.
pub fn method(letter: char) -> MethodId {
    MethodId(letter as u32)
}

/// The `nth` call site of `callee` in `caller`.
pub fn edge(caller: char, callee: char, nth: u32) -> CallEdge {
    CallEdge {
        site: SiteId((caller as u32) << 16 | (callee as u32) << 4 | nth),
        caller: method(caller),
        callee: method(callee),
    }
}

/// Edges of a static graph, all equally hot: "AB" is A → B; "A" is a thread's entry.
pub fn graph(edges: &[&str]) -> Vec<WeightedEdge> {
    edges.iter().map(|text| weighted_edge(text, 1)).collect()
}

pub fn weighted_edge(text: &str, weight: u64) -> WeightedEdge {
    let letters: Vec<char> = text.chars().collect();
    let edge = match letters[..] {
        [entry] => CallEdge::from_thread_entry(method(entry)),
        [caller, callee] => edge(caller, callee, 0),
        [caller, callee, nth] => edge(caller, callee, nth as u32 - '0' as u32),
        _ => panic!("{text}"),
    };
    WeightedEdge { edge, weight }
}

/// A program that runs.
pub struct Feed<E> {
    pub encoding: E,
    pub stacks: Vec<Vec<CallEdge>>,
    parents: Vec<Option<(usize, Vec<ContextFrame>)>>,
}

impl<E: ContextEncoding> Feed<E> {
    pub fn new(encoding: E) -> Self {
        Feed {
            encoding,
            stacks: Vec::new(),
            parents: Vec::new(),
        }
    }

    /// Another thread, started at the current position of `parent`.
    pub fn start(&mut self, parent: Option<(usize, SiteId)>) -> usize {
        let thread = self.stacks.len();
        let parent = parent.filter(|(parent, _)| !self.stacks[*parent].is_empty());
        let place = parent.map(|(parent, site)| (parent, self.place(parent, site)));
        let given = place.map(|(parent, place)| (ProgramThreadId(parent as u32), place));
        self.encoding
            .start_thread(ProgramThreadId(thread as u32), given);
        self.parents
            .push(place.map(|(parent, place)| (parent, self.frames(parent, place))));
        self.stacks.push(Vec::new());
        thread
    }

    pub fn enter(&mut self, thread: usize, edge: CallEdge) {
        self.encoding
            .enter_call(ProgramThreadId(thread as u32), edge);
        self.stacks[thread].push(edge);
    }

    pub fn leave(&mut self, thread: usize) {
        if let Some(edge) = self.stacks[thread].pop() {
            self.encoding
                .leave_call(ProgramThreadId(thread as u32), edge);
        }
    }

    pub fn unwind(&mut self, thread: usize, frames: usize) {
        let left = self.stacks[thread].len().saturating_sub(frames);
        let ended = self.stacks[thread].split_off(left);
        self.encoding
            .unwind_calls(ProgramThreadId(thread as u32), &ended);
    }

    fn place(&self, thread: usize, site: SiteId) -> ContextFrame {
        let method = self.stacks[thread].last().unwrap().callee;
        ContextFrame { site, method }
    }

    /// The plain stack, innermost first.
    fn frames(&self, thread: usize, place: ContextFrame) -> Vec<ContextFrame> {
        let callers = self.stacks[thread].iter().rev();
        let callers = callers
            .filter(|edge| !edge.is_entry())
            .map(|edge| edge.caller_frame());
        [place].into_iter().chain(callers).collect()
    }

    /// The number of the innermost frame and the frames that it must decode to.
    pub fn number(&mut self, thread: usize, site: SiteId) -> (EncodedContext, Vec<ContextFrame>) {
        let place = self.place(thread, site);
        let number = self
            .encoding
            .current_context(ProgramThreadId(thread as u32), place);
        (number, self.frames(thread, place))
    }

    /// The main thread returns from everything and takes this path; the last call is checked.
    pub fn walk(&mut self, path: &str) -> EncodedContext {
        if self.stacks.is_empty() {
            self.start(None);
        }
        while !self.stacks[0].is_empty() {
            self.leave(0);
        }
        self.calls(0, path, true);
        self.check(0)
    }

    /// Calls from the innermost frame on: "FH" from F. A digit tells which call site it was.
    pub fn on(&mut self, path: &str) -> EncodedContext {
        self.calls(0, path, false);
        self.check(0)
    }

    pub fn calls(&mut self, thread: usize, path: &str, from_entry: bool) {
        let letters: Vec<char> = path
            .chars()
            .filter(|letter| letter.is_alphabetic())
            .collect();
        let sites: Vec<u32> = path
            .split(|letter: char| letter.is_alphabetic())
            .skip(1)
            .map(|digits| digits.parse().unwrap_or(0))
            .collect();
        if from_entry {
            self.enter(thread, CallEdge::from_thread_entry(method(letters[0])));
        }
        for (at, call) in letters.windows(2).enumerate() {
            self.enter(thread, edge(call[0], call[1], sites[at]));
        }
    }

    pub fn check(&mut self, thread: usize) -> EncodedContext {
        let (number, plain) = self.number(thread, SiteId(7));
        assert_eq!(
            self.encoding.decode_context(&number),
            Ok(plain),
            "{number:?}"
        );
        number
    }

    /// The start of every thread.
    pub fn check_starts(&self) {
        for (thread, parent) in self.parents.iter().enumerate() {
            let kept = self.encoding.start_context(ProgramThreadId(thread as u32));
            let decoded = kept.map(|number| self.encoding.decode_context(number));
            let plain = parent.as_ref().map(|(_, frames)| Ok(frames.clone()));
            assert_eq!(decoded, plain);
        }
    }
}

/// What a thread of a random program does next.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Start,
    Call { site: u32, callee: u32 },
    Return,
    Throw { frames: usize },
    Event { site: u32 },
}

/// Few methods and sites, so that recursion and polymorphism are common.
const METHODS: u32 = 6;
const SITES: u32 = 3;

pub fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        1 => Just(Act::Start),
        20 => (0..SITES, 1..=METHODS).prop_map(|(site, callee)| Act::Call { site, callee }),
        10 => Just(Act::Return),
        2 => (1..6usize).prop_map(|frames| Act::Throw { frames }),
        10 => (0..SITES).prop_map(|site| Act::Event { site }),
    ];
    prop::collection::vec((0..4usize, act), 1..600)
}

/// All numbers that a program's events get, with their plain stacks.
pub fn run<E: ContextEncoding>(
    feed: &mut Feed<E>,
    acts: &[(usize, Act)],
) -> Vec<(EncodedContext, Vec<ContextFrame>)> {
    let site = |method: MethodId, site: u32| SiteId(method.0 * SITES + site + 1);
    let mut numbers = Vec::new();
    feed.start(None);
    for &(thread, act) in acts {
        let thread = thread % feed.stacks.len();
        let top = feed.stacks[thread].last().map(|edge| edge.callee);
        match (act, top) {
            (Act::Start, _) if feed.stacks.len() < 4 => {
                let place = top.map(|method| (thread, site(method, 0)));
                feed.start(place);
            }
            (Act::Call { callee, .. }, None) => {
                feed.enter(thread, CallEdge::from_thread_entry(MethodId(callee)));
            }
            (Act::Call { site: at, callee }, Some(caller)) => feed.enter(
                thread,
                CallEdge {
                    site: site(caller, at),
                    caller,
                    callee: MethodId(callee),
                },
            ),
            (Act::Return, _) => feed.leave(thread),
            (Act::Throw { frames }, _) => feed.unwind(thread, frames),
            (Act::Event { site: at }, Some(method)) => {
                numbers.push(feed.number(thread, site(method, at)));
            }
            _ => {}
        }
    }
    numbers
}

/// Every call of a program, with how often it was made: what a static encoding knows in advance.
pub fn edges_of(acts: &[(usize, Act)]) -> Vec<WeightedEdge> {
    let mut feed = Feed::new(Profile::default());
    run(&mut feed, acts);
    feed.encoding.0
}

#[derive(Default)]
struct Profile(Vec<WeightedEdge>);

impl ContextEncoding for Profile {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn start_thread(&mut self, _: ProgramThreadId, _: Option<(ProgramThreadId, ContextFrame)>) {}

    fn enter_call(&mut self, _: ProgramThreadId, edge: CallEdge) {
        match self.0.iter_mut().find(|weighted| weighted.edge == edge) {
            Some(weighted) => weighted.weight += 1,
            None => self.0.push(WeightedEdge { edge, weight: 1 }),
        }
    }

    fn leave_call(&mut self, _: ProgramThreadId, _: CallEdge) {}

    fn current_context(&mut self, _: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        EncodedContext::single(place, 0)
    }

    fn decode_context(&self, _: &EncodedContext) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        Err(ContextDecodeError::Unknown)
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        EncodingStatistics::default()
    }
}
