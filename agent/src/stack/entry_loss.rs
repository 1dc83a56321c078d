//! VM-entered frames whose caller is not known: counted by reason, and reported to the user.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use crate::memory::counter::increment_counter;
use crate::options::LogLevel;
use crate::registry::CodeRegistry;
use crate::registry::written_records::external_name;
use crate::stack::StackParts;
use crate::stack::caller_frames;
use crate::stack::frames::{MethodKind, ResolvedFrame};
use crate::thread::ThreadState;

/// The reason why the caller of a VM-entered frame is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossReason {
    /// The VM does not report the frames.
    NoStack,
    /// The agent does not know the class of a frame.
    UnknownFrame,
    /// A slot does not belong to the frame that must own it.
    OtherSlot,
}

impl LossReason {
    /// In the order of `Counts::vm_entries_unresolved_by`.
    pub const ALL: [LossReason; 3] = [
        LossReason::NoStack,
        LossReason::UnknownFrame,
        LossReason::OtherSlot,
    ];

    /// The key in the log's counts.
    pub fn key(self) -> &'static str {
        match self {
            LossReason::NoStack => "no_stack",
            LossReason::UnknownFrame => "unknown_frame",
            LossReason::OtherSlot => "other_slot",
        }
    }
}

/// A VM-entered frame whose caller is not known.
pub struct EntryLoss<'f> {
    pub reason: LossReason,
    /// The frames that were entered, innermost first.
    pub entered: &'f [ResolvedFrame],
    /// The frames below, if the VM reports them.
    pub callers: &'f [ResolvedFrame],
}

impl<'f> EntryLoss<'f> {
    /// The loss of the next callee of the innermost of these frames. `frames`: innermost first; their slots do not
    /// match.
    pub fn from_callee_frames(frames: &'f [ResolvedFrame]) -> EntryLoss<'f> {
        let reason = match caller_frames::are_known(frames) {
            true => LossReason::OtherSlot,
            false => LossReason::UnknownFrame,
        };
        EntryLoss {
            reason,
            entered: frames.get(..1).unwrap_or_default(),
            callers: frames.get(1..).unwrap_or_default(),
        }
    }

    /// Counts the loss, and reports it to the user unless the VM has ended.
    pub fn count_and_report(&self, agent: StackParts<'_>, state: &ThreadState) {
        // Relaxed: a statistic; no other memory depends on it.
        let is_first = agent
            .core
            .counts
            .vm_entries_unresolved
            .fetch_add(1, Ordering::Relaxed)
            == 0;
        if let Some(of_reason) = agent
            .core
            .counts
            .vm_entries_unresolved_by
            .get(self.reason as usize)
        {
            increment_counter(of_reason);
        }
        // After its end the VM reports no frames, but threads may run until the process ends.
        if !agent.core.vm_end.has_ended() {
            self.report_loss(agent, state, is_first);
        }
    }

    /// Reports the loss the first time in a run, and each time with `log=debug`.
    fn report_loss(&self, agent: StackParts<'_>, state: &ThreadState, is_first: bool) {
        let is_debugging = LogLevel::Debug >= agent.core.options.log;
        let level = match is_first {
            true => LogLevel::Warn,
            false => LogLevel::Debug,
        };
        if !is_first && !is_debugging {
            return;
        }
        let entered = match self.entered.first() {
            Some(frame) => frame_name(frame),
            None => "a method that native code calls".to_owned(),
        };
        let unknown = self.callers.iter();
        let mut unknown = unknown.filter(|frame| frame.method.kind == MethodKind::Unknown);
        let why = match self.reason {
            LossReason::NoStack => "the JVM does not say the thread's frames".to_owned(),
            LossReason::UnknownFrame => match unknown.next_back() {
                Some(frame) => format!(
                    "{} below it is in no class that the agent has seen",
                    frame_name(frame)
                ),
                None => "a frame below it is in no class that the agent has seen".to_owned(),
            },
            LossReason::OtherSlot => "a frame below it was entered in an unknown way".to_owned(),
        };
        let message = format!(
            "cannot find the caller of {entered}, which the JVM entered by itself: {why}. Events in it have no trace and count as \
             lost; other traces stay right. `lucce check` counts such methods. Please report this with the output of log=debug"
        );
        agent.core.report_message(level, &message);
        if is_debugging {
            agent
                .core
                .report_message(LogLevel::Debug, &self.dump_frames(agent, state));
        }
    }

    /// Text of the frames that the VM reports and of the slots, outermost first.
    fn dump_frames(&self, agent: StackParts<'_>, state: &ThreadState) -> String {
        let mut text = String::from("frames and slots of that entry, outermost first:");
        let registry = agent.core.registry();
        for frame in self.callers.iter().rev() {
            let slot = if frame.has_slot() { "slot" } else { "no slot" };
            let _ = write!(
                text,
                "\n  {}:{} {slot}",
                frame_name(frame),
                frame.line_number()
            );
        }
        for slot in state
            .first_slot()
            .slots_until(state.first_slot().up_by(self.callers.len()))
        {
            let site = slot.site();
            let _ = match registry.site(site.0) {
                Some(info) => write!(
                    text,
                    "\n  {} {}:{}",
                    site.0,
                    name_by_id(&registry, info.method),
                    registry.line_of_site(&info)
                ),
                None => write!(text, "\n  {}", site.0),
            };
        }
        text
    }
}

fn frame_name(frame: &ResolvedFrame) -> String {
    let method = &frame.method;
    format!(
        "{}.{}",
        external_name(&method.class_name),
        method.method_name
    )
}

fn name_by_id(registry: &CodeRegistry, method: u32) -> String {
    let name = || {
        let info = registry.method(method)?;
        let class = registry.name_text(registry.class(info.class)?.name);
        Some(format!(
            "{}.{}",
            external_name(class),
            registry.name_text(info.name)
        ))
    };
    name().unwrap_or_default()
}
