//! `events=thread`: starts of threads, and submissions of tasks to executors (`jdk::tasks`).
//!
//! The started thread or task continues in the context that started it.

use lucce_bytecode::{CodeInsertion, HelperMethod, MethodCall, NewField};

use crate::helpers::task;
use crate::instrumentation::HookSiteKind;
use crate::jdk::tasks::{self, TaskCall};
use crate::method_insertions::MethodInsertions;

use super::{AnalyzedMethod, EventHooks, TASKS, THREAD, event_call};

/// The hooks of the kind.
pub(super) struct ThreadStartHooks;

/// The meaning of each call number: its index in this list.
const CALLS: [TaskCall; 10] = [
    TaskCall::Start,
    TaskCall::Submit(None),
    TaskCall::Submit(Some(0)),
    TaskCall::Submit(Some(1)),
    TaskCall::Reject(1),
    TaskCall::Run,
    TaskCall::Finish,
    TaskCall::Schedule,
    TaskCall::StartVirtual,
    TaskCall::StartForTask,
];

const BEFORE_START: HelperMethod<'static> = task("beforeStart", "(Ljava/lang/Thread;JI)V");
const BEFORE_VIRTUAL_START: HelperMethod<'static> =
    task("beforeVirtualStart", "(Ljava/lang/Thread;JI)V");
/// For classes out of scope.
const BEFORE_START_UNTRACKED: HelperMethod<'static> =
    task("beforeStartUntracked", "(Ljava/lang/Thread;JI)V");
const BEFORE_TASK_START: HelperMethod<'static> = task("beforeTaskStart", "(Ljava/lang/Object;JI)V");
const BEFORE_SUBMIT: HelperMethod<'static> = task("beforeSubmit", "(Ljava/lang/Object;JI)V");
const BEFORE_REJECT: HelperMethod<'static> = task("beforeReject", "(Ljava/lang/Object;JI)V");
const BEFORE_RUN: HelperMethod<'static> = task("beforeRun", "(Ljava/lang/Object;JI)V");
const AFTER_RUN: HelperMethod<'static> = task("afterRun", "(JI)V");
const BEFORE_SCHEDULE: HelperMethod<'static> = task("beforeSchedule", "(JI)V");

fn find_task_call(at: &AnalyzedMethod<'_>, call: &MethodCall<'_>) -> Option<TaskCall> {
    tasks::find_task_call((at.class, &at.method.name), at.scan, call)
}

impl EventHooks for ThreadStartHooks {
    fn call_site_kind(
        &self,
        at: &AnalyzedMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        let task_call = find_task_call(at, call)?;
        let which = CALLS.iter().position(|known| *known == task_call)?;
        Some(HookSiteKind::EventCall(event_call(&THREAD, which as u8)))
    }

    fn call_insertions(&self, which: u8, site: i32) -> Vec<CodeInsertion<'static>> {
        let local = |helper, local| CodeInsertion::MarkLocal {
            helper,
            site,
            local,
        };
        let top = |helper| CodeInsertion::MarkTop { helper, site };
        let before = |helper| CodeInsertion::Mark { helper, site };
        let task_call = CALLS.get(usize::from(which)).into_iter();
        let insert = task_call.map(|task_call| match *task_call {
            TaskCall::Start => local(BEFORE_START, 0),
            TaskCall::StartVirtual => local(BEFORE_VIRTUAL_START, 0),
            TaskCall::StartForTask => top(BEFORE_TASK_START),
            TaskCall::Submit(Some(task)) => local(BEFORE_SUBMIT, task),
            TaskCall::Submit(None) => top(BEFORE_SUBMIT),
            TaskCall::Reject(task) => local(BEFORE_REJECT, task),
            TaskCall::Run => top(BEFORE_RUN),
            TaskCall::Finish => before(AFTER_RUN),
            TaskCall::Schedule => before(BEFORE_SCHEDULE),
        });
        insert.collect()
    }

    fn counted_as(&self, which: u8) -> Option<&'static str> {
        match CALLS.get(usize::from(which))? {
            TaskCall::Start | TaskCall::StartVirtual => Some(THREAD.name),
            TaskCall::Submit(_) => Some(TASKS.name),
            _ => None,
        }
    }

    /// Returns no hooks for tasks: their submitters are out of scope as well.
    fn out_of_scope_insertions(&self, at: &AnalyzedMethod<'_>) -> MethodInsertions {
        let mut calls = at.scan.calls.iter();
        let start = calls.find(|call| {
            let call = find_task_call(at, call);
            matches!(call, Some(TaskCall::Start | TaskCall::StartVirtual))
        });
        let insert = CodeInsertion::MarkLocal {
            helper: BEFORE_START_UNTRACKED,
            // A class out of scope has no sites.
            site: 0,
            local: 0,
        };
        MethodInsertions::from_places(start.map(|call| (call.bci, insert)))
    }

    fn added_fields(&self, class: &str, in_scope: bool) -> Vec<NewField<'static>> {
        match in_scope {
            true => tasks::task_fields(class),
            false => Vec::new(),
        }
    }

    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        vec![
            BEFORE_START,
            BEFORE_VIRTUAL_START,
            BEFORE_TASK_START,
            BEFORE_START_UNTRACKED,
            BEFORE_SUBMIT,
            BEFORE_REJECT,
            BEFORE_RUN,
            AFTER_RUN,
            BEFORE_SCHEDULE,
        ]
    }
}
