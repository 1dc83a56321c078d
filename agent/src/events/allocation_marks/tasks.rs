//! Tasks that measured code hands to other threads: which wait, and which run where.
#![allow(unsafe_code, reason = "global references of the VM's")]

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::{ContextId, MethodId};
use lucce_jvmti::{FrameInfo, JniEnvironment};

use crate::counting::CountingParts;
use crate::events::ownership::{MeasurementSet, any_runs_task};
use crate::stack::frames::MethodKind;
use crate::thread::ThreadState;

use super::{AllocationMarks, OpenMarks, UseState};

/// The tasks of measured code that a thread runs.
pub(super) struct RunningTasks {
    /// A global reference.
    pub(super) thread: jobject,
    /// The outermost first: the slot of the frame that runs the task, and its owners.
    pub(super) tasks: Vec<(usize, MeasurementSet)>,
}

// SAFETY: its threads are global references, which any thread may use.
unsafe impl Send for RunningTasks {}

/// A task whose end only the agent notices.
pub(super) struct PlainTask {
    /// A global reference.
    pub(super) object: jobject,
    pub(super) whose: MeasurementSet,
}

// SAFETY: its object is a global reference, which any thread may use.
unsafe impl Send for PlainTask {}

impl AllocationMarks {
    /// The current thread hands a task or a thread to others in a context. `is_plain`: the object does not report whether it has run.
    pub fn hand_task(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        (task, number): (jobject, ContextId),
        is_plain: bool,
    ) {
        let Some(whose) = self.lock_ownership().resolve_context(agent, number) else {
            return;
        };
        if whose.owners.is_empty() || whose.adds_worker {
            return;
        }
        let mut open = self.lock();
        for (at, measurement) in open.measurements.0.iter_mut().enumerate() {
            if !whose.owners.contains(at) || measurement.use_state != UseState::Open {
                continue;
            }
            if !is_plain {
                measurement.handed.push(env.new_global(task));
            }
        }
        if is_plain {
            open.plain.push_back(PlainTask {
                object: env.new_global(task),
                whose: whose.owners,
            });
        }
    }

    /// Removes a task that an executor has just refused.
    pub fn take_back_task(&self, env: JniEnvironment, task: jobject) {
        let mut open = self.lock();
        let is_it = |plain: &PlainTask| env.is_same(plain.object, task);
        let plain = open.plain.iter().rposition(is_it);
        if let Some(plain) = plain.and_then(|at| open.plain.remove(at)) {
            env.delete_global(plain.object);
            return;
        }
        for measurement in &mut open.measurements.0 {
            let handed = &mut measurement.handed;
            if let Some(at) = handed.iter().rposition(|known| env.is_same(*known, task)) {
                env.delete_global(handed.swap_remove(at));
            }
        }
    }

    /// The current thread begins to run a task in the frame with this slot. `number`: the context that the task carries; unknown if
    /// the task is plain.
    pub fn begin_task(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        (state, slot): (&ThreadState, usize),
        (task, number): (jobject, ContextId),
    ) {
        let known = match number {
            ContextId::UNKNOWN => None,
            number => self.lock_ownership().resolve_context(agent, number),
        };
        let Some(thread) = agent.core.jvmti.current_thread() else {
            return;
        };
        let address = std::ptr::from_ref(state) as usize;
        let mut open = self.lock();
        let whose = match known {
            Some(whose) => whose.owners,
            None => open.take_plain(env, task),
        };
        open.end_tasks_from(env, address, slot);
        if !whose.is_empty() {
            let running = open.running.entry(address).or_insert_with(|| RunningTasks {
                thread: env.new_global(thread),
                tasks: Vec::new(),
            });
            if !env.is_same(running.thread, thread) {
                // The thread that had its state here has ended.
                env.delete_global(running.thread);
                running.thread = env.new_global(thread);
                running.tasks.clear();
            }
            running.tasks.push((slot, whose));
        }
        drop(open);
        env.delete_local(thread);
    }

    /// The current thread has finished the task of the frame with this slot.
    pub fn end_task(&self, env: JniEnvironment, state: &ThreadState, slot: usize) {
        let address = std::ptr::from_ref(state) as usize;
        self.lock().end_tasks_from(env, address, slot);
    }

    /// Tasks that the code of a mark has handed to others since the last call, as global references that the caller must delete.
    /// Also the number of its tasks that run, and of its plain tasks that wait.
    pub fn take_handed(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        mark: u64,
    ) -> (Vec<jobject>, u64) {
        let measurement = self.measurement_of_mark(mark);
        let Some(at) = measurement else {
            return (Vec::new(), 0);
        };
        self.end_finished_tasks(agent, env, at);
        let mut open = self.lock();
        let waiting = open
            .plain
            .iter()
            .filter(|plain| plain.whose.contains(at))
            .count();
        let running = open.running.values().flat_map(|running| &running.tasks);
        let running = running.filter(|(_, whose)| whose.contains(at)).count();
        let handed = open.measurements.0.get_mut(at);
        let handed = handed.map(|of| std::mem::take(&mut of.handed));
        (handed.unwrap_or_default(), (waiting + running) as u64)
    }

    /// Ends tasks of threads in which no frame runs a task any more: the end of a task of a `ForkJoinPool` has no hook.
    fn end_finished_tasks(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        measurement: usize,
    ) {
        let mut threads = Vec::new();
        for (address, running) in &self.lock().running {
            if running
                .tasks
                .iter()
                .any(|(_, whose)| whose.contains(measurement))
            {
                threads.push((
                    *address,
                    env.new_local(running.thread),
                    running.tasks.clone(),
                ));
            }
        }
        for (address, thread, tasks) in threads {
            let runs_tasks = AllocationMarks::runs_tasks(agent, env, thread);
            env.delete_local(thread);
            let mut open = self.lock();
            let is_unchanged = |running: &RunningTasks| running.tasks == tasks;
            if !runs_tasks && open.running.get(&address).is_some_and(is_unchanged) {
                open.end_tasks_from(env, address, 0);
            }
        }
    }

    /// Whether a frame of a thread may run a task.
    fn runs_tasks(agent: CountingParts<'_>, env: JniEnvironment, thread: jobject) -> bool {
        const MOST_FRAMES: usize = 4096;
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        let mut frames = vec![empty; MOST_FRAMES];
        let Ok(found) = agent.core.jvmti.read_stack(thread, &mut frames) else {
            // The thread has ended.
            return false;
        };
        let frames = frames.get(..found).unwrap_or_default();
        let methods = frames.iter().map(|frame| {
            let method = agent
                .stack
                .frames
                .resolve_method(agent.stack_parts(), env, frame.method);
            match method.kind {
                MethodKind::Known(id) => MethodId(id),
                // Including a helper that reports the begin of the task.
                _ => MethodId(0),
            }
        });
        found == MOST_FRAMES || any_runs_task(agent, &methods.collect::<Vec<_>>())
    }
}

impl OpenMarks {
    /// Removes a plain task that begins. Returns its owners.
    fn take_plain(&mut self, env: JniEnvironment, task: jobject) -> MeasurementSet {
        let is_it = |plain: &PlainTask| env.is_same(plain.object, task);
        let plain = self.plain.iter().position(is_it);
        let plain = plain.and_then(|at| self.plain.remove(at));
        plain.map_or(MeasurementSet::default(), |plain| {
            env.delete_global(plain.object);
            plain.whose
        })
    }

    /// Ends the tasks in the frame with this slot and in frames above it.
    pub(super) fn end_tasks_from(&mut self, env: JniEnvironment, address: usize, slot: usize) {
        if let Some(running) = self.running.get_mut(&address) {
            running.tasks.retain(|(at, _)| *at < slot);
            if running.tasks.is_empty()
                && let Some(running) = self.running.remove(&address)
            {
                env.delete_global(running.thread);
            }
        }
    }
}
