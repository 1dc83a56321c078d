//! A report names the program's own code, however the program was started.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::json;

use crate::{Test, test};

const SOURCE: &str = "public class Hello {
    public static void main(String[] args) {
        System.out.println(String.join(\" \", args));
    }
}
";

/// A program of two modules and a library, as `Class.java` and its text. Each class makes objects.
const MODULES: [(&str, &str, &str); 3] = [
    (
        "lib",
        "org/other/lib/Util.java",
        "package org.other.lib;
        public class Util { public static Object make(int size) { return new Object[size]; } }",
    ),
    (
        "core",
        "com/acme/core/Money.java",
        "package com.acme.core;
        public class Money {
            public static Object parse(int cents) { return new Object[] {org.other.lib.Util.make(cents)}; }
        }",
    ),
    (
        "app",
        "com/acme/app/Main.java",
        "package com.acme.app;
        public class Main {
            public static void main(String[] args) { System.out.println(new Object[] {com.acme.core.Money.parse(3)}); }
        }",
    ),
];

/// The modules' names, and what they require and export.
const MODULE_INFOS: [(&str, &str, &str); 3] = [
    ("lib", "org.other.lib", "exports org.other.lib;"),
    (
        "core",
        "com.acme.core",
        "requires org.other.lib; exports com.acme.core;",
    ),
    (
        "app",
        "com.acme.app",
        "requires com.acme.core; requires org.other.lib;",
    ),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        let name = |way| format!("own_code::{}::{way}", jdk.version);
        // A run-time image without a compiler cannot run a source file.
        if jdk.has_module("jdk.compiler") {
            let quick = jdk == setup.jdk();
            tests.push(test(name("source"), quick, move || source_file(setup, jdk)));
        }
        tests.push(test(name("jar"), false, move || {
            jar_of_main_class(setup, jdk)
        }));
        tests.push(test(name("walked"), false, move || {
            without_hooks(setup, jdk)
        }));
        tests.push(test(name("modules"), false, move || {
            jars_of_manifest(setup, jdk)
        }));
        tests.push(test(name("merged"), false, move || merged_jar(setup, jdk)));
        tests.push(test(name("extracted"), false, move || {
            extracted_jar(setup, jdk)
        }));
        if jdk.home.join("jmods").exists() && jdk.tool("jlink").exists() {
            tests.push(test(name("image"), false, move || {
                runtime_image(setup, jdk)
            }));
        }
    }
    tests
}

/// `java Hello.java`: the JDK compiles the file in memory.
fn source_file(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("own-code-source-{}", jdk.version));
    fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
    let file = java.folder().join("Hello.java");
    fs::write(&file, SOURCE).map_err(|e| e.to_string())?;
    let java = java
        .agent("events=alloc")
        .main([&*file.to_string_lossy(), "a"]);
    names_own_code(&java, &["Hello.java"])
}

/// `-cp programs.jar MAIN`. The API's jar has classes below the main class's package.
fn jar_of_main_class(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("own-code-jar-{}", jdk.version));
    let java = java
        .agent("events=alloc")
        .main(["io.lucce.programs.Lambdas"]);
    names_own_code(&java, &["io.lucce.*", "programs.jar"])
}

/// The agent sees classes on stacks only, and asks the VM for their protection domains.
fn without_hooks(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("own-code-walked-{}", jdk.version));
    let java = java
        .agent("events=exception")
        .main(["io.lucce.programs.Exceptions"]);
    names_own_code(&java, &["programs.jar"])
}

/// `-jar app.jar`, whose manifest names a module of the project and a library.
fn jars_of_manifest(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("own-code-modules-{}", jdk.version));
    let to = java.folder();
    let classes = compile_modules(setup, to)?;
    for module in ["lib", "core"] {
        let jar = to.join(format!("{module}.jar"));
        let inner = classes.join(module);
        run_tool(
            setup,
            "jar",
            [
                OsStr::new("cf"),
                jar.as_ref(),
                "-C".as_ref(),
                inner.as_ref(),
                ".".as_ref(),
            ],
        )?;
    }
    let manifest = to.join("manifest");
    write_file(&manifest, "Class-Path: lib.jar core.jar\n")?;
    let (jar, inner) = (to.join("app.jar"), classes.join("app"));
    let main = OsStr::new("com.acme.app.Main");
    let options = [OsStr::new("cfem"), jar.as_ref(), main, manifest.as_ref()];
    let files = [OsStr::new("-C"), inner.as_ref(), OsStr::new(".")];
    run_tool(setup, "jar", options.into_iter().chain(files))?;
    let java = java
        .agent("events=alloc")
        .main([OsStr::new("-jar"), jar.as_ref()]);
    names_own_code(&java, &["app.jar", "com.acme.*"])
}

/// `-jar` and `-cp` of one jar with the classes of several of Maven's artifacts: the library's classes are no own code.
fn merged_jar(setup: &Setup, jdk: &Jdk) -> Checked {
    for command in ["-jar", "-cp"] {
        let name = format!("own-code-merged-{}{command}", jdk.version);
        let java = Java::new_light(setup, jdk, &name);
        let to = java.folder();
        let classes = compile_modules(setup, to)?;
        for artifact in ["com.acme/app", "org.other/lib"] {
            let file = classes.join(format!("app/META-INF/maven/{artifact}/pom.properties"));
            write_file(&file, "version=1\n")?;
        }
        let jar = to.join("all.jar");
        let mut options = ["cfe", &*jar.to_string_lossy(), "com.acme.app.Main"]
            .map(str::to_owned)
            .to_vec();
        for (module, ..) in MODULES {
            let folder = classes.join(module).to_string_lossy().into_owned();
            options.extend(["-C".to_owned(), folder, ".".to_owned()]);
        }
        run_tool(setup, "jar", &options)?;
        let jar = jar.to_string_lossy().into_owned();
        let java = java.agent("events=alloc");
        let java = match command {
            "-jar" => java.main(["-jar", &jar]),
            _ => java.class_path(jar).main(["com.acme.app.Main"]),
        };
        names_own_code(&java, &["com.acme.*"])?;
    }
    Ok(())
}

/// A Spring Boot program, extracted with its launcher.
fn extracted_jar(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("own-code-extracted-{}", jdk.version));
    let shop = java.folder().join("shop");
    fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
    let jar = setup.harness.join("shop/target/shop.jar");
    let extract = [OsStr::new("-Djarmode=tools"), "-jar".as_ref(), jar.as_ref()];
    let to = ["extract", "--launcher", "--destination"].map(OsStr::new);
    run_tool(
        setup,
        "java",
        extract.into_iter().chain(to).chain([shop.as_ref()]),
    )?;
    let launcher = "org.springframework.boot.loader.launch.JarLauncher";
    let java = java
        .agent("events=alloc")
        .class_path(shop.to_string_lossy().into_owned())
        .main([launcher, "--shop.requests=1"]);
    names_own_code(&java, &["shop/BOOT-INF/classes"])
}

/// An image of `jlink` with the program's modules and a library's.
fn runtime_image(setup: &Setup, jdk: &Jdk) -> Checked {
    let name = format!("own-code-image-{}", jdk.version);
    let to = setup.scratch.join(&name);
    compile_modules(setup, &to)?;
    let (sources, modules) = (to.join("sources"), to.join("modules"));
    for ((folder, module, body), (_, file, _)) in MODULE_INFOS.iter().zip(MODULES) {
        let info = sources.join(folder).join("module-info.java");
        write_file(&info, &format!("module {module} {{ {body} }}"))?;
        let (out, file) = (modules.join(module), sources.join(folder).join(file));
        let options = [
            OsStr::new("--release"),
            "17".as_ref(),
            "-p".as_ref(),
            modules.as_ref(),
        ];
        let files = [OsStr::new("-d"), out.as_ref(), info.as_ref(), file.as_ref()];
        run_tool(setup, "javac", options.into_iter().chain(files))?;
    }
    let home = to.join("image");
    let modules = modules.to_string_lossy().into_owned();
    let home_text = home.to_string_lossy().into_owned();
    let options = [
        "-p",
        &modules,
        "--add-modules",
        "com.acme.app",
        "--output",
        &home_text,
    ];
    run_command(Command::new(jdk.tool("jlink")).args(options))?;
    let image = Jdk {
        home,
        version: jdk.version,
    };
    let java = Java::new_light(setup, &image, &name);
    let java = java
        .agent("events=alloc")
        .main(["-m", "com.acme.app/com.acme.app.Main"]);
    names_own_code(&java, &["com.acme.*", "com.acme.app"])
}

/// Compiles each module to a folder of its own below `to`; returns the folder of all.
fn compile_modules(setup: &Setup, to: &Path) -> Result<std::path::PathBuf, String> {
    let classes = to.join("classes");
    let mut class_path = String::new();
    for (module, file, text) in MODULES {
        let source = to.join("sources").join(module).join(file);
        write_file(&source, text)?;
        let out = classes.join(module);
        let options = [
            OsStr::new("--release"),
            "17".as_ref(),
            "-cp".as_ref(),
            class_path.as_ref(),
        ];
        let files = [OsStr::new("-d"), out.as_ref(), source.as_ref()];
        run_tool(setup, "javac", options.into_iter().chain(files))?;
        class_path = format!("{class_path}:{}", out.display());
    }
    Ok(classes)
}

fn write_file(file: &Path, text: &str) -> Checked {
    let folder = file.parent().ok_or("no folder")?;
    fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    fs::write(file, text).map_err(|e| e.to_string())
}

/// Runs a tool of the JDK that compiles.
fn run_tool(
    setup: &Setup,
    tool: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Checked {
    run_command(Command::new(setup.jdk().tool(tool)).args(arguments))
}

fn run_command(command: &mut Command) -> Checked {
    let ended = command.output().map_err(|e| e.to_string())?;
    ensure(ended.status.success(), || {
        format!("{command:?}: {}", String::from_utf8_lossy(&ended.stderr))
    })
}

fn names_own_code(java: &Java<'_>, expected: &[&str]) -> Checked {
    java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let report = java
        .lucce()
        .json(&["report", "--json", "--top", "1", &log])?;
    ensure(report["own_code"] == json!(expected), || {
        format!("own code: {}, not {expected:?}", report["own_code"])
    })?;
    java.clean();
    Ok(())
}
