//! Traces of exceptions, arrays that the VM makes in `Throwable.fillInStackTrace`, and the exceptions that it throws by itself.
//!
//! A hook stands behind that call. If code has made the exception the slots are right, and the trace is an array like any
//! other. If the VM has, they are not: the VM is asked for the frames, and exception, message and trace are
//! counted where it has interrupted the program. Who makes it says the instruction of the frame below the
//! constructors, for which the VM must be asked, too; so the helper class keeps which instructions, by class, method
//! and bci, as the trace itself has them, make exceptions by calling a constructor.
use jvmti_bindings::sys::jni::jobject;
use lucce_vm::Env;

use crate::core::Here;
use crate::counting::Counting;
use crate::counting::found::{found, verify_below};
use crate::events::maker::{Maker, Making, making};
use crate::events::objects::VM;
use crate::memory::shared_layout::{TRACE_COUNT, TRACE_COUNTED, TRACE_REMEMBER};
use crate::stack::here;
use crate::thread::ThreadState;

/// What the helper class is to do.
#[derive(Clone, Copy)]
pub enum Answer {
    Nothing = TRACE_COUNTED as isize,
    /// Count the trace: the slots are right.
    Count = TRACE_COUNT as isize,
    /// And remember that they are if this instruction makes an exception.
    Remember = TRACE_REMEMBER as isize,
}

/// An exception, its trace and what they take; its text is new if the VM makes the exception.
#[derive(Clone, Copy)]
pub struct Thrown {
    pub exception: jobject,
    pub trace: jobject,
    pub trace_bytes: u64,
    pub text_bytes: u64,
}

impl Thrown {
    /// Its trace has just been noted in the current thread.
    pub fn traced(self, counting: &Counting, env: Env, state: &ThreadState) -> Answer {
        let made = self.class_name(counting, env);
        let made = made.and_then(|class| making(counting, env, &class));
        let unknown = Making {
            maker: Maker::Code,
            own: 0,
        };
        let Making { maker, own } = made.unwrap_or(unknown);
        let slots = match maker {
            Maker::Vm => None,
            _ => here::current(counting, env, state, 0),
        };
        match (maker, slots) {
            (Maker::Constructor, Some(_)) => Answer::Remember,
            (Maker::Code, Some(_)) => Answer::Count,
            (Maker::Code, None) | (_, Some(_)) => {
                verify_below(counting, env, state, (slots, 0));
                self.count_trace(counting, env, state, slots);
                Answer::Nothing
            }
            (_, None) => {
                self.count_all(counting, env, state, own);
                Answer::Nothing
            }
        }
    }

    fn class_name(self, counting: &Counting, env: Env) -> Option<String> {
        let class = env.class_of(self.exception);
        let signature = counting.jvmti.signature(class);
        env.forget(class);
        let name = signature?;
        Some(name.strip_prefix('L')?.strip_suffix(';')?.to_owned())
    }

    /// The VM makes the exception.
    fn count_all(self, counting: &Counting, env: Env, state: &ThreadState, own: usize) {
        let here = here::current(counting, env, state, own);
        verify_below(counting, env, state, (here, own));
        let size = counting.jvmti.object_size(self.exception).unwrap_or(0);
        let what = (&VM, self.exception);
        if let Some(found) = found(counting, env, state, here, what) {
            found.count(counting, env, state, size + self.text_bytes);
            self.count_trace(counting, env, state, here);
        }
    }

    fn count_trace(self, counting: &Counting, env: Env, state: &ThreadState, here: Option<Here>) {
        if let Some(found) = found(counting, env, state, here, (&VM, self.trace)) {
            found.count(counting, env, state, self.trace_bytes);
        }
    }
}
