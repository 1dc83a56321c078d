//! Methods in progress whose times are recorded, in a JVM without shadow stacks.

use lucce_callgraph::ContextId;

/// A call in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenMethodTime {
    /// The method's number.
    pub method: u32,
    /// The context of its event.
    pub number: ContextId,
    /// When it began, in nanoseconds.
    pub since: u64,
}

/// A thread's calls in progress, innermost last.
#[derive(Default)]
pub struct OpenMethodTimes(Vec<OpenMethodTime>);

impl OpenMethodTimes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins a call. Returns what ends it; 0: the method is in progress already, and only its outermost call has a time.
    pub fn begin_call(&mut self, call: OpenMethodTime) -> u32 {
        if self.0.iter().any(|open| open.method == call.method) {
            return 0;
        }
        self.0.push(call);
        u32::try_from(self.0.len()).unwrap_or(0)
    }

    /// Ends a call, and forgets calls within it that ended without a report. `None`: it is not in progress.
    pub fn end_call(&mut self, open: u32) -> Option<OpenMethodTime> {
        let index = (open as usize).checked_sub(1)?;
        let call = *self.0.get(index)?;
        self.0.truncate(index);
        Some(call)
    }
}

#[cfg(test)]
mod open_times_tests {
    use super::*;

    #[test]
    fn the_outermost_call_of_a_method_has_a_time() {
        let mut times = OpenMethodTimes::default();
        let call = |method, since| OpenMethodTime {
            method,
            number: ContextId(7),
            since,
        };
        let outer = times.begin_call(call(1, 10));
        let inner = times.begin_call(call(2, 20));
        assert_eq!(times.begin_call(call(1, 30)), 0);
        assert_eq!(times.end_call(0), None);
        assert_eq!(times.end_call(inner), Some(call(2, 20)));
        // A call within it never reported its end.
        times.begin_call(call(3, 40));
        assert_eq!(times.end_call(outer), Some(call(1, 10)));
        assert_eq!(times.end_call(outer), None);
        assert!(times.is_empty());
    }
}
