//! Names of the classes, fields, methods and threads on a path.

use std::collections::HashMap;

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_jvmti::heap::{self, ReferenceKind};
use lucce_jvmti::{JniEnvironment, Jvmti};

use crate::leaks::heap_search::HolderPathStep;

use super::HolderPathLink;
use super::class_fields::ClassFields;

/// Maximum length of a name in the result.
const MAX_NAME_LENGTH: usize = 300;
/// Minimum number of equal links that are shown as one.
const EQUAL_LINKS: u32 = 4;
const CLASS: &str = "Ljava/lang/Class;";

/// Names the links of paths.
pub(super) struct HolderPathNamer {
    tools: Jvmti,
    lines: Jvmti,
    env: JniEnvironment,
    /// Names of threads by their ids.
    threads: Option<HashMap<i64, String>>,
}

impl HolderPathNamer {
    pub(super) fn new(tools: Jvmti, lines: Jvmti, env: JniEnvironment) -> HolderPathNamer {
        HolderPathNamer {
            tools,
            lines,
            env,
            threads: None,
        }
    }

    /// `None`: an object of the path is gone.
    pub(super) fn name_path(&mut self, steps: &[HolderPathStep]) -> Option<Vec<HolderPathLink>> {
        let all = steps
            .iter()
            .flat_map(|step| step.from.into_iter().chain([step.to]));
        let mut tags: Vec<i64> = all.collect();
        tags.sort_unstable();
        tags.dedup();
        let objects = self.tools.objects_with_tags(&tags);
        let object = |tag: i64| {
            let object = objects.iter().find(|(_, of)| *of == tag);
            object.map(|(object, _)| *object)
        };
        let links = steps.iter().map(|step| {
            let to = object(step.to)?;
            let from = match step.from {
                Some(tag) => Some(object(tag)?),
                None => None,
            };
            Some(self.name_link(step, from, to))
        });
        let links: Option<Vec<HolderPathLink>> = links.collect();
        for (object, _) in objects {
            self.env.delete_local(object);
        }
        links.map(merge_equal_links)
    }

    fn name_link(
        &mut self,
        step: &HolderPathStep,
        from: Option<jobject>,
        to: jobject,
    ) -> HolderPathLink {
        let mut link = HolderPathLink {
            by: reference_kind_name(step.by),
            class: None,
            name: None,
            index: None,
            line: None,
            thread: None,
            strength: step.strength,
            times: step.times,
            target_type: self.type_of_object(to),
            named_class: None,
        };
        if link.target_type == CLASS {
            link.named_class = self.tools.class_signature(to).map(clip_text);
        }
        match step.by {
            ReferenceKind::Field(number) => {
                if let Some(from) = from {
                    let class = self.env.class_of(from);
                    self.set_field_name(&mut link, class, number);
                    self.env.delete_local(class);
                }
            }
            ReferenceKind::Static(number) => {
                if let Some(class) = from {
                    self.set_field_name(&mut link, class, number);
                }
            }
            ReferenceKind::Element(index) => link.index = Some(index),
            ReferenceKind::Local {
                thread,
                method,
                location,
                ..
            } => {
                link.thread = self.thread_name(thread);
                self.set_method_name(&mut link, method, Some(location));
            }
            ReferenceKind::JniLocal { thread, method } => {
                link.thread = self.thread_name(thread);
                self.set_method_name(&mut link, method, None);
            }
            ReferenceKind::Thread => link.thread = self.read_thread_name(to),
            ReferenceKind::ClassLoader
            | ReferenceKind::ProtectionDomain
            | ReferenceKind::Signers
            | ReferenceKind::Interface
            | ReferenceKind::ConstantPool
            | ReferenceKind::Superclass => {
                let class = from.and_then(|class| self.tools.class_signature(class));
                link.class = class.map(clip_text);
            }
            _ => {}
        }
        link
    }

    fn type_of_object(&self, object: jobject) -> String {
        let class = self.env.class_of(object);
        let of = self.tools.class_signature(class).unwrap_or_default();
        self.env.delete_local(class);
        clip_text(of)
    }

    fn set_field_name(&self, link: &mut HolderPathLink, class: jclass, number: i32) {
        let fields = ClassFields::from_class(self.tools, self.env, class);
        if let Some((owner, name)) = fields.get(number) {
            link.class = Some(clip_text(owner.clone()));
            link.name = Some(clip_text(name.clone()));
        }
    }

    fn set_method_name(&self, link: &mut HolderPathLink, id: usize, location: Option<i64>) {
        if id == 0 {
            return;
        }
        let method = heap::method_id_from(id);
        let named = self
            .tools
            .method_name(method)
            .map(|(name, _)| clip_text(name));
        link.name = named;
        if let Some(class) = self.tools.declaring_class(method) {
            link.class = self.tools.class_signature(class).map(clip_text);
            self.env.delete_local(class);
        }
        let lines = self.lines.line_table(method);
        let at = |location: i64| {
            lines
                .iter()
                .take_while(|(start, _)| *start <= location)
                .last()
        };
        link.line = location.and_then(at).map(|(_, line)| *line);
    }

    fn thread_name(&mut self, number: i64) -> Option<String> {
        if self.threads.is_none() {
            self.threads = Some(self.read_thread_names());
        }
        let name = self.threads.as_ref()?.get(&number).cloned();
        Some(name.unwrap_or_else(|| format!("thread {number}")))
    }

    fn read_thread_names(&self) -> HashMap<i64, String> {
        let env = self.env;
        let class = env.find_class(c"java/lang/Thread");
        let number = class.and_then(|class| env.field_id(class, c"tid", c"J"));
        let mut threads = HashMap::new();
        for thread in self.tools.all_threads() {
            if let (Some(number), Some(name)) = (number, self.read_thread_name(thread)) {
                threads.insert(env.get_long(thread, number), name);
            }
            env.delete_local(thread);
        }
        env.delete_local(class.unwrap_or(std::ptr::null_mut()));
        threads
    }

    /// The name of a thread.
    fn read_thread_name(&self, thread: jobject) -> Option<String> {
        let env = self.env;
        let class = env.find_class(c"java/lang/Thread")?;
        let field = env.field_id(class, c"name", c"Ljava/lang/String;");
        let name = field.map(|field| env.get_object(thread, field));
        env.delete_local(class);
        let name = name.filter(|name| !name.is_null())?;
        let text = env.read_string(name, MAX_NAME_LENGTH);
        env.delete_local(name);
        Some(text)
    }
}

/// Merges [`EQUAL_LINKS`] or more consecutive equal links into one.
fn merge_equal_links(links: Vec<HolderPathLink>) -> Vec<HolderPathLink> {
    let is_equal = |a: &HolderPathLink, b: &HolderPathLink| {
        let times = b.times;
        a.index.is_none() && HolderPathLink { times, ..a.clone() } == *b
    };
    let joined = links.chunk_by(is_equal).flat_map(|equal| {
        let times = equal
            .iter()
            .fold(0, |sum: u32, link| sum.saturating_add(link.times));
        match equal.first() {
            Some(first) if times >= EQUAL_LINKS => vec![HolderPathLink {
                times,
                ..first.clone()
            }],
            _ => equal.to_vec(),
        }
    });
    joined.collect()
}

fn clip_text(text: String) -> String {
    match text.char_indices().nth(MAX_NAME_LENGTH) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// The kind's name in JSON.
fn reference_kind_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Field(_) => "field",
        ReferenceKind::Static(_) => "static",
        ReferenceKind::Element(_) => "element",
        ReferenceKind::Class => "class",
        ReferenceKind::ClassLoader => "class_loader",
        ReferenceKind::LoadedClass => "loaded_class",
        ReferenceKind::ProtectionDomain => "protection_domain",
        ReferenceKind::Signers => "signers",
        ReferenceKind::Interface => "interface",
        ReferenceKind::ConstantPool => "constant_pool",
        ReferenceKind::Superclass => "superclass",
        ReferenceKind::JniGlobal => "jni_global",
        ReferenceKind::SystemClass => "system_class",
        ReferenceKind::Monitor => "monitor",
        ReferenceKind::Thread => "thread",
        ReferenceKind::Local { .. } => "local",
        ReferenceKind::JniLocal { .. } => "jni_local",
        ReferenceKind::Other => "vm",
    }
}
