//! The agent's options: `key=value,key=value`; `+` joins lists inside a value.
//!
//! ```text
//! -agentpath:…=TEXT, lucce run/attach/record, the log's `options` ─► RecordingOptions::parse ─► typed values
//!                                                                          │
//! OPTION_TABLE: name, values, default, documentation, conflicts, effect ◄──┴─► `lucce options`, agent-options.md
//! ```
//! Read `entry` first, then `table`, `kinds` (the values of `events=`) and `parser`. `units` parses times and sizes for
//! the agent and for all commands.

pub mod kinds;
pub mod placeholders;
pub mod reference;
pub mod units;

mod budget;
mod burst;
mod delay;
mod entry;
mod error;
mod names;
mod parser;
#[cfg(test)]
mod parser_tests;
mod recording;
mod resources;
mod selection;
mod table;

pub use lucce_layout::event_bits as event_mask;

pub use budget::CostBudget;
pub use burst::BurstOptions;
pub use delay::StartDelay;
pub use entry::{
    OptionChoice, OptionConflict, OptionEntry, OptionGroup, OptionModes, OptionText, OptionValue,
};
pub use error::OptionError;
pub use kinds::{EventKindInfo, EventKindSet, KindArgument, KindConflict, KindDescriptor};
pub use names::find_near_name;
pub use parser::{find_setting, split_settings};
pub use recording::{
    AllocationSampling, ClassCacheOption, ControlMode, DEFAULT_SAMPLING_INTERVAL, EncodingChoice,
    InstrumentScope, LogLevel, PushOptions, RecordingOptions, StartMode, TrackingMode,
};
pub use resources::ResourceRules;
pub use selection::{
    EventSelection, LOGGERS, MethodSelection, NamedMethodUse, is_agent_event, kind_names,
};
pub use table::{OPTION_TABLE, find_option};
