//! What the agent and the command are made of, as CycloneDX has it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::dependencies::Package;

pub fn text(version: &str, packages: &BTreeSet<Package>) -> Result<String, String> {
    let components: Vec<Value> = packages.iter().map(component).collect();
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "lucce",
                "name": "lucce",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_as_tools_know_them() {
        let package = Package {
            name: "serde".into(),
            version: "1.0.0".into(),
            licence: "MIT/Apache-2.0".into(),
            repository: "r".into(),
        };
        let text = text("0.1.0", &BTreeSet::from([package])).unwrap();
        let bom: Value = serde_json::from_str(&text).unwrap();
        let component = &bom["components"][0];
        assert_eq!(component["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
