//! What is summed, and by what: shared by all reports.

/// The amount of events that is summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Measure {
    /// Sum of the events' values: bytes, nanoseconds, …
    #[default]
    Value,
    /// Number of events
    Count,
}

impl Measure {
    /// Selects the amount from both.
    #[must_use]
    pub fn select_amount(self, value: u64, count: u64) -> u64 {
        match self {
            Measure::Value => value,
            Measure::Count => count,
        }
    }

    /// The unit of amounts, given the unit of values; counts have none.
    #[must_use]
    pub fn select_unit(self, unit: &str) -> &str {
        match self {
            Measure::Value => unit,
            Measure::Count => "",
        }
    }

    /// The requested measure, else that of the events: the count if they have neither a unit nor values.
    #[must_use]
    pub fn resolve(requested: Option<Measure>, unit: &str, values: u64) -> Measure {
        requested.unwrap_or(match unit.is_empty() && values == 0 {
            true => Measure::Count,
            false => Measure::Value,
        })
    }
}

/// The grouping of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum GroupBy {
    /// Stack trace, line by line, and type
    #[default]
    Context,
    /// Type of the objects
    Type,
    /// Class, including callees
    Class,
    /// Package, including callees
    Package,
    /// Method, including callees
    Method,
    /// Line, including callees
    Line,
    /// Entry: the outermost own method of each context, such as an endpoint, a job or a listener
    Entry,
    /// Thread
    Thread,
    /// Tag of the program (CallContext.tag)
    Tag,
    /// Request, by the tag of requests=auto
    Request,
}

impl GroupBy {
    pub const ALL: [GroupBy; 10] = [
        GroupBy::Context,
        GroupBy::Type,
        GroupBy::Class,
        GroupBy::Package,
        GroupBy::Method,
        GroupBy::Line,
        GroupBy::Entry,
        GroupBy::Thread,
        GroupBy::Tag,
        GroupBy::Request,
    ];

    /// Its name on command lines and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GroupBy::Context => "context",
            GroupBy::Type => "type",
            GroupBy::Class => "class",
            GroupBy::Package => "package",
            GroupBy::Method => "method",
            GroupBy::Line => "line",
            GroupBy::Entry => "entry",
            GroupBy::Thread => "thread",
            GroupBy::Tag => "tag",
            GroupBy::Request => "request",
        }
    }

    /// Whether a group includes its callees: a stack counts once, however often it contains the group.
    #[must_use]
    pub fn includes_callees(self) -> bool {
        matches!(
            self,
            GroupBy::Class | GroupBy::Package | GroupBy::Method | GroupBy::Line
        )
    }
}
