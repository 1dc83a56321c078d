//! Decides when a context is sampled and when the graph is renumbered (Section 4).

/// Thresholds. The paper names the triggers but not their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DacceTuning {
    /// Number of calls between two samples; the paper has a timer of 0.01 s.
    pub sample_interval: u64,
    /// Trigger: this many new edges, if they are a sixteenth of all edges.
    pub new_edges: u64,
    /// Trigger: this percentage of calls uses the ccStack for edges that could be encoded.
    pub stack_percent: u64,
    /// Trigger: this percentage of the hottest calls in sampled contexts does not have the smallest addition value.
    pub hot_percent: u64,
}

impl DacceTuning {
    pub const DEFAULT: DacceTuning = DacceTuning {
        sample_interval: 4096,
        new_edges: 64,
        stack_percent: 1,
        hot_percent: 10,
    };

    /// Never triggers.
    pub const NEVER: DacceTuning = DacceTuning {
        sample_interval: u64::MAX,
        ..DacceTuning::DEFAULT
    };
}

impl Default for DacceTuning {
    fn default() -> Self {
        DacceTuning::DEFAULT
    }
}

/// Counts since the last numbering.
pub struct ReEncodingTrigger {
    tuning: DacceTuning,
    /// Calls until the next sample.
    left: u64,
    calls: u64,
    new_edges: u64,
    avoidable: u64,
    hot: u64,
    adding: u64,
    /// Calls that must pass before hot paths or the ccStack trigger again.
    patience: u64,
}

impl ReEncodingTrigger {
    pub fn new(tuning: DacceTuning) -> ReEncodingTrigger {
        ReEncodingTrigger {
            tuning,
            left: tuning.sample_interval,
            calls: 0,
            new_edges: 0,
            avoidable: 0,
            hot: 0,
            adding: 0,
            patience: tuning.sample_interval,
        }
    }

    /// Counts a call. Returns whether to sample a context.
    pub fn record_call(&mut self, is_new: bool, avoidable: bool) -> bool {
        self.calls += 1;
        self.new_edges += u64::from(is_new);
        self.avoidable += u64::from(avoidable);
        self.left -= 1;
        if self.left == 0 {
            self.left = self.tuning.sample_interval;
            return true;
        }
        false
    }

    /// Counts a sampled context and returns whether to renumber the graph.
    ///
    /// `hot` of its calls are the hottest of their method; `adding` of these do not have the smallest addition value.
    pub fn record_sample(&mut self, hot: u64, adding: u64, known: u64) -> bool {
        self.hot += hot;
        self.adding += adding;
        let many_new = self.new_edges >= self.tuning.new_edges.max(known / 16);
        let patient = self.calls >= self.patience;
        let stack = self.avoidable * 100 > self.calls * self.tuning.stack_percent;
        let changed = self.adding * 100 > self.hot * self.tuning.hot_percent;
        many_new || patient && self.new_edges > 0 && stack || patient && changed
    }

    /// Resets the counts; `calls` have passed since the last numbering. Triggers that recur quickly must wait longer.
    pub fn finish_re_encoding(&mut self, calls: u64) {
        if self.new_edges < self.tuning.new_edges {
            self.patience = self.patience.max(calls).saturating_mul(2);
        }
        (self.calls, self.new_edges, self.avoidable) = (0, 0, 0);
        (self.hot, self.adding) = (0, 0);
    }
}

/// Tests each of the paper's three cases (Section 4) alone.
#[cfg(test)]
mod trigger_tests {
    use super::*;

    const TUNING: DacceTuning = DacceTuning {
        sample_interval: 10,
        new_edges: 5,
        stack_percent: 20,
        hot_percent: 10,
    };

    /// Makes calls up to the next sample. The first `new` have new edges, the first `avoidable` use the ccStack.
    fn calls(trigger: &mut ReEncodingTrigger, new: u64, avoidable: u64) {
        for call in 0..TUNING.sample_interval {
            let is_collected = trigger.record_call(call < new, call < avoidable);
            assert_eq!(is_collected, call + 1 == TUNING.sample_interval);
        }
    }

    #[test]
    fn the_number_of_identified_edges_reaches_a_threshold() {
        let mut trigger = ReEncodingTrigger::new(TUNING);
        calls(&mut trigger, 4, 0);
        assert!(!trigger.record_sample(0, 0, 4));
        calls(&mut trigger, 1, 0);
        assert!(trigger.record_sample(0, 0, 5));
        trigger.finish_re_encoding(20);
        calls(&mut trigger, 4, 0);
        assert!(!trigger.record_sample(0, 0, 9), "counts begin anew");
        // Five edges are too few for a large graph.
        calls(&mut trigger, 1, 0);
        assert!(!trigger.record_sample(0, 0, 160));
    }

    #[test]
    fn the_stack_is_frequently_accessed() {
        let mut trigger = ReEncodingTrigger::new(TUNING);
        calls(&mut trigger, 1, 2);
        assert!(!trigger.record_sample(0, 0, 1));
        calls(&mut trigger, 0, 3);
        assert!(trigger.record_sample(0, 0, 1), "5 of 20 calls");
    }

    #[test]
    fn the_hot_paths_have_changed() {
        let mut trigger = ReEncodingTrigger::new(TUNING);
        calls(&mut trigger, 0, 0);
        assert!(!trigger.record_sample(10, 1, 100));
        calls(&mut trigger, 0, 0);
        assert!(trigger.record_sample(10, 2, 100), "3 of 20 hot calls add");
        // It did not help: the same trigger must wait, longer each time.
        trigger.finish_re_encoding(20);
        for _ in 0..3 {
            calls(&mut trigger, 0, 0);
            assert!(!trigger.record_sample(10, 9, 100));
        }
        calls(&mut trigger, 0, 0);
        assert!(trigger.record_sample(10, 9, 100));
    }
}
