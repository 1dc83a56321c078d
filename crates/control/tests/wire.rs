//! Every command comes back from its line; no line, however hostile, does more than fail.

use std::time::Duration;

use lucce_control::wire::{decode_reply_head, encode_reply_head};
use lucce_control::{ControlCommand, HolderSearchOptions, LeaksRequest};
use proptest::prelude::*;

fn commands() -> impl Strategy<Value = ControlCommand> {
    prop_oneof![
        Just(ControlCommand::Start),
        Just(ControlCommand::Stop),
        Just(ControlCommand::Status),
        Just(ControlCommand::Detach),
        Just(ControlCommand::Dump(None)),
        Just(ControlCommand::Reset),
        "[^\n\r\u{0}]{1,40}".prop_map(ControlCommand::Mark),
        "/[^\n\r\u{0}]{0,40}".prop_map(|file| ControlCommand::Dump(Some(file))),
        "[a-z]{1,8}=[^\n\r\u{0}]{0,40}".prop_map(ControlCommand::Set),
        (
            proptest::collection::vec(any::<u64>(), 1..4),
            proptest::option::of(walks())
        )
            .prop_map(|(numbers, walks)| ControlCommand::Holders(numbers, walks)),
        Just(ControlCommand::Leaks(LeaksRequest::Look)),
        Just(ControlCommand::Leaks(LeaksRequest::Collect)),
        Just(ControlCommand::Leaks(LeaksRequest::Cost)),
    ]
}

fn walks() -> impl Strategy<Value = HolderSearchOptions> {
    let of = proptest::option::of("[^\n\r\u{0}]{0,40}");
    let budget = proptest::option::of((any::<u32>(), any::<bool>()));
    (any::<u32>(), budget, of).prop_map(|(most, budget, of)| HolderSearchOptions {
        max_walks: most,
        budget: budget.map(|(millis, _)| Duration::from_millis(millis.into())),
        collect: budget.is_some_and(|(_, collect)| collect),
        type_descriptor: of,
    })
}

proptest! {
    #[test]
    fn a_command_comes_back_from_its_line(command in commands()) {
        let line = command.encode().unwrap();
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(ControlCommand::decode(line.trim_end_matches('\n')), Ok(command));
    }

    #[test]
    fn what_was_understood_means_one_line(line in "(lucce [0-2] )?[a-z]{0,6}( .{0,20})?") {
        if let Ok(command) = ControlCommand::decode(&line) {
            prop_assert_eq!(command.encode(), Some(format!("{line}\n")));
        }
    }

    #[test]
    fn replies_say_how_long_they_are(fine: bool, length in 0_usize..1 << 20, junk in ".{0,60}") {
        let head = encode_reply_head(fine, length);
        prop_assert_eq!(decode_reply_head(head.trim_end()), Ok((fine, length)));
        let _ = decode_reply_head(&junk);
    }
}

#[test]
fn what_does_not_fit_into_a_line_is_not_sent() {
    assert_eq!(
        ControlCommand::Dump(Some("/a\nlucce 1 stop".into())).encode(),
        None
    );
    assert_eq!(ControlCommand::Dump(Some("/".repeat(9000))).encode(), None);
}

/// A command that is older than the agent names no type, and means all; it has no budget.
#[test]
fn requests_for_holders_of_all_types_are_unchanged() {
    let all = HolderSearchOptions {
        max_walks: 48,
        budget: None,
        collect: false,
        type_descriptor: None,
    };
    let one = HolderSearchOptions {
        type_descriptor: Some("La/B$C d;".into()),
        ..all.clone()
    };
    let bounded = HolderSearchOptions {
        budget: Some(Duration::from_secs(2)),
        ..one.clone()
    };
    let collect = HolderSearchOptions {
        collect: true,
        ..bounded.clone()
    };
    for (line, walks) in [
        ("lucce 1 holders 0x1f", None),
        ("lucce 1 holders 0x1f 48", Some(all)),
        ("lucce 1 holders 0x1f 48 La/B$C d;", Some(one)),
        ("lucce 1 holders 0x1f 48,2000 La/B$C d;", Some(bounded)),
        ("lucce 1 holders 0x1f 48,2000,gc La/B$C d;", Some(collect)),
    ] {
        let command = ControlCommand::Holders(vec![0x1f], walks);
        assert_eq!(command.encode(), Some(format!("{line}\n")));
        assert_eq!(ControlCommand::decode(line), Ok(command));
    }
    let several = ControlCommand::decode("lucce 1 holders 0x1f+0x2f 48,2000");
    assert!(
        matches!(&several, Ok(ControlCommand::Holders(numbers, Some(_))) if *numbers == [0x1f, 0x2f]),
        "{several:?}"
    );
}

#[test]
fn malformed_commands_are_named() {
    for (line, wanted) in [
        ("lucce 1 dump relative", "absolute path"),
        ("lucce 1 set", "key=value"),
        ("lucce 1 stop now", "takes no argument"),
        ("lucce 1 holders 0x1f La/B;", "how many walks"),
        ("lucce 1 holders 0x1f 48,x", "how many walks"),
        ("lucce 1 holders 0x1f 48,1,now", "how many walks"),
        ("lucce 1 holders 0x1f 48,1,gc,", "how many walks"),
        ("lucce 1 \u{1b}[2J", "'?[2J'"),
        ("lucce x stop", "not lucce's protocol"),
    ] {
        let error = ControlCommand::decode(line).unwrap_err().to_string();
        assert!(error.contains(wanted), "{line}: {error}");
    }
}
