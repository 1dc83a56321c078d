//! Verification: compares the VM's own stack trace with the decoded number, frame by frame.
//!
//! Lines are those that the VM reports; each is read again now and then. If the code of a class was replaced, frames may
//! run older code, so lines come from a `Throwable` (`throwable_trace`). The comparison uses nothing that traces are made of.

use std::fmt::Write;
use std::sync::Arc;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::MismatchRecord;
use lucce_tracelog::escape::EscapedText;

use crate::memory::counter::increment_counter;
use crate::options::LogLevel;
use crate::registry::written_records::external_name;
use crate::registry::{CodeRegistry, NATIVE_LINE};
use crate::stack::StackParts;
use crate::stack::context_scopes;
use crate::stack::frames::{MethodKind, ResolvedMethod, StackWalk, can_watch, line_at};
use crate::stack::throwable_trace::{TraceLine, match_lines, read_trace};
use crate::stack::verified_traces::{DueComparison, TraceHash};
use lucce_jvmti::{FrameInfo, JniEnvironment};

/// Maximum number of mismatches in the log; all are counted.
const MOST_RECORDS: u64 = 1000;

/// A frame as traces show it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct VerifiedFrame {
    /// `a/b/C`
    class: String,
    method: String,
    line: i32,
}

/// A frame as the VM reports it.
struct TrueFrame {
    method: Arc<ResolvedMethod>,
    line: i32,
}

/// Compares what `number` decodes to with the current thread's stack. The innermost `returned` frames have returned
/// already: the event was counted on their behalf.
pub fn compare_number(
    agent: StackParts<'_>,
    env: JniEnvironment,
    number: ContextId,
    returned: usize,
) {
    compare_frames(agent, StackWalk::new(agent, env, 256), number, returned);
}

/// Compares the number with the current thread's `frames`.
///
/// An event without a number was dropped and has no trace, so it is not compared. Neither is an event whose frames
/// or lines the VM does not report, as when it has just ended.
pub fn compare_frames(
    agent: StackParts<'_>,
    frames: StackWalk<'_>,
    number: ContextId,
    returned: usize,
) {
    let (env, own, position) = (
        frames.env(),
        frames.own_frame_count(),
        frames.has_other_location(),
    );
    if number == ContextId::UNKNOWN {
        increment_counter(&agent.core.counts.dropped_uncompared);
        return;
    }
    let Some(raw) = frames.into_frame_infos() else {
        increment_counter(&agent.core.counts.frames_unknown);
        return;
    };
    let pair = TraceHash::from_frames(number, returned, &raw);
    let Err(due) = agent.stack.verified_traces.check_verified(pair) else {
        agent.core.count_compared();
        return;
    };
    let mut real = true_frames(agent, env, (&raw, due), position);
    real.retain(|frame| frame.method.kind != MethodKind::Helper);
    real.drain(..own.min(real.len()));
    real.retain(|frame| frame.method.kind != MethodKind::Hidden);
    let decoded = agent.core.encoder.decode_context(number, MethodId::EVENT);
    let registry = agent.core.registry();
    let same = match &decoded {
        Ok(frames) => {
            let frames = frames
                .get(..agent.stack.tasks.own_frame_count(frames))
                .unwrap_or_default();
            // Below a scope the trace continues in another thread.
            let above = real.iter().position(|frame| {
                let method = frame.method.id();
                method.is_some_and(|method| context_scopes::is_scope_method(&registry, method.0))
            });
            let shown = above.map_or(real.len(), |at| at + 1);
            let expected = real.iter().take(shown).map(expected_frame);
            let shown = above.map_or(usize::MAX, |at| at + 1);
            let decoded = frames
                .iter()
                .skip(returned)
                .take(shown)
                .filter_map(|frame| decoded_frame(&registry, frame.site.0))
                .map(Some);
            expected.eq(decoded)
        }
        Err(_) => false,
    };
    // A VM that has ended in the meantime reports neither lines nor frames: nothing was compared.
    if !same && !raw.is_empty() && agent.core.jvmti.frame_location(0).is_none() {
        increment_counter(&agent.core.counts.frames_unknown);
        return;
    }
    let at = agent.core.count_compared() + 1;
    if same {
        agent.stack.verified_traces.add_trace(pair, due);
        return;
    }
    agent.stack.verified_traces.remove_trace(pair);
    if agent.core.count_mismatch() >= MOST_RECORDS {
        return;
    }
    let expected = real.iter().fold(String::new(), append_expected);
    let decoded = match decoded {
        Ok(frames) => frames.iter().fold(String::new(), |text, frame| {
            append_decoded(text, &registry, frame.site.0)
        }),
        Err(error) => format!("\t{error}\n"),
    };
    drop(registry);
    agent.core.report_message(
        LogLevel::Debug,
        &format!("mismatch {number}\nexpected\n{expected}decoded\n{decoded}"),
    );
    agent.core.append_record(MismatchRecord {
        id: number,
        expected: expected.into(),
        decoded: decoded.into(),
        at,
    });
}

/// The frames as the VM reports them, without the agent's cache of frames. Only names of methods, which never change, and
/// whether traces show a method come from the verified data. `due`: from before the frames' lines are read. `position`: the innermost
/// frame has another location than the VM reports.
fn true_frames(
    agent: StackParts<'_>,
    env: JniEnvironment,
    (raw, due): (&[FrameInfo], DueComparison),
    position: bool,
) -> Vec<TrueFrame> {
    // Whoever resolves a method notices that its class has changed, so known lines come behind it.
    let methods = raw
        .iter()
        .map(|info| agent.stack.frames.resolve_method(agent, env, info.method));
    let methods: Vec<_> = methods.collect();
    let known = agent.stack.verified_traces.known_lines(raw, due);
    let lines = raw.iter().zip(&known);
    let lines = lines.map(|(info, known)| known.unwrap_or_else(|| read_line(agent, info)));
    let frames = methods.into_iter().zip(lines);
    let frames = frames.map(|(method, line)| TrueFrame { method, line });
    let mut frames: Vec<TrueFrame> = frames.collect();
    // The agent itself redefines its helper class, whose frames are in no trace.
    let read = || {
        let read = raw.iter().zip(&frames).zip(&known);
        let read = read
            .filter(|(_, known)| known.is_none())
            .map(|(read, _)| read);
        read.filter(|(_, frame)| frame.method.kind != MethodKind::Helper)
    };
    if !read().any(|(info, _)| was_replaced(agent, env, info)) {
        let lines = read().map(|(info, frame)| (*info, frame.line));
        agent.stack.verified_traces.add_lines(lines, due);
        return frames;
    }
    agent.stack.verified_traces.remove_lines(raw.iter());
    // Frames of old code may have other lines than their methods.
    let Some(trace) = read_trace(agent, env) else {
        return frames;
    };
    let classes: Vec<String> = frames
        .iter()
        .map(|frame| external_name(&frame.method.class_name))
        .collect();
    let names = classes.iter().zip(&frames);
    let names = names.map(|(class, frame)| (class.as_str(), frame.method.method_name.as_str()));
    let lines = match_lines(&trace, names);
    for (frame, line) in frames.iter_mut().zip(lines).skip(usize::from(position)) {
        if let TraceLine::Line(line) = line {
            frame.line = line;
        }
    }
    frames
}

/// The line as the VM reports it now.
fn read_line(agent: StackParts<'_>, info: &FrameInfo) -> i32 {
    if agent.core.jvmti.is_native(info.method) {
        return NATIVE_LINE;
    }
    let mut lines = agent.core.jvmti.line_table(info.method);
    lines.sort_by_key(|(start, _)| *start);
    line_at(&lines, info.location)
}

/// Whether the code of the frame's class was ever replaced.
fn was_replaced(agent: StackParts<'_>, env: JniEnvironment, info: &FrameInfo) -> bool {
    if !can_watch(agent, env) {
        return false;
    }
    let field = agent.stack.frames.versions.count_field();
    let class = agent.core.jvmti.declaring_class(info.method);
    let (Some(field), Some(class)) = (field, class) else {
        return false;
    };
    let count = env.get_int(class, field.as_raw());
    env.delete_local(class);
    count > 0
}

/// `None`: the VM reports a frame that is not in the code registry.
fn expected_frame(frame: &TrueFrame) -> Option<VerifiedFrame> {
    frame.method.id()?;
    Some(VerifiedFrame {
        class: frame.method.class_name.clone(),
        method: frame.method.method_name.clone(),
        line: frame.line,
    })
}

/// The frame of a site. Frames that get no slot on purpose are in no trace, unless a VM entry added them.
fn decoded_frame(registry: &CodeRegistry, site: u32) -> Option<VerifiedFrame> {
    let info = registry.site(site)?;
    let method = registry.method(info.method)?;
    Some(VerifiedFrame {
        class: registry
            .name_text(registry.class(method.class)?.name)
            .to_string(),
        method: registry.name_text(method.name).to_string(),
        line: registry.line_of_site(&info),
    })
}

fn append_expected(mut text: String, frame: &TrueFrame) -> String {
    match expected_frame(frame) {
        Some(shown) => append_frame(text, &shown),
        None => {
            let method = &frame.method;
            let _ = writeln!(
                text,
                "\tat {}.{}(not in the code registry)",
                EscapedText(&external_name(&method.class_name)),
                EscapedText(&method.method_name)
            );
            text
        }
    }
}

fn append_decoded(text: String, registry: &CodeRegistry, site: u32) -> String {
    match decoded_frame(registry, site) {
        Some(shown) => append_frame(text, &shown),
        None => text + "\tat an unknown site\n",
    }
}

fn append_frame(mut text: String, shown: &VerifiedFrame) -> String {
    let class = external_name(&shown.class);
    let (class, method) = (EscapedText(&class), EscapedText(&shown.method));
    let _ = match shown.line {
        NATIVE_LINE => writeln!(text, "\tat {class}.{method}(Native Method)"),
        line => writeln!(text, "\tat {class}.{method}:{line}"),
    };
    text
}
