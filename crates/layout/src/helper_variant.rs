//! Variants of the helper classes. All have the same source; the Java compiler omits the parts that a variant does not need.
//! The agent's build compiles them, and the agent selects one.

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
    pub lab: LabFeatures,
}

/// Features of the lab's agent.
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
    /// The variants of the product: the one before the VM is initialized, and all live variants with and without `verify`.
    #[must_use]
    pub fn product_variants() -> Vec<HelperVariant> {
        with_boot_and_verify(plain_variants().to_vec())
    }

    /// The variants of the lab's agent: those of the product, and those with its own features.
    #[must_use]
    pub fn lab_variants() -> Vec<HelperVariant> {
        let [plain, stream] = plain_variants();
        let features = |record, tree, paper| LabFeatures {
            record,
            tree,
            paper,
        };
        let with = |variant: HelperVariant, lab| HelperVariant { lab, ..variant };
        with_boot_and_verify(vec![
            plain,
            stream,
            with(plain, features(true, false, false)),
            with(plain, features(false, true, false)),
            with(stream, features(false, true, false)),
            with(plain, features(false, false, true)),
        ])
    }

    /// Name and value of each constant of the product's classes.
    #[must_use]
    pub fn java_constants(self) -> [(&'static str, bool); 3] {
        [
            ("LIVE", self.live),
            ("VERIFY", self.verify),
            ("STREAM", self.stream),
        ]
    }
}

impl LabFeatures {
    /// Name and value of each constant of the lab's classes.
    #[must_use]
    pub fn java_constants(self) -> [(&'static str, bool); 3] {
        [
            ("RECORD", self.record),
            ("TREE", self.tree),
            ("PAPER", self.paper),
        ]
    }
}

/// The live variants without `verify`: without and with a stream.
fn plain_variants() -> [HelperVariant; 2] {
    [false, true].map(|stream| HelperVariant {
        live: true,
        stream,
        ..HelperVariant::default()
    })
}

/// The variant before the VM is initialized, and each live one with and without `verify`.
fn with_boot_and_verify(live: Vec<HelperVariant>) -> Vec<HelperVariant> {
    let both = live
        .into_iter()
        .flat_map(|variant| [false, true].map(|verify| HelperVariant { verify, ..variant }));
    [HelperVariant::default()].into_iter().chain(both).collect()
}
