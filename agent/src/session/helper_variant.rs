//! Variants of the helper classes. All have the same source; the Java compiler omits the parts that a variant does not need.
//! The agent's build reads this file as well.

/// The features of a variant. `LucceRtVariant` has constants of the same names in capitals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HelperVariant {
    /// The VM is initialized: `Unsafe` may be used. Without this, only pointers are moved.
    pub live: bool,
    /// Every N-th event is compared with the VM's own trace.
    pub verify: bool,
    /// Each event is also written to the stream.
    pub stream: bool,
    /// The features that the lab's agent adds.
    #[cfg(feature = "lab")]
    pub lab: LabFeatures,
}

/// Features of the lab's agent.
#[cfg(feature = "lab")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LabFeatures {
    /// Calls are recorded.
    pub record: bool,
    /// At each entry, the frame's memo is filled with its node of the thread's tree.
    pub tree: bool,
    /// At each entry, the frame gets the paper's number and version.
    pub paper: bool,
}

impl HelperVariant {
    /// The variant before the VM is initialized, and all live variants with and without `verify`.
    #[allow(dead_code, reason = "for the agent's build")]
    pub fn all_variants() -> Vec<HelperVariant> {
        let live = HelperVariant::live_variants().into_iter();
        let both = live
            .flat_map(|variant| [false, true].map(|verify| HelperVariant { verify, ..variant }));
        [HelperVariant::default()].into_iter().chain(both).collect()
    }

    /// The live variants that options can select, without `verify`. The plain one is first.
    #[cfg(not(feature = "lab"))]
    fn live_variants() -> Vec<HelperVariant> {
        let variant = |stream| HelperVariant {
            live: true,
            stream,
            ..HelperVariant::default()
        };
        [false, true].map(variant).to_vec()
    }

    /// The live variants that options can select, without `verify`. The plain one is first.
    #[cfg(feature = "lab")]
    fn live_variants() -> Vec<HelperVariant> {
        let variant = |(stream, [record, tree, paper]): (bool, [bool; 3])| HelperVariant {
            live: true,
            stream,
            lab: LabFeatures {
                record,
                tree,
                paper,
            },
            ..HelperVariant::default()
        };
        let choices = [
            (false, [false, false, false]),
            (true, [false, false, false]),
            (false, [true, false, false]),
            (false, [false, true, false]),
            (true, [false, true, false]),
            (false, [false, false, true]),
        ];
        choices.map(variant).to_vec()
    }

    /// Name and value of each constant.
    #[allow(dead_code, reason = "for the agent's build")]
    pub fn java_constants(self) -> Vec<(&'static str, bool)> {
        let common = [
            ("LIVE", self.live),
            ("VERIFY", self.verify),
            ("STREAM", self.stream),
        ];
        #[cfg(feature = "lab")]
        let more = [
            ("RECORD", self.lab.record),
            ("TREE", self.lab.tree),
            ("PAPER", self.lab.paper),
        ];
        #[cfg(not(feature = "lab"))]
        let more = [];
        common.into_iter().chain(more).collect()
    }
}
