//! Frames written as differences are read back unchanged.

use proptest::prelude::*;

use super::*;
use crate::pool::ConstantPool;
use crate::pool::PoolCapacity;

fn a_type() -> impl Strategy<Value = VerificationType<'static>> {
    prop_oneof![
        Just(VerificationType::Top),
        Just(VerificationType::Int),
        Just(VerificationType::Float),
        Just(VerificationType::Double),
        Just(VerificationType::Long),
        Just(VerificationType::Null),
        Just(VerificationType::UninitializedThis),
        (1..4u16).prop_map(VerificationType::Object),
    ]
}

/// A step to the next frame: locals kept, locals added, a new stack, a distance.
fn a_step() -> impl Strategy<
    Value = (
        usize,
        Vec<VerificationType<'static>>,
        Vec<VerificationType<'static>>,
        u32,
    ),
> {
    let stack = prop_oneof![
        3 => Just(vec![]),
        1 => prop::collection::vec(a_type(), 1..3)
    ];
    let added = prop::collection::vec(a_type(), 0..5);
    let distance = prop_oneof![1..70u32, 1..3000u32];
    (0..12usize, added, stack, distance)
}

fn build_frames(
    steps: Vec<(
        usize,
        Vec<VerificationType<'static>>,
        Vec<VerificationType<'static>>,
        u32,
    )>,
) -> Vec<(u32, StackMapFrame<'static>)> {
    let (mut bci, mut locals) = (0, vec![]);
    let frames = steps.into_iter().map(|(kept, added, stack, distance)| {
        bci += distance;
        locals.truncate(kept);
        locals.extend(added);
        let locals = locals.clone();
        (bci, StackMapFrame { locals, stack })
    });
    frames.collect()
}

fn write_frames(
    frames: &[(u32, StackMapFrame<'static>)],
    initial: &StackMapFrame<'static>,
    local: Option<NewLocals>,
) -> Vec<u8> {
    let pool = ConstantPool::parse(&[], &mut ClassFileReader::new(&[0, 1], 0, "pool")).unwrap();
    let (mut pool, layout, edits) = (
        PoolAdditions::new(&pool, PoolCapacity::Ample, None),
        CodeLayout::default(),
        CodeEdits::default(),
    );
    let mut writer = FrameWriter::new(&mut pool, &layout, &edits, initial, local);
    for (bci, frame) in frames {
        writer.write_frame(*bci, frame, 0).unwrap();
    }
    writer.finish().collect()
}

fn read_frames(
    bytes: &[u8],
    initial: &StackMapFrame<'static>,
) -> Vec<(u32, StackMapFrame<'static>)> {
    let bytes: &'static [u8] = bytes.to_vec().leak();
    let mut reader = FrameReader::new(ClassFileReader::new(bytes, 0, "frames")).unwrap();
    let (mut frame, mut all) = (initial.clone(), vec![]);
    while let Some(FramePosition { bci, kept }) = reader.next(&mut frame).unwrap() {
        let before = all.last().map_or(initial, |(_, frame)| frame);
        assert_eq!(before.locals[..kept], frame.locals[..kept]);
        all.push((bci, frame.clone()));
    }
    all
}

/// A frame with the new variables, computed naively.
fn with_locals(mut frame: StackMapFrame<'static>, new: NewLocals) -> StackMapFrame<'static> {
    while frame
        .locals
        .iter()
        .map(|one| one.slot_count())
        .sum::<usize>()
        < usize::from(new.first)
    {
        frame.locals.push(VerificationType::Top);
    }
    for _ in 0..new.count {
        frame.locals.push(VerificationType::Long);
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip(
        steps in prop::collection::vec(a_step(), 0..20),
        parameters in prop::collection::vec(a_type(), 0..4),
        count in 1_u16..5,
    ) {
        let frames = build_frames(steps);
        let initial = StackMapFrame { locals: parameters, stack: vec![] };
        prop_assert_eq!(&read_frames(&write_frames(&frames, &initial, None), &initial), &frames);
        let new = NewLocals { first: 40, count };
        let hooked = read_frames(&write_frames(&frames, &initial, Some(new)), &initial);
        let expected: Vec<_> = frames.into_iter().map(|(bci, f)| (bci, with_locals(f, new))).collect();
        prop_assert_eq!(hooked, expected);
    }
}

#[test]
fn short_forms_are_used() {
    let frame =
        |locals: &[VerificationType<'static>], stack: &[VerificationType<'static>]| StackMapFrame {
            locals: locals.to_vec(),
            stack: stack.to_vec(),
        };
    let ints = |count| vec![VerificationType::Int; count];
    let initial = frame(&ints(2), &[]);
    let table = |at, frame| write_frames(&[(at, frame)], &initial, None);
    assert_eq!(table(5, frame(&ints(2), &[])), [0, 1, 5]);
    assert_eq!(table(64, frame(&ints(2), &[])), [0, 1, 251, 0, 64]);
    assert_eq!(
        table(5, frame(&ints(2), &[VerificationType::Null])),
        [0, 1, 69, 5]
    );
    assert_eq!(
        table(64, frame(&ints(2), &[VerificationType::Null])),
        [0, 1, 247, 0, 64, 5]
    );
    assert_eq!(table(5, frame(&ints(1), &[])), [0, 1, 250, 0, 5]);
    assert_eq!(table(5, frame(&ints(3), &[])), [0, 1, 252, 0, 5, 1]);
    assert_eq!(table(5, frame(&ints(6), &[])).len(), 2 + 3 + 2 + 6 + 2);
}
