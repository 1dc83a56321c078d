//! Traces of exceptions, arrays that the VM makes in `Throwable.fillInStackTrace`, and the exceptions that it throws by itself.
//!
//! A hook stands behind that call. If code has made the exception the slots are right, and the trace is an array like any
//! other. If the VM has, they are not: the VM is asked for the frames, and exception, message and trace are
//! counted where it has interrupted the program. Who makes it says the instruction of the frame below the
//! constructors, for which the VM must be asked, too; so the helper class keeps which instructions, by class, method
//! and bci, as the trace itself has them, make exceptions by calling a constructor.
use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;

use crate::core::EventLocation;
use crate::counting::AgentCounting;
use crate::counting::counter_lookup::{find_counter, verify_location_below};
use crate::events::exception_origin::{ExceptionMaker, ExceptionOrigin, find_exception_origin};
use crate::events::objects::VM;
use crate::memory::shared_layout::{TRACE_COUNT, TRACE_COUNTED, TRACE_REMEMBER};
use crate::stack::current_location;
use crate::thread::ThreadState;

/// What the helper class is to do.
#[derive(Clone, Copy)]
pub enum TraceAction {
    Nothing = TRACE_COUNTED as isize,
    /// Count the trace: the slots are right.
    Count = TRACE_COUNT as isize,
    /// And remember that they are if this instruction makes an exception.
    Remember = TRACE_REMEMBER as isize,
}

/// An exception, its trace and what they take; its text is new if the VM makes the exception.
#[derive(Clone, Copy)]
pub struct ThrownException {
    pub exception: jobject,
    pub trace: jobject,
    pub trace_bytes: u64,
    pub text_bytes: u64,
}

impl ThrownException {
    /// Its trace has just been noted in the current thread.
    pub fn record_trace(
        self,
        counting: &AgentCounting,
        env: JniEnvironment,
        state: &ThreadState,
    ) -> TraceAction {
        let made = self.class_name(counting, env);
        let made = made.and_then(|class| find_exception_origin(counting, env, &class));
        let unknown = ExceptionOrigin {
            maker: ExceptionMaker::Code,
            own: 0,
        };
        let ExceptionOrigin { maker, own } = made.unwrap_or(unknown);
        let slots = match maker {
            ExceptionMaker::Vm => None,
            _ => current_location::locate_current(counting, env, state, 0),
        };
        match (maker, slots) {
            (ExceptionMaker::Constructor, Some(_)) => TraceAction::Remember,
            (ExceptionMaker::Code, Some(_)) => TraceAction::Count,
            (ExceptionMaker::Code, None) | (_, Some(_)) => {
                verify_location_below(counting, env, state, (slots, 0));
                self.count_trace(counting, env, state, slots);
                TraceAction::Nothing
            }
            (_, None) => {
                self.count_all(counting, env, state, own);
                TraceAction::Nothing
            }
        }
    }

    fn class_name(self, counting: &AgentCounting, env: JniEnvironment) -> Option<String> {
        let class = env.class_of(self.exception);
        let signature = counting.jvmti.class_signature(class);
        env.delete_local(class);
        let name = signature?;
        Some(name.strip_prefix('L')?.strip_suffix(';')?.to_owned())
    }

    /// The VM makes the exception.
    fn count_all(
        self,
        counting: &AgentCounting,
        env: JniEnvironment,
        state: &ThreadState,
        own: usize,
    ) {
        let here = current_location::locate_current(counting, env, state, own);
        verify_location_below(counting, env, state, (here, own));
        let size = counting.jvmti.object_size(self.exception).unwrap_or(0);
        let what = (&VM, self.exception);
        if let Some(found) = find_counter(counting, env, state, here, what) {
            found.count_event(counting, env, state, size + self.text_bytes);
            self.count_trace(counting, env, state, here);
        }
    }

    fn count_trace(
        self,
        counting: &AgentCounting,
        env: JniEnvironment,
        state: &ThreadState,
        here: Option<EventLocation>,
    ) {
        if let Some(found) = find_counter(counting, env, state, here, (&VM, self.trace)) {
            found.count_event(counting, env, state, self.trace_bytes);
        }
    }
}
