//! The variants that are compared: flags that are put before a program's own.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A way to run a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    pub name: String,
    /// A line that describes it.
    pub about: String,
    flags: Vec<String>,
}

/// Placeholder: the file to which a variant records.
const OUT: &str = "{out}";
/// Placeholder: the path of `liblucce.so`.
const LUCCE: &str = "{lucce}";
/// Placeholder: the path of `liblucce-lab.so`.
const LUCCE_LAB: &str = "{lucce-lab}";
/// Placeholder: the path of `libasyncProfiler.so`.
const ASYNC_PROFILER: &str = "{async-profiler}";

/// Name, description, flags; the first is the baseline.
const KNOWN: [(&str, &str, &str); 26] = [
    ("none", "no agent", ""),
    (
        "xshare-off",
        "no agent, class data sharing off, as it is under an agent that hooks early",
        "-Xshare:off",
    ),
    (
        "tracking",
        "contexts are tracked, nothing is recorded",
        "-agentpath:{lucce}=events=none,log=warn,out={out}",
    ),
    (
        "tracking-app",
        "contexts are tracked, in application classes only",
        "-agentpath:{lucce}=events=none,instrument=app,log=warn,out={out}",
    ),
    (
        "alloc",
        "every allocation is counted with its full context",
        "-agentpath:{lucce}=events=alloc,log=warn,out={out}",
    ),
    (
        "budget-5",
        "allocations are sampled within a budget of 5%",
        "-agentpath:{lucce}=budget=5%,log=warn,out={out}",
    ),
    (
        "budget-20",
        "allocations are sampled within a budget of 20%",
        "-agentpath:{lucce}=budget=20%,log=warn,out={out}",
    ),
    (
        "alloc-app",
        "every allocation of application classes is counted",
        "-agentpath:{lucce}=events=alloc,instrument=app,log=warn,out={out}",
    ),
    (
        "heap",
        "as alloc, and samples of what reached the heap",
        "-agentpath:{lucce}=events=alloc+heap,log=warn,out={out}",
    ),
    (
        "survive",
        "as alloc, and samples of what survives collections",
        "-agentpath:{lucce}=events=alloc+survive,log=warn,out={out}",
    ),
    (
        "open",
        "open resources are counted with the contexts that opened them",
        "-agentpath:{lucce}=events=open,log=warn,out={out}",
    ),
    (
        "lock",
        "contended monitors, waiting and parking are counted",
        "-agentpath:{lucce}=events=lock,log=warn,out={out}",
    ),
    (
        "io",
        "reading and writing files and sockets is counted and timed",
        "-agentpath:{lucce}=events=io,log=warn,out={out}",
    ),
    (
        "native",
        "memory outside of the heap is counted and followed",
        "-agentpath:{lucce}=events=native,log=warn,out={out}",
    ),
    (
        "leak",
        "objects are followed, one for 512 KB",
        "-agentpath:{lucce}=events=leak,log=warn,out={out}",
    ),
    (
        "thread",
        "starts of threads and tasks of executors are counted and followed",
        "-agentpath:{lucce}=events=thread,log=warn,out={out}",
    ),
    (
        "detached",
        "no agent; the benchmark Detached attaches one and detaches it again before it is measured",
        "-Dlucce.agent={lucce}",
    ),
    (
        "paper",
        "the paper's scheme: look-up at every entry, call site handed over at every call",
        "-agentpath:{lucce-lab}=tracking=paper,events=none,log=warn,out={out}",
    ),
    (
        "cct",
        "a calling context tree per thread",
        "-agentpath:{lucce-lab}=tracking=cct,events=none,log=warn,out={out}",
    ),
    (
        "async-alloc",
        "async-profiler, allocations sampled, one for 512 KB",
        "-agentpath:{async-profiler}=start,event=alloc,alloc=512k,jfr,file={out}",
    ),
    (
        "async-alloc-1",
        "async-profiler, every allocation (alloc=1)",
        "-agentpath:{async-profiler}=start,event=alloc,alloc=1,jfr,file={out}",
    ),
    (
        "async-live",
        "async-profiler, living objects among samples, one for 512 KB",
        "-agentpath:{async-profiler}=start,event=alloc,alloc=512k,live,jfr,file={out}",
    ),
    (
        "async-native",
        "async-profiler, memory of native libraries, every allocation",
        "-agentpath:{async-profiler}=start,event=nativemem,nativemem=0,jfr,file={out}",
    ),
    (
        "async-native-lock",
        "async-profiler, waits for mutexes of native libraries, every one",
        "-agentpath:{async-profiler}=start,event=nativelock,nativelock=0,jfr,file={out}",
    ),
    (
        "jfr-old",
        "JDK Flight Recorder, old objects with stack traces",
        "-XX:StartFlightRecording=filename={out},jdk.OldObjectSample#enabled=true,jdk.OldObjectSample#stackTrace=true",
    ),
    (
        "jfr",
        "JDK Flight Recorder, settings=profile",
        "-XX:StartFlightRecording=settings=profile,filename={out}",
    ),
];

/// The paths of the agents.
#[derive(Clone, Default, Debug)]
pub struct Tools {
    pub lucce: Option<PathBuf>,
    /// With the papers' systems.
    pub lucce_lab: Option<PathBuf>,
    pub async_profiler: Option<PathBuf>,
}

impl Tools {
    /// `liblucce-lab.so` lies beside `lucce`. The environment variable `ASYNC_PROFILER` names the library of async-profiler.
    pub fn from_env(lucce: Option<PathBuf>) -> Tools {
        let lab = |agent: &PathBuf| agent.with_file_name("liblucce-lab.so");
        let lucce_lab = lucce.as_ref().map(lab);
        let async_profiler = env::var_os("ASYNC_PROFILER").map(PathBuf::from);
        Tools {
            lucce,
            lucce_lab,
            async_profiler,
        }
    }
}

impl Variant {
    /// Returns all variants that have a name; the first is the baseline.
    pub fn known() -> Vec<Variant> {
        known_variants().collect()
    }

    fn from_parts(name: &str, about: &str, flags: &str) -> Variant {
        Variant {
            name: name.to_owned(),
            about: about.to_owned(),
            flags: flags.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// Parses a known variant's name, or `NAME=FLAGS` with the JVM's flags, separated by spaces.
    ///
    /// In flags, `{out}` is the file to which it may record, `{lucce}` the path of `liblucce.so`, and
    /// `{lucce-lab}` the path of `liblucce-lab.so`.
    ///
    /// # Errors
    /// The name is unknown; the message lists the known names.
    pub fn parse(text: &str) -> Result<Variant, String> {
        if let Some((name, flags)) = text.split_once('=') {
            return match name.is_empty() || find_variant(name).is_some() {
                true => Err(format!("{name:?} is no name for a variant of your own")),
                false => Ok(Variant::from_parts(name, flags, flags)),
            };
        }
        find_variant(text).ok_or_else(|| {
            let names = KNOWN.map(|(name, ..)| name);
            format!("unknown variant {text}; there are {}", names.join(", "))
        })
    }

    /// Returns the baseline and the requested variants: known ones in lists such as `tracking,alloc`, and others each
    /// by itself.
    ///
    /// # Errors
    /// A variant is unknown, or a name is used twice.
    pub fn list<'a>(wanted: impl IntoIterator<Item = &'a str>) -> Result<Vec<Variant>, String> {
        let mut list: Vec<Variant> = known_variants().take(1).collect();
        for text in wanted {
            let own = text.contains('=');
            let parts = text.split(',').filter(|name| !own && !name.is_empty());
            for part in parts.chain(own.then_some(text)) {
                let variant = Variant::parse(part)?;
                if list.iter().any(|other| other.clashes(&variant)) {
                    return Err(format!("two variants are called {}", variant.name));
                }
                if !list.contains(&variant) {
                    list.push(variant);
                }
            }
        }
        Ok(list)
    }

    fn clashes(&self, other: &Variant) -> bool {
        self.name == other.name && self != other
    }

    /// Whether the variant needs `liblucce-lab.so`.
    pub fn wants_lab(&self) -> bool {
        self.flags.iter().any(|flag| flag.contains(LUCCE_LAB))
    }

    /// Whether the variant needs async-profiler.
    pub fn wants_async_profiler(&self) -> bool {
        self.flags.iter().any(|flag| flag.contains(ASYNC_PROFILER))
    }

    /// Returns the suffix of the file to which it records.
    pub fn recording(&self) -> &'static str {
        let ours = |flag: &String| {
            flag.contains(LUCCE) || flag.contains(LUCCE_LAB) || flag.contains("liblucce")
        };
        match self.flags.iter().any(ours) {
            true => "lucce",
            false => "jfr",
        }
    }

    /// Returns the JVM's flags; the variant records to the file `out`.
    ///
    /// # Errors
    /// Why the variant cannot run here.
    pub fn flags(&self, tools: &Tools, out: &Path) -> Result<Vec<OsString>, String> {
        let filled = |flag: &String| {
            let mut flag = flag.replace(OUT, utf8(out)?);
            if flag.contains(LUCCE) {
                flag = flag.replace(LUCCE, there(tools.lucce.as_deref(), "no liblucce.so")?);
            }
            if flag.contains(LUCCE_LAB) {
                let library = there(tools.lucce_lab.as_deref(), "no liblucce-lab.so")?;
                flag = flag.replace(LUCCE_LAB, library);
            }
            if flag.contains(ASYNC_PROFILER) {
                let missing = "no async-profiler: ASYNC_PROFILER names no library";
                let library = there(tools.async_profiler.as_deref(), missing)?;
                flag = flag.replace(ASYNC_PROFILER, library);
            }
            Ok(OsString::from(flag))
        };
        self.flags.iter().map(filled).collect()
    }
}

fn find_variant(name: &str) -> Option<Variant> {
    known_variants().find(|variant| variant.name == name)
}

fn known_variants() -> impl Iterator<Item = Variant> {
    let variants = KNOWN.into_iter();
    variants.map(|(name, about, flags)| Variant::from_parts(name, about, flags))
}

fn there<'a>(library: Option<&'a Path>, missing: &str) -> Result<&'a str, String> {
    let library = library.ok_or(missing)?;
    match library.is_file() {
        true => utf8(library),
        false => Err(format!("{} is missing", library.display())),
    }
}

fn utf8(path: &Path) -> Result<&str, String> {
    let text = path.to_str();
    text.ok_or_else(|| format!("{} is no UTF-8", path.display()))
}

#[cfg(test)]
mod variant_tests {
    use super::*;

    fn names(wanted: &[&str]) -> Result<Vec<String>, String> {
        let list = Variant::list(wanted.iter().copied())?;
        Ok(list.into_iter().map(|variant| variant.name).collect())
    }

    #[test]
    fn a_list_begins_with_the_baseline_and_holds_each_once() {
        assert_eq!(names(&[]).unwrap(), ["none"]);
        assert_eq!(
            names(&["alloc,none,tracking", "alloc"]).unwrap(),
            ["none", "alloc", "tracking"]
        );
        let refused = names(&["aloc"]).unwrap_err();
        assert!(refused.contains("unknown variant aloc") && refused.contains("alloc"));
    }

    #[test]
    fn a_variant_of_ones_own_is_a_name_and_flags() {
        let own = "serial=-XX:+UseSerialGC -agentpath:{lucce}=events=none,out={out}";
        assert_eq!(names(&["alloc", own]).unwrap(), ["none", "alloc", "serial"]);
        let library = std::env::current_exe().unwrap();
        let tools = Tools {
            lucce: Some(library.clone()),
            async_profiler: None,
            ..Tools::default()
        };
        let flags = Variant::parse(own)
            .unwrap()
            .flags(&tools, "/x.jfr".as_ref());
        let agent = format!("-agentpath:{}=events=none,out=/x.jfr", library.display());
        assert_eq!(flags.unwrap(), ["-XX:+UseSerialGC", &agent]);
        assert!(
            names(&["a=-Xint", "a=-Xcomp"])
                .unwrap_err()
                .contains("two variants")
        );
        assert!(names(&["none=-Xint"]).unwrap_err().contains("\"none\""));
        assert!(names(&["=-Xint"]).is_err());
    }

    #[test]
    fn a_recording_is_called_by_what_it_is() {
        let recording = |text: &str| Variant::parse(text).unwrap().recording();
        assert_eq!(["paper", "alloc"].map(recording), ["lucce"; 2]);
        assert_eq!(["jfr", "async-alloc-1"].map(recording), ["jfr"; 2]);
        let old = "old=-agentpath:old/liblucce.so=events=none,out={out}";
        assert_eq!(recording(old), "lucce");
        assert_eq!(recording("new=-agentpath:{lucce}=out={out}"), "lucce");
    }

    #[test]
    fn the_baseline_has_no_flags_and_names_differ() {
        let variants = Variant::known();
        assert!(variants[0].flags.is_empty());
        for variant in &variants {
            assert_eq!(Variant::parse(&variant.name).unwrap(), *variant);
        }
    }

    #[test]
    fn what_is_missing_is_the_reason() {
        let tools = Tools::default();
        let flags = |name| Variant::parse(name).unwrap().flags(&tools, "/x".as_ref());
        assert_eq!(flags("none").unwrap(), Vec::<OsString>::new());
        assert_eq!(flags("tracking").unwrap_err(), "no liblucce.so");
        assert_eq!(flags("paper").unwrap_err(), "no liblucce-lab.so");
        assert!(flags("async-alloc").unwrap_err().contains("ASYNC_PROFILER"));
        let gone = Tools {
            lucce: Some("/no/such/liblucce.so".into()),
            ..Tools::default()
        };
        let refused = Variant::parse("alloc").unwrap().flags(&gone, "/x".as_ref());
        assert_eq!(refused.unwrap_err(), "/no/such/liblucce.so is missing");
    }
}
