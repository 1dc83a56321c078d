use super::answer::*;
use super::root_path::*;
use super::type_holders::*;
use super::*;

fn link(by: &str, of: &str, index: Option<i64>) -> RootPathLink {
    RootPathLink {
        by: by.into(),
        class: Some("La/B;".into()),
        name: Some("all".into()),
        index,
        line: None,
        thread: None,
        soft: false,
        finalizer: false,
        times: 1,
        of: of.into(),
        names: None,
    }
}

#[test]
fn paths_that_differ_in_the_length_of_a_chain_only_are_one() {
    let path = |times| {
        vec![RootPathLink {
            times,
            ..link("field", "La/B;", None)
        }]
    };
    let held = group_paths(vec![path(9), path(5_000), path(1)]);
    let objects: Vec<_> = held.iter().map(|held| held.objects).collect();
    assert_eq!(objects, [2, 1]);
    let mut text = Vec::new();
    held[0].write_head(3, "held by", &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("the others are elsewhere in the chain"),
        "{text}"
    );
}

const LIMITS: SearchLimits = SearchLimits {
    pause_budget: None,
    yes: false,
    walks: 48,
};

#[test]
fn paths_that_differ_in_places_only_are_one() {
    let path = |at| {
        vec![
            link("static", "[Ljava/lang/Object;", None),
            link("element", "La/C;", Some(at)),
        ]
    };
    let held = group_paths(vec![
        vec![link("thread", "La/C;", None)],
        path(1),
        path(2),
        path(1),
    ]);
    assert_eq!(
        held.iter().map(|held| held.objects).collect::<Vec<_>>(),
        [3, 1]
    );
    let mut text = Vec::new();
    held[0].write_head(4, "held by", &mut text).unwrap();
    held[0].write_links(&mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "\n3 of 4 are held by (one of them; the others are elsewhere in the arrays):\n\tstatic field a.B.all: java.lang.Object[]\n\telement [1]: a.C\n"
    );
}

fn format_answer(answer: HoldersAnswer) -> String {
    let number = ContextNumber {
        run: None,
        id: lucce_decoder::ContextId(1),
    };
    let context = SearchContext::new(number, None);
    let holders = TypeHolders::from_answer(&context, Some("La/C;".into()), answer);
    let mut text = Vec::new();
    write_types(&holders, &LIMITS, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn answer(looked_for: u64, walks: usize) -> HoldersAnswer {
    HoldersAnswer {
        followed: looked_for,
        alive: looked_for,
        looked_for,
        pauses_us: vec![1_000; walks],
        cut: false,
        over: false,
        changed: 0,
        paths: Vec::new(),
        unfinished: Vec::new(),
        out_of_budget: false,
        collection_us: None,
        types: None,
    }
}

#[test]
fn a_path_without_a_root_has_a_reason_and_a_next_step() {
    let chain = RootPathLink {
        times: 4_096,
        ..link("field", "La/B;", None)
    };
    let text = |walks: usize, out_of_budget| {
        format_answer(HoldersAnswer {
            over: true,
            out_of_budget,
            unfinished: vec![vec![chain.clone()], vec![chain.clone()]],
            ..answer(2, walks)
        })
    };
    let walks = text(48, false);
    assert!(
        walks.contains(
            "\n2 of 2 are held by what was not found:\n\t…\n\t… 4,096 × field a.B.all: a.B\n"
        ) && walks.contains("after 48 walks: --walks 192 goes further")
            && !walks.contains("held by nothing"),
        "{walks}"
    );
    let minute = text(20, false);
    assert!(
        minute.contains("after a minute") && !minute.contains("--walks"),
        "{minute}"
    );
    let budget = text(3, true);
    assert!(
        budget.contains("had stopped the JVM for 2.00 s: --pause-budget 16s goes further"),
        "{budget}"
    );
}

/// An object is only reported as unreachable after a collection has taken it.
#[test]
fn objects_without_a_path_are_explained() {
    let of_type = |collected, unreported| TypeSearchCounts {
        of: Some("La/C;".into()),
        followed: 3,
        alive: 3,
        looked_for: 3,
        changed: 0,
        paths: 0,
        unfinished: 0,
        collected,
        unreported,
    };
    let text = |collected, unreported| {
        format_answer(HoldersAnswer {
            types: Some(vec![of_type(collected, unreported)]),
            ..answer(3, 2)
        })
    };
    let unknown = "no reference to 3 objects was found, and no collection has taken them yet: --gc";
    let collected = "nothing held 3 objects: a collection has taken them meanwhile";
    let unreported = "something holds 3 objects that the JVM's heap walk does not report";
    for (text, wanted) in [
        (text(0, 0), unknown),
        (text(3, 0), collected),
        (text(0, 3), unreported),
    ] {
        let present = [unknown, collected, unreported].map(|line| text.contains(line));
        assert!(text.contains(wanted), "{text}");
        assert_eq!(
            present.iter().filter(|present| **present).count(),
            1,
            "{text}"
        );
    }
}

#[test]
fn a_budget_is_a_time_up_to_a_day() {
    for (text, budget) in [("0.25", 250), ("2s", 2_000), ("1ms", 1), ("1d", 86_400_000)] {
        assert_eq!(parse_pause_budget(text), Ok(Duration::from_millis(budget)));
    }
    for wrong in ["", "0", "-1", "NaN", "inf", "1e9", "25h"] {
        assert!(parse_pause_budget(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn classes_and_chains_are_named() {
    let named = |by: &str, class: Option<&str>, names: Option<&str>, times| {
        let link = RootPathLink {
            class: class.map(str::to_owned),
            names: names.map(str::to_owned),
            times,
            name: (by == "field").then(|| "next".to_owned()),
            ..link(by, "La/X;", None)
        };
        link.with_java_names().to_text(true)
    };
    assert_eq!(
        named("class", None, Some("La/B;"), 1),
        "its class: a.X of a.B"
    );
    assert_eq!(
        named("loaded_class", None, Some("La/B;"), 1),
        "class that it has loaded: a.X of a.B"
    );
    assert_eq!(
        named("class_loader", Some("La/B;"), None, 1),
        "class loader of a.B: a.X"
    );
    assert_eq!(
        named("field", Some("La/X;"), None, 12_345),
        "… 12,345 × field a.X.next: a.X"
    );
}

#[test]
fn each_type_has_paths_of_its_own() {
    let of_type = |of: &str, looked_for, paths| TypeSearchCounts {
        of: Some(of.into()),
        followed: 30,
        alive: 20,
        looked_for,
        changed: 0,
        paths,
        unfinished: 0,
        collected: u64::from(of == "[J"),
        unreported: 0,
    };
    let static_of = |name: &str, of: &str| RootPathLink {
        name: Some(name.into()),
        ..link("static", of, None)
    };
    let text = format_answer(HoldersAnswer {
        followed: 90,
        alive: 60,
        paths: vec![
            vec![static_of("LEAK", "La/Node;")],
            vec![static_of("LEAK", "La/Node;")],
            vec![static_of("CACHE", "[J")],
        ],
        types: Some(vec![
            of_type("La/Node;", 2, 2),
            of_type("[J", 2, 1),
            of_type("La/C$D;", 0, 0),
        ]),
        ..answer(3, 1)
    });
    let wanted = "\
a.Node: 30 followed, 20 alive, 2 of them looked for

2 of 2 are held by:
\tstatic field a.B.LEAK: a.Node

long[]: 30 followed, 20 alive, 2 of them looked for

1 of 2 is held by:
\tstatic field a.B.CACHE: long[]

nothing held 1 object: a collection has taken it meanwhile
not looked for, as types are many (--type NAME): a.C$D
";
    let (lines, pauses) = text.split_at(wanted.len());
    assert_eq!(lines, wanted);
    assert!(
        pauses.starts_with("1 walk: the JVM stood still for"),
        "{pauses}"
    );
}

/// `leaks` prints the command.
#[test]
fn a_type_is_quoted_for_shells_and_found_again() {
    let is = |of: &str, name: &str| {
        let (of, alive) = (of.into(), 1);
        TypeAliveCount { of, alive }.has_name(name)
    };
    for (of, name, option) in [
        ("La/B;", "a.B", "--type a.B"),
        ("LMix$Node;", "Mix$Node", "--type 'Mix$Node'"),
        ("[J", "long[]", "--type 'long[]'"),
        ("La/It's;", "a.It's", r"--type 'a.It'\''s'"),
        ("La/\u{1b};", "a.\\u001b", r"--type 'a.\u001b'"),
    ] {
        assert_eq!(type_option(&type_name(of)), option);
        assert!(is(of, name), "{name}");
    }
    assert!(!is("LMix$Node;", "Mix$Nod"));
}

#[test]
fn names_change_no_terminal() {
    let mut hostile = link("field", "La/\u{1b}[2J;", None);
    hostile.name = Some("\nx".into());
    assert_eq!(
        hostile.with_java_names().to_text(true),
        "field a.B.\\nx: a.\\u001b[2J"
    );
}
