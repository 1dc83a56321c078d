//! Who creates an exception whose trace has just been filled in: code that calls its constructor, or the VM in the middle of
//! another instruction (a division by zero, a failed cast). The VM enters the constructor by itself. Then the slots of the
//! constructor's frames do not lie above the slot of the interrupted frame.

use std::ptr;
use std::sync::Arc;

use jvmti_bindings::sys::jni::jmethodID;

use crate::counting::CountingParts;
use crate::stack::frames::{MethodKind, ResolvedMethod};
use lucce_jvmti::{FrameInfo, JniEnvironment};

/// The creator of an exception, by its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExceptionMaker {
    /// An instruction that calls a constructor.
    Constructor,
    /// Code that fills in the trace of an exception, which may have been created elsewhere.
    Code,
    /// An instruction that calls no constructor: the VM.
    Vm,
    /// Native code or a frame that traces omit: the VM, or that code.
    Other,
}

/// The creation of an exception.
#[derive(Clone, Copy, Debug)]
pub struct ExceptionOrigin {
    pub maker: ExceptionMaker,
    /// The number of the exception's own methods among the current thread's innermost frames, without frames of the helper.
    pub own: usize,
}

/// Exceeds the constructor frames of any exception by at least one.
const MAX_FRAMES: usize = 16;
const NONE: FrameInfo = FrameInfo {
    method: ptr::null_mut(),
    location: 0,
};

/// Reads the frames of the current thread, in which `Throwable.fillInStackTrace` runs for an exception of `class`
/// (`java/lang/Error`). `None`: the frames do not match.
pub fn find_exception_origin(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    class: &str,
) -> Option<ExceptionOrigin> {
    let mut infos = [NONE; MAX_FRAMES];
    let count = agent
        .core
        .jvmti
        .read_stack_from(std::ptr::null_mut(), 0, &mut infos)
        .ok()?;
    let frames = infos.iter().take(count);
    let frames = frames.map(|info| ConstructionFrame::from_info(agent, env, info));
    let mut frames = frames.filter(|frame| frame.method.kind != MethodKind::Helper);
    let mut own = 0;
    let mut stage = ConstructionStage::Fills;
    loop {
        let frame = frames.next()?;
        let name = &*frame.method.method_name;
        stage = match stage {
            ConstructionStage::Fills if name == "fillInStackTrace" => ConstructionStage::Fills,
            ConstructionStage::Fills if name != "<init>" => {
                let maker = frame.maker_of_trace();
                return Some(ExceptionOrigin { maker, own });
            }
            ConstructionStage::Constructed
                if name != "<init>" || frame.method.class_name != class =>
            {
                let maker = frame.maker_of_exception(agent);
                return Some(ExceptionOrigin { maker, own });
            }
            _ if name != "<init>" => return None,
            _ if frame.method.class_name == class => ConstructionStage::Constructed,
            _ => ConstructionStage::Constructs,
        };
        own += 1;
    }
}

/// Which frames were seen so far, innermost first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConstructionStage {
    Fills,
    /// A constructor of a superclass of the exception's class.
    Constructs,
    /// A constructor of the class itself. Another one may have called it.
    Constructed,
}

/// A frame and its place.
struct ConstructionFrame {
    method: Arc<ResolvedMethod>,
    id: jmethodID,
    location: i64,
}

impl ConstructionFrame {
    fn from_info(
        agent: CountingParts<'_>,
        env: JniEnvironment,
        info: &FrameInfo,
    ) -> ConstructionFrame {
        ConstructionFrame {
            method: agent
                .stack
                .frames
                .resolve_method(agent.stack_parts(), env, info.method),
            id: info.method,
            location: info.location,
        }
    }

    /// The creator, if this frame has called `fillInStackTrace`.
    fn maker_of_trace(&self) -> ExceptionMaker {
        match self.is_plain() {
            true => ExceptionMaker::Code,
            false => ExceptionMaker::Other,
        }
    }

    /// The creator, if a constructor was entered above this frame.
    fn maker_of_exception(&self, agent: CountingParts<'_>) -> ExceptionMaker {
        const INVOKESPECIAL: u8 = 183;
        if !self.is_plain() {
            return ExceptionMaker::Other;
        }
        let code = agent.core.jvmti.method_bytecodes(self.id);
        let opcode = usize::try_from(self.location).ok();
        match opcode.and_then(|at| code.get(at)) {
            Some(&INVOKESPECIAL) => ExceptionMaker::Constructor,
            Some(_) => ExceptionMaker::Vm,
            None => ExceptionMaker::Other,
        }
    }

    /// Whether it is bytecode that traces show.
    fn is_plain(&self) -> bool {
        !self.method.native && matches!(self.method.kind, MethodKind::Known(_))
    }
}
