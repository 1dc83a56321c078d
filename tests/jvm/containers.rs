//! As containers run JVMs: process 1, a root that is only read, a user who is not root, and the agent's options from the
//! environment. Namespaces of this machine do for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, id};

use lucce_tests::{Checked, Jdk, Lucce, Setup};

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Constructors";
/// Not root, and none of this machine's users.
const USER: &str = "64321";

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
    let logs = image.logs()?;
    if logs.len() != 2 {
        return Err(format!("{} logs: {logs:?}", logs.len()));
    }
    for log in &logs {
        let name = log.file_name().unwrap_or_default().to_string_lossy();
        let stats = Lucce::new(setup).json(&["stats", "--json", &log.to_string_lossy()])?;
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
        let api = format!("api/target/lucce-api-{}.jar", env!("CARGO_PKG_VERSION"));
        fs::copy(setup.harness.join(api), folder.join("api.jar")).map_err(failed)?;
        Ok(image)
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
            unshare.args([
                "setpriv",
                "--reuid",
                USER,
                "--regid",
                USER,
                "--clear-groups",
            ]);
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

    fn logs(&self) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(&self.folder).map_err(|e| e.to_string())?;
        let is_log = |file: &Path| file.extension().is_some_and(|end| end == "lucce");
        let files = entries.flatten().map(|entry| entry.path());
        Ok(files.filter(|file| is_log(file)).collect())
    }

    fn remove(self) -> Checked {
        fs::remove_dir_all(&self.folder).map_err(|e| e.to_string())
    }
}

fn is_root() -> Result<bool, String> {
    let user = Command::new("id").arg("-u").output();
    let user = user.map_err(|e| format!("id: {e}"))?;
    Ok(user.stdout.starts_with(b"0\n"))
}
