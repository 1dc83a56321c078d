//! The editions of the helper classes: the text is the same, and what an edition has not the Java compiler leaves out.
//! The agent's build reads this file, too.

/// What an edition has: constants of the same names in capitals in `LucceRtEdition`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HelperVariant {
    /// The VM is up: `Unsafe` may be used. Without it only pointers are moved.
    pub live: bool,
    /// Every so many events are compared with the VM's own trace.
    pub verify: bool,
    /// Calls are recorded.
    pub record: bool,
    /// Each event is also one record of the stream.
    pub stream: bool,
    /// For comparison: the memo of every frame is filled at its entry, with its node of the thread's tree.
    pub tree: bool,
    /// For comparison: every frame gets the paper's number and version at its entry.
    pub paper: bool,
}

impl HelperVariant {
    /// Before the VM is initialised.
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

    /// Those that options can ask for, each also with `verify`.
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

    #[allow(dead_code, reason = "for the agent's build")]
    pub fn all_variants() -> Vec<HelperVariant> {
        let live = HelperVariant::LIVE_VARIANTS.into_iter();
        let both = live
            .flat_map(|edition| [false, true].map(|verify| HelperVariant { verify, ..edition }));
        [HelperVariant::BOOT].into_iter().chain(both).collect()
    }

    /// Name and value of each constant.
    #[allow(dead_code, reason = "for the agent's build")]
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
