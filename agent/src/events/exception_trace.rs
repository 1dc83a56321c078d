//! Traces of exceptions: arrays that the VM creates in `Throwable.fillInStackTrace`, and exceptions that the VM throws by itself.
//!
//! A hook follows that call. If code has created the exception, the slots are valid, and the trace counts as an ordinary array.
//! If the VM has created it, the slots are not valid. Then the agent reads the frames from the VM, and counts exception, message
//! and trace at the interrupted instruction. The instruction of the frame below the constructors identifies the creator, which
//! also needs the VM's frames. Therefore the helper class caches the instructions that create exceptions by calling a
//! constructor, by class, method and bci, as the trace contains them.
//! and bci, as the trace itself has them, make exceptions by calling a constructor.
use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;

use crate::core::EventLocation;
use crate::counting::CountingParts;
use crate::counting::counter_lookup::{find_counter, verify_location_below};
use crate::events::exception_origin::{ExceptionMaker, ExceptionOrigin, find_exception_origin};
use crate::events::objects::VM;
use crate::memory::shared_layout::{TRACE_COUNT, TRACE_COUNTED, TRACE_REMEMBER};
use crate::stack::current_location;
use crate::thread::ThreadState;

/// The helper class's next action.
#[derive(Clone, Copy)]
pub enum TraceAction {
    Nothing = TRACE_COUNTED as isize,
    /// Count the trace: the slots are valid.
    Count = TRACE_COUNT as isize,
    /// Count the trace, and cache that the slots are valid for this instruction if it creates an exception.
    Remember = TRACE_REMEMBER as isize,
}

/// An exception, its trace, and their sizes in bytes. If the VM creates the exception, its message is new.
#[derive(Clone, Copy)]
pub struct ThrownException {
    pub exception: jobject,
    pub trace: jobject,
    pub trace_bytes: u64,
    pub text_bytes: u64,
}

impl ThrownException {
    /// Handles an exception whose trace was just filled in by the current thread.
    pub fn record_trace(
        self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
    ) -> TraceAction {
        let made = self.class_name(agent, env);
        let made = made.and_then(|class| find_exception_origin(agent, env, &class));
        let unknown = ExceptionOrigin {
            maker: ExceptionMaker::Code,
            own: 0,
        };
        let ExceptionOrigin { maker, own } = made.unwrap_or(unknown);
        let slots = match maker {
            ExceptionMaker::Vm => None,
            _ => current_location::locate_current(agent.stack_parts(), env, state, 0),
        };
        match (maker, slots) {
            (ExceptionMaker::Constructor, Some(_)) => TraceAction::Remember,
            (ExceptionMaker::Code, Some(_)) => TraceAction::Count,
            (ExceptionMaker::Code, None) | (_, Some(_)) => {
                verify_location_below(agent, env, state, (slots, 0));
                self.count_trace(agent, env, state, slots);
                TraceAction::Nothing
            }
            (_, None) => {
                self.count_all(agent, env, state, own);
                TraceAction::Nothing
            }
        }
    }

    fn class_name(self, agent: CountingParts<'_>, env: JniEnvironment) -> Option<String> {
        let class = env.class_of(self.exception);
        let signature = agent.core.jvmti.class_signature(class);
        env.delete_local(class);
        let name = signature?;
        Some(name.strip_prefix('L')?.strip_suffix(';')?.to_owned())
    }

    /// Counts exception, message and trace of an exception that the VM creates.
    fn count_all(
        self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        own: usize,
    ) {
        let here = current_location::locate_current(agent.stack_parts(), env, state, own);
        verify_location_below(agent, env, state, (here, own));
        let size = agent.core.jvmti.object_size(self.exception).unwrap_or(0);
        let what = (&VM, self.exception);
        if let Some(found) = find_counter(agent, env, state, here, what) {
            found.count_event(agent, env, state, size + self.text_bytes);
            self.count_trace(agent, env, state, here);
        }
    }

    fn count_trace(
        self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        here: Option<EventLocation>,
    ) {
        if let Some(found) = find_counter(agent, env, state, here, (&VM, self.trace)) {
            found.count_event(agent, env, state, self.trace_bytes);
        }
    }
}
