//! Reads the main class of a jar: the part of the ZIP format that is needed for the manifest.
//!
//! ```text
//! … entries … | central directory: a head per entry, with its name and offset | end record: offset of the directory
//! ```
//! An unsupported file counts as a jar without a main class. Nothing here panics or reads more than a few megabytes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const ENTRY: u32 = 0x0403_4b50;
const HEAD: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_BYTES: usize = 22;
/// A comment may follow the end record.
const MOST_COMMENT: u64 = 0xffff;
const MOST_DIRECTORY: u64 = 64 << 20;
const MOST_MANIFEST: usize = 1 << 20;
const MANIFEST: &[u8] = b"META-INF/MANIFEST.MF";

/// Whether the file begins like a jar.
pub fn is_jar(path: &Path) -> bool {
    let file = File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|found| found.is_file()));
    file.and_then(|file| read_at(&file, 0, 4))
        .is_some_and(|bytes| read_number(&bytes, 0, 4) == Some(ENTRY.into()))
}

/// What a jar says of the program in it.
#[derive(Default)]
pub struct JarContent {
    /// The manifest's `Main-Class`, and the `Start-Class` that a Spring Boot launcher runs.
    pub main_classes: Vec<String>,
    /// Several artifacts were merged into the jar: it describes more than one of Maven's, or has many roots of packages.
    pub is_merged: bool,
}

impl JarContent {
    /// Reads a jar; empty if the file cannot be read.
    pub fn read(path: &Path) -> JarContent {
        let Ok(file) = File::open(path) else {
            return JarContent::default();
        };
        let directory = read_directory(&file).unwrap_or_default();
        let manifest = read_manifest(&file, &directory).unwrap_or_default();
        let manifest = String::from_utf8_lossy(&manifest);
        let names = ["Main-Class", "Start-Class"].map(|name| find_attribute(&manifest, name));
        let artifacts = directory_entries(&directory).filter(|entry| {
            entry.name.starts_with(b"META-INF/maven/") && entry.name.ends_with(b"/pom.properties")
        });
        JarContent {
            main_classes: names.into_iter().flatten().collect(),
            is_merged: artifacts.take(2).count() == 2 || has_many_roots(&directory),
        }
    }
}

/// A project seldom has more packages of two parts in one jar: `com.acme`, `org.other`.
const MOST_ROOTS: usize = 4;

/// Whether classes have more roots than one project's.
fn has_many_roots(directory: &[u8]) -> bool {
    let mut roots: Vec<&[u8]> = Vec::new();
    for entry in directory_entries(directory) {
        let is_class = entry.name.ends_with(b".class") && !entry.name.starts_with(b"META-INF/");
        let mut slashes = (0..entry.name.len()).filter(|at| entry.name.get(*at) == Some(&b'/'));
        let root = slashes.nth(1).and_then(|end| entry.name.get(..end));
        let root = root.filter(|root| is_class && !root.contains(&b'-'));
        if let Some(root) = root
            && !roots.contains(&root)
        {
            roots.push(root);
        }
        if roots.len() > MOST_ROOTS {
            return true;
        }
    }
    false
}

/// Lines have at most 72 bytes; a line that begins with a space continues the previous one.
fn find_attribute(manifest: &str, name: &str) -> Option<String> {
    let whole = manifest.replace("\r\n", "\n").replace("\n ", "");
    let mut values = whole.lines().filter_map(|line| line.split_once(':'));
    let header = values.find(|(key, _)| key.eq_ignore_ascii_case(name));
    header.map(|(_, value)| value.trim().to_owned())
}

fn read_manifest(file: &File, directory: &[u8]) -> Option<Vec<u8>> {
    let entry =
        directory_entries(directory).find(|entry| entry.name.eq_ignore_ascii_case(MANIFEST))?;
    let bytes = read_entry(file, entry.offset, entry.packed)?;
    match entry.method {
        0 => Some(bytes),
        8 if entry.unpacked <= MOST_MANIFEST as u64 => {
            miniz_oxide::inflate::decompress_to_vec_with_limit(&bytes, MOST_MANIFEST).ok()
        }
        _ => None,
    }
}

/// A head in the central directory.
struct DirectoryEntry<'d> {
    name: &'d [u8],
    /// 0 stored, 8 deflated.
    method: u64,
    packed: u64,
    unpacked: u64,
    /// Where the entry begins in the file.
    offset: u64,
}

/// All heads up to the first damaged one.
fn directory_entries(directory: &[u8]) -> impl Iterator<Item = DirectoryEntry<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let field = |field: usize, size| read_number(directory, at + field, size);
        if field(0, 4)? != HEAD.into() {
            return None;
        }
        let [name, extra, comment] = [field(28, 2)?, field(30, 2)?, field(32, 2)?];
        let entry = DirectoryEntry {
            name: directory.get(at + 46..at + 46 + name as usize)?,
            method: field(10, 2)?,
            packed: field(20, 4)?,
            unpacked: field(24, 4)?,
            offset: field(42, 4)?,
        };
        at += 46 + (name + extra + comment) as usize;
        Some(entry)
    })
}

fn read_directory(file: &File) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    let tail = size.min(MOST_COMMENT + END_BYTES as u64);
    let tail = read_at(file, size - tail, tail)?;
    let ends = (0..=tail.len().checked_sub(END_BYTES)?).rev();
    let end = ends
        .into_iter()
        .find(|at| read_number(&tail, *at, 4) == Some(END.into()))?;
    let (bytes, at) = (
        read_number(&tail, end + 12, 4)?,
        read_number(&tail, end + 16, 4)?,
    );
    (bytes <= MOST_DIRECTORY)
        .then(|| read_at(file, at, bytes))
        .flatten()
}

/// The packed bytes of the entry at `at`.
fn read_entry(file: &File, at: u64, packed: u64) -> Option<Vec<u8>> {
    let head =
        read_at(file, at, 30).filter(|head| read_number(head, 0, 4) == Some(ENTRY.into()))?;
    let skipped = 30 + read_number(&head, 26, 2)? + read_number(&head, 28, 2)?;
    (packed <= MOST_MANIFEST as u64)
        .then(|| read_at(file, at + skipped, packed))
        .flatten()
}

fn read_at(file: &File, at: u64, bytes: u64) -> Option<Vec<u8>> {
    let mut buffer = vec![0; usize::try_from(bytes).ok()?];
    file.read_exact_at(&mut buffer, at).ok()?;
    Some(buffer)
}

/// Little-endian.
fn read_number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

#[cfg(test)]
mod jar_tests {
    use super::*;

    #[test]
    fn attributes_go_on_in_the_next_line() {
        let text =
            "Manifest-Version: 1.0\r\nMain-Class: com.acme.a.very.lo\r\n ng.Main\r\nX: y\r\n";
        assert_eq!(
            find_attribute(text, "Main-Class").as_deref(),
            Some("com.acme.a.very.long.Main")
        );
        assert_eq!(find_attribute(text, "Class-Path"), None);
    }

    /// An entry and the records behind it, as `jar` writes them.
    fn zip(method: u8, content: &[u8], unpacked: usize) -> Vec<u8> {
        let le = |number: usize| (number as u32).to_le_bytes();
        let sizes = [le(content.len()), le(unpacked)].concat();
        let name = [MANIFEST.len() as u8, 0, 0, 0];
        let mut zip = [
            &ENTRY.to_le_bytes()[..],
            &[20, 0, 0, 0, method, 0],
            &[0; 8],
            &sizes,
            &name,
            MANIFEST,
            content,
        ]
        .concat();
        let directory = zip.len();
        let head = [
            &HEAD.to_le_bytes()[..],
            &[20, 0, 20, 0, 0, 0, method, 0],
            &[0; 8],
            &sizes,
            &name,
            &[0; 14],
            MANIFEST,
        ]
        .concat();
        let end = [
            &END.to_le_bytes()[..],
            &[0; 4],
            &[1, 0, 1, 0],
            &le(head.len()),
            &le(directory),
            &[0; 2],
        ]
        .concat();
        zip.extend([head, end].concat());
        zip
    }

    #[test]
    fn a_main_class_is_found_stored_and_packed() {
        let text = b"Manifest-Version: 1.0\r\nMain-Class: com.acme.Main\r\n\r\n";
        let packed = miniz_oxide::deflate::compress_to_vec(text, 6);
        let path = std::env::temp_dir().join(format!("lucce-jar-{}", std::process::id()));
        for (method, content) in [(0, &text[..]), (8, &packed)] {
            let whole = zip(method, content, text.len());
            std::fs::write(&path, &whole).unwrap();
            assert!(is_jar(&path));
            assert_eq!(JarContent::read(&path).main_classes, ["com.acme.Main"]);
            for cut in 0..whole.len() {
                std::fs::write(&path, &whole[..cut]).unwrap();
                assert_eq!(JarContent::read(&path).main_classes, [""; 0]);
            }
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_jar_of_several_artifacts_is_merged() {
        let head = |name: &str| {
            let mut head = [0; 46];
            head[..4].copy_from_slice(&HEAD.to_le_bytes());
            head[28] = name.len() as u8;
            [&head[..], name.as_bytes()].concat()
        };
        let own = head("META-INF/maven/com.acme/app/pom.properties");
        let other = head("META-INF/maven/org.other/lib/pom.properties");
        let class = head("com/acme/Main.class");
        let path = std::env::temp_dir().join(format!("lucce-merged-{}", std::process::id()));
        // As a shadow jar of Gradle with kotlin-stdlib has them. A web archive's folders are no packages.
        let packages = [
            "kotlin/io/A",
            "kotlin/text/A",
            "org/slf4j/A",
            "com/google/b/A",
        ];
        let roots = packages.map(|name| head(&format!("{name}.class")));
        let inner = packages.map(|name| head(&format!("BOOT-INF/classes/{name}.class")));
        let folders = packages.map(|name| head(&format!("{name}.txt")));
        for (entries, merged) in [
            (vec![&own, &class], false),
            (vec![&own, &class, &other], true),
            (vec![&class], false),
            (roots.iter().chain([&class]).collect(), true),
            (roots.iter().chain([&own]).collect(), false),
            (inner.iter().chain([&class]).collect(), false),
            (folders.iter().chain([&class]).collect(), false),
        ] {
            let directory = entries.into_iter().flatten().copied().collect::<Vec<u8>>();
            let end = [
                &END.to_le_bytes()[..],
                &[0; 8],
                &(directory.len() as u32).to_le_bytes(),
                &[0; 6],
            ]
            .concat();
            std::fs::write(&path, [directory, end].concat()).unwrap();
            assert_eq!(JarContent::read(&path).is_merged, merged);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
