//! Who makes an exception whose trace has just been noted: code, by a call of its constructor, or the VM, in the middle
//! of another instruction (a division by zero, a failed cast). The VM enters the constructor by itself, so the slots of
//! the constructor's frames are then not above that of the frame which the VM has interrupted.

use std::ptr;
use std::sync::Arc;

use jvmti_bindings::sys::jni::jmethodID;

use crate::counting::Counting;
use crate::stack::frames::{MethodKind, Resolved};
use lucce_vm::{Env, FrameInfo};

/// Who makes it, as far as its frames say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maker {
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
pub struct Making {
    pub maker: Maker,
    /// So many of the current thread's innermost frames, the helper's aside, are the exception's own methods.
    pub own: usize,
}

/// More frames of constructors than an exception has, with one below.
const MOST: usize = 16;
const NONE: FrameInfo = FrameInfo {
    method: ptr::null_mut(),
    location: 0,
};

/// Asks the VM for the frames of the current thread, in which `Throwable.fillInStackTrace` runs for an exception of `class`
/// (`java/lang/Error`). `None`: they are other frames.
pub fn making(counting: &Counting, env: Env, class: &str) -> Option<Making> {
    let mut infos = [NONE; MOST];
    let count = counting
        .jvmti
        .stack(std::ptr::null_mut(), 0, &mut infos)
        .ok()?;
    let frames = infos.iter().take(count);
    let frames = frames.map(|info| MakingFrame::of(counting, env, info));
    let mut frames = frames.filter(|found| found.method.kind != MethodKind::Helper);
    let mut own = 0;
    let mut stage = Stage::Fills;
    loop {
        let found = frames.next()?;
        let name = &*found.method.method_name;
        stage = match stage {
            Stage::Fills if name == "fillInStackTrace" => Stage::Fills,
            Stage::Fills if name != "<init>" => {
                let maker = found.asks();
                return Some(Making { maker, own });
            }
            Stage::Constructed if name != "<init>" || found.method.class_name != class => {
                let maker = found.maker(counting);
                return Some(Making { maker, own });
            }
            _ if name != "<init>" => return None,
            _ if found.method.class_name == class => Stage::Constructed,
            _ => Stage::Constructs,
        };
        own += 1;
    }
}

/// Which frames have been seen, innermost first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fills,
    /// A constructor of a class above that of the exception.
    Constructs,
    /// One of that class itself: it may have been called by another one.
    Constructed,
}

/// A frame.
struct MakingFrame {
    method: Arc<Resolved>,
    id: jmethodID,
    location: i64,
}

impl MakingFrame {
    fn of(counting: &Counting, env: Env, info: &FrameInfo) -> MakingFrame {
        MakingFrame {
            method: counting.frames.resolve(counting, env, info.method),
            id: info.method,
            location: info.location,
        }
    }

    /// Of a frame that has called `fillInStackTrace` itself.
    fn asks(&self) -> Maker {
        match self.is_plain() {
            true => Maker::Code,
            false => Maker::Other,
        }
    }

    /// Of a frame above which a constructor has been entered.
    fn maker(&self, counting: &Counting) -> Maker {
        const INVOKESPECIAL: u8 = 183;
        if !self.is_plain() {
            return Maker::Other;
        }
        let code = counting.jvmti.bytecodes(self.id);
        let opcode = usize::try_from(self.location).ok();
        match opcode.and_then(|at| code.get(at)) {
            Some(&INVOKESPECIAL) => Maker::Constructor,
            Some(_) => Maker::Vm,
            None => Maker::Other,
        }
    }

    /// Of bytecode that traces show.
    fn is_plain(&self) -> bool {
        !self.method.native && matches!(self.method.kind, MethodKind::Known(_))
    }
}
