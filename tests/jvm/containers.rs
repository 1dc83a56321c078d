//! As containers run JVMs: process 1, a root that is only read, a user who is not root, and the agent's options from the
//! environment. Namespaces of this machine do for it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, id};

use lucce_tests::{Checked, Java, Jdk, Lucce, Setup, ensure};

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Constructors";
/// Not root, and none of this machine's users.
const AS_USER: [&str; 6] = [
    "setpriv",
    "--reuid",
    "64321",
    "--regid",
    "64321",
    "--clear-groups",
];

/// `$1` stays writable; the rest is the command, which becomes process 1.
const SCRIPT: &str = "set -e
folder=$1; shift
mount --make-rprivate /
mount --bind \"$folder\" \"$folder\"
mount -o remount,bind,ro /
if touch /lucce-was-here 2>/dev/null; then echo the root can be written to >&2; exit 90; fi
cd /
exec \"$@\"
";

/// A pod's container: the root is this machine's without anything at its top, and is only read. Then come, up to `--`, volumes: `rw`
/// or `ro`, the folder, and where it is mounted. The rest is the command, which becomes process 1.
const POD: &str = "set -e
root=$1; shift
mount --make-rprivate /
mount -t tmpfs -o mode=755 pod \"$root\"
for top in /*; do
  to=$root$top
  if [ -L \"$top\" ]; then cp -P \"$top\" \"$to\"
  elif [ -d \"$top\" ]; then
    mkdir \"$to\"
    mount --rbind \"$top\" \"$to\"
    case $top in /proc|/sys|/dev) ;; *) mount -o remount,bind,ro \"$to\";; esac
  fi
done
while [ \"$1\" != -- ]; do
  mkdir -p \"$root$3\"
  mount --bind \"$2\" \"$root$3\"
  if [ \"$1\" = ro ]; then
    mount -o remount,bind,ro \"$root$3\"
    if touch \"$root$3/lucce-was-here\" 2>/dev/null; then echo \"$3 can be written to\" >&2; exit 90; fi
  fi
  shift 3
done
shift
mount -o remount,ro \"$root\"
if touch \"$root/lucce-was-here\" 2>/dev/null; then echo the root can be written to >&2; exit 90; fi
exec chroot \"$root\" \"$@\"
";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let Some(jdk) = setup.jdks.first() else {
        return Vec::new();
    };
    vec![
        test("containers::process_1_records", false, move || {
            process_1_records(setup, jdk)
        }),
        test(
            "containers::process_1_runs_where_it_cannot_write",
            false,
            move || process_1_runs_where_it_cannot_write(setup, jdk),
        ),
        test("containers::recipe", false, move || recipe(setup, jdk)),
        test("containers::memory_limit", false, move || {
            memory_limit(setup, jdk)
        }),
    ]
}

/// Two of one name, one after the other: each has a log of its own.
fn process_1_records(setup: &Setup, jdk: &Jdk) -> Checked {
    let image = Image::of(setup, "records")?;
    let out = image.folder.join("%{HOSTNAME}-%t.lucce");
    for _ in 0..2 {
        let output = image.run(jdk, &format!("out={},strict=on", out.display()))?;
        ended_well(&output, "OK ")?;
    }
    let logs = logs_in(&image.folder)?;
    if logs.len() != 2 {
        return Err(format!("{} logs: {logs:?}", logs.len()));
    }
    for log in &logs {
        let name = log.file_name().unwrap_or_default().to_string_lossy();
        let stats = Lucce::new(setup).stats(log)?;
        let pid = stats["pid"].as_u64();
        if !name.starts_with("pod-7-") || pid.is_some_and(|pid| pid != 1) {
            return Err(format!("{name} of process {pid:?}"));
        }
        let report =
            Lucce::new(setup).json(&["report", "--json", "--top", "1", &log.to_string_lossy()])?;
        let count = report["totals"]["count"].as_u64().unwrap_or_default();
        if count < 40_000 {
            return Err(format!("{name}: {count} allocations"));
        }
    }
    image.remove()
}

/// The log has no place: a warning says so, and the program runs.
fn process_1_runs_where_it_cannot_write(setup: &Setup, jdk: &Jdk) -> Checked {
    let image = Image::of(setup, "cannot-write")?;
    for options in ["", "out=/nowhere/run.lucce", "out=run-%p.lucce"] {
        let output = image.run(jdk, options)?;
        ended_well(&output, "SKIPPED no agent")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !said.contains("lucce: ") {
            return Err(format!("{options:?}: no warning: {said}"));
        }
    }
    image.remove()
}

/// Images with glibc that recipes name. `eclipse-temurin:VERSION-jre` is based on Ubuntu, and the same with `-alpine` on Alpine, which
/// has musl.
const WITH_GLIBC: [&str; 2] = ["debian:stable-slim", "eclipse-temurin:21-jre"];

/// The recipe of docs/guide/live-jvms.md, as it stands there: the init container's command, then the program's container with its
/// variable, under a limit of memory.
fn recipe(setup: &Setup, jdk: &Jdk) -> Checked {
    const LIMIT: u64 = 400 << 20;
    let (copy, options) = document()?;
    let image = Image::of(setup, "recipe")?;
    let failed = |e: std::io::Error| format!("{}: {e}", image.folder.display());
    let at = |name: &str| image.folder.join(name);
    for name in ["root", "unpacked/lib", "agent", "logs"] {
        fs::create_dir_all(at(name)).map_err(failed)?;
    }
    fs::copy(&setup.agent, at("unpacked/lib/liblucce.so")).map_err(failed)?;
    // As the volumes of a pod are.
    let open = Command::new("chmod")
        .arg("777")
        .args([at("agent"), at("logs")])
        .status();
    open.map_err(failed)?;

    let volumes = [
        ("ro", at("unpacked"), "/lucce"),
        ("rw", at("agent"), "/agent"),
    ];
    let mut init = image.pod(Command::new("unshare"), &volumes)?;
    let output = init.args(&copy).output().map_err(failed)?;
    ensure(
        output.status.success() && at("agent/liblucce.so").exists(),
        || format!("{copy:?}: {}", String::from_utf8_lossy(&output.stderr)),
    )?;

    let group = Group::with_limit("recipe", LIMIT)?;
    let volumes = [("ro", at("agent"), "/agent"), ("rw", at("logs"), "/logs")];
    let mut app = image.pod(group.joined("unshare"), &volumes)?;
    app.arg(jdk.tool("java")).arg("-Xlog:gc+init").arg("-cp");
    app.arg(&image.class_path).arg(PROGRAM);
    app.env("HOSTNAME", "pod-7")
        .env("JAVA_TOOL_OPTIONS", &options);
    let output = app.output().map_err(failed)?;
    ended_well(&output, "OK ")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure(said.contains("Memory: 400M"), || said.into_owned())?;
    let logs = logs_in(&at("logs"))?;
    let [log] = &logs[..] else {
        return Err(format!("{} logs: {logs:?}", logs.len()));
    };
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let stats = Lucce::new(setup).stats(log)?;
    let pid = stats["pid"].as_u64();
    ensure(name.starts_with("pod-7-") && pid == Some(1), || {
        format!("{name} of process {pid:?}")
    })?;
    image.remove()
}

/// The command of the init container, and the program's variable.
fn document() -> Result<(Vec<String>, String), String> {
    let document = include_str!("../../docs/guide/live-jvms.md");
    let images = document
        .lines()
        .filter_map(|line| line.strip_prefix("FROM "));
    let images: Vec<&str> = images.collect();
    ensure(images == WITH_GLIBC, || format!("images {images:?}"))?;
    let of = |key: &str| {
        let mut lines = document.lines();
        let value = lines.find_map(|line| line.trim_start().strip_prefix(key));
        value.ok_or_else(|| format!("docs/guide/live-jvms.md has no {key}"))
    };
    let copy = serde_json::from_str(of("command: ")?).map_err(|e| e.to_string())?;
    Ok((copy, of("value: ")?.to_owned()))
}

/// What the agent writes is more than the container may have: the kernel writes it to the disk and takes its pages, the JVM has the
/// heap that it would have without an agent, and no event is lost.
fn memory_limit(setup: &Setup, jdk: &Jdk) -> Checked {
    const LIMIT: u64 = 200 << 20;
    const EVENTS: &str = "16000000";
    let group = Group::with_limit("limit", LIMIT)?;
    let java = Java::new(setup, jdk, "memory-limit")
        .agent("stream=on,stream-limit=1g")
        .flags(["-Xlog:gc+init"])
        .main(["Forever", EVENTS]);
    let mut in_group = group.joined(jdk.tool("java"));
    let ended = java.run_as(&mut in_group, &java.arguments())?;
    ensure(ended.code == Some(0), || ended.text())?;
    // What the JVM takes its heap's size from.
    ensure(ended.stdout.contains("Memory: 200M"), || ended.text())?;
    let log = java.log();
    let mut stream = log.clone().into_os_string();
    stream.push(".events");
    let written = fs::metadata(stream).map_or(0, |file| file.len());
    let most = group.most()?;
    // Full at one time: something had to leave.
    ensure(
        written > LIMIT && (LIMIT / 10 * 9..=LIMIT).contains(&most),
        || format!("{written} bytes written, {most} in memory at most, of {LIMIT}"),
    )?;
    let log = log.to_string_lossy();
    for of in [&[][..], &["--stream"]] {
        let args = [&["report", "--json", "--top", "1", &log], of].concat();
        let report = Lucce::new(setup).json(&args)?;
        let count = report["totals"]["count"].as_u64();
        ensure(count >= EVENTS.parse().ok(), || {
            format!("{of:?}: {count:?} events\n{report}")
        })?;
    }
    java.clean();
    Ok(())
}

/// A control group of this machine, as containers have one for their memory.
struct Group {
    folder: PathBuf,
    /// The first version of control groups: files are called otherwise.
    is_first: bool,
}

impl Group {
    /// # Errors
    /// Only root may make groups, and a group must be handed on to those in it.
    fn with_limit(name: &str, bytes: u64) -> Result<Self, String> {
        let root = Path::new("/sys/fs/cgroup");
        let first = root.join("memory");
        let is_first = first.join("memory.limit_in_bytes").exists();
        let above = if is_first { &first } else { root };
        let folder = above.join(format!("lucce-{name}-{}", id()));
        if !is_first {
            // Has been done where systemd is.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        }
        let failed = |e| format!("{}: {e}", folder.display());
        fs::create_dir(&folder).map_err(failed)?;
        let group = Group { folder, is_first };
        let (limit, swap) = group.names(
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
            ("memory.max", "memory.swap.max"),
        );
        let text = bytes.to_string();
        fs::write(group.folder.join(limit), &text).map_err(|e| format!("{limit}: {e}"))?;
        // Where there is no swap, there is no such file, either.
        let _ = fs::write(group.folder.join(swap), if is_first { &text } else { "0" });
        Ok(group)
    }

    fn names<T>(&self, first: T, second: T) -> T {
        if self.is_first { first } else { second }
    }

    /// A program that is in the group, and all that it starts.
    fn joined(&self, program: impl AsRef<OsStr>) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$1\"; shift; exec \"$@\"", "container"]);
        shell.arg(self.folder.join("cgroup.procs")).arg(program);
        shell
    }

    fn number(&self, file: &str) -> Result<u64, String> {
        let text =
            fs::read_to_string(self.folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
        text.trim().parse().map_err(|_| format!("{file}: {text}"))
    }

    /// Bytes that were in memory at one time.
    fn most(&self) -> Result<u64, String> {
        self.number(self.names("memory.max_usage_in_bytes", "memory.peak"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended, unless the test has failed.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The program compares numbers if there is an agent, and says so if there is none.
fn ended_well(output: &Output, result: &str) -> Checked {
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && said.lines().any(|line| line.starts_with(result)) {
        return Ok(());
    }
    let wrong = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {said}{wrong}", output.status))
}

/// What another user may read: the agent, the program, and a folder for logs.
struct Image {
    folder: PathBuf,
    agent: PathBuf,
    class_path: String,
}

impl Image {
    fn of(setup: &Setup, name: &str) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("lucce-{name}-{}", id()));
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let open = Command::new("chmod").arg("777").arg(&folder).status();
        open.map_err(failed)?;
        let image = Image {
            agent: folder.join("liblucce.so"),
            class_path: format!("{0}/programs.jar:{0}/api.jar", folder.display()),
            folder: folder.clone(),
        };
        fs::copy(&setup.agent, &image.agent).map_err(failed)?;
        let programs = setup.harness.join("programs/target/programs.jar");
        fs::copy(programs, folder.join("programs.jar")).map_err(failed)?;
        let api = format!(
            "artifacts/api/target/lucce-api-{}.jar",
            env!("CARGO_PKG_VERSION")
        );
        fs::copy(setup.harness.join(api), folder.join("api.jar")).map_err(failed)?;
        Ok(image)
    }

    /// What is in a container with these volumes, up to the command; `unshare` begins it.
    fn pod(
        &self,
        mut unshare: Command,
        volumes: &[(&str, PathBuf, &str)],
    ) -> Result<Command, String> {
        let is_root = is_root()?;
        if !is_root {
            unshare.arg("--map-root-user");
        }
        unshare.args(["--fork", "--pid", "--mount", "--mount-proc"]);
        unshare
            .args(["sh", "-c", POD, "pod"])
            .arg(self.folder.join("root"));
        for (how, folder, to) in volumes {
            unshare.arg(how).arg(folder).arg(to);
        }
        unshare.arg("--");
        if is_root {
            unshare.args(AS_USER);
        }
        Ok(unshare)
    }

    fn run(&self, jdk: &Jdk, options: &str) -> Result<Output, String> {
        let mut unshare = Command::new("unshare");
        // Without its own user space where this is root already, who may become somebody else.
        let is_root = is_root()?;
        if !is_root {
            unshare.arg("--map-root-user");
        }
        unshare.args(["--fork", "--pid", "--mount", "--mount-proc"]);
        unshare
            .args(["sh", "-c", SCRIPT, "container"])
            .arg(&self.folder);
        if is_root {
            unshare.args(AS_USER);
        }
        unshare
            .arg(jdk.tool("java"))
            .arg("-cp")
            .arg(&self.class_path);
        let agent = format!("-agentpath:{}={options}", self.agent.display());
        unshare
            .arg(PROGRAM)
            .env("HOSTNAME", "pod-7")
            .env("JAVA_TOOL_OPTIONS", agent);
        let output = unshare.output();
        output.map_err(|e| format!("unshare: {e}"))
    }

    fn remove(self) -> Checked {
        fs::remove_dir_all(&self.folder).map_err(|e| e.to_string())
    }
}

fn logs_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| e.to_string())?;
    let is_log = |file: &Path| file.extension().is_some_and(|end| end == "lucce");
    let files = entries.flatten().map(|entry| entry.path());
    Ok(files.filter(|file| is_log(file)).collect())
}

pub fn is_root() -> Result<bool, String> {
    let user = Command::new("id").arg("-u").output();
    let user = user.map_err(|e| format!("id: {e}"))?;
    Ok(user.stdout.starts_with(b"0\n"))
}
