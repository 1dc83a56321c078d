//! Classes that were loaded without the agent, into the book when one of their methods is first seen on
//! a stack.

use std::sync::OnceLock;

use crate::agent::Agent;
use crate::book::{Loader, NewClass};
use crate::jvm::Jvmti;
use crate::planner::Shape;

use jvmti_bindings::sys::jni::jclass;

/// Methods that the VM leaves out of stack traces (`@Hidden`), by class: those of JDK 17 and 25. The
/// tool interface shows them, and says nothing of annotations. A pattern is a name, a name with its
/// descriptor, or a prefix of a name with `*`.
const HIDDEN: [(&str, &[&str]); 15] = [
    ("java/lang/ScopedValue$Carrier", &["runWith"]),
    ("java/lang/Thread", &["runWith"]),
    ("java/lang/VirtualThread$VThreadContinuation$1", &["run"]),
    (
        "java/lang/VirtualThread",
        &["yieldContinuation", "postPinnedEvent"],
    ),
    ("java/lang/invoke/Invokers", &["checkVarHandleGenericType"]),
    (
        "java/lang/invoke/LambdaForm$NamedFunction",
        &["invokeWithArguments*"],
    ),
    (
        "java/lang/invoke/LambdaForm",
        &["interpretName", "interpretWithArguments"],
    ),
    (
        "java/lang/invoke/MethodHandleImpl$CountingWrapper",
        &["getTarget", "maybeStopCounting"],
    ),
    (
        "java/lang/invoke/MethodHandleImpl",
        &[
            "guardWithCatch",
            "isCompileConstant",
            "loop",
            "prepend",
            "profileBoolean",
            "selectAlternative",
            "tableSwitch",
            "tryFinally",
        ],
    ),
    ("java/lang/invoke/VarHandleGuards", &["guard_*"]),
    (
        "jdk/internal/reflect/CsMethodAccessorAdapter",
        &["invoke(Ljava/lang/Object;[Ljava/lang/Object;Ljava/lang/Class;)Ljava/lang/Object;"],
    ),
    (
        "jdk/internal/reflect/DirectConstructorHandleAccessor",
        &["invokeImpl"],
    ),
    (
        "jdk/internal/reflect/DirectMethodHandleAccessor",
        &["invokeImpl"],
    ),
    (
        "jdk/internal/vm/Continuation",
        &["enter", "enter0", "yield", "yield0"],
    ),
    (
        "java/security/AccessController",
        &["executePrivileged", "ensureMaterializedForStackWalk"],
    ),
];
/// The same for one of them.
const HIDDEN_17: (&str, &[&str]) = ("java/security/AccessController", &["wrapException"]);
const HIDDEN_25: (&str, &[&str]) = ("java/lang/invoke/VarForm", &["getMemberName"]);
/// Classes that hold nothing but compiled forms of method handles.
const HOLDERS: (&str, &str) = ("java/lang/invoke/", "$Holder");

/// `None`: there are no ids left, or the VM does not say what is in the class.
pub fn add(agent: &Agent, class: jclass, loader: Loader, name: &str) -> Option<()> {
    let jvmti = agent.jvmti;
    let methods: Vec<Told> = jvmti
        .methods(class)
        .into_iter()
        .map(|method| told(jvmti, method))
        .collect::<Option<_>>()?;
    let release = release(jvmti);
    let shapes: Vec<Shape> = methods
        .iter()
        .map(|method| {
            let hidden = is_hidden(release, name, &method.name, &method.descriptor);
            Shape::without_hooks(hidden && agent.loaders.is_trusted(loader))
        })
        .collect();
    let methods: Vec<_> = methods
        .iter()
        .map(|told| (&*told.name, &*told.descriptor, told.access))
        .collect();
    let source = jvmti.source_file(class);
    let mut book = agent.book_mut();
    if book.class_named(loader, name).is_some() {
        // Another thread was faster.
        return Some(());
    }
    let new = NewClass {
        name,
        source: source.as_deref(),
        loader,
        methods: &methods,
        shapes: &shapes,
    };
    book.add(&new).map(drop)
}

struct Told {
    name: String,
    descriptor: String,
    access: u16,
}

fn told(jvmti: Jvmti, method: jvmti_bindings::sys::jni::jmethodID) -> Option<Told> {
    let (name, descriptor) = jvmti.method_name(method)?;
    let access = jvmti.modifiers(method);
    Some(Told {
        name,
        descriptor,
        access,
    })
}

/// `release`: the JDK's, such as 17.
fn is_hidden(release: u32, class: &str, method: &str, descriptor: &str) -> bool {
    let matches = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => method.starts_with(prefix),
        None => pattern
            .strip_prefix(method)
            .is_some_and(|rest| rest.is_empty() || rest == descriptor),
    };
    let own = if release < 21 { HIDDEN_17 } else { HIDDEN_25 };
    class.starts_with(HOLDERS.0) && class.ends_with(HOLDERS.1)
        || HIDDEN
            .iter()
            .chain([&own])
            .any(|(owner, names)| *owner == class && names.iter().any(matches))
}

/// The JDK's feature release. 0: the VM does not say.
fn release(jvmti: Jvmti) -> u32 {
    static RELEASE: OnceLock<u32> = OnceLock::new();
    *RELEASE.get_or_init(|| {
        let version = jvmti.system_property(c"java.vm.specification.version");
        version.and_then(|text| text.parse().ok()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner;

    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use lucce_bytecode::ClassFile;

    #[test]
    fn hidden_methods_by_name_and_prefix() {
        let hidden = |class, method| is_hidden(17, class, method, "()V");
        assert!(hidden("java/lang/invoke/LambdaForm$Holder", "identity_L"));
        assert!(hidden("java/lang/invoke/VarHandleGuards", "guard_LL_V"));
        assert!(!hidden("java/lang/invoke/LambdaForm", "prepare"));
        assert!(!hidden("a/B$Holder", "get"));
        assert!(!hidden("java/lang/Thread", "run"));
    }

    /// JDKs of this machine that are supported, by release: those with the tool that unpacks classes.
    fn jdks() -> BTreeMap<u32, PathBuf> {
        let compiler = std::env::var_os("JAVA_HOME").map(PathBuf::from);
        let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
        let homes = compiler
            .into_iter()
            .chain(installed.map(|entry| entry.path()));
        let known = homes.filter(|home| home.join("bin/jimage").exists());
        let named = known.filter_map(|home| {
            let release = fs::read_to_string(home.join("release")).ok()?;
            let version = release.split("JAVA_VERSION=\"").nth(1)?;
            Some((version.split(['.', '"']).next()?.parse().ok()?, home))
        });
        named
            .filter(|(release, _)| [17, 25].contains(release))
            .collect()
    }

    fn classes(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => classes(&path, found),
                path => found.push(path),
            }
        }
    }

    /// The annotations of java.base are the oracle.
    #[test]
    fn the_table_says_what_the_jdks_say() {
        for (release, home) in &jdks() {
            let name = format!("lucce-hidden-{}-{release}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let unpacked = Command::new(home.join("bin/jimage"))
                .args([
                    "extract",
                    "--include",
                    "regex:/java.base/(java|jdk)/.*",
                    "--dir",
                ])
                .arg(&folder)
                .arg(home.join("lib/modules"))
                .output();
            assert!(unpacked.unwrap().status.success(), "{}", home.display());
            let mut files = Vec::new();
            classes(&folder, &mut files);
            assert!(files.len() > 3000, "{} classes", files.len());
            let wrong: Vec<_> = files
                .iter()
                .flat_map(|file| differences(*release, file))
                .collect();
            fs::remove_dir_all(&folder).unwrap();
            assert_eq!(wrong, Vec::<String>::new(), "{}", home.display());
        }
    }

    /// Methods that the table takes for what they are not. Names stand for all overloads.
    fn differences(release: u32, file: &Path) -> Vec<String> {
        let bytes = fs::read(file).unwrap();
        let Ok(class) = ClassFile::parse(&bytes) else {
            return Vec::new();
        };
        let methods = class.methods().iter();
        let wrong = methods.filter(|method| {
            let hidden = method.has_annotation(planner::HIDDEN);
            hidden != is_hidden(release, class.name(), &method.name, &method.descriptor)
        });
        wrong
            .map(|method| format!("{}.{}{}", class.name(), method.name, method.descriptor))
            .collect()
    }
}
