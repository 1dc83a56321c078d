//! Variants of the helper classes. All have the same source; the Java compiler omits the parts that a variant does not need.
//! The agent's build compiles them, and the agent selects one.

/// The features of a variant. `LucceRtEdition` has constants of the same names in capitals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HelperVariant {
    /// The VM is initialized: `Unsafe` may be used. Without this, only pointers are moved.
    pub live: bool,
    /// Every N-th event is compared with the VM's own trace.
    pub verify: bool,
    /// Calls are recorded.
    pub record: bool,
    /// Each event is also written to the stream.
    pub stream: bool,
    /// For comparison: at each entry, the frame's memo is filled with its node of the thread's tree.
    pub tree: bool,
    /// For comparison: at each entry, the frame gets the paper's number and version.
    pub paper: bool,
}

impl HelperVariant {
    /// The variant before the VM is initialized.
    pub const BOOT: HelperVariant = HelperVariant {
        live: false,
        verify: false,
        record: false,
        stream: false,
        tree: false,
        paper: false,
    };

    const LIVE: HelperVariant = HelperVariant {
        live: true,
        ..HelperVariant::BOOT
    };

    /// The variants that options can select, each also with `verify`.
    const LIVE_VARIANTS: [HelperVariant; 6] = [
        HelperVariant::LIVE,
        HelperVariant {
            record: true,
            ..HelperVariant::LIVE
        },
        HelperVariant {
            stream: true,
            ..HelperVariant::LIVE
        },
        HelperVariant {
            tree: true,
            ..HelperVariant::LIVE
        },
        HelperVariant {
            tree: true,
            stream: true,
            ..HelperVariant::LIVE
        },
        HelperVariant {
            paper: true,
            ..HelperVariant::LIVE
        },
    ];

    /// The boot variant, and all live variants with and without `verify`.
    pub fn all_variants() -> Vec<HelperVariant> {
        let live = HelperVariant::LIVE_VARIANTS.into_iter();
        let both = live
            .flat_map(|edition| [false, true].map(|verify| HelperVariant { verify, ..edition }));
        [HelperVariant::BOOT].into_iter().chain(both).collect()
    }

    /// Name and value of each constant.
    pub fn java_constants(self) -> [(&'static str, bool); 6] {
        [
            ("LIVE", self.live),
            ("VERIFY", self.verify),
            ("RECORD", self.record),
            ("STREAM", self.stream),
            ("TREE", self.tree),
            ("PAPER", self.paper),
        ]
    }
}
