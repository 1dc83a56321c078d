//! Recorded contexts of real programs, as calls: what changes from one event's stack to the next.

use lucce_kcontexts::*;

/// The stacks of methods, outermost first, with methods counted from 0; and how many methods there are.
pub fn read(recorded: &[u8]) -> (Vec<Vec<CallLabel>>, u32) {
    let mut methods = 0;
    let mut label = |frame: &lucce_callgraph::ContextFrame| {
        methods = methods.max(frame.method.0);
        CallLabel(frame.method.0 - 1)
    };
    let events = lucce_contextkit::read(recorded);
    let stacks = events
        .iter()
        .map(|event| event.iter().map(&mut label).collect())
        .collect();
    (stacks, methods)
}

/// Leaves and calls from each stack to the next. Frames that two stacks share are one call.
pub fn feed_stacks(
    stacks: &[Vec<CallLabel>],
    listener: &mut impl CallListener,
) -> Result<(), KContextError> {
    let thread = TraceThreadId(0);
    let mut last: &[CallLabel] = &[];
    for stack in stacks {
        let same = last.iter().zip(stack).take_while(|(a, b)| a == b).count();
        for _ in same..last.len() {
            listener.leave_call(thread)?;
        }
        for label in &stack[same..] {
            listener.enter_and_count(thread, (*label).into())?;
        }
        last = stack;
    }
    Ok(())
}
