//! Real JVMs verify and run the JDK's own modules with all hooks on.

use std::fs;
use std::path::PathBuf;

use lucce_bytecode::{BytecodeErrorKind, ClassFile, EntryHook, RewrittenClass, rewrite};

use lucce_classkit::jdks::{self, Folder, Jdk, SHORT_RUN, source, text};
use lucce_classkit::plans::{everything, hook, rewrite_everything, rewrite_everything_wide};

const MODULES: [&str; 4] = ["java.xml", "jdk.compiler", "java.desktop", "jdk.javadoc"];

/// The rewritten modules in a folder each, the helper class, and lists of class names.
struct Patched {
    jdk: Jdk,
    folder: Folder,
    classes: Vec<String>,
}

impl Patched {
    fn new(jdk: &Jdk, rewrite: fn(&[u8]) -> RewrittenClass) -> Self {
        let folder = Folder::create();
        let mut classes = Vec::new();
        jdk.for_each_class(|class| {
            if MODULES.contains(&&*class.module) && !class.name.ends_with("module-info") {
                let rewritten = rewrite(&class.bytes);
                // sun.awt.X11.XKeysym has a method of almost 64 KiB.
                let mut skipped = rewritten.skipped.iter();
                assert!(skipped.all(|(_, e)| e.kind == BytecodeErrorKind::MethodTooLarge));
                folder.write(
                    &format!("{}/{}.class", class.module, class.name),
                    &rewritten.bytes,
                );
                classes.push(class.name.replace('/', "."));
            }
        });
        jdk.compile(&folder.0.join("hooks"), &[], &[source("Hooks.java")]);
        jdk.compile(&folder.0.join("driver"), &[], &[source("LinkAll.java")]);
        Self {
            jdk: jdk.clone(),
            folder,
            classes,
        }
    }

    fn options(&self) -> Vec<String> {
        let path = |name: &str| self.folder.0.join(name).display().to_string();
        let mut options = vec![
            "-Xverify:all".to_owned(),
            "-Dlucce.report=true".to_owned(),
            format!("-Xbootclasspath/a:{}", path("hooks")),
        ];
        for module in MODULES {
            options.push(format!("--patch-module={module}={}", path(module)));
            options.push(format!("--add-reads={module}=ALL-UNNAMED"));
            options.push(format!("--add-modules={module}"));
        }
        options
    }

    fn java(&self, arguments: &[&str]) -> String {
        let output = self
            .jdk
            .tool("java")
            .args(self.options())
            .args(arguments)
            .output()
            .expect("java starts");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    fn link_all(&self) {
        let names = self
            .folder
            .write("names", self.classes.join("\n").as_bytes());
        let driver = self.folder.0.join("driver").display().to_string();
        let names = names.display().to_string();
        let link = ["-cp", &driver, "LinkAll", &names];
        let output = self.java(&[&SHORT_RUN[..], &link].concat());
        println!(
            "JDK {}: {}",
            self.jdk.version,
            last_line(&output, "linked=")
        );
        for line in output.lines().filter(|line| line.starts_with("FAILED")) {
            println!("{line}");
        }
        assert!(output.contains("failed=0"));
    }

    /// The hooked compiler writes the classes that the compiler writes.
    fn compile_something(&self) {
        let hooked = self.folder.0.join("hooked");
        let plain = self.folder.0.join("plain");
        let sources = ["Hooks.java", "LinkAll.java", "DumpClasses.java"].map(source);
        let names: Vec<String> = sources.iter().map(|s| s.display().to_string()).collect();
        let target = hooked.display().to_string();
        let mut arguments = vec!["-m", "jdk.compiler/com.sun.tools.javac.Main", "-d", &target];
        arguments.extend(names.iter().map(String::as_str));
        let output = self.java(&arguments);
        let report = last_line(&output, "hooks:");
        println!("JDK {}: javac {report}", self.jdk.version);
        assert!(report.contains("errors=0"), "{report}");
        self.jdk.compile(&plain, &[], &sources);
        for class in ["lucce/Hooks.class", "LinkAll.class", "DumpClasses.class"] {
            let read = |folder: &PathBuf| fs::read(folder.join(class)).expect(class);
            assert!(read(&hooked) == read(&plain), "{class}");
        }
    }
}

fn last_line(output: &str, with: &str) -> String {
    let line = output.lines().rfind(|line| line.contains(with));
    line.unwrap_or_else(|| panic!("no {with} in {output}"))
        .to_owned()
}

fn check(rewrite: fn(&[u8]) -> RewrittenClass) {
    for jdk in jdks::all() {
        let patched = Patched::new(&jdk, rewrite);
        patched.link_all();
        patched.compile_something();
    }
}

#[test]
fn jvms_accept_and_run_everything_on() {
    check(rewrite_everything);
}

/// Every conditional branch wants a frame behind it then.
#[test]
fn jvms_accept_and_run_everything_on_with_wide_branches() {
    check(rewrite_everything_wide);
}

/// A class that the verifier must refuse in the test below: a control that it looks at all.
const WRONG: &str = "java/util/zip/CRC32C";

/// The new local is stored with nothing on the stack.
fn rewrite_wrongly(bytes: &[u8]) -> RewrittenClass {
    let class = ClassFile::parse(bytes).expect("a sound class");
    let mut plan = everything(&class);
    for method in plan.methods.values_mut() {
        let helper = hook("exit", "()V");
        method.entry = Some(EntryHook {
            helper,
            argument: None,
        });
    }
    rewrite(&class, &plan).expect("it can be written all the same")
}

/// The JVM starts with every class of java.base hooked, and verifies the ones it has not used.
#[test]
fn jvms_start_with_a_hooked_base() {
    for jdk in jdks::all() {
        for rewrite in [rewrite_everything, rewrite_everything_wide] {
            let output = link_hooked_base(&jdk, rewrite);
            println!(
                "JDK {}: java.base {}",
                jdk.version,
                last_line(&output, "linked=")
            );
            let mut failed = output.lines().filter(|line| line.starts_with("FAILED"));
            let control = failed.next().expect("the control is refused");
            assert!(
                control.contains("CRC32C") && control.contains("VerifyError"),
                "{control}"
            );
            assert_eq!(failed.next(), None);
        }
    }
}

fn link_hooked_base(jdk: &Jdk, rewrite: fn(&[u8]) -> RewrittenClass) -> String {
    let folder = Folder::create();
    let mut classes = Vec::new();
    jdk.for_each_class(|class| {
        if class.module == "java.base" && class.name != "module-info" {
            let is_wrong = class.name == WRONG;
            let rewritten = if is_wrong { rewrite_wrongly } else { rewrite }(&class.bytes);
            assert!(rewritten.skipped.is_empty(), "{:?}", rewritten.skipped);
            folder.write(&format!("base/{}.class", class.name), &rewritten.bytes);
            classes.push(class.name.replace('/', "."));
        }
    });
    let base = folder.0.join("base");
    jdk.compile(&base, &[], &[source("base/Hooks.java")]);
    jdk.compile(&folder.0.join("driver"), &[], &[source("LinkAll.java")]);
    let names = folder.write("names", classes.join("\n").as_bytes());
    let patch = format!("--patch-module=java.base={}", base.display());
    let mut java = jdk.tool("java");
    java.args(SHORT_RUN)
        .args(["-Xverify:all", &patch, "-cp"])
        .arg(folder.0.join("driver"));
    let output = java
        .arg("LinkAll")
        .arg(names)
        .output()
        .expect("java starts");
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}
