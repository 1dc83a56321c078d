//! Times of named methods (`events=time:METHODS`): number, sum, longest, and how many took how long.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lucce_callgraph::DecodeError;
use lucce_options::kinds::NAMED_TIME;

use crate::profile::Profile;

/// Times of one method in all contexts.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct MethodTimeSums {
    /// Class and method: `a.b.C.m`.
    pub method: String,
    pub calls: u64,
    pub total_ns: u64,
    pub longest_ns: u64,
    /// Number of calls by their types, which are powers of two, shortest first.
    pub histogram: Vec<(String, u64)>,
}

/// Types and numbers of calls. The binary logarithm of a type's times orders them, before those that an exception ended.
type TimeBins = BTreeMap<(u32, bool), (String, u64)>;

/// Lists the named methods with times, longest sums first. Overloads are one method.
///
/// # Errors
/// The log does not explain a context.
pub fn list_method_times(profile: &Profile) -> Result<Vec<MethodTimeSums>, DecodeError> {
    let mut methods: BTreeMap<String, (MethodTimeSums, TimeBins)> = BTreeMap::new();
    let kind = NAMED_TIME.first_name();
    let events = profile.events_of_kind(kind);
    for context in profile.list_contexts_of(&events, &|_| ()).list {
        let trace = profile.decode_trace(context.id)?;
        let Some(frame) = trace.frames.first() else {
            continue;
        };
        let (sums, bins) = methods.entry(frame.qualified_method()).or_default();
        sums.calls = sums.calls.saturating_add(context.count);
        sums.total_ns = sums.total_ns.saturating_add(context.value);
        sums.longest_ns = sums.longest_ns.max(context.longest);
        let detail = profile.context_detail(&context).unwrap_or_default();
        // Types are numbered as they occur; their mean time orders them.
        let mean = context.value.checked_div(context.count).unwrap_or(0);
        let key = (mean.checked_ilog2().unwrap_or(0), detail.contains("threw"));
        let bin = bins.entry(key);
        let (_, count) = bin.or_insert_with(|| (detail.to_owned(), 0));
        *count = count.saturating_add(context.count);
    }
    let mut sums: Vec<_> = methods
        .into_iter()
        .map(|(method, (sums, bins))| MethodTimeSums {
            method,
            histogram: bins.into_values().collect(),
            ..sums
        })
        .collect();
    sums.sort_by_key(|sums| Reverse(sums.total_ns));
    Ok(sums)
}
