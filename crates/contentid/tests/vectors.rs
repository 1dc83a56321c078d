//! Ids that Python's `xxhash` (the C library) has computed by the definition in `lib.rs`. They never change.

use lucce_contentid::{ContentDetail, FrameId, FrameText, StackId};
use proptest::prelude::*;

/// A frame, its id and that of the stack that it ends, with lines and without.
const VECTORS: [(FrameText<'static>, [&str; 4]); 5] = [
    (
        frame("java.lang.Thread", "run", "()V", 840),
        [
            "c7be64cb867798e39383a27e4d6264cd",
            "98939e4500d63d698c270baec9267e18",
            "c77be5dbdf75344ecd29029c1dfbf600",
            "df947d398771a5837ce7663357c66f25",
        ],
    ),
    (
        frame("a.B", "main", "([Ljava/lang/String;)V", 12),
        [
            "c7c5e5859ed5256ebf11e5632b5dbd80",
            "566dbd942406a5824bdfd24ff1ac7a9e",
            "2f2a5b2dbf623db6d26e9ac0d0f59183",
            "bec268e8ca4676a1e295309851eda753",
        ],
    ),
    (
        frame("a.B$Näme", "lambda$main$3", "(I)Ljdk/proxy2/$Proxy14;", -1),
        [
            "eed67aeb63a3ac86cc08123145d2d302",
            "c16a6ca0997ef073c49b0005e51462d2",
            "12c2761c595abcf6cac573d1f7464955",
            "33eb8bb2151406942f051427b758ff5a",
        ],
    ),
    (
        frame(
            "java.lang.Class",
            "forName0",
            "(Ljava/lang/String;)Ljava/lang/Class;",
            -2,
        ),
        [
            "5e43819d5767ea161a160aad27879db9",
            "f5b38f558dc1e4b904ea173a0e503112",
            "bcc26376eddbed7cbffbefb0001ffa60",
            "391119ab6189f973050631b3dff4bd0f",
        ],
    ),
    (
        frame("a.\u{1F600}", "x", "", 7),
        [
            "b0dfe50f88f6a8ca8de4510f1d700013",
            "3fde68920110912dcf098612ae71bf28",
            "f69d3895f41ab6efb9120d11906b2024",
            "be7c6bb6ad614ceae51dfaab8a8b3288",
        ],
    ),
];

const fn frame(
    class: &'static str,
    method: &'static str,
    descriptor: &'static str,
    line: i32,
) -> FrameText<'static> {
    FrameText {
        class,
        method,
        descriptor,
        line,
    }
}

#[test]
fn ids_are_those_of_another_implementation() {
    let mut stacks = [StackId::EMPTY; 2];
    for (frame, [by_line, stack_by_line, by_method, stack_by_method]) in VECTORS {
        let ids = [ContentDetail::ByLine, ContentDetail::ByMethod]
            .map(|detail| FrameId::from_frame(frame, detail));
        stacks = [stacks[0].with_callee(ids[0]), stacks[1].with_callee(ids[1])];
        assert_eq!(format!("{:032x}", ids[0].0), by_line);
        assert_eq!(format!("{:032x}", ids[1].0), by_method);
        assert_eq!(
            stacks.map(|id| id.to_string()),
            [stack_by_line, stack_by_method]
        );
    }
}

#[test]
fn only_ids_by_line_distinguish_lines() {
    let id = |line, detail| FrameId::from_frame(frame("a.B", "m", "()V", line), detail);
    assert_ne!(id(1, ContentDetail::ByLine), id(2, ContentDetail::ByLine));
    assert_eq!(
        id(1, ContentDetail::ByMethod),
        id(2, ContentDetail::ByMethod)
    );
}

#[test]
fn names_do_not_run_into_each_other() {
    let id =
        |class, method| FrameId::from_frame(frame(class, method, "()V", 1), ContentDetail::ByLine);
    assert_ne!(id("a.B", "cd"), id("a.Bc", "d"));
}

#[test]
fn ids_are_read_as_they_are_written() {
    assert_eq!("00".repeat(16).parse(), Ok(StackId::EMPTY));
    for wrong in [
        "",
        "1",
        "0x00000000000000000000000000000000",
        "+0000000000000000000000000000000",
    ] {
        assert!(wrong.parse::<StackId>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_id_is_read_as_it_is_written(id: u128) {
        prop_assert_eq!(StackId(id).to_string().parse(), Ok(StackId(id)));
    }

    #[test]
    fn any_name_has_an_id(class in ".{0,40}", method in ".{0,40}", descriptor in ".{0,40}", line: i32) {
        let frame = FrameText { class: &class, method: &method, descriptor: &descriptor, line };
        let once = FrameId::from_frame(frame, ContentDetail::ByMethod);
        prop_assert_eq!(once, FrameId::from_frame(frame, ContentDetail::ByMethod));
    }

    #[test]
    fn the_order_of_frames_counts(a: u128, b: u128) {
        prop_assume!(a != b);
        let path = |x, y| StackId::EMPTY.with_callee(FrameId(x)).with_callee(FrameId(y));
        prop_assert_ne!(path(a, b), path(b, a));
    }
}
