//! Compiles the helper classes in their variants, with the JDK's own compiler, and the C code.
//!
//! ```text
//! crates layout and callgraph ─► LucceRtLayout.java ─────────────────────┐
//! HelperVariant ─► LucceRtVariant.java, one for each variant ────────────┤
//! java/java/lang/*.java, with `lab` java/lab/java/lang/*.java ───────────┴► javac ─► classes, names of natives
//!                                                                                       └► helper_classes.rs
//! ```
//!
//! The package `lucce-lab-agent` runs this build with the feature `lab`. A class of the lab's folder replaces the class of
//! its name. The replaced class is compiled as `LucceRtProduct…`, and the lab's class extends it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::{env, fs};

use lucce_callgraph::{MethodId, SiteId, raw};
use lucce_layout::{HelperVariant, event_bits, lab_layout, shared_layout, stream_entry};
use lucce_options::kinds;

/// The folder of the agent, from the package that is built: `agent` itself, or `lab/agent`.
const AGENT: &str = if cfg!(feature = "lab") {
    "../../agent"
} else {
    "."
};
/// Sources that replace or add to the product's.
const LAB_SOURCES: Option<&str> = if cfg!(feature = "lab") {
    Some("java/lab/java/lang")
} else {
    None
};
const PRODUCT_SOURCES: &str = "java/java/lang";
const LAB_CONSTANTS: &[(&str, &str, i64)] = if cfg!(feature = "lab") {
    lab_layout::ALL
} else {
    &[]
};
/// Prefix of the names of all helper classes.
const PREFIX: &str = "LucceRt";
/// The class that is the same in all variants, apart from nested classes.
const SHARED: &str = "LucceRtNoop";
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
const STUBS: [&str; 4] = [
    "java/stub/java/lang/Class.java",
    "java/stub/java/lang/Thread.java",
    "java/stub/jdk/internal/access/JavaLangAccess.java",
    "java/stub/jdk/internal/misc/Unsafe.java",
];
/// The oldest JDK that loads the helper classes.
const OLDEST_JDK: &str = "11";
const FILES: [&str; 3] = ["java", "include", "c"];

/// What other crates define, as Java code names it. Bytes in place of words.
fn constants_of_other_crates() -> Vec<(&'static str, &'static str, i64)> {
    let word = |words: usize| (words * stream_entry::WORD) as i64;
    let bits = |words: usize| i64::from((words * stream_entry::WORD).ilog2());
    vec![
        ("SITE_BITS", "u32", SiteId::BITS.into()),
        ("METHOD_BITS", "u32", MethodId::BITS.into()),
        ("EVENT_METHOD", "u32", MethodId::EVENT.0.into()),
        ("ENTRY", "u32", SiteId::ENTRY.0.into()),
        ("LOST", "u32", SiteId::MAX.into()),
        ("VM_ENTRY", "u32", (SiteId::MAX - 1).into()),
        ("MULTIPLIER", "u64", raw::MULTIPLIER.cast_signed()),
        ("ROTATION", "u32", raw::ROTATION.into()),
        ("GRAPH_CALLS", "usize", word(raw::CALLS)),
        ("GRAPH_VERSION_SHIFT", "usize", word(raw::VERSION_SHIFT)),
        ("GRAPH_ANCHORS", "usize", word(raw::ANCHORS)),
        ("GRAPH_EVENTS", "usize", word(raw::EVENTS)),
        ("TABLE_SHIFT", "usize", word(raw::SHIFT)),
        ("TABLE_MASK", "usize", word(raw::MASK)),
        ("TABLE_ENTRIES", "usize", word(raw::HEADER)),
        ("TRANSITION_BITS", "u32", bits(raw::TRANSITION_WORDS)),
        ("TRANSITION_KEY", "usize", word(raw::KEY)),
        ("TRANSITION_DELTA", "usize", word(raw::DELTA)),
        ("ANCHORING", "u64", raw::ANCHORING.cast_signed()),
        ("ANCHOR_SIZE", "usize", word(raw::ANCHOR_WORDS)),
        ("ANCHOR_CONTEXT", "usize", word(raw::CONTEXT)),
        ("ANCHOR_PLACE", "usize", word(raw::PLACE)),
        ("ANCHOR_TO", "usize", word(raw::TO)),
        ("PLACE_NEXT", "usize", stream_entry::PLACE_NEXT as i64),
        ("PLACE_END", "usize", stream_entry::PLACE_END as i64),
        ("PLACE_CLOCK", "usize", stream_entry::PLACE_CLOCK as i64),
        ("TIME_BITS", "u32", stream_entry::TIME_BITS.into()),
        ("WORD", "usize", stream_entry::WORD as i64),
        ("LONGEST", "usize", stream_entry::LONGEST as i64),
        ("HAS_VALUE", "u64", stream_entry::HAS_VALUE.cast_signed()),
    ]
}

fn main() {
    for file in FILES {
        println!("cargo::rerun-if-changed={AGENT}/{file}");
    }
    println!("cargo::rerun-if-env-changed=JAVA_HOME");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    cc::Build::new()
        .files(["c/bracket.c", "c/allocate.c", "c/place.c"].map(in_agent))
        .warnings(true)
        .compile("jni");
    write_file(
        &out.join("source/java/lang/LucceRtLayout.java"),
        &layout_class_source(),
    );
    let classes = write_sources(&out.join("source/java/lang"));
    let variants: Vec<_> = variants()
        .into_iter()
        .enumerate()
        .map(|(index, variant)| (variant, out.join(format!("variant-{index}"))))
        .collect();
    compile_variants(&out, &classes, &variants);
    write_file(
        &out.join("helper_classes.rs"),
        &render_class_table(&classes, &variants),
    );
}

fn in_agent(file: &str) -> PathBuf {
    Path::new(AGENT).join(file)
}

/// Writes the sources of all helper classes. Returns their names; a class follows the class that it extends.
fn write_sources(to: &Path) -> Vec<String> {
    // Sources of an earlier build may be gone.
    let _ = fs::remove_dir_all(to);
    write_file(&to.join("LucceRtLayout.java"), &layout_class_source());
    let lab = LAB_SOURCES.map_or_else(BTreeSet::new, class_names_in);
    let product = class_names_in(PRODUCT_SOURCES);
    let mut classes = Vec::new();
    for class in &product {
        let text = read_source(PRODUCT_SOURCES, class);
        let (name, text) = match lab.contains(class) {
            true => rename_class(class, &text),
            false => (class.clone(), text),
        };
        write_file(&to.join(format!("{name}.java")), &expand_templates(&text));
        classes.push(name);
    }
    for class in lab {
        let text = read_source(LAB_SOURCES.unwrap_or_default(), &class);
        write_file(&to.join(format!("{class}.java")), &text);
        classes.push(class);
    }
    classes
}

fn class_names_in(folder: &str) -> BTreeSet<String> {
    let files = fs::read_dir(in_agent(folder)).expect("the sources of helper classes");
    let names = files.map(|file| file.expect("a file").file_name());
    names
        .filter_map(|name| Some(name.to_str()?.strip_suffix(".java")?.to_owned()))
        .collect()
}

fn read_source(folder: &str, class: &str) -> String {
    let file = in_agent(folder).join(format!("{class}.java"));
    fs::read_to_string(file).expect("the source of a helper class")
}

/// The class under the name by which the lab's class of its name extends it. Other classes go on calling the lab's.
fn rename_class(class: &str, text: &str) -> (String, String) {
    let job = class.strip_prefix(PREFIX).expect("a helper class");
    let name = format!("{PREFIX}Product{job}");
    let declared = format!("class {class} {{");
    assert!(text.contains(&declared), "{class}: not `{declared}`");
    let text = text.replace(&declared, &format!("class {name} {{"));
    let text = text.replace(
        &format!("    {class}() {{}}"),
        &format!("    {name}() {{}}"),
    );
    (name, text)
}

/// The text, with the lines between `each ELEMENT` and `end` once for each type of array.
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
    // Java code reads half of the event mask's word.
    let own_bits = event_bits::ALL
        .iter()
        .map(|(name, bit)| ((*name).to_owned(), *bit));
    // Kinds with a value share the name before `=`, and Java code tests one of them. Kinds for named methods share the name
    // before `:`.
    let is_sizes = |kind: &kinds::EventKindInfo| kind.mask_bit == kinds::ALLOC_SIZES.mask_bit;
    let kinds = kinds::ALL.iter();
    let kinds = kinds.filter(|kind| !kind.name.contains('=') || is_sizes(kind));
    let kinds = kinds.map(|kind| {
        let name = match kind.name.contains(':') {
            true => format!("NAMED_{}", kind.first_name()),
            false => kind.name.replace('=', "_"),
        };
        (name.to_uppercase(), kind.mask_bit)
    });
    let bits: Vec<(String, u64)> = own_bits.chain(kinds).collect();
    let bits = bits.iter();
    let bits = bits.map(|(name, bit)| (name.as_str(), "bit", bit.cast_signed()));
    let constants = shared_layout::ALL
        .iter()
        .chain(LAB_CONSTANTS)
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

fn variants() -> Vec<HelperVariant> {
    match cfg!(feature = "lab") {
        true => HelperVariant::lab_variants(),
        false => HelperVariant::product_variants(),
    }
}

/// The constants of a variant.
fn variant_class_source(variant: HelperVariant) -> String {
    let mut text = String::from("package java.lang;\nfinal class LucceRtVariant {\n");
    let of_lab = variant.lab.java_constants();
    let of_lab = of_lab.into_iter().filter(|_| cfg!(feature = "lab"));
    for (name, value) in variant.java_constants().into_iter().chain(of_lab) {
        let _ = writeln!(text, "    static final boolean {name} = {value};");
    }
    text + "}\n"
}

/// As many at a time as there are processors.
fn compile_variants(out: &Path, classes: &[String], variants: &[(HelperVariant, PathBuf)]) {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    for some in variants.chunks(at_once) {
        let compilers = some.iter().map(|one| start_compiler(out, classes, one));
        let compilers: Vec<_> = compilers.collect();
        for mut compiler in compilers {
            let status = compiler.wait().expect("the compiler's end");
            assert!(
                status.success(),
                "javac failed on the helper classes: {status}"
            );
        }
    }
}

fn start_compiler(
    out: &Path,
    classes: &[String],
    (variant, to): &(HelperVariant, PathBuf),
) -> Child {
    // Classes of an earlier build may be gone.
    let _ = fs::remove_dir_all(to);
    let own = to.join("java/lang/LucceRtVariant.java");
    write_file(&own, &variant_class_source(*variant));
    let javac = env::var_os("JAVA_HOME")
        .map_or("javac".into(), |home| PathBuf::from(home).join("bin/javac"));
    let source = out.join("source");
    let stub = in_agent("java/stub");
    let patch = format!(
        "java.base={}:{}:{}",
        stub.display(),
        source.display(),
        to.display()
    );
    let mut command = Command::new(&javac);
    // It runs a second: without the JVM's slow compiler it takes less CPU time.
    command
        .args(["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"])
        .args(["-nowarn", "-XDignore.symbol.file", "-g:none", "-proc:none"])
        .args([
            "-source",
            OLDEST_JDK,
            "-target",
            OLDEST_JDK,
            "-Xlint:-options",
        ])
        .args(["--patch-module", &patch, "-d"])
        .arg(to)
        // Files with names and descriptors of natives.
        .arg("-h")
        .arg(to.join("natives"))
        .arg(source.join("java/lang/LucceRtLayout.java"))
        .arg(own)
        .args(
            classes
                .iter()
                .map(|class| source.join(format!("java/lang/{class}.java"))),
        )
        .args(STUBS.map(in_agent));
    command.spawn().unwrap_or_else(|e| {
        panic!(
            "cannot run {}: {e}; install a JDK (17 or later), e.g. `apt-get install openjdk-17-jdk-headless`, or set JAVA_HOME",
            javac.display()
        )
    })
}

/// The classes, for the agent.
fn render_class_table(classes: &[String], variants: &[(HelperVariant, PathBuf)]) -> String {
    let (_, live) = &variants[1];
    let classes: Vec<_> = classes.iter().filter(|class| *class != SHARED).collect();
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
        "pub static VARIANTS: [(HelperVariant, [&[u8]; {}]); {}] = [",
        classes.len(),
        variants.len()
    );
    for (variant, folder) in variants {
        let bytes = classes
            .iter()
            .map(|class| class_bytes_expression(folder, class));
        let bytes = bytes.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "    ({variant:?}, [{bytes}]),");
    }
    let others = shared_class_names(live);
    let _ = writeln!(
        text,
        "];\npub static SHARED_CLASSES: [(&CStr, &[u8]); {}] = [",
        others.len()
    );
    for class in &others {
        assert_same_in_all(variants, class);
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

/// [`SHARED`] and nested classes.
fn shared_class_names(live: &Path) -> Vec<String> {
    let files = fs::read_dir(live.join("java/lang")).expect("the compiled classes");
    let names = files.map(|file| {
        file.expect("a file")
            .file_name()
            .into_string()
            .expect("a name")
    });
    let classes = names.filter_map(|name| Some(name.strip_suffix(".class")?.to_owned()));
    let mut others: Vec<String> = classes
        .filter(|name| name.starts_with(PREFIX) && (name.contains('$') || name == SHARED))
        .collect();
    others.sort();
    others
}

/// They are defined once.
fn assert_same_in_all(variants: &[(HelperVariant, PathBuf)], class: &str) {
    let read =
        |folder: &Path| fs::read(folder.join(format!("java/lang/{class}.class"))).expect("a class");
    let first = read(&variants[0].1);
    assert!(
        variants.iter().all(|(_, folder)| read(folder) == first),
        "{class} must not depend on the variant"
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
