//! Paths from a GC root to an object; equal paths are counted.

use std::collections::BTreeMap;
use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::type_name;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone)]
pub(super) struct RootPathLink {
    pub(super) by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) soft: bool,
    /// Whether the object waits for its finalizer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) finalizer: bool,
    /// Number of equal references in sequence.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub(super) times: u64,
    /// The type of the referenced object.
    pub(super) of: String,
    /// If that is a `java.lang.Class`: the class that it represents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) names: Option<String>,
}

pub(super) fn once() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn is_once(times: &u64) -> bool {
    *times == 1
}

/// Objects with equal GC root paths.
#[derive(Serialize)]
pub(super) struct RootPathGroup {
    pub(super) objects: u64,
    /// The path of one of them, from the root to the object.
    pub(super) links: Vec<RootPathLink>,
    /// Whether indexes in arrays or chains differ between the paths.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) elsewhere: bool,
}

/// Groups paths that differ only in indexes of arrays and chains, the most frequent first.
pub(super) fn group_paths(paths: Vec<Vec<RootPathLink>>) -> Vec<RootPathGroup> {
    let mut by_links: BTreeMap<Vec<String>, RootPathGroup> = BTreeMap::new();
    for path in paths {
        let links: Vec<RootPathLink> = path
            .into_iter()
            .map(RootPathLink::with_java_names)
            .collect();
        let key = links.iter().map(|link| link.to_text(false)).collect();
        match by_links.get_mut(&key) {
            None => {
                let held = RootPathGroup {
                    objects: 1,
                    links,
                    elsewhere: false,
                };
                by_links.insert(key, held);
            }
            Some(held) => {
                held.objects += 1;
                let place = |link: &RootPathLink| (link.index, link.times);
                held.elsewhere |= held.links.iter().map(place).ne(links.iter().map(place));
            }
        }
    }
    let mut all: Vec<RootPathGroup> = by_links.into_values().collect();
    all.sort_by_key(|held| std::cmp::Reverse(held.objects));
    all
}

impl RootPathGroup {
    pub(super) fn write_head(&self, of: u64, how: &str, out: &mut impl Write) -> io::Result<()> {
        let elsewhere = match self.elsewhere {
            true if self.links.iter().any(|link| link.times > 1) => {
                " (one of them; the others are elsewhere in the chain)"
            }
            true => " (one of them; the others are elsewhere in the arrays)",
            false => "",
        };
        let are = if self.objects == 1 { "is" } else { "are" };
        writeln!(out, "\n{} of {of} {are} {how}{elsewhere}:", self.objects)
    }

    pub(super) fn write_links(&self, out: &mut impl Write) -> io::Result<()> {
        self.links
            .iter()
            .try_for_each(|link| writeln!(out, "\t{}", link.to_text(true)))
    }
}

impl RootPathLink {
    /// Replaces descriptors by Java type names.
    pub(super) fn with_java_names(mut self) -> RootPathLink {
        self.of = type_name(&self.of);
        self.class = self.class.as_deref().map(type_name);
        self.names = self.names.as_deref().map(type_name);
        self
    }

    /// Formats a link; `exactly`: with the index in an array.
    pub(super) fn to_text(&self, exactly: bool) -> String {
        let member = || {
            let (class, name) = (self.class.as_deref(), self.name.as_deref());
            format!(
                "{}.{}",
                EscapedText(class.unwrap_or("?")),
                EscapedText(name.unwrap_or("?"))
            )
        };
        let thread = || format!("\"{}\"", EscapedText(self.thread.as_deref().unwrap_or("?")));
        let line = self
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        let until = match (self.soft, self.finalizer) {
            (true, _) => "soft reference, ",
            (_, true) => "waits for its finalizer, ",
            _ => "",
        };
        let times = match self.times {
            0 | 1 => String::new(),
            _ if !exactly => "… × ".to_owned(),
            times => format!("… {} × ", crate::output::grouped(times)),
        };
        let class = || EscapedText(self.class.as_deref().unwrap_or("?")).to_string();
        let by = match self.by.as_str() {
            "static" => format!("static field {}", member()),
            "field" => format!("field {}", member()),
            "element" if exactly => format!("element [{}]", self.index.unwrap_or(-1)),
            "element" => "element".to_owned(),
            "thread" => format!("thread {}", thread()),
            "local" => format!("variable in {}{line} of thread {}", member(), thread()),
            "jni_local" if self.name.is_some() => {
                format!(
                    "native code's reference in {} of thread {}",
                    member(),
                    thread()
                )
            }
            "jni_local" => format!("native code's reference in thread {}", thread()),
            "jni_global" => "global reference of native code".to_owned(),
            "monitor" => "monitor that is held".to_owned(),
            "system_class" => "class of the JVM's own loaders".to_owned(),
            "vm" => "the JVM itself".to_owned(),
            "class" => "its class".to_owned(),
            "loaded_class" => "class that it has loaded".to_owned(),
            "class_loader" if self.class.is_some() => format!("class loader of {}", class()),
            "superclass" if self.class.is_some() => format!("superclass of {}", class()),
            "interface" if self.class.is_some() => format!("interface of {}", class()),
            "constant_pool" if self.class.is_some() => format!("constant pool of {}", class()),
            "protection_domain" if self.class.is_some() => {
                format!("protection domain of {}", class())
            }
            other => EscapedText(&other.replace('_', " ")).to_string(),
        };
        let names = self.names.as_deref();
        let names = names.map_or_else(String::new, |names| format!(" of {}", EscapedText(names)));
        format!("{times}{until}{by}: {}{names}", EscapedText(&self.of))
    }
}
