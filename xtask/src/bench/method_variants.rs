//! The programs and variants of `bench --methods`.

/// Number of methods, and iterations of the loop in each: without hooks a method of 10 takes about 10 ns, one of 100
/// about 100 ns, and one of 1,000 about 1 µs.
pub const PROGRAMS: [(usize, u32); 6] = [
    (1, 100),
    (10, 100),
    (100, 100),
    (1_000, 100),
    (10, 10),
    (10, 1_000),
];
/// What is compared if no variants are named.
pub fn default_variants() -> Vec<String> {
    let classes =
        PROGRAMS.map(|(methods, loops)| format!("{}$Methods", class_name(methods, loops)));
    let filter = classes.join(";");
    let recorder = "-XX:StartFlightRecording:filename={out}";
    vec![
        "call=-agentpath:{lucce}=out={out},events=call:Calls*$Methods.*".into(),
        "time=-agentpath:{lucce}=out={out},events=time:Calls*$Methods.*".into(),
        format!(
            "jfr-timing={recorder},jdk.MethodTiming#enabled=true,jdk.MethodTiming#filter={filter}"
        ),
        format!(
            "jfr-trace={recorder},jdk.MethodTrace#enabled=true,jdk.MethodTrace#threshold=1ms,jdk.MethodTrace#filter={filter}"
        ),
    ]
}

pub fn class_name(methods: usize, loops: u32) -> String {
    format!("Calls{methods}Of{loops}")
}
