//! Functions that native code calls. `include/lucce.h` specifies them.
#![allow(
    unsafe_code,
    reason = "functions that C code calls with pointers of its own"
)]

use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::mem::align_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use jvmti_bindings::sys::jni::{JNI_EDETACHED, JNI_OK, JNIEnv, JavaVM};
use lucce_callgraph::ContextId;
use lucce_tracelog::ContextNumber;

use crate::core::agent_use::AgentUseGuard;
use crate::counting::event_types::{MOST_OF_KIND, program_kind_name};
use crate::hookless::call_context;
use crate::memory::event_mask;
use crate::session::Agent;
use crate::session::guard::guard_callback;
use crate::stack::frames::MethodKind;
use crate::stack::trace;
use crate::stack::trace::StackElement;
use crate::stack::{contexts, current_location};
use crate::thread::lifecycle::current_state;
use crate::thread::{OwnState, ThreadState};
use lucce_jvmti::JniEnvironment;

/// As in the header.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApiStatus {
    Ok = 0,
    NotRunning = -1,
    BadArgument = -2,
    NotAttached = -3,
    WrongThread = -4,
    UnknownContext = -5,
    TooSmall = -6,
    NoContext = -7,
    Full = -8,
    Busy = -9,
    NotInnermost = -10,
    Internal = -11,
}

type ApiResult = Result<(), ApiStatus>;

const STATUS_TEXTS: [&CStr; 12] = [
    c"done",
    c"the JVM is not initialised yet or has ended, or lucce is not its agent",
    c"a null pointer, or memory that is not aligned",
    c"the calling thread is not attached to the JVM",
    c"the environment is that of another thread",
    c"not a context number",
    c"the memory is too small",
    c"nobody knows the context",
    c"the log is full",
    c"this thread runs lucce's own code",
    c"not the innermost scope of this thread",
    c"an error of lucce's",
];

const API_VERSION: u32 = 2;
const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

static VM: AtomicPtr<JavaVM> = AtomicPtr::new(ptr::null_mut());

/// Sets the VM that has loaded the agent.
pub fn set_vm(vm: *mut JavaVM) {
    VM.store(vm, Ordering::Release);
}

/// As in the header.
#[repr(C)]
pub struct ApiScope {
    context: u64,
    outer: *mut ApiScope,
}

#[repr(C)]
pub struct ApiFrame {
    class_name: *const c_char,
    method: *const c_char,
    file: *const c_char,
    line: i32,
}

unsafe extern "C" {
    fn lucce_place_recent(context: u64);
    fn lucce_place_open(scope: *mut ApiScope, context: u64) -> i32;
    fn lucce_place_close(scope: *mut ApiScope) -> i32;
    fn lucce_place_read(context: *mut u64) -> i32;
}

#[unsafe(no_mangle)]
pub extern "C" fn lucce_status_text(status: i32) -> *const c_char {
    let index = status.checked_neg().and_then(|n| usize::try_from(n).ok());
    let text = index.and_then(|index| STATUS_TEXTS.get(index));
    text.map_or(c"not a status of lucce's".as_ptr(), |text| text.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn lucce_api_version() -> u32 {
    API_VERSION
}

#[unsafe(no_mangle)]
pub extern "C" fn lucce_version() -> *const c_char {
    VERSION.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn lucce_current(env: *mut JNIEnv, context: *mut u64) -> i32 {
    answer_call(|agent| {
        let thread = CallingThread::new(agent, env, context)?;
        let number = thread.context_number(agent)?;
        // SAFETY: the caller's memory for one number; C code that uses this thread's own memory.
        unsafe {
            context.write_unaligned(number.0);
            lucce_place_recent(number.0);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lucce_event(env: *mut JNIEnv, kind: *const c_char, value: i64) -> i32 {
    answer_call(|agent| {
        let thread = CallingThread::new(agent, env, kind)?;
        // SAFETY: the caller passes a text that ends with a zero byte.
        let kind = unsafe { CStr::from_ptr(kind) }.to_string_lossy();
        let kind: String = kind.chars().take(MOST_OF_KIND).collect();
        if !agent.core.event_mask.is_enabled(event_mask::OWN) {
            return Ok(());
        }
        if agent.core.is_hookless() {
            let counted = call_context::count_program_event(
                agent.counting_parts(),
                thread.env,
                (&kind, value),
                0,
            );
            return counted.map(|_| ()).ok_or(ApiStatus::Full);
        }
        let kind = program_kind_name(&kind);
        let number = thread.context_number(agent)?;
        let event = agent.counting_parts().find_or_add_event_type(&kind, "", "");
        let counted = agent.counting_parts().count_event(
            thread.env,
            thread.thread_state()?,
            number,
            event,
            value,
        );
        counted.ok_or(ApiStatus::Full)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lucce_scope_open(env: *mut JNIEnv, scope: *mut ApiScope) -> i32 {
    answer_call(|agent| {
        let thread = CallingThread::new(agent, env, scope)?;
        if !scope.is_aligned() {
            return Err(ApiStatus::BadArgument);
        }
        let number = thread.context_number(agent)?;
        // SAFETY: the caller's memory for a scope, which it keeps until it has closed it.
        match unsafe { lucce_place_open(scope, number.0) } {
            0 => Err(ApiStatus::Internal),
            _ => Ok(()),
        }
    })
}

/// Needs no agent: an open scope can be closed after the agent has ended.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_scope_close(scope: *mut ApiScope) -> i32 {
    if scope.is_null() {
        return ApiStatus::BadArgument as i32;
    }
    // SAFETY: the pointer is compared with this thread's innermost scope before it is used.
    match unsafe { lucce_place_close(scope) } {
        0 => ApiStatus::NotInnermost as i32,
        _ => ApiStatus::Ok as i32,
    }
}

/// For signal handlers: only reads.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_current_in_signal(context: *mut u64) -> i32 {
    // SAFETY: C code that reads this thread's own memory, and writes the caller's number if there is one.
    unsafe { lucce_place_read(context) }
}

#[unsafe(no_mangle)]
pub extern "C" fn lucce_decode(
    context: u64,
    memory: *mut c_void,
    size: usize,
    needed: *mut usize,
    frames: *mut usize,
) -> i32 {
    answer_call(|agent| {
        let decoded = trace::decode_trace(agent.stack_parts(), ContextId(context));
        let texts = TraceText::new(&decoded.map_err(|_| ApiStatus::UnknownContext)?);
        for (into, value) in [(needed, texts.byte_count()), (frames, texts.frames.len())] {
            if !into.is_null() {
                // SAFETY: the caller's memory for a number.
                unsafe { into.write_unaligned(value) };
            }
        }
        if size < texts.byte_count() {
            return Err(ApiStatus::TooSmall);
        }
        if memory.is_null() || !memory.cast::<ApiFrame>().is_aligned() {
            return Err(ApiStatus::BadArgument);
        }
        // SAFETY: the caller's memory, of at least this size.
        unsafe { texts.copy_to(memory.cast()) };
        Ok(())
    })
}

/// Takes no lock and no heap memory: signal handlers may call it.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_text(context: u64, text: *mut c_char, size: usize) -> i32 {
    let Some((_inside, agent)) = agent_from_start() else {
        return ApiStatus::NotRunning as i32;
    };
    if text.is_null() {
        return ApiStatus::BadArgument as i32;
    }
    let number = ContextNumber {
        run: Some(agent.core.run),
        id: ContextId(context),
    };
    // SAFETY: the caller's memory of `size` bytes.
    let done = unsafe { write_text(number, text.cast(), size) };
    done.err().unwrap_or(ApiStatus::Ok) as i32
}

/// Writes the text of a number and a zero byte.
///
/// # Safety
/// `text` points to `size` writable bytes.
unsafe fn write_text(number: ContextNumber, text: *mut u8, size: usize) -> ApiResult {
    let mut bytes = [0; ContextNumber::MAX_TEXT + 1];
    let mut rest = bytes.as_mut_slice();
    write!(rest, "{number}").map_err(|_| ApiStatus::Internal)?;
    // At least one byte is left, for the zero.
    let used = ContextNumber::MAX_TEXT + 2 - rest.len();
    if used > size {
        return Err(ApiStatus::TooSmall);
    }
    // SAFETY: `text` points to `size` writable bytes, and `used` is at most `size`. The bytes are this function's own.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), text, used) };
    Ok(())
}

/// The agent, if it was loaded at the start of the JVM. It does not leave while the guard exists.
fn agent_from_start() -> Option<(AgentUseGuard, &'static Agent)> {
    let inside = AgentUseGuard::enter();
    let agent = Agent::get().filter(|agent| !agent.core.is_attached())?;
    Some((inside, agent))
}

/// Runs `body` and returns its status. Before the agent has started, the status is `NotRunning`.
fn answer_call(body: impl FnOnce(&'static Agent) -> ApiResult) -> i32 {
    let Some(_agent) = agent_from_start() else {
        return ApiStatus::NotRunning as i32;
    };
    let done = guard_callback(Err(ApiStatus::Internal), body);
    done.err().unwrap_or(ApiStatus::Ok) as i32
}

/// The calling thread, which is attached to the JVM.
struct CallingThread {
    env: JniEnvironment,
    own: OwnState,
}

impl CallingThread {
    /// The calling thread. `argument` must not be null.
    fn new<T>(
        agent: &Agent,
        env: *mut JNIEnv,
        argument: *const T,
    ) -> Result<CallingThread, ApiStatus> {
        if env.is_null() || argument.is_null() {
            return Err(ApiStatus::BadArgument);
        }
        if !agent.core.is_live() {
            return Err(ApiStatus::NotRunning);
        }
        if current_env()? != env {
            return Err(ApiStatus::WrongThread);
        }
        let env = agent.core.jni_env(env);
        let (method, _) = agent
            .core
            .jvmti
            .frame_location(0)
            .ok_or(ApiStatus::NoContext)?;
        if agent
            .stack
            .frames
            .resolve_method(agent.stack_parts(), env, method)
            .kind
            == MethodKind::Helper
        {
            return Err(ApiStatus::Busy);
        }
        let own = current_state(agent.thread_parts(), env);
        Ok(CallingThread { env, own })
    }

    fn thread_state(&self) -> Result<&ThreadState, ApiStatus> {
        self.own.get().ok_or(ApiStatus::NoContext)
    }

    fn context_number(&self, agent: &'static Agent) -> Result<ContextId, ApiStatus> {
        if agent.core.is_hookless() {
            return call_context::find_number(agent.counting_parts(), self.env, 0)
                .ok_or(ApiStatus::NoContext);
        }
        let state = self.thread_state()?;
        let here = current_location::locate_current(agent.stack_parts(), self.env, state, 0)
            .ok_or(ApiStatus::NoContext)?;
        match contexts::event_number(agent.stack_parts(), state, here) {
            ContextId::UNKNOWN => Err(ApiStatus::NoContext),
            number => Ok(number),
        }
    }
}

/// The JNI environment of the calling thread.
fn current_env() -> Result<*mut JNIEnv, ApiStatus> {
    const JNI_VERSION: i32 = 0x0001_0008;
    let vm = VM.load(Ordering::Acquire);
    if vm.is_null() {
        return Err(ApiStatus::NotRunning);
    }
    let mut env = ptr::null_mut();
    // SAFETY: the VM that has loaded the agent and has not ended: the agent is live.
    let code = unsafe { ((**vm).GetEnv)(vm, &mut env, JNI_VERSION) };
    match code {
        JNI_OK => Ok(env.cast()),
        JNI_EDETACHED => Err(ApiStatus::NotAttached),
        _ => Err(ApiStatus::Internal),
    }
}

/// A trace in the form in which it is copied: frames, then texts, each with a zero byte.
struct TraceText {
    frames: Vec<FrameTextOffsets>,
    text: Vec<u8>,
}

/// Offsets into the text.
struct FrameTextOffsets {
    class: usize,
    method: usize,
    file: Option<usize>,
    line: i32,
}

impl TraceText {
    fn new(frames: &[StackElement]) -> TraceText {
        let mut text = Vec::new();
        let mut add = |part: &str| {
            let at = text.len();
            // A zero byte inside a text would end it early.
            text.extend(part.bytes().filter(|byte| *byte != 0));
            text.push(0);
            at
        };
        let frames = frames.iter().map(|frame| FrameTextOffsets {
            class: add(&frame.class),
            method: add(&frame.method),
            file: frame.file.as_deref().map(&mut add),
            line: frame.line,
        });
        let frames = frames.collect();
        TraceText { frames, text }
    }

    fn byte_count(&self) -> usize {
        self.frames.len() * size_of::<ApiFrame>() + self.text.len()
    }

    /// # Safety
    /// `memory` points to `byte_count()` writable bytes, aligned for frames.
    unsafe fn copy_to(&self, memory: *mut ApiFrame) {
        // SAFETY: `memory` has room for all frames and the text, and is aligned for frames. It is not the agent's memory.
        unsafe {
            let text = memory.add(self.frames.len()).cast::<u8>();
            ptr::copy_nonoverlapping(self.text.as_ptr(), text, self.text.len());
            let at = |offset: usize| text.add(offset).cast::<c_char>().cast_const();
            for (index, frame) in self.frames.iter().enumerate() {
                memory.add(index).write(ApiFrame {
                    class_name: at(frame.class),
                    method: at(frame.method),
                    file: frame.file.map_or(ptr::null(), at),
                    line: frame.line,
                });
            }
        }
    }
}

const _: () = assert!(align_of::<ApiFrame>() == 8 && size_of::<ApiFrame>() == 32);

#[cfg(test)]
mod c_api_tests {
    use super::*;
    use crate::registry::{ClassDefinition, ClassLoaderId, CodeRegistry};
    use crate::stack::trace::resolve_elements;
    use lucce_callgraph::{MethodId, SiteId};
    use lucce_instrument::MethodInstrumentation;

    #[test]
    fn every_status_has_a_text() {
        let text = |status: i32| {
            // SAFETY: the texts are static.
            unsafe { CStr::from_ptr(lucce_status_text(status)) }
        };
        assert_eq!(text(ApiStatus::Ok as i32), c"done");
        assert_eq!(text(ApiStatus::Internal as i32), c"an error of lucce's");
        for status in [-12, 1, i32::MIN, i32::MAX] {
            assert_eq!(text(status), c"not a status of lucce's");
        }
    }

    #[test]
    fn a_trace_with_a_frame_that_nobody_knows_is_refused() {
        let mut registry = CodeRegistry::default();
        let instrumentation = MethodInstrumentation::without_hooks(false);
        let ids = registry.add_class(&ClassDefinition {
            name: "a/B",
            source: Some("B.java"),
            loader: ClassLoaderId::BOOT,
            methods: &[("m", "()V", 0)],
            instrumentations: &[instrumentation],
        });
        let method = ids.unwrap().first_method;
        let site = registry.resolve_line_site(method, 7).unwrap();
        let frame = |site| lucce_callgraph::ContextFrame {
            method: MethodId(method),
            site: SiteId(site),
        };
        let texts = |frames: &[_]| {
            resolve_elements(&registry, frames).map(|elements| TraceText::new(&elements))
        };
        let trace = texts(&[frame(site)]).unwrap();
        assert_eq!((trace.frames.len(), trace.frames[0].line), (1, 7));
        for unknown in [site + 1, u32::MAX] {
            assert!(texts(&[frame(site), frame(unknown)]).is_none());
        }
    }

    #[test]
    fn numbers_are_written_where_there_is_room() {
        let number = |id| ContextNumber {
            run: lucce_tracelog::RunId::new(0x0123_4567_89ab_cdef),
            id: ContextId(id),
        };
        let mut text = [0x55_u8; ContextNumber::MAX_TEXT + 2];
        // SAFETY: the buffer has at least this size.
        let mut write = |id, size| unsafe { write_text(number(id), text.as_mut_ptr(), size) };
        let whole = ContextNumber::MAX_TEXT + 1;
        assert_eq!(write(u64::MAX, whole - 1), Err(ApiStatus::TooSmall));
        assert_eq!(write(u64::MAX, whole), Ok(()));
        assert_eq!(write(42, 27), Err(ApiStatus::TooSmall));
        assert_eq!(write(42, 28), Ok(()));
        assert_eq!(&text[..28], b"lucce:0123456789abcdef:0x2a\0");
        assert_eq!(text[whole], 0x55);
    }

    #[test]
    fn without_an_agent_every_question_is_answered() {
        let mut number = 7;
        let env = ptr::without_provenance_mut(8);
        let not_running = ApiStatus::NotRunning as i32;
        assert_eq!(lucce_current(env, &mut number), not_running);
        assert_eq!(lucce_event(env, c"x".as_ptr(), 1), not_running);
        let null = ptr::null_mut();
        assert_eq!(
            lucce_decode(1, null, 0, ptr::null_mut(), ptr::null_mut()),
            not_running
        );
        assert_eq!(lucce_text(1, ptr::null_mut(), 0), not_running);
        assert_eq!(number, 7);
        assert_eq!((lucce_current_in_signal(&mut number), number), (0, 0));
        assert_eq!(lucce_current_in_signal(ptr::null_mut()), 0);
    }

    #[test]
    fn scopes_nest() {
        let scope = || ApiScope {
            context: 0,
            outer: ptr::null_mut(),
        };
        let (mut outer, mut inner, mut number) = (scope(), scope(), 0);
        // SAFETY: the caller keeps both scopes in memory until they are closed.
        unsafe {
            lucce_place_open(&mut outer, 5);
            assert_eq!((lucce_current_in_signal(&mut number), number), (1, 5));
            lucce_place_open(&mut inner, 6);
        }
        assert_eq!((lucce_current_in_signal(&mut number), number), (1, 6));
        assert_eq!(
            lucce_scope_close(&mut outer),
            ApiStatus::NotInnermost as i32
        );
        assert_eq!(lucce_scope_close(&mut inner), 0);
        assert_eq!(
            lucce_scope_close(&mut inner),
            ApiStatus::NotInnermost as i32
        );
        assert_eq!((lucce_current_in_signal(&mut number), number), (1, 5));
        assert_eq!(lucce_scope_close(&mut outer), 0);
        // The scope that was opened last holds the thread's most recent number.
        assert_eq!((lucce_current_in_signal(&mut number), number), (2, 6));
        let other = std::thread::spawn(|| lucce_current_in_signal(ptr::null_mut()));
        assert_eq!(other.join().unwrap(), 0);
    }
}
