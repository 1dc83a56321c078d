//! Allocations by size: `report --min-size` and `report --by size`.

use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use lucce_decoder::{ALLOC, AllocationAmount, GroupBy, KindTotal, Profile, read_humongous_bytes};
use lucce_options::units::parse_size;

use crate::CommandError;

use super::ReportArgs;

/// What a report is summed up by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportGrouping {
    Group(GroupBy),
    /// Powers of two of the objects' sizes.
    Size,
}

impl ValueEnum for ReportGrouping {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ReportGrouping; GroupBy::ALL.len() + 1] = {
            let mut all = [ReportGrouping::Size; GroupBy::ALL.len() + 1];
            let mut at = 0;
            while at < GroupBy::ALL.len() {
                all[at] = ReportGrouping::Group(GroupBy::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            ReportGrouping::Group(by) => by.to_possible_value(),
            ReportGrouping::Size => {
                Some(PossibleValue::new("size").help("Size of the objects, by powers of two"))
            }
        }
    }
}

/// The size of `--min-size`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeLimit {
    Bytes(u64),
    /// Half a region of G1.
    Humongous,
}

impl FromStr for SizeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeLimit, String> {
        if text == "humongous" {
            return Ok(SizeLimit::Humongous);
        }
        let bytes = parse_size(text).map_err(|error| error.to_string())?;
        match bytes.is_power_of_two() {
            true => Ok(SizeLimit::Bytes(bytes)),
            false => Err("expected a power of two, such as 512k, 1m or 2m, or humongous".into()),
        }
    }
}

/// Leaves out small allocations, and replaces types by sizes, as the arguments say. Returns allocations of unknown size.
pub fn apply_sizes(
    args: &ReportArgs,
    kind: &KindTotal,
    profile: &mut Profile,
) -> Result<AllocationAmount, CommandError> {
    if !args.has_sizes() {
        return Ok(AllocationAmount::default());
    }
    if !ALLOC.is_kind(&kind.name) || args.counted.stream {
        return Err(CommandError::Usage(
            "--min-size and --by size are of counted allocations: without --stream, and without --event of another kind"
                .into(),
        ));
    }
    let is_by_size = args.by == Some(ReportGrouping::Size);
    if is_by_size && args.selection.event_filter().has_type_pattern() {
        return Err(CommandError::Usage(
            "--by size does not go with --type: sizes take the place of types".into(),
        ));
    }
    let least = match args.min_size {
        None => None,
        Some(SizeLimit::Bytes(bytes)) => Some(bytes),
        Some(SizeLimit::Humongous) => Some(read_humongous_bytes(profile).ok_or_else(|| {
            let text =
                "--min-size humongous needs a run with G1 and the agent option events=alloc=sizes";
            CommandError::Usage(text.into())
        })?),
    };
    let unknown = least.map(|least| profile.retain_large_allocations(least));
    let unknown = unknown.unwrap_or_default();
    let unknown = args
        .selection
        .event_filter()
        .select_counters(profile, &unknown);
    if is_by_size {
        profile.replace_types_by_sizes();
    }
    let counters = unknown.as_slice().iter();
    Ok(counters.fold(AllocationAmount::default(), |sum, counter| {
        AllocationAmount {
            count: sum.count.saturating_add(counter.count),
            bytes: sum.bytes.saturating_add(counter.value),
        }
    }))
}
