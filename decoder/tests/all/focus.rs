//! Own code of random programs: what folds find in shared frames is what each trace says by itself.

use std::collections::BTreeMap;

use lucce_decoder::{
    CallTreeBranch, CallTreeOptions, EventContext, GroupBy, Measure, MergedProfile, Profile,
    StackFrame,
};
use lucce_filter::PatternList;
use lucce_testkit::random;

const SEEDS: u64 = 20;

/// Amounts by name or by path of names.
type Amounts = BTreeMap<String, u64>;

fn for_each_program(check: impl Fn(&Profile, &[EventContext])) {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..SEEDS {
        let path = dir.path().join(format!("{seed}.log"));
        random::log(&path, seed, 0);
        let mut profile = Profile::open(&path).unwrap();
        profile.classify_code(&PatternList::parse("app.Main*").unwrap());
        let kind = profile.main_kind().name;
        let contexts = profile.list_contexts_of(&profile.events_of_kind(&kind), &|_| ());
        assert!(contexts.list.len() > 10);
        check(&profile, &contexts.list);
    }
}

/// A name without what differs between hidden classes that are one context.
fn stable_name(name: &str) -> String {
    match (name.split_once("$$Lambda$"), name.rsplit_once('.')) {
        (Some((class, _)), Some((_, method))) => format!("{class}$$Lambda.{method}"),
        _ => name.to_owned(),
    }
}

fn method_name(frame: &StackFrame) -> String {
    stable_name(&frame.qualified_method())
}

fn frames(profile: &Profile, context: &EventContext) -> Vec<StackFrame> {
    profile.decode_trace(context.id).unwrap().frames
}

#[test]
fn a_focus_is_that_of_the_whole_trace() {
    for_each_program(|profile, contexts| {
        let ids: Vec<_> = contexts.iter().map(|context| context.id).collect();
        let (mut with, mut without) = (0, 0);
        for (context, focus) in contexts.iter().zip(profile.find_focus(&ids)) {
            let frames = frames(profile, context);
            let resolve = |frame| profile.code.resolve_frame(frame);
            let own = frames.iter().find(|frame| frame.is_own());
            assert_eq!(focus.own.map(resolve).as_ref(), own);
            assert_eq!(
                focus.has_other_code,
                frames.iter().any(|frame| !frame.is_own())
            );
            *if own.is_some() {
                &mut with
            } else {
                &mut without
            } += 1;
        }
        assert!(with > 0 && without > 0, "{with} {without}");
    });
}

fn merge(profile: &Profile) -> MergedProfile {
    let kind = profile.main_kind().name;
    MergedProfile::from_events(profile, &profile.events_of_kind(&kind), &|_| ()).0
}

#[test]
fn entries_are_the_outermost_own_methods() {
    for_each_program(|profile, contexts| {
        let mut expected = Amounts::new();
        for context in contexts {
            let frames = frames(profile, context);
            let entry = frames.iter().rfind(|frame| frame.is_own());
            let name = entry.map_or("(no own code)".to_owned(), method_name);
            *expected.entry(name).or_default() += context.value;
        }
        let merged = merge(profile);
        let sums = merged.own_sums_by_group(0, Measure::Value, GroupBy::Entry, |_| true);
        let mut found = Amounts::new();
        for (key, amount) in sums {
            *found
                .entry(stable_name(&merged.group_name(key)))
                .or_default() += amount;
        }
        assert_eq!(found, expected);
    });
}

/// The amounts of all paths of a tree.
fn branch_amounts(merged: &MergedProfile, branches: &[CallTreeBranch]) -> Amounts {
    let mut paths: Vec<String> = Vec::new();
    let mut amounts = Amounts::new();
    for branch in branches {
        let name = branch
            .key
            .map_or(String::new(), |key| stable_name(&merged.group_name(key)));
        let above = branch.parent.map_or("", |parent| paths[parent].as_str());
        let path = format!("{above}/{name}");
        // Hidden classes of one context are several branches of one name.
        *amounts.entry(path.clone()).or_default() += branch.amount;
        paths.push(path);
    }
    amounts
}

#[test]
fn trees_of_own_code_have_all_amounts() {
    for_each_program(|profile, contexts| {
        let merged = merge(profile);
        for (own_only, group_by) in [
            (true, GroupBy::Method),
            (true, GroupBy::Entry),
            (false, GroupBy::Entry),
        ] {
            let mut expected = Amounts::new();
            for context in contexts {
                let frames = frames(profile, context);
                let outermost_first = frames.iter().rev();
                let below = outermost_first.skip_while(|frame| !frame.is_own());
                let shown = below.filter(|frame| !own_only || frame.is_own());
                let mut names: Vec<_> = shown.map(method_name).collect();
                if names.is_empty() {
                    names.push("(no own code)".to_owned());
                }
                let mut path = "/".to_owned();
                *expected.entry(path.clone()).or_default() += context.value;
                for name in names {
                    path = format!("{path}/{name}");
                    *expected.entry(path.clone()).or_default() += context.value;
                }
            }
            let drawing = CallTreeOptions {
                measure: Measure::Value,
                group_by,
                own_only,
                inverted: false,
                min_amount: 0,
                depth: usize::MAX,
            };
            let branches = merged.build_call_tree(0, &drawing, |_| true);
            expected.retain(|_, amount| *amount > 0);
            let mut found = branch_amounts(&merged, &branches);
            found.retain(|_, amount| *amount > 0);
            assert_eq!(found, expected, "{own_only} {group_by:?}");
            let own = branches.iter().map(CallTreeBranch::own_amount);
            assert_eq!(own.sum::<u64>(), expected["/"]);
        }
    });
}
