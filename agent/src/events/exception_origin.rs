//! Who makes an exception whose trace has just been noted: code, by a call of its constructor, or the VM, in the middle
//! of another instruction (a division by zero, a failed cast). The VM enters the constructor by itself, so the slots of
//! the constructor's frames are then not above that of the frame which the VM has interrupted.

use std::ptr;
use std::sync::Arc;

use jvmti_bindings::sys::jni::jmethodID;

use crate::counting::AgentCounting;
use crate::stack::frames::{MethodKind, ResolvedMethod};
use lucce_jvmti::{FrameInfo, JniEnvironment};

/// Who makes it, as far as its frames say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExceptionMaker {
    /// An instruction that calls a constructor.
    Constructor,
    /// Code that asks for the trace of an exception which may have been made elsewhere.
    Code,
    /// An instruction that calls no constructor: the VM.
    Vm,
    /// Native code or a frame that traces do not show: the VM or that code.
    Other,
}

/// The making of an exception.
#[derive(Clone, Copy, Debug)]
pub struct ExceptionOrigin {
    pub maker: ExceptionMaker,
    /// So many of the current thread's innermost frames, the helper's aside, are the exception's own methods.
    pub own: usize,
}

/// More frames of constructors than an exception has, with one below.
const MAX_FRAMES: usize = 16;
const NONE: FrameInfo = FrameInfo {
    method: ptr::null_mut(),
    location: 0,
};

/// Asks the VM for the frames of the current thread, in which `Throwable.fillInStackTrace` runs for an exception of `class`
/// (`java/lang/Error`). `None`: they are other frames.
pub fn find_exception_origin(
    counting: &AgentCounting,
    env: JniEnvironment,
    class: &str,
) -> Option<ExceptionOrigin> {
    let mut infos = [NONE; MAX_FRAMES];
    let count = counting
        .jvmti
        .read_stack_from(std::ptr::null_mut(), 0, &mut infos)
        .ok()?;
    let frames = infos.iter().take(count);
    let frames = frames.map(|info| ConstructionFrame::from_info(counting, env, info));
    let mut frames = frames.filter(|found| found.method.kind != MethodKind::Helper);
    let mut own = 0;
    let mut stage = ConstructionStage::Fills;
    loop {
        let found = frames.next()?;
        let name = &*found.method.method_name;
        stage = match stage {
            ConstructionStage::Fills if name == "fillInStackTrace" => ConstructionStage::Fills,
            ConstructionStage::Fills if name != "<init>" => {
                let maker = found.maker_of_trace();
                return Some(ExceptionOrigin { maker, own });
            }
            ConstructionStage::Constructed
                if name != "<init>" || found.method.class_name != class =>
            {
                let maker = found.maker_of_exception(counting);
                return Some(ExceptionOrigin { maker, own });
            }
            _ if name != "<init>" => return None,
            _ if found.method.class_name == class => ConstructionStage::Constructed,
            _ => ConstructionStage::Constructs,
        };
        own += 1;
    }
}

/// Which frames have been seen, innermost first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConstructionStage {
    Fills,
    /// A constructor of a class above that of the exception.
    Constructs,
    /// One of that class itself: it may have been called by another one.
    Constructed,
}

/// A frame.
struct ConstructionFrame {
    method: Arc<ResolvedMethod>,
    id: jmethodID,
    location: i64,
}

impl ConstructionFrame {
    fn from_info(
        counting: &AgentCounting,
        env: JniEnvironment,
        info: &FrameInfo,
    ) -> ConstructionFrame {
        ConstructionFrame {
            method: counting.frames.resolve_method(counting, env, info.method),
            id: info.method,
            location: info.location,
        }
    }

    /// Of a frame that has called `fillInStackTrace` itself.
    fn maker_of_trace(&self) -> ExceptionMaker {
        match self.is_plain() {
            true => ExceptionMaker::Code,
            false => ExceptionMaker::Other,
        }
    }

    /// Of a frame above which a constructor has been entered.
    fn maker_of_exception(&self, counting: &AgentCounting) -> ExceptionMaker {
        const INVOKESPECIAL: u8 = 183;
        if !self.is_plain() {
            return ExceptionMaker::Other;
        }
        let code = counting.jvmti.method_bytecodes(self.id);
        let opcode = usize::try_from(self.location).ok();
        match opcode.and_then(|at| code.get(at)) {
            Some(&INVOKESPECIAL) => ExceptionMaker::Constructor,
            Some(_) => ExceptionMaker::Vm,
            None => ExceptionMaker::Other,
        }
    }

    /// Of bytecode that traces show.
    fn is_plain(&self) -> bool {
        !self.method.native && matches!(self.method.kind, MethodKind::Known(_))
    }
}
