//! Frames written as differences are read back as they were.

use proptest::prelude::*;

use super::*;
use crate::pool::Room;

fn a_type() -> impl Strategy<Value = Type<'static>> {
    prop_oneof![
        Just(Type::Top),
        Just(Type::Int),
        Just(Type::Float),
        Just(Type::Double),
        Just(Type::Long),
        Just(Type::Null),
        Just(Type::UninitializedThis),
        (1..4u16).prop_map(Type::Object),
    ]
}

/// A step to the next frame: locals kept, locals added, a new stack, a distance.
fn a_step() -> impl Strategy<Value = (usize, Vec<Type<'static>>, Vec<Type<'static>>, u32)> {
    let stack = prop_oneof![
        3 => Just(vec![]),
        1 => prop::collection::vec(a_type(), 1..3)
    ];
    let added = prop::collection::vec(a_type(), 0..5);
    let distance = prop_oneof![1..70u32, 1..3000u32];
    (0..12usize, added, stack, distance)
}

fn frames(
    steps: Vec<(usize, Vec<Type<'static>>, Vec<Type<'static>>, u32)>,
) -> Vec<(u32, Frame<'static>)> {
    let (mut bci, mut locals) = (0, vec![]);
    let frames = steps.into_iter().map(|(kept, added, stack, distance)| {
        bci += distance;
        locals.truncate(kept);
        locals.extend(added);
        let locals = locals.clone();
        (bci, Frame { locals, stack })
    });
    frames.collect()
}

fn written(
    frames: &[(u32, Frame<'static>)],
    initial: &Frame<'static>,
    local: Option<u16>,
) -> Vec<u8> {
    let pool = Pool::parse(&[], &mut Reader::new(&[0, 1], 0, "pool")).unwrap();
    let (mut pool, layout, edits) = (
        Additions::new(&pool, Room::Ample, None),
        Layout::default(),
        Edits::default(),
    );
    let mut writer = FrameWriter::new(&mut pool, &layout, &edits, initial, local);
    for (bci, frame) in frames {
        writer.write(*bci, frame, 0).unwrap();
    }
    writer.finish().collect()
}

fn read(bytes: &[u8], initial: &Frame<'static>) -> Vec<(u32, Frame<'static>)> {
    let bytes: &'static [u8] = bytes.to_vec().leak();
    let mut reader = FrameReader::new(Reader::new(bytes, 0, "frames")).unwrap();
    let (mut frame, mut all) = (initial.clone(), vec![]);
    while let Some(FramePosition { bci, kept }) = reader.next(&mut frame).unwrap() {
        let before = all.last().map_or(initial, |(_, frame)| frame);
        assert_eq!(before.locals[..kept], frame.locals[..kept]);
        all.push((bci, frame.clone()));
    }
    all
}

/// The naive picture of a frame with the new variable at `local`.
fn with_local(mut frame: Frame<'static>, local: usize) -> Frame<'static> {
    while frame.locals.iter().map(|one| one.slots()).sum::<usize>() < local {
        frame.locals.push(Type::Top);
    }
    frame.locals.push(Type::Long);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip(
        steps in prop::collection::vec(a_step(), 0..20),
        parameters in prop::collection::vec(a_type(), 0..4),
    ) {
        let frames = frames(steps);
        let initial = Frame { locals: parameters, stack: vec![] };
        prop_assert_eq!(&read(&written(&frames, &initial, None), &initial), &frames);
        let hooked = read(&written(&frames, &initial, Some(40)), &initial);
        let expected: Vec<_> = frames.into_iter().map(|(bci, f)| (bci, with_local(f, 40))).collect();
        prop_assert_eq!(hooked, expected);
    }
}

#[test]
fn short_forms_are_used() {
    let frame = |locals: &[Type<'static>], stack: &[Type<'static>]| Frame {
        locals: locals.to_vec(),
        stack: stack.to_vec(),
    };
    let ints = |count| vec![Type::Int; count];
    let initial = frame(&ints(2), &[]);
    let table = |at, frame| written(&[(at, frame)], &initial, None);
    assert_eq!(table(5, frame(&ints(2), &[])), [0, 1, 5]);
    assert_eq!(table(64, frame(&ints(2), &[])), [0, 1, 251, 0, 64]);
    assert_eq!(table(5, frame(&ints(2), &[Type::Null])), [0, 1, 69, 5]);
    assert_eq!(
        table(64, frame(&ints(2), &[Type::Null])),
        [0, 1, 247, 0, 64, 5]
    );
    assert_eq!(table(5, frame(&ints(1), &[])), [0, 1, 250, 0, 5]);
    assert_eq!(table(5, frame(&ints(3), &[])), [0, 1, 252, 0, 5, 1]);
    assert_eq!(table(5, frame(&ints(6), &[])).len(), 2 + 3 + 2 + 6 + 2);
}
