//! What the agent and the command are made of, as CycloneDX has it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::dependencies::Package;
use crate::linked::{Made, PARTS, Part};
use crate::systems::CLibrary;

/// `name`: of the product; `made`: its program, which tells of the compiler; `c_library`: that it is linked against.
pub fn text(
    name: &str,
    version: &str,
    packages: &BTreeSet<Package>,
    made: &Made,
    c_library: CLibrary,
) -> Result<String, String> {
    let compiler = made.compiler().ok_or("the command names no compiler")?;
    let packages = packages.iter().map(component);
    let parts = PARTS
        .iter()
        .filter(|part| part.c_library.is_none_or(|library| library == c_library));
    let parts = parts.map(|part| linked(part, &compiler, made));
    let components: Vec<Value> = packages.chain(parts).collect();
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": name,
                "name": name,
                "version": version,
                "licenses": [{ "expression": "Apache-2.0" }],
            },
        },
        "components": components,
    });
    let text = serde_json::to_string_pretty(&bom).map_err(|e| e.to_string())?;
    Ok(text + "\n")
}

fn component(package: &Package) -> Value {
    let purl = format!("pkg:cargo/{}@{}", package.name, package.version);
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "licenses": [{ "expression": package.licence.replace('/', " OR ") }],
        "externalReferences": [{ "type": "vcs", "url": package.repository }],
    })
}

/// What comes with the compiler has the compiler's version in words, and its own where that is known.
fn linked(part: &Part, compiler: &str, made: &Made) -> Value {
    let licence = match part.permission {
        None => json!({ "expression": part.licence }),
        Some(permission) => {
            json!({ "license": { "name": format!("{}, {permission}", part.licence) } })
        }
    };
    let mut component = json!({
        "type": "library",
        "bom-ref": format!("linked:{}", part.name),
        "name": part.name,
        "licenses": [licence],
        "externalReferences": [{ "type": "vcs", "url": part.repository }],
    });
    if part.of_the_compiler {
        component["description"] = format!("as the Rust compiler {compiler} has it").into();
    }
    if let Some(version) = made.version_of(part) {
        component["purl"] = format!("pkg:cargo/{}@{version}", part.name).into();
        component["version"] = version.into();
    }
    component
}

#[cfg(test)]
mod sbom_tests {
    use super::*;

    #[test]
    fn packages_are_named_as_tools_know_them() {
        let package = Package {
            name: "serde".into(),
            version: "1.0.0".into(),
            licence: "MIT/Apache-2.0".into(),
            repository: "r".into(),
        };
        let made = tempfile::NamedTempFile::new().unwrap();
        let told = "rustc version 1.95.0 (59807616e)\0/rust/deps/gimli-0.32.3/src/lib.rs\0";
        std::fs::write(&made, told).unwrap();
        let made = Made::read(made.path()).unwrap();
        let packages = BTreeSet::from([package]);
        let bom = |library| {
            let text = text("lucce", "0.1.0", &packages, &made, library).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let musl = bom(CLibrary::Musl).to_string();
        assert!(musl.contains("musl's start files") && !musl.contains("glibc"));
        let bom = bom(CLibrary::Glibc);
        assert!(!bom.to_string().contains("musl"));
        let component = &bom["components"][0];
        assert_eq!(component["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let all = bom["components"].as_array().unwrap();
        let named = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(
            named("Rust's standard library")["description"],
            "as the Rust compiler 1.95.0 has it"
        );
        assert_eq!(named("gimli")["purl"], "pkg:cargo/gimli@0.32.3");
        assert_eq!(named("object")["version"], Value::Null);
        let unwind = &named("LLVM's libunwind")["licenses"][0];
        assert_eq!(unwind["expression"], "Apache-2.0 WITH LLVM-exception");
        assert!(
            named("glibc's start files and libc_nonshared")["licenses"][0]["license"].is_object()
        );
    }
}
