//! Programs that are known to leak or not, as a model: objects are born, live and die by rules, and the
//! followed ones are counted as the agent counts them.

use lucce_decoder::{
    EvidenceSufficiency, LeakEvidence, LiveCourse, MissingEvidence, SnapshotPoint, judge_course,
    judge_sufficiency,
};
use lucce_tracelog::SurvivorGeneration;

/// Marsaglia's xorshift; every run is the same.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Knuth's way.
    fn poisson(&mut self, mean: f64) -> u64 {
        let (limit, mut product, mut count) = ((-mean).exp(), self.unit(), 0);
        while product > limit {
            product *= self.unit();
            count += 1;
        }
        count
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What becomes of the objects of one context.
#[derive(Clone, Copy, Debug)]
enum Life {
    /// None is ever let go.
    Leak,
    /// One in so many is kept for ever, the others live for as many collections on average.
    Some(u64, f64),
    /// The oldest goes when there are more.
    Cache(usize),
    /// Any of them goes when there are more.
    RandomCache(usize),
    /// Each has the same chance to live through another collection.
    Steady(f64),
    /// Kept for ever, made in this part of the run only.
    StartUp(f64),
    /// As above, and steady beside.
    StartUpAndSteady(f64, f64),
    /// All are let go at once, every so many collections.
    Waves(u64),
    /// A day has its load: each lives as long, more are made at some times.
    Load(u64, f64),
    /// Kept for ever, but all made in few moments.
    Bursts(u64),
}

#[derive(Clone, Copy)]
struct Run {
    collections: u64,
    /// Collections from one of the old generation to the next.
    old_every: u64,
    /// Followed objects born between two collections.
    births: f64,
    /// When half of the objects are let go, in collections.
    thin_at: Option<u64>,
}

const RUN: Run = Run {
    collections: 600,
    old_every: 12,
    births: 0.5,
    thin_at: None,
};

/// An old collection tests what was born so many collections before.
const OLD: u64 = 16;

fn births(life: Life, now: u64, run: Run, random: &mut Random) -> u64 {
    let part = now as f64 / run.collections as f64;
    let rate = match life {
        Life::StartUp(until) if part > until => 0.0,
        Life::Load(period, _) => {
            let phase = now as f64 / period as f64 * std::f64::consts::TAU;
            run.births * (1.0 + phase.sin())
        }
        Life::Bursts(every) if !now.is_multiple_of(every) => 0.0,
        Life::Bursts(_) => run.births * 20.0,
        _ => run.births,
    };
    random.poisson(rate)
}

/// (born, kept for ever)
type Object = (u64, bool);

fn is_kept(life: Life, now: u64, run: Run, random: &mut Random) -> bool {
    match life {
        Life::Leak | Life::StartUp(_) | Life::Bursts(_) => true,
        Life::Some(of, _) => random.below(of) == 0,
        Life::StartUpAndSteady(until, _) => (now as f64) < until * run.collections as f64,
        _ => false,
    }
}

fn die(life: Life, now: u64, alive: &mut Vec<Object>, random: &mut Random) {
    match life {
        Life::Cache(size) => {
            alive.drain(..alive.len().saturating_sub(size));
        }
        Life::RandomCache(size) => {
            while alive.len() > size {
                alive.remove(random.below(alive.len() as u64) as usize);
            }
        }
        Life::Waves(period) if now.is_multiple_of(period) => alive.clear(),
        Life::Some(_, mean)
        | Life::Steady(mean)
        | Life::StartUpAndSteady(_, mean)
        | Life::Load(_, mean) => alive.retain(|(_, kept)| *kept || random.unit() > 1.0 / mean),
        _ => {}
    }
}

fn point(now: u64, thinned: u32, alive: &[Object]) -> SnapshotPoint {
    let tested = now.saturating_sub(OLD);
    let mut generations: Vec<SurvivorGeneration> = Vec::new();
    for &(born, _) in alive.iter().filter(|(born, _)| *born < tested) {
        match generations.last_mut() {
            Some(last) if last.born == born => last.objects += 1,
            _ => generations.push(SurvivorGeneration { born, objects: 1 }),
        }
    }
    let objects = generations
        .iter()
        .map(|g| u64::from(g.objects))
        .sum::<u64>()
        << thinned;
    SnapshotPoint {
        collections: now,
        millis: now * 100,
        tested,
        sampled: now * 40,
        thinned,
        objects,
        bytes: objects * 512,
        generations,
    }
}

fn simulate(life: Life, run: Run, seed: u64) -> Vec<SnapshotPoint> {
    let mut random = Random::new(seed);
    let (mut alive, mut thinned, mut course) = (Vec::new(), 0, Vec::new());
    for now in 1..=run.collections {
        for _ in 0..births(life, now, run, &mut random) {
            let kept = is_kept(life, now, run, &mut random);
            if random.below(1 << thinned) == 0 {
                alive.push((now, kept));
            }
        }
        die(life, now, &mut alive, &mut random);
        if run.thin_at == Some(now) {
            alive.retain(|_| random.below(2) == 0);
            thinned += 1;
        }
        if now % run.old_every == 0 {
            course.push(point(now, thinned, &alive));
        }
    }
    course
}

const SEEDS: u64 = 300;
/// As the command judges a single context.
const CHANCE: f64 = 0.01;

/// In how many of all runs a leak is found.
fn count_detections(life: Life, run: Run) -> u64 {
    let is_found = |seed: &u64| {
        let evidence = LeakEvidence::from_course(&simulate(life, run, *seed));
        evidence.is_some_and(|evidence| evidence.chance <= CHANCE)
    };
    (1..=SEEDS).filter(is_found).count() as u64
}

#[test]
fn what_leaks_is_found() {
    let slow = Run {
        births: 0.15,
        ..RUN
    };
    let fast = Run { births: 8.0, ..RUN };
    let rare = Run {
        old_every: 90,
        ..RUN
    };
    let short = Run {
        collections: 150,
        ..RUN
    };
    for (name, life, run) in [
        ("usual", Life::Leak, RUN),
        ("slow", Life::Leak, slow),
        ("fast", Life::Leak, fast),
        ("few old collections", Life::Leak, rare),
        ("short", Life::Leak, short),
        ("one in ten", Life::Some(10, 20.0), fast),
        ("one in three", Life::Some(3, 40.0), fast),
    ] {
        let count_detections = count_detections(life, run);
        assert!(
            count_detections >= SEEDS * 97 / 100,
            "{name}: {count_detections} of {SEEDS}"
        );
    }
}

/// 300 runs of 26 kinds: fewer than 1 in 100 contexts would be an error, none is expected.
#[test]
fn what_does_not_leak_is_not_found() {
    let lives = [
        Life::Cache(20),
        Life::Cache(60),
        Life::RandomCache(40),
        Life::Steady(2.0),
        Life::Steady(40.0),
        Life::StartUp(0.1),
        Life::StartUp(0.6),
        Life::StartUpAndSteady(0.3, 20.0),
        Life::StartUpAndSteady(0.6, 60.0),
        Life::Waves(50),
        Life::Waves(170),
        Life::Load(140, 15.0),
        Life::Bursts(290),
    ];
    for life in lives {
        for births in [0.5, 6.0] {
            let run = Run { births, ..RUN };
            let count_detections = count_detections(life, run);
            assert_eq!(
                count_detections, 0,
                "{life:?} with {births}: {count_detections} of {SEEDS}"
            );
        }
    }
}

#[test]
fn objects_that_are_let_go_to_make_room_hide_no_leak_and_feign_none() {
    let run = Run {
        births: 2.0,
        thin_at: Some(300),
        ..RUN
    };
    assert!(count_detections(Life::Leak, run) >= SEEDS * 97 / 100);
    assert_eq!(count_detections(Life::Cache(100), run), 0);
    assert_eq!(count_detections(Life::StartUp(0.5), run), 0);
}

#[test]
fn the_evidence_matches_the_simulation() {
    let course = simulate(Life::Leak, RUN, 7);
    let evidence = LeakEvidence::from_course(&course).unwrap();
    let last = course.last().unwrap();
    let generations = last.generations.len() as u64;
    assert_eq!(evidence.thirds.iter().sum::<u64>(), generations);
    assert_eq!(evidence.live[2].generations, generations);
    assert_eq!(evidence.span.1, last.generations.last().unwrap().born);
    assert_eq!(evidence.kept_fraction, 1.0);
    assert_eq!(evidence.byte_growth(), last.bytes - evidence.live[0].bytes);
    assert!(evidence.live[0].collections < evidence.live[1].collections);
}

#[test]
fn there_is_no_verdict_without_collections_or_objects() {
    assert_eq!(LeakEvidence::from_course(&[]), None);
    assert_eq!(LeakEvidence::from_course(&[SnapshotPoint::default()]), None);
    let course = simulate(Life::Leak, RUN, 1);
    // One snapshot, however large, shows no growth.
    assert_eq!(LeakEvidence::from_course(&course[course.len() - 1..]), None);
}

/// A log that is not one of ours: any numbers in any order.
#[test]
fn whatever_the_numbers_there_is_an_answer() {
    let mut random = Random::new(3);
    for _ in 0..2_000 {
        let mut course = simulate(Life::Leak, RUN, random.next());
        for _ in 0..3 {
            let at = random.below(course.len() as u64) as usize;
            let value = [0, 1, u64::MAX, u64::MAX / 2][random.below(4) as usize];
            match random.below(4) {
                0 => course[at].tested = value,
                1 => course[at].thinned = value as u32,
                2 => course[at].bytes = value,
                _ => course[at]
                    .generations
                    .iter_mut()
                    .for_each(|g| g.born = value),
            }
        }
        if let Some(evidence) = LeakEvidence::from_course(&course) {
            assert!((0.0..=1.0).contains(&evidence.chance), "{evidence:?}");
            assert!(
                (0.0..=1.0).contains(&evidence.kept_fraction),
                "{evidence:?}"
            );
        }
    }
}

/// Some of the snapshots that there might have been: many, few, those of one part of the run alone.
fn some_snapshots(course: &[SnapshotPoint], random: &mut Random) -> Vec<SnapshotPoint> {
    let all = course.len() as u64;
    let (from, to) = (random.below(all), random.below(all) + 1);
    let one_in = 1 + random.below(12);
    let is_in_part = |at: u64| (from.min(to)..from.max(to)).contains(&at);
    let mut some: Vec<SnapshotPoint> = Vec::new();
    for (at, point) in (0..).zip(course) {
        if is_in_part(at) && random.below(one_in) == 0 {
            some.push(point.clone());
        }
    }
    some
}

/// Whichever snapshots there were: nobody says of a leak that it is none.
#[test]
fn no_leak_is_denied() {
    let mut random = Random::new(11);
    let (mut growing, mut unknown) = (0, 0);
    for seed in 1..=2_000 {
        let births = [0.15, 0.5, 2.0, 8.0][(seed % 4) as usize];
        let run = Run { births, ..RUN };
        let life = match seed % 3 {
            0 => Life::Some(3, 40.0),
            _ => Life::Leak,
        };
        let course = some_snapshots(&simulate(life, run, seed), &mut random);
        let enough = course.last().map_or(0, |last| last.generations.len());
        if enough < 12 {
            continue;
        }
        match judge_course(&course, run.collections) {
            LiveCourse::Steady => panic!("{life:?} {births} {seed}: {course:#?}"),
            LiveCourse::Growing { .. } => growing += 1,
            LiveCourse::Unknown(_) => unknown += 1,
        }
    }
    assert!(growing > 300 && unknown > 100, "{growing} {unknown}");
}

/// A JVM that is short of memory collects again and again, and hardly allocates: most of its collections are of its last moments.
#[test]
fn a_leak_is_not_denied_because_the_last_moments_have_many_collections() {
    let run = Run { births: 8.0, ..RUN };
    let leak = simulate(Life::Leak, run, 3);
    let last = leak.last().unwrap();
    let again = (1..=4 * run.collections / run.old_every).map(|more| SnapshotPoint {
        collections: last.collections + more,
        millis: last.millis + more,
        tested: last.tested + more,
        sampled: last.sampled + more,
        ..last.clone()
    });
    let course: Vec<SnapshotPoint> = again.collect();
    let collections = course.last().unwrap().collections;
    let judged = judge_course(&course, collections);
    let LiveCourse::Unknown(MissingEvidence::EarlySnapshots { .. }) = judged else {
        panic!("{judged:?}");
    };
    // Nor where the snapshots of the beginning are there.
    let all = [leak, course].concat();
    let judged = judge_course(&all, collections);
    assert_ne!(judged, LiveCourse::Steady);
}

/// What is full since the start-up is denied once there are snapshots enough.
#[test]
fn what_does_not_grow_is_denied_where_the_evidence_suffices() {
    let run = Run { births: 6.0, ..RUN };
    let is_denied = |seed: &u64| {
        let course = simulate(Life::Cache(400), run, *seed);
        judge_course(&course, run.collections) == LiveCourse::Steady
    };
    let denied = (1..=SEEDS).filter(is_denied).count() as u64;
    assert!(denied >= SEEDS * 9 / 10, "{denied} of {SEEDS}");
}

/// Snapshots of the end alone, too few, or of the beginning alone.
#[test]
fn missing_evidence_is_reported() {
    let course = simulate(Life::Cache(400), Run { births: 6.0, ..RUN }, 1);
    let judge = |points: &[SnapshotPoint]| judge_sufficiency(points, 0, RUN.collections);
    assert_eq!(judge(&course), EvidenceSufficiency::Sufficient);
    let (seen, needed) = (0, 4);
    let none = EvidenceSufficiency::Missing(MissingEvidence::Snapshots { seen, needed });
    assert_eq!(judge(&[]), none);
    let late = judge(&course[course.len() - 3..]);
    let EvidenceSufficiency::Missing(MissingEvidence::EarlySnapshots { first_percent }) = late
    else {
        panic!("{late:?}");
    };
    assert!((90..=100).contains(&first_percent), "{first_percent}");
    let early = judge(&course[..course.len() / 2]);
    let EvidenceSufficiency::Missing(MissingEvidence::LateSnapshots { last_percent }) = early
    else {
        panic!("{early:?}");
    };
    assert!((40..=55).contains(&last_percent), "{last_percent}");
    let thirds = [1, 2, 3].map(|third| course[course.len() * third / 3 - 1].clone());
    let (seen, needed) = (3, 4);
    let few = EvidenceSufficiency::Missing(MissingEvidence::Snapshots { seen, needed });
    assert_eq!(judge(&thirds), few);
}

/// A log that is not one of ours.
#[test]
fn whatever_the_snapshots_there_is_a_judgement() {
    let mut random = Random::new(5);
    for _ in 0..2_000 {
        let mut course = some_snapshots(&simulate(Life::Leak, RUN, random.next()), &mut random);
        for point in &mut course {
            let value = [0, 1, u64::MAX, u64::MAX / 2][random.below(4) as usize];
            match random.below(4) {
                0 => point.tested = value,
                1 => point.bytes = value,
                2 => point.objects = value,
                _ => point.generations.iter_mut().for_each(|g| g.born = value),
            }
        }
        let collections = [0, RUN.collections, u64::MAX][random.below(3) as usize];
        let _ = judge_course(&course, collections);
        let _ = judge_sufficiency(&course, random.below(700), collections);
    }
}
