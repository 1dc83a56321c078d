//! The result of a search for one type, as text and JSON.

use std::io::{self, Write};
use std::time::Duration;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{ContextNumber, Profile, type_name};
use serde::Serialize;

use super::answer::{HoldersAnswer, TypeSearchCounts};
use super::root_path::{RootPathGroup, group_paths};
use super::{NO_BOUND, SearchLimits};
use crate::amounts::format_amount;
use crate::output::format_plural;

/// The context whose objects are searched.
pub(super) struct SearchContext {
    pub(super) number: ContextNumber,
    /// The content id of its trace, if the log can be read.
    pub(super) stack: Option<String>,
}

impl SearchContext {
    pub(super) fn new(number: ContextNumber, profile: Option<&Profile>) -> SearchContext {
        let trace = profile.and_then(|profile| profile.decode_trace(number.id).ok());
        let stack = trace.map(|trace| trace.stack.to_string());
        SearchContext { number, stack }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "context {}", self.number)?;
        match &self.stack {
            Some(stack) => writeln!(out, "  {stack}"),
            None => writeln!(out),
        }
    }
}

/// Maximum number of types that a line lists.
pub(super) const MAX_LISTED_TYPES: usize = 5;

/// The result for one type. Pauses and the end of the search are of all types of the context id.
#[derive(Serialize)]
pub(super) struct TypeHolders {
    pub(super) schema: &'static str,
    pub(super) version: u32,
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stack: Option<String>,
    pub(super) class: Option<String>,
    pub(super) followed: u64,
    pub(super) alive: u64,
    pub(super) looked_for: u64,
    /// Number of searched objects without a reported path.
    pub(super) not_held: u64,
    /// Of these, the number that a collection has taken meanwhile.
    pub(super) collected: u64,
    /// Of these, the number that survived a collection of the whole heap.
    pub(super) unreported: u64,
    /// Number of objects that changed meanwhile, or whose path changed.
    pub(super) changed: u64,
    /// Pauses in milliseconds.
    pub(super) pauses: Vec<f64>,
    /// Whether there may be a shorter path.
    pub(super) cut: bool,
    /// Whether the walks ended before all objects were found.
    pub(super) over: bool,
    /// Whether they ended because the pause budget was used up.
    pub(super) out_of_budget: bool,
    /// Duration of the requested collection in milliseconds.
    pub(super) collection: Option<f64>,
    pub(super) paths: Vec<RootPathGroup>,
    /// Paths that the walks did not follow to a root.
    pub(super) unfinished: Vec<RootPathGroup>,
}

impl TypeHolders {
    /// `of`: the type, if the agent's answer has none.
    pub(super) fn from_answer(
        context: &SearchContext,
        of: Option<String>,
        answer: HoldersAnswer,
    ) -> Vec<TypeHolders> {
        let all = TypeSearchCounts {
            of,
            followed: answer.followed,
            alive: answer.alive,
            looked_for: answer.looked_for,
            changed: answer.changed,
            paths: answer.paths.len(),
            unfinished: answer.unfinished.len(),
            collected: 0,
            unreported: 0,
        };
        let pauses: Vec<_> = answer.pauses_us.iter().map(|us| *us as f64 / 1e3).collect();
        let mut paths = answer.paths.into_iter();
        let mut unfinished = answer.unfinished.into_iter();
        let of_type = |of_type: TypeSearchCounts| {
            let paths: Vec<_> = paths.by_ref().take(of_type.paths).collect();
            let unfinished: Vec<_> = unfinished.by_ref().take(of_type.unfinished).collect();
            let held = (paths.len() + unfinished.len()) as u64 + of_type.changed;
            TypeHolders {
                schema: "lucce-holders",
                version: 1,
                id: context.number.to_string(),
                stack: context.stack.clone(),
                class: of_type.of.as_deref().map(type_name),
                followed: of_type.followed,
                alive: of_type.alive,
                looked_for: of_type.looked_for,
                not_held: of_type.looked_for.saturating_sub(held),
                collected: of_type.collected,
                unreported: of_type.unreported,
                changed: of_type.changed,
                pauses: pauses.clone(),
                cut: answer.cut,
                over: answer.over,
                out_of_budget: answer.out_of_budget,
                collection: answer.collection_us.map(|us| us as f64 / 1e3),
                paths: group_paths(paths),
                unfinished: group_paths(unfinished),
            }
        };
        let types = answer.types.filter(|types| !types.is_empty());
        let types = types.unwrap_or_else(|| vec![all]);
        types.into_iter().map(of_type).collect()
    }

    pub(super) fn class_or_default(&self) -> &str {
        self.class.as_deref().unwrap_or("objects")
    }

    pub(super) fn write(&self, limits: &SearchLimits, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{}: {} followed, {} alive, {} of them looked for",
            EscapedText(self.class_or_default()),
            crate::output::grouped(self.followed),
            crate::output::grouped(self.alive),
            self.looked_for
        )?;
        for held in &self.paths {
            held.write_head(self.looked_for, "held by", out)?;
            held.write_links(out)?;
        }
        for held in &self.unfinished {
            held.write_head(self.looked_for, "held by what was not found", out)?;
            match held.links.is_empty() {
                true => writeln!(out, "\tno reference was found yet")?,
                false => {
                    writeln!(out, "\t…")?;
                    held.write_links(out)?;
                }
            }
        }
        writeln!(out)?;
        self.write_unexplained(limits, out)
    }

    pub(super) fn has_unexplained(&self) -> bool {
        self.not_held > 0 || self.changed > 0 || !self.unfinished.is_empty()
    }

    /// Writes which objects were not found, and why.
    pub(super) fn write_unexplained(
        &self,
        limits: &SearchLimits,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let objects = |number: u64| format_plural(number, "object");
        if !self.unfinished.is_empty() {
            writeln!(out, "{}", self.describe_search_end(limits))?;
        }
        if self.collected > 0 {
            writeln!(
                out,
                "nothing held {}: a collection has taken {} meanwhile",
                objects(self.collected),
                if self.collected == 1 { "it" } else { "them" }
            )?;
        }
        if self.unreported > 0 {
            writeln!(
                out,
                "something holds {} that the JVM's heap walk does not report, such as a call site or a field of java.lang.Class: a collection has left {0} alive. `jcmd PID GC.heap_dump FILE` shows more",
                objects(self.unreported)
            )?;
        }
        let unknown = self
            .not_held
            .saturating_sub(self.collected + self.unreported);
        if unknown > 0 {
            writeln!(
                out,
                "no reference to {} was found, and no collection has taken {} yet: --gc collects the heap and tells whether anything holds {1}",
                objects(unknown),
                if unknown == 1 { "it" } else { "them" }
            )?;
        }
        if self.changed > 0 {
            writeln!(
                out,
                "what held {} changed meanwhile: ask again",
                objects(self.changed)
            )?;
        }
        Ok(())
    }

    /// Why the search ended early, and how to continue it.
    pub(super) fn describe_search_end(&self, limits: &SearchLimits) -> String {
        let walks = self.pauses.len() as u64;
        let budget = limits.effective_budget().unwrap_or(NO_BOUND);
        if self.out_of_budget {
            return format!(
                "the search ended because its walks had stopped the JVM for {}: --pause-budget {}s goes further",
                format_amount(budget.as_nanos() as f64, "ns"),
                format_seconds(budget * 8)
            );
        }
        match walks < u64::from(limits.walks) {
            true => "the search ended after a minute: `jcmd PID GC.heap_dump FILE` shows more"
                .to_owned(),
            false => format!(
                "the search ended after {}: --walks {} goes further, or ask for the number of what the chain is made of",
                format_plural(walks, "walk"),
                limits.walks.saturating_mul(4).min(1000)
            ),
        }
    }

    /// Writes facts of the search.
    pub(super) fn write_search(&self, out: &mut impl Write) -> io::Result<()> {
        if self.cut {
            writeln!(
                out,
                "more objects refer to some on these paths than were looked at: there may be a shorter path"
            )?;
        }
        let most = self.pauses.iter().copied().fold(0.0, f64::max);
        let sum: f64 = self.pauses.iter().sum();
        if let Some(collection) = self.collection {
            writeln!(
                out,
                "the collection that was asked for took {}",
                format_amount(collection * 1e6, "ns")
            )?;
        }
        writeln!(
            out,
            "{}: the JVM stood still for {} at most, {} together",
            format_plural(self.pauses.len() as u64, "walk"),
            format_amount(most * 1e6, "ns"),
            format_amount(sum * 1e6, "ns")
        )
    }
}

/// Writes the results of one search for all types of a context id.
pub(super) fn write_types(
    types: &[TypeHolders],
    limits: &SearchLimits,
    out: &mut impl Write,
) -> io::Result<()> {
    let (looked_for, others): (Vec<_>, Vec<_>) =
        types.iter().partition(|of_type| of_type.looked_for > 0);
    let Some(any) = looked_for.first() else {
        for of_type in types.iter().take(MAX_LISTED_TYPES) {
            of_type.write(limits, out)?;
        }
        return writeln!(out, "nothing was walked: none of them is alive any more");
    };
    let mut before: Option<&TypeHolders> = None;
    for of_type in &looked_for {
        if before.is_some_and(TypeHolders::has_unexplained) {
            writeln!(out)?;
        }
        of_type.write(limits, out)?;
        before = Some(of_type);
    }
    let others = others.iter().filter(|of_type| of_type.alive > 0);
    let others: Vec<_> = others
        .map(|of_type| of_type.class_or_default().to_owned())
        .collect();
    if !others.is_empty() {
        let others = join_first_names(others.into_iter());
        writeln!(
            out,
            "not looked for, as types are many (--type NAME): {others}"
        )?;
    }
    any.write_search(out)
}

/// Formats a duration for `--pause-budget`.
pub(super) fn format_seconds(time: Duration) -> String {
    format!("{}", time.as_millis() as f64 / 1e3)
}

/// Joins the first names, and the number of others.
pub(super) fn join_first_names(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED_TYPES);
    let named: Vec<_> = names
        .take(MAX_LISTED_TYPES)
        .map(|name| EscapedText(&name).to_string())
        .collect();
    match more {
        0 => named.join(", "),
        _ => format!(
            "{} and {}",
            named.join(", "),
            format_plural(more as u64, "more type")
        ),
    }
}
