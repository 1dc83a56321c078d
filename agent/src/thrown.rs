//! Traces of exceptions, arrays that the VM makes in `Throwable.fillInStackTrace`, and the exceptions that it throws by itself.
//!
//! A hook stands behind that call. If code has made the exception the slots are right, and the trace is an array like any
//! other. If the VM has, they are not: the VM is asked for the frames, and exception, message and trace are
//! counted where it has interrupted the program. Who makes it says the instruction of the frame below the
//! constructors, for which the VM must be asked, too; so the helper class keeps which instructions, by class, method
//! and bci, as the trace itself has them, make exceptions by calling a constructor.
#![allow(unsafe_code, reason = "a native method of the helper class")]

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jlong, jobject};

use crate::agent::Agent;
use crate::gate;
use crate::here::{self, Here};
use crate::jvm::Env;
use crate::shared_layout::{TRACE_COUNT, TRACE_COUNTED, TRACE_REMEMBER};
use crate::thread::{OwnState, ThreadState};
use crate::vm_alloc::VM;
use crate::vm_events::{found, told_by_hook, verify_below};
use crate::vm_thrown::{Maker, Making, making};

/// What the helper class is to do.
#[derive(Clone, Copy)]
enum Answer {
    Nothing = TRACE_COUNTED as isize,
    /// Count the trace: the slots are right.
    Count = TRACE_COUNT as isize,
    /// And remember that they are if this instruction makes an exception.
    Remember = TRACE_REMEMBER as isize,
}

/// An exception, its trace and what they take; its text is new if the VM makes the exception.
#[derive(Clone, Copy)]
struct Thrown {
    exception: jobject,
    trace: jobject,
    trace_bytes: u64,
    text_bytes: u64,
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_traced0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    exception: jobject,
    trace: jobject,
    bytes: jlong,
    text: jlong,
) -> jint {
    let mut answer = Answer::Nothing;
    told_by_hook(gate::ALLOC, env, (own, trace), |agent, env, state| {
        let thrown = Thrown {
            exception,
            trace,
            trace_bytes: u64::try_from(bytes).unwrap_or(0),
            text_bytes: u64::try_from(text).unwrap_or(0),
        };
        answer = thrown.traced(agent, env, state);
    });
    answer as jint
}

impl Thrown {
    fn traced(self, agent: &Agent, env: Env, state: &ThreadState) -> Answer {
        let made = self.class_name(agent, env);
        let made = made.and_then(|class| making(agent, env, &class));
        let unknown = Making {
            maker: Maker::Code,
            own: 0,
        };
        let Making { maker, own } = made.unwrap_or(unknown);
        let slots = match maker {
            Maker::Vm => None,
            _ => here::current(agent, env, state, 0),
        };
        match (maker, slots) {
            (Maker::Constructor, Some(_)) => Answer::Remember,
            (Maker::Code, Some(_)) => Answer::Count,
            (Maker::Code, None) | (_, Some(_)) => {
                verify_below(agent, env, state, (slots, 0));
                self.count_trace(agent, env, state, slots);
                Answer::Nothing
            }
            (_, None) => {
                self.count_all(agent, env, state, own);
                Answer::Nothing
            }
        }
    }

    fn class_name(self, agent: &Agent, env: Env) -> Option<String> {
        let class = env.class_of(self.exception);
        let signature = agent.jvmti.signature(class);
        env.forget(class);
        let name = signature?;
        Some(name.strip_prefix('L')?.strip_suffix(';')?.to_owned())
    }

    /// The VM makes the exception.
    fn count_all(self, agent: &Agent, env: Env, state: &ThreadState, own: usize) {
        let here = here::current(agent, env, state, own);
        verify_below(agent, env, state, (here, own));
        let size = agent.jvmti.object_size(self.exception).unwrap_or(0);
        let what = (&VM, self.exception);
        if let Some(found) = found(agent, env, state, here, what) {
            found.count(agent, env, state, size + self.text_bytes);
            self.count_trace(agent, env, state, here);
        }
    }

    fn count_trace(self, agent: &Agent, env: Env, state: &ThreadState, here: Option<Here>) {
        if let Some(found) = found(agent, env, state, here, (&VM, self.trace)) {
            found.count(agent, env, state, self.trace_bytes);
        }
    }
}
