//! Every program of `programs.txt`, on each JDK, in several ways to run Java: it computes what it
//! computes without the agent, and every number of every allocation decodes to the JVM's own trace.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lucce_tests::{
    ALL_REPEATS, COMPILE_PROGRAMS, Checked, Ended, Java, Jdk, LIGHT_VM, Setup, ensure,
};

use crate::{PROGRAMS_BETWEEN, Test, test};

/// Programs with stacks of ten thousand frames and more, where a comparison takes milliseconds, and every how many events are
/// compared: dozens or hundreds of those with deep stacks are enough.
const DEEP: [(&str, u32); 3] = [
    ("DeepRecursion", 4999),
    ("StackOverflow", 4999),
    ("OutOfScope", 47),
];

/// A line of `programs.txt`.
#[derive(Clone)]
struct Program {
    name: String,
    jdk: u32,
    native: bool,
    exit: i32,
    args: Vec<String>,
    jvm: Vec<String>,
}

/// What programs do without the agent on a JDK, once they have run.
type Plain = Arc<Mutex<Option<Arc<Ended>>>>;

static PLAIN: Mutex<BTreeMap<(Vec<String>, u32), Plain>> = Mutex::new(BTreeMap::new());

/// A test that failed while it held the lock leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A way to run Java under the agent.
struct Mode {
    name: &'static str,
    flags: &'static [&'static str],
    /// Of the agent, beside those that all modes have.
    options: &'static str,
    /// Whether the newest JDK's VM checks the agent's use of JNI. That use does not depend on JDKs, compilers and collectors, and
    /// the check takes a third of the time; programs with native code are checked everywhere. Modes in which programs do everything
    /// a few times only are the cheap ones.
    checks_jni: bool,
    /// Every how many events are compared. In the usual way to run Java each one is. Other ways have the same hooks, and what
    /// programs do in loops comes again and again; under `-Xint` and `-Xcomp` code does not even change its form meanwhile.
    verify: u32,
    /// None: all.
    programs: Option<&'static [&'static str]>,
}

const MODES: [Mode; 15] = [
    Mode {
        name: "default",
        flags: &[],
        options: "",
        checks_jni: false,
        verify: 1,
        programs: None,
    },
    Mode {
        name: "int",
        flags: &["-Xint"],
        options: "",
        checks_jni: true,
        verify: 7,
        programs: Some(&[
            "ClassInit",
            "Constructors",
            "Exceptions",
            "ForeignUpcalls",
            "Lambdas",
            "NativeCallback",
            "Proxies",
            "QuietCalls",
            "ReflectionCalls",
            "VirtualThreads",
        ]),
    },
    Mode {
        name: "comp",
        flags: &["-Xcomp"],
        options: "",
        checks_jni: false,
        verify: 7,
        programs: Some(&[
            "ClassInit",
            "Exceptions",
            "Lambdas",
            "MethodHandleCalls",
            "NativeCallback",
            "QuietCalls",
        ]),
    },
    Mode {
        name: "c1",
        flags: &["-XX:TieredStopAtLevel=1"],
        options: "",
        checks_jni: false,
        verify: 1,
        programs: Some(&["Exceptions", "StackOverflow", "DeepRecursion"]),
    },
    Mode {
        name: "serial",
        flags: &["-XX:+UseSerialGC"],
        options: "",
        checks_jni: false,
        verify: 3,
        programs: Some(&["ClassUnloading", "Finalizers", "Serialization"]),
    },
    Mode {
        name: "parallel",
        flags: &["-XX:+UseParallelGC"],
        options: "",
        checks_jni: false,
        verify: 3,
        programs: Some(&["ClassUnloading", "ManyThreads", "StringConcat"]),
    },
    Mode {
        name: "z",
        flags: &["-XX:+UseZGC"],
        options: "",
        checks_jni: false,
        verify: 3,
        programs: Some(&["ClassUnloading", "ManyThreads", "VirtualThreads", "Lambdas"]),
    },
    Mode {
        name: "exception",
        flags: &[],
        options: ",events=exception,tracking=lazy",
        checks_jni: true,
        verify: 1,
        programs: Some(&["ClassInit", "ClassLoading", "Finalizers"]),
    },
    Mode {
        // No class has hooks: the VM is asked for the stack, also by what programs ask.
        name: "walked",
        flags: &[],
        options: ",events=exception+leak=64k",
        checks_jni: true,
        verify: 1,
        programs: Some(&[
            "ClassInit",
            "ClassLoading",
            "ClassUnloading",
            "Exceptions",
            "Finalizers",
            "ForeignCallbacks",
            "ForeignUpcalls",
            "Handed",
            "Lambdas",
            "LibraryCallbacks",
            "LoaderCalls",
            "ManyThreads",
            "MethodHandleCalls",
            "NativeCallback",
            "NativeThreads",
            "PinnedVirtualThreads",
            "ReflectionCalls",
            "Scopes",
            "ShutdownHooks",
            "Tasks",
            "VirtualThreads",
            "VmCalls",
        ]),
    },
    Mode {
        name: "app",
        flags: &["-Dlucce.scope=app"],
        options: ",instrument=app",
        checks_jni: true,
        verify: 3,
        programs: Some(&[
            "ClassInit",
            "ClassLoading",
            "Constructors",
            "Exceptions",
            "ForeignUpcalls",
            "Lambdas",
            "LoaderCalls",
            "ManyThreads",
            "MethodHandleCalls",
            "NativeCallback",
            "NativeThreads",
            "OutOfScope",
            "Proxies",
            "Records",
            "ReflectionCalls",
            "StackOverflow",
            "VirtualThreads",
        ]),
    },
    Mode {
        name: "app-comp",
        flags: &["-Dlucce.scope=app", "-Xcomp"],
        options: ",instrument=app",
        checks_jni: false,
        verify: 7,
        programs: Some(&["ClassInit", "OutOfScope"]),
    },
    Mode {
        name: "outer",
        flags: &["-Dlucce.scope=outer"],
        options: ",exclude=*$*",
        checks_jni: false,
        verify: 3,
        programs: Some(&[
            "ClassInit",
            "Exceptions",
            "Lambdas",
            "LoaderCalls",
            "OutOfScope",
            "VirtualThreads",
        ]),
    },
    Mode {
        // Classes in scope are initialised by code that is not.
        name: "handles",
        flags: &["-Dlucce.scope=handles"],
        options: ",include=java.lang.invoke.*+io.lucce.*",
        checks_jni: false,
        verify: 3,
        programs: Some(&[
            "ClassInit",
            "Lambdas",
            "LoaderCalls",
            "MethodHandleCalls",
            "Proxies",
            "VirtualThreads",
        ]),
    },
    Mode {
        name: "cct",
        flags: &[],
        options: ",tracking=cct",
        checks_jni: false,
        verify: 3,
        programs: Some(&[
            "ClassInit",
            "ClassLoading",
            "Constructors",
            "DeepRecursion",
            "Exceptions",
            "ForeignUpcalls",
            "HugeMethod",
            "Lambdas",
            "LoaderCalls",
            "ManyThreads",
            "NativeCallback",
            "NativeThreads",
            "QuietCalls",
            "ReflectionCalls",
            "StackOverflow",
            "VirtualThreads",
        ]),
    },
    Mode {
        name: "paper",
        // Its numbers exceed a long: what decodes must be right, and not everything does.
        flags: &["-Dlucce.check.none-allowed=true"],
        options: ",tracking=paper",
        checks_jni: false,
        verify: 3,
        programs: Some(&[
            "ClassInit",
            "Constructors",
            "Exceptions",
            "HugeMethod",
            "Lambdas",
            "LoaderCalls",
            "NativeCallback",
            "ReflectionCalls",
        ]),
    },
];

/// Without the agent: what programs print depends neither on compilers and collectors nor on repeats.
const PLAIN_MODE: Mode = Mode {
    name: "plain",
    flags: &LIGHT_VM,
    options: "",
    checks_jni: false,
    verify: 0,
    programs: None,
};

/// Modes in which most programs run in one JVM: its start takes longer than they do.
const SHARED: [&str; 8] = [
    "int",
    "comp",
    "exception",
    "walked",
    "app",
    "outer",
    "handles",
    "cct",
];

/// Every how many events are compared, of programs that share a JVM in the usual way to run Java.
const SHARED_INTERVAL: u32 = 7;

/// Programs with a JVM of their own in all modes: of virtual threads, each JDK has its own form; hooks run when the JVM ends.
const ALONE: [&str; 2] = ["ShutdownHooks", "VirtualThreads"];

const QUICK: [&str; 9] = [
    "ClassInit",
    "Constructors",
    "Exceptions",
    "Lambdas",
    "NativeCallback",
    "Proxies",
    "QuietCalls",
    "ReflectionCalls",
    "SynchronizedMethods",
];

const VERIFIED: &str = "-Xverify:all";
const CHECKED: &str = "-Xcheck:jni";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let list = setup.harness.join("programs/programs.txt");
    let programs = match fs::read_to_string(&list)
        .map_err(|e| e.to_string())
        .and_then(|text| parse(&text))
    {
        Ok(programs) => programs,
        Err(message) => return vec![test("programs.txt", true, || Err(message))],
    };
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for mode in &MODES {
            let wanted = programs.iter();
            let wanted = wanted.filter(|program| program.runs(setup, jdk, mode));
            let runs = ProgramRun::from_programs(wanted.cloned().collect(), setup, jdk, mode);
            tests.extend(runs.into_iter().map(|run| run.test(setup, jdk, mode)));
        }
    }
    tests
}

fn parse(text: &str) -> Result<Vec<Program>, String> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| Program::parse(line).ok_or_else(|| format!("programs.txt: {line}")))
        .collect()
}

impl Program {
    fn parse(line: &str) -> Option<Program> {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, jdk, native, exit, args, jvm] = fields[..] else {
            return None;
        };
        let words = |field: &str| {
            field
                .split_whitespace()
                .filter(|word| *word != "-")
                .map(str::to_owned)
                .collect()
        };
        Some(Program {
            name: name.to_owned(),
            jdk: jdk.parse().ok()?,
            native: native == "yes",
            exit: exit.parse().ok()?,
            args: words(args),
            jvm: words(jvm),
        })
    }

    fn runs(&self, setup: &Setup, jdk: &Jdk, mode: &Mode) -> bool {
        let is_there = match *jdk == setup.jdk_11 {
            true => {
                let class = format!("io/lucce/programs/{}.class", self.name);
                setup.programs_11.join(class).exists()
            }
            false => jdk.version >= self.jdk,
        };
        // ZGC of JDK 11 unloads no classes.
        let unloads_classes = *jdk != setup.jdk_11 || mode.name != "z";
        is_there
            && (unloads_classes || self.name != "ClassUnloading")
            && mode
                .programs
                .is_none_or(|names| names.contains(&self.name.as_str()))
    }

    /// Programs with native code have flags of their own, and those with deep stacks an interval of comparisons.
    fn may_share_jvm(&self, mode: &Mode) -> bool {
        let name = self.name.as_str();
        let is_usual = self.exit == 0 && self.args.is_empty() && self.jvm.is_empty();
        let is_deep = DEEP.iter().any(|(deep, _)| *deep == name);
        let is_alone =
            mode.is_default() && (PROGRAMS_BETWEEN.contains(&name) || QUICK.contains(&name));
        is_usual && !self.native && !is_deep && !is_alone && !ALONE.contains(&name)
    }
}

/// Programs that run in one JVM, in turn.
struct ProgramRun {
    name: String,
    programs: Vec<Program>,
}

impl ProgramRun {
    fn from_program(program: Program) -> ProgramRun {
        let name = program.name.clone();
        let programs = vec![program];
        ProgramRun { name, programs }
    }

    /// Most programs share a JVM, if the mode lets them.
    fn from_programs(
        programs: Vec<Program>,
        setup: &Setup,
        jdk: &Jdk,
        mode: &Mode,
    ) -> Vec<ProgramRun> {
        let is_shared = mode.shares_jvm(setup, jdk);
        let (programs, alone): (Vec<_>, Vec<_>) = programs
            .into_iter()
            .partition(|program| is_shared && program.may_share_jvm(mode));
        let mut runs: Vec<_> = alone.into_iter().map(ProgramRun::from_program).collect();
        if !programs.is_empty() {
            let name = "together".to_owned();
            runs.push(ProgramRun { name, programs });
        }
        runs
    }

    fn test(self, setup: &'static Setup, jdk: &'static Jdk, mode: &'static Mode) -> Test {
        let name = format!("programs::{}::{}::{}", jdk.version, mode.name, self.name);
        let quick =
            jdk == setup.jdk() && mode.name == "default" && QUICK.contains(&self.name.as_str());
        test(name, quick, move || self.check(setup, jdk, mode))
    }

    fn check(&self, setup: &Setup, jdk: &Jdk, mode: &Mode) -> Checked {
        let watched = self.java(setup, jdk, mode, "agent").agent(&format!(
            "events=alloc,verify={}{}",
            self.verify_interval(mode),
            mode.options
        ));
        let ended = watched.run()?.expect(self.exit())?;
        self.all_ended(&ended)?;
        let as_usual: Vec<_> = match is_newest(setup, jdk) {
            // Each one runs alone there in another mode.
            true => {
                let programs = self.programs.iter().cloned();
                let runs = programs.map(ProgramRun::from_program);
                runs.map(|run| run.plain_once(setup, jdk))
                    .collect::<Result<_, _>>()?
            }
            false => vec![self.plain_once(setup, jdk)?],
        };
        if is_alike(&as_usual, &ended).is_err() {
            // The mode itself may make the difference: only what the agent changes is wrong.
            is_alike(&[Arc::new(self.plain(setup, jdk, mode)?)], &ended)?;
        }
        watched.lucce().check(&watched.log())?;
        watched.clean();
        Ok(())
    }

    /// Of programs that share a JVM, each one had its turn.
    fn all_ended(&self, ended: &Ended) -> Checked {
        let lines = ended.stdout.lines();
        let summaries = lines.filter(|line| is_summary(line, "OK ")).count();
        let all = self.programs.len();
        let is_all = all == 1 || summaries == all;
        ended.ensure(is_all, &format!("{summaries} of {all} programs ended"))
    }

    /// Without the agent: once for all modes.
    fn plain_once(&self, setup: &Setup, jdk: &Jdk) -> Result<Arc<Ended>, String> {
        let names = self.programs.iter().map(|program| program.name.clone());
        let key = (names.collect(), jdk.version);
        let known = Arc::clone(lock(&PLAIN).entry(key).or_default());
        let mut known = lock(&known);
        if let Some(ended) = &*known {
            return Ok(Arc::clone(ended));
        }
        let ended = Arc::new(self.plain(setup, jdk, &PLAIN_MODE)?);
        *known = Some(Arc::clone(&ended));
        Ok(ended)
    }

    /// Without the agent.
    fn plain(&self, setup: &Setup, jdk: &Jdk, mode: &Mode) -> Result<Ended, String> {
        let java = self.java(setup, jdk, mode, "plain");
        let ended = java.run()?.expect(self.exit())?;
        java.clean();
        Ok(ended)
    }

    fn exit(&self) -> i32 {
        self.programs.iter().map(|program| program.exit).sum()
    }

    /// Every how many events are compared.
    fn verify_interval(&self, mode: &Mode) -> u32 {
        let deep = DEEP.iter().find(|(name, _)| *name == self.name);
        match deep {
            Some((_, interval)) => *interval,
            // The newest JDK compares each event of these programs: a few of them have most.
            None if mode.is_default() && self.programs.len() > 1 => SHARED_INTERVAL,
            None => mode.verify,
        }
    }

    /// The main class and its arguments.
    fn command(&self) -> Vec<String> {
        match &self.programs[..] {
            [program] => {
                let class = format!("io.lucce.programs.{}", program.name);
                [&[class], &program.args[..]].concat()
            }
            programs => {
                let runner = "io.lucce.programs.InTurn".to_owned();
                let names = programs.iter().map(|program| program.name.clone());
                [runner].into_iter().chain(names).collect()
            }
        }
    }

    fn java<'a>(&self, setup: &'a Setup, jdk: &'a Jdk, mode: &Mode, run: &str) -> Java<'a> {
        let name = format!("{}-{}-{}-{run}", self.name, jdk.version, mode.name);
        let is_newest = is_newest(setup, jdk);
        let is_native = self.programs.iter().any(|program| program.native);
        let native = is_native.then(|| format!("-Dlucce.native={}", setup.natives.display()));
        let native_access =
            (is_native && jdk.version >= 24).then_some("--enable-native-access=ALL-UNNAMED");
        let is_whole = mode.is_default() && is_newest;
        let repeats = if is_whole { &ALL_REPEATS[..] } else { &[] };
        Java::new(setup, jdk, &name)
            .flags([VERIFIED])
            .flags(repeats)
            .flags((mode.checks_jni && is_newest || is_native).then_some(CHECKED))
            .flags(mode.flags(is_newest))
            .flags(self.programs.iter().flat_map(|program| &program.jvm))
            .flags(native)
            .flags(native_access)
            .main(self.command())
    }
}

impl Mode {
    fn is_default(&self) -> bool {
        self.name == MODES[0].name
    }

    /// Whether most programs run in one JVM. In the usual way to run Java, each one starts with a fresh JVM on the newest JDK;
    /// on JDK 11, a few programs run at all.
    fn shares_jvm(&self, setup: &Setup, jdk: &Jdk) -> bool {
        let is_usual = self.is_default() && !is_newest(setup, jdk);
        *jdk != setup.jdk_11 && (is_usual || SHARED.contains(&self.name))
    }

    /// Only the newest JDK compiles its own code at its first call, which takes most of the time.
    fn flags(&self, is_newest: bool) -> &'static [&'static str] {
        match self.name {
            "comp" if !is_newest => &[COMPILE_PROGRAMS],
            _ => self.flags,
        }
    }
}

fn is_newest(setup: &Setup, jdk: &Jdk) -> bool {
    setup.jdks.iter().all(|other| other.version <= jdk.version)
}

/// It prints the same lines, and nothing new is warned of.
fn is_alike(expected: &[Arc<Ended>], ended: &Ended) -> Checked {
    same_output(expected, ended)?;
    no_warnings(expected, ended)
}

/// Both print equal lines, but for the summary: "SKIPPED no agent (…)" and "OK …". How many contexts it
/// counts may depend on time: some programs have scheduled tasks.
fn same_output(expected: &[Arc<Ended>], ended: &Ended) -> Checked {
    let lines = |of: &Ended, summary: &str| -> Vec<String> {
        let plain = |line: &str| match is_summary(line, summary) {
            true => "the summary".to_owned(),
            false => line.to_owned(),
        };
        let lines = of.stdout.lines().filter(|line| !is_jvm(line));
        lines.map(plain).collect()
    };
    let expected = expected.iter();
    let expected = expected.flat_map(|expected| lines(expected, "SKIPPED no agent ("));
    let expected: Vec<String> = expected.collect();
    ended.ensure(
        expected == lines(ended, "OK "),
        &format!("without the agent it prints\n{}", expected.join("\n")),
    )
}

/// The last line of a program that went well. `begin`: with the agent or without it.
fn is_summary(line: &str, begin: &str) -> bool {
    line.starts_with(begin) && line.contains(" contexts at ")
}

/// Lines of the JVM itself, such as those of -Xcheck:jni.
fn is_jvm(line: &str) -> bool {
    const STARTS: [&str; 9] = [
        "WARNING",
        "OpenJDK",
        "\tat ",
        "Native frames:",
        "V  [",
        "C  [",
        "j  ",
        "J ",
        "v  ",
    ];
    line.is_empty()
        || line.contains("[warning]")
        || STARTS.iter().any(|start| line.starts_with(start))
}

/// The JVM warns of nothing that it does not warn of without the agent.
fn no_warnings(expected: &[Arc<Ended>], ended: &Ended) -> Checked {
    let known: Vec<&str> = expected.iter().flat_map(|ended| warnings(ended)).collect();
    let new: Vec<&str> = warnings(ended)
        .filter(|warning| !known.contains(warning))
        .collect();
    ensure(new.is_empty(), || {
        format!("new warnings:\n{}\n{}", new.join("\n"), ended.text())
    })
}

/// Warnings without their time stamps.
fn warnings(ended: &Ended) -> impl Iterator<Item = &str> {
    let lines = ended.stdout.lines().chain(ended.stderr.lines());
    let warnings =
        lines.filter(|line| line.to_ascii_lowercase().contains("warn") || line.contains("FATAL"));
    warnings.map(|line| line.find("[warning]").map_or(line, |at| &line[at..]))
}
