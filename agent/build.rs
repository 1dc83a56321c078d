//! Compiles the helper classes in their editions, with the JDK's own compiler, and what must be C.
//!
//! ```text
//! shared_layout.rs, and those of other crates ─► LucceRtLayout.java ─┐
//! helper_variant.rs ─► LucceRtEdition.java, one for each edition ───────────┤
//! java/java/lang/*.java ─────────────────────────────────────────────┴► javac ─► classes, names of natives
//!                                                                                  └► helper_classes.rs
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::{env, fs};

#[path = "../crates/stream/src/java.rs"]
mod entry;
#[path = "../crates/options/src/event_mask.rs"]
mod event_mask;
#[path = "src/session/helper_variant.rs"]
mod helper_variant;
#[allow(dead_code, reason = "only how wide ids are")]
#[path = "../crates/callgraph/src/ids.rs"]
mod ids;
#[path = "src/memory/shared_layout.rs"]
mod layout;
#[path = "../crates/callgraph/src/raw.rs"]
mod raw;

use helper_variant::HelperVariant;
use ids::{MethodId, SiteId};

/// The helper classes that the agent knows by their place here. Those of single kinds of events follow, by name.
const FIRST: [&str; 4] = [
    "LucceRt",
    "LucceRtEvents",
    "LucceRtTasks",
    "LucceRtComparison",
];
/// Those that no edition changes, beside the classes within classes.
const OTHERS: [&str; 1] = ["LucceRtWas"];
/// Types of an array's elements; the bytes before those, and the power of two of one's bytes.
const ELEMENTS: [[&str; 3]; 9] = [
    ["Object", "header", "referenceShift"],
    ["byte", "header", "0"],
    ["boolean", "header", "0"],
    ["short", "header", "1"],
    ["char", "header", "1"],
    ["int", "header", "2"],
    ["float", "header", "2"],
    ["long", "headerOfLongs", "3"],
    ["double", "headerOfLongs", "3"],
];
/// What the compiler must know of classes of the JDK: fields that the agent adds, and what is not public.
const STUBS: [&str; 3] = [
    "java/stub/java/lang/Class.java",
    "java/stub/java/lang/Thread.java",
    "java/stub/jdk/internal/access/JavaLangAccess.java",
];
const FILES: [&str; 8] = [
    "java",
    "src/session/helper_variant.rs",
    "src/memory/shared_layout.rs",
    "../crates/stream/src/java.rs",
    "../crates/callgraph/src/ids.rs",
    "../crates/callgraph/src/raw.rs",
    "../crates/options/src/event_mask.rs",
    "include",
];

/// What other crates define, as Java code names it. Bytes in place of words.
fn constants_of_other_crates() -> Vec<(&'static str, &'static str, i64)> {
    let word = |words: usize| (words * entry::WORD) as i64;
    let bits = |words: usize| i64::from((words * entry::WORD).ilog2());
    vec![
        ("SITE_BITS", "u32", SiteId::BITS.into()),
        ("METHOD_BITS", "u32", MethodId::BITS.into()),
        ("ENTRY", "u32", SiteId::ENTRY.0.into()),
        ("LOST", "u32", SiteId::MAX.into()),
        ("MULTIPLIER", "u64", raw::MULTIPLIER.cast_signed()),
        ("ROTATION", "u32", raw::ROTATION.into()),
        ("GRAPH_CALLS", "usize", word(raw::CALLS)),
        ("GRAPH_VERSION_SHIFT", "usize", word(raw::VERSION_SHIFT)),
        ("GRAPH_ANCHORS", "usize", word(raw::ANCHORS)),
        ("TABLE_SHIFT", "usize", word(raw::SHIFT)),
        ("TABLE_MASK", "usize", word(raw::MASK)),
        ("TABLE_ENTRIES", "usize", word(raw::HEADER)),
        ("TRANSITION_BITS", "u32", bits(raw::TRANSITION_WORDS)),
        ("TRANSITION_KEY", "usize", word(raw::KEY)),
        ("TRANSITION_DELTA", "usize", word(raw::DELTA)),
        ("ANCHORING", "u64", raw::ANCHORING.cast_signed()),
        ("ANCHOR_BITS", "u32", bits(raw::ANCHOR_WORDS)),
        ("ANCHOR_CONTEXT", "usize", word(raw::CONTEXT)),
        ("ANCHOR_PLACE", "usize", word(raw::PLACE)),
        ("ANCHOR_TO", "usize", word(raw::TO)),
        ("PLACE_NEXT", "usize", entry::PLACE_NEXT as i64),
        ("PLACE_END", "usize", entry::PLACE_END as i64),
        ("PLACE_CLOCK", "usize", entry::PLACE_CLOCK as i64),
        ("TIME_BITS", "u32", entry::TIME_BITS.into()),
        ("WORD", "usize", entry::WORD as i64),
        ("LONGEST", "usize", entry::LONGEST as i64),
        ("HAS_VALUE", "u64", entry::HAS_VALUE.cast_signed()),
    ]
}

fn main() {
    for file in FILES {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-env-changed=JAVA_HOME");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    cc::Build::new()
        .files(["c/bracket.c", "c/allocate.c", "c/place.c"])
        .warnings(true)
        .compile("jni");
    write_file(
        &out.join("source/java/lang/LucceRtLayout.java"),
        &layout_class_source(),
    );
    for class in source_class_names() {
        let file = format!("java/java/lang/{class}.java");
        let text = fs::read_to_string(&file).expect("the source of a helper class");
        write_file(
            &out.join("source/java/lang").join(format!("{class}.java")),
            &expand_templates(&text),
        );
    }
    let editions: Vec<_> = HelperVariant::all_variants()
        .into_iter()
        .enumerate()
        .map(|(index, edition)| (edition, out.join(format!("edition-{index}"))))
        .collect();
    compile_variants(&out, &editions);
    write_file(
        &out.join("helper_classes.rs"),
        &render_class_table(&editions),
    );
}

/// The helper classes that have editions.
fn helper_class_names() -> Vec<String> {
    let files = fs::read_dir("java/java/lang").expect("the sources of helper classes");
    let names = files.map(|file| file.expect("a file").file_name());
    let names = names.filter_map(|name| Some(name.to_str()?.strip_suffix(".java")?.to_owned()));
    let is_more = |name: &String| !FIRST.contains(&&**name) && !OTHERS.contains(&&**name);
    let mut more: Vec<String> = names.filter(is_more).collect();
    more.sort();
    FIRST.map(str::to_owned).into_iter().chain(more).collect()
}

fn source_class_names() -> impl Iterator<Item = String> {
    helper_class_names()
        .into_iter()
        .chain(OTHERS.map(str::to_owned))
}

/// The text with what stands between `each ELEMENT` and `end` once for each type of array.
fn expand_templates(text: &str) -> String {
    let mut out = String::new();
    let mut template: Option<String> = None;
    for line in text.lines() {
        match (line.trim(), &mut template) {
            ("// each ELEMENT", None) => template = Some(String::new()),
            ("// end", Some(lines)) => {
                for [element, header, shift] in ELEMENTS {
                    let lines = lines.replace("ELEMENT", element);
                    out += &lines.replace("HEADER", header).replace("SHIFT", shift);
                }
                template = None;
            }
            (_, Some(lines)) => *lines += &format!("{line}\n"),
            (_, None) => out += &format!("{line}\n"),
        }
    }
    assert!(template.is_none(), "a template without its end");
    out
}

fn write_file(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("OUT_DIR is writable");
    fs::write(file, text).expect("OUT_DIR is writable");
}

/// All constants, which the compiler copies: the class itself is not part of the agent.
fn layout_class_source() -> String {
    // Of the gate's word Java code reads half.
    let bits = event_mask::ALL.iter();
    let bits = bits.map(|(name, bit)| (*name, "bit", bit.cast_signed()));
    let constants = layout::ALL
        .iter()
        .copied()
        .chain(constants_of_other_crates());
    let constants = constants.chain(bits);
    let mut text = String::from("package java.lang;\nfinal class LucceRtLayout {\n");
    for (name, kind, value) in constants {
        let constant = match kind {
            "u64" | "i64" => format!("long {name} = {value:#x}L"),
            "usize" | "u32" | "i32" | "bit" => format!("int {name} = {:#x}", value as i32),
            _ => panic!("{name}: Java has no {kind}"),
        };
        let _ = writeln!(text, "    static final {constant};");
    }
    text + "}\n"
}

/// The constants of an edition.
fn variant_class_source(edition: HelperVariant) -> String {
    let mut text = String::from("package java.lang;\nfinal class LucceRtEdition {\n");
    for (name, value) in edition.java_constants() {
        let _ = writeln!(text, "    static final boolean {name} = {value};");
    }
    text + "}\n"
}

/// As many at a time as there are processors.
fn compile_variants(out: &Path, editions: &[(HelperVariant, PathBuf)]) {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    for some in editions.chunks(at_once) {
        let compilers: Vec<_> = some.iter().map(|one| start_compiler(out, one)).collect();
        for mut compiler in compilers {
            let status = compiler.wait().expect("the compiler's end");
            assert!(
                status.success(),
                "javac failed on the helper classes: {status}"
            );
        }
    }
}

fn start_compiler(out: &Path, (edition, to): &(HelperVariant, PathBuf)) -> Child {
    // What an earlier build has left must not be taken for this one's.
    let _ = fs::remove_dir_all(to);
    let own = to.join("java/lang/LucceRtEdition.java");
    write_file(&own, &variant_class_source(*edition));
    let javac = env::var_os("JAVA_HOME")
        .map_or("javac".into(), |home| PathBuf::from(home).join("bin/javac"));
    let source = out.join("source");
    let patch = format!("java.base=java/stub:{}:{}", source.display(), to.display());
    let mut command = Command::new(&javac);
    command
        .args(["-nowarn", "-XDignore.symbol.file", "-g:none", "-proc:none"])
        .args(["-source", "17", "-target", "17", "-Xlint:-options"])
        .args(["--patch-module", &patch, "-d"])
        .arg(to)
        // Files that say names and descriptors of natives.
        .arg("-h")
        .arg(to.join("natives"))
        .arg(source.join("java/lang/LucceRtLayout.java"))
        .arg(own)
        .args(source_class_names().map(|class| source.join(format!("java/lang/{class}.java"))))
        .args(STUBS);
    command.spawn().unwrap_or_else(|e| {
        panic!(
            "cannot run {}: {e}; install a JDK (17 or later), e.g. `apt-get install openjdk-17-jdk-headless`, or set JAVA_HOME",
            javac.display()
        )
    })
}

/// The classes, for the agent.
fn render_class_table(editions: &[(HelperVariant, PathBuf)]) -> String {
    let (_, live) = &editions[1];
    let classes = helper_class_names();
    let names: Vec<_> = classes
        .iter()
        .map(|class| format!("c\"java/lang/{class}\""))
        .collect();
    let mut text = format!(
        "pub const NAMES: [&CStr; {}] = [{}];\n",
        names.len(),
        names.join(", ")
    );
    let _ = writeln!(
        text,
        "pub static EDITIONS: [(HelperVariant, [&[u8]; {}]); {}] = [",
        classes.len(),
        editions.len()
    );
    for (edition, folder) in editions {
        let bytes = classes
            .iter()
            .map(|class| class_bytes_expression(folder, class));
        let bytes = bytes.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "    ({edition:?}, [{bytes}]),");
    }
    let others = other_class_names(live);
    let _ = writeln!(
        text,
        "];\npub static OTHERS: [(&CStr, &[u8]); {}] = [",
        others.len()
    );
    for class in &others {
        assert_same_in_all(editions, class);
        let _ = writeln!(
            text,
            "    (c\"java/lang/{class}\", {}),",
            class_bytes_expression(live, class)
        );
    }
    let natives: Vec<_> = classes
        .iter()
        .map(|class| read_native_methods(live, class))
        .collect();
    let _ = writeln!(
        text,
        "];\npub static NATIVES: [&[(&CStr, &CStr)]; {}] = [",
        classes.len()
    );
    for of_class in &natives {
        let pairs = of_class
            .iter()
            .map(|(name, descriptor, _)| format!("(c\"{name}\", c\"{descriptor}\")"));
        let _ = writeln!(text, "    &[{}],", pairs.collect::<Vec<_>>().join(", "));
    }
    text + "];\n" + &render_function_addresses(&natives.concat())
}

fn class_bytes_expression(folder: &Path, class: &str) -> String {
    let file = folder.join(format!("java/lang/{class}.class"));
    format!("include_bytes!({:?})", file.display().to_string())
}

/// [`OTHERS`] and the classes within classes.
fn other_class_names(live: &Path) -> Vec<String> {
    let files = fs::read_dir(live.join("java/lang")).expect("what was compiled");
    let names = files.map(|file| {
        file.expect("a file")
            .file_name()
            .into_string()
            .expect("a name")
    });
    let classes = names.filter_map(|name| Some(name.strip_suffix(".class")?.to_owned()));
    let mut others: Vec<String> = classes
        .filter(|name| name.starts_with("LucceRt"))
        .filter(|name| name.contains('$') || OTHERS.contains(&name.as_str()))
        .collect();
    others.sort();
    others
}

/// They are defined once.
fn assert_same_in_all(editions: &[(HelperVariant, PathBuf)], class: &str) {
    let read =
        |folder: &Path| fs::read(folder.join(format!("java/lang/{class}.class"))).expect("a class");
    let first = read(&editions[0].1);
    assert!(
        editions.iter().all(|(_, folder)| read(folder) == first),
        "{class} must not depend on the edition"
    );
}

/// Name and descriptor of each native method, and its function: as the compiler says them for C.
fn read_native_methods(live: &Path, class: &str) -> Vec<(String, String, String)> {
    let file = live.join(format!("natives/java_lang_{class}.h"));
    let text = fs::read_to_string(file).unwrap_or_default();
    let after = |start: &str| -> Vec<String> {
        let found = text.lines().filter_map(|line| line.split_once(start));
        found.map(|(_, rest)| rest.trim().to_owned()).collect()
    };
    let (names, descriptors, functions) = (
        after("* Method: "),
        after("* Signature: "),
        after(" JNICALL "),
    );
    assert!(
        names.len() == descriptors.len() && names.len() == functions.len(),
        "{text}"
    );
    let each = names.into_iter().zip(descriptors).zip(functions);
    each.map(|((name, descriptor), function)| (name, descriptor, function))
        .collect()
}

/// The functions' addresses: a test does not link without one of them.
fn render_function_addresses(natives: &[(String, String, String)]) -> String {
    let names = natives.iter().map(|(_, _, function)| function);
    let declared: Vec<_> = names
        .clone()
        .map(|name| format!("        fn {name}();\n"))
        .collect();
    let addresses: Vec<_> = names
        .map(|name| format!("{name} as *const () as usize"))
        .collect();
    format!(
        "#[cfg(test)]\n#[allow(unsafe_code, non_snake_case, reason = \"only their addresses\")]\n\
         pub fn functions() -> Vec<usize> {{\n    unsafe extern \"C\" {{\n{}    }}\n    vec![{}]\n}}\n",
        declared.concat(),
        addresses.join(", ")
    )
}
