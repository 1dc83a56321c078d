//! `events=thread`: starts of threads, and submissions of tasks to executors (`jdk::tasks`). What is started goes on in the
//! context that started it.

use lucce_bytecode::{Call, Helper, Insert, NewField};

use crate::helpers::task;
use crate::jdk::tasks::{self, Task};
use crate::shape::Mark;

use super::{Against, At, InCode, Kind, PLAIN, gate};

/// What the log has for submissions of tasks.
pub const TASK: &str = "task";

pub static THREAD: Kind = Kind {
    name: "thread",
    gate: gate::THREAD,
    also: &[TASK],
    can_come_later: true,
    is_everywhere: false,
    against: &[(
        Against::Attach,
        "events=thread: a JVM that runs does not tell who starts a thread or submits a task; \
          that needs the agent from the start (-agentpath)",
    )],
    code: Some(&Starts),
    ..PLAIN
};

struct Starts;

/// What a call means: its number is its place here.
const CALLS: [Task; 8] = [
    Task::Start,
    Task::Submit(None),
    Task::Submit(Some(0)),
    Task::Submit(Some(1)),
    Task::Reject(1),
    Task::Run,
    Task::Ran,
    Task::Schedule,
];

const STARTS: Helper<'static> = task("starts", "(Ljava/lang/Thread;JI)V");
/// In classes out of scope.
const STARTS_OUTSIDE: Helper<'static> = task("startsOutside", "(Ljava/lang/Thread;JI)V");
const SUBMITTED: Helper<'static> = task("submitted", "(Ljava/lang/Object;JI)V");
const REJECTED: Helper<'static> = task("rejected", "(Ljava/lang/Object;JI)V");
const RUNS: Helper<'static> = task("runs", "(Ljava/lang/Object;JI)V");
const RAN: Helper<'static> = task("ran", "(JI)V");
const SCHEDULES: Helper<'static> = task("schedules", "(JI)V");

fn found(at: &At<'_>, call: &Call<'_>) -> Option<Task> {
    tasks::found((at.class, &at.method.name), at.scan, call)
}

impl InCode for Starts {
    fn call(&self, at: &At<'_>, call: &Call<'_>) -> Option<Mark> {
        let found = found(at, call)?;
        let which = CALLS.iter().position(|known| *known == found)?;
        Some(Mark::Of(THREAD.of(which as u8)))
    }

    fn inserts(&self, which: u8, site: i32) -> Vec<Insert<'static>> {
        let local = |helper, local| Insert::MarkLocal {
            helper,
            site,
            local,
        };
        let top = |helper| Insert::MarkTop { helper, site };
        let before = |helper| Insert::Mark { helper, site };
        let found = CALLS.get(usize::from(which)).into_iter();
        let insert = found.map(|found| match *found {
            Task::Start => local(STARTS, 0),
            Task::Submit(Some(task)) => local(SUBMITTED, task),
            Task::Submit(None) => top(SUBMITTED),
            Task::Reject(task) => local(REJECTED, task),
            Task::Run => top(RUNS),
            Task::Ran => before(RAN),
            Task::Schedule => before(SCHEDULES),
        });
        insert.collect()
    }

    fn counted_as(&self, which: u8) -> Option<&'static str> {
        match CALLS.get(usize::from(which))? {
            Task::Start => Some(THREAD.name),
            Task::Submit(_) => Some(TASK),
            _ => None,
        }
    }

    /// Of tasks nothing is told there: who submits one is out of scope, too.
    fn outside(&self, at: &At<'_>) -> Vec<(u16, Insert<'static>)> {
        let mut calls = at.scan.calls.iter();
        let start = calls.find(|call| found(at, call) == Some(Task::Start));
        let insert = Insert::MarkLocal {
            helper: STARTS_OUTSIDE,
            // It has none.
            site: 0,
            local: 0,
        };
        start.map(|call| (call.bci, insert)).into_iter().collect()
    }

    fn fields(&self, class: &str, in_scope: bool) -> Vec<NewField<'static>> {
        let field = in_scope.then(|| tasks::field(class)).flatten();
        field.into_iter().collect()
    }

    fn helpers(&self) -> Vec<Helper<'static>> {
        vec![
            STARTS,
            STARTS_OUTSIDE,
            SUBMITTED,
            REJECTED,
            RUNS,
            RAN,
            SCHEDULES,
        ]
    }
}
