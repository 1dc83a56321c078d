//! What holds objects that are followed: the shortest ways from roots to some of them, with the names of fields.
//!
//! The walks are those of `search`, in a tool interface of its own, so nothing else has its tags. The thread that asks has no
//! reference to any object while the VM walks: it would be a root.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::ContextId;
use lucce_control::Walks;
use lucce_vm::heap::{self, ReferenceKind};
use lucce_vm::{Env, Failed, Jvmti, Vm};

use crate::leaks::choice::Most;
use crate::leaks::search::{Search, Step, Weak};
use crate::leaks::{Alive, Leaks};

/// So many objects are looked for at once.
const OBJECTS: Most = Most {
    of_a_type: 8,
    together: 16,
};
/// No walk begins later: a client that asks does not wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);
/// A name may be as long as a program likes.
const LONGEST: usize = 300;
/// `ACC_STATIC` does not matter: fields of both kinds have numbers in one row.
const REFERENT: &str = "referent";

/// What was found.
pub struct Found {
    pub types: Vec<OfType>,
    /// How long the VM stood still, walk by walk.
    pub pauses: Vec<Duration>,
    /// References that the last walk went along.
    pub references: u64,
    /// A shorter way may have been left out.
    pub is_cut: bool,
    /// The walks that were allowed, or the time, were over before all was found.
    pub is_over: bool,
}

/// Objects of one type.
pub struct OfType {
    /// A descriptor.
    pub of: Box<str>,
    pub followed: usize,
    pub alive: usize,
    /// Objects that were looked for.
    pub looked_for: usize,
    /// Of those objects that are held: from the root to the object.
    pub ways: Vec<Vec<Link>>,
    /// Ways with an object that died, or changed, while the next walk went on.
    pub changed: usize,
}

/// One step of a way: from the object before it, or from a root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    pub by: &'static str,
    /// The class that has the field, or the method; a descriptor.
    pub class: Option<String>,
    /// The field's, or the method's.
    pub name: Option<String>,
    /// Of an array.
    pub index: Option<i32>,
    pub line: Option<i32>,
    pub thread: Option<String>,
    pub is_soft: bool,
    /// The type of the object that it leads to, a descriptor.
    pub of: String,
}

/// What a search would look for, and how large the heap is.
pub struct Ahead {
    pub types: Vec<OfType>,
    pub heap_bytes: Option<u64>,
}

/// What a search would take; nothing is walked.
pub fn ahead(leaks: &Leaks, env: Env, context: ContextId) -> Ahead {
    let types = leaks.some_of(env, (context, None), Most::NONE);
    Ahead {
        types: types.into_iter().map(OfType::from).collect(),
        heap_bytes: env.heap_bytes(),
    }
}

impl From<Alive> for OfType {
    fn from(alive: Alive) -> OfType {
        OfType {
            of: alive.of,
            followed: alive.followed,
            alive: alive.alive,
            looked_for: alive.objects.len(),
            ways: Vec::new(),
            changed: 0,
        }
    }
}

/// Searches, with so many walks at most. `lines`: the agent's tool interface, which knows lines.
///
/// # Errors
/// The VM does not walk.
pub fn find(
    (leaks, lines): (&Leaks, Jvmti),
    (vm, env): (Vm, Env),
    (context, walks): (ContextId, &Walks),
) -> Result<Found, Failed> {
    let tools = vm.tools()?;
    let found = search(leaks, (tools, lines, env), (context, walks));
    // With its tags.
    tools.dispose();
    found
}

fn search(
    leaks: &Leaks,
    (tools, lines, env): (Jvmti, Jvmti, Env),
    (context, walks): (ContextId, &Walks),
) -> Result<Found, Failed> {
    let chosen = leaks.some_of(env, (context, walks.of.as_deref()), OBJECTS);
    let objects = chosen.iter().flat_map(|of_type| &of_type.objects);
    let mut looked_for = 0;
    for (tag, object) in (1..).zip(objects) {
        tools.set_tag(*object, tag)?;
        env.forget(*object);
        looked_for += 1;
    }
    let weak = references(tools, env)?;
    let mut search = Search::new(looked_for, weak);
    let (began, mut pauses) = (Instant::now(), Vec::new());
    let mut is_over = false;
    while search.goes_on() {
        is_over = pauses.len() as u32 >= walks.most || began.elapsed() >= PATIENCE;
        if is_over {
            break;
        }
        search.walks();
        let before = Instant::now();
        tools.follow(&mut |reference| search.told(reference))?;
        pauses.push(before.elapsed());
    }
    let mut namer = Namer::new(tools, lines, env);
    // In the order in which objects got their tags.
    let mut ways = search.ways().into_iter();
    let named = |of_type: Alive| {
        let mut of_type = OfType::from(of_type);
        for way in ways.by_ref().take(of_type.looked_for).flatten() {
            match namer.way(&way) {
                Some(way) => of_type.ways.push(way),
                None => of_type.changed += 1,
            }
        }
        of_type
    };
    Ok(Found {
        types: chosen.into_iter().map(named).collect(),
        pauses,
        references: search.references(),
        is_cut: search.is_cut(),
        is_over,
    })
}

/// Marks classes of weak and soft references, whose referents they do not hold.
fn references(tools: Jvmti, env: Env) -> Result<Vec<Weak>, Failed> {
    let kinds = [
        (c"java/lang/ref/WeakReference", false),
        (c"java/lang/ref/PhantomReference", false),
        (c"java/lang/ref/SoftReference", true),
    ];
    let kinds = kinds.map(|(name, is_soft)| (env.find_class(name), is_soft));
    let mut weak = Vec::new();
    for class in tools.classes() {
        let kind = kinds
            .iter()
            .find(|(kind, _)| kind.is_some_and(|kind| env.is_assignable(class, kind)));
        if let Some((_, is_soft)) = kind
            && let Some(referent) = Fields::of(tools, env, class).number(REFERENT)
        {
            weak.push(Weak {
                referent,
                is_soft: *is_soft,
            });
            tools.set_tag(class, -(weak.len() as i64))?;
        }
        env.forget(class);
    }
    for (kind, _) in kinds {
        env.forget(kind.unwrap_or(std::ptr::null_mut()));
    }
    Ok(weak)
}

/// The fields of a class, as a walk numbers them: those of its superclasses come first, and before them so many numbers are
/// left out as all its interfaces have fields (JVMTI, `jvmtiHeapReferenceInfoField`).
struct Fields {
    first: i32,
    /// The class that has it, and its name.
    fields: Vec<(String, String)>,
}

impl Fields {
    fn of(tools: Jvmti, env: Env, class: jclass) -> Fields {
        let mut line = vec![env.local(class)];
        let is_interface = tools.is_interface(class);
        while let Some(last) = line.last().filter(|_| !is_interface) {
            let above = env.superclass(*last);
            if above.is_null() {
                break;
            }
            line.push(above);
        }
        let mut interfaces = Vec::new();
        for class in &line {
            add_interfaces((tools, env), *class, &mut interfaces);
        }
        let counts = interfaces.iter().map(|of| tools.fields(*of).len());
        let first = counts.sum::<usize>() as i32;
        let mut fields = Vec::new();
        for class in line.iter().rev() {
            let owner = tools.signature(*class).unwrap_or_default();
            for field in tools.fields(*class) {
                let name = tools.field_name(*class, field).unwrap_or_default();
                fields.push((owner.clone(), name));
            }
        }
        for class in line.into_iter().chain(interfaces) {
            env.forget(class);
        }
        Fields { first, fields }
    }

    fn number(&self, name: &str) -> Option<i32> {
        let at = self.fields.iter().position(|(_, of)| of == name)?;
        Some(self.first + at as i32)
    }

    fn get(&self, number: i32) -> Option<&(String, String)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.fields.get(at)
    }
}

/// Those that a class names, and those that these name, each once.
fn add_interfaces((tools, env): (Jvmti, Env), class: jclass, all: &mut Vec<jclass>) {
    for interface in tools.interfaces(class) {
        if all.iter().any(|known| env.is_same(*known, interface)) {
            env.forget(interface);
            continue;
        }
        all.push(interface);
        add_interfaces((tools, env), interface, all);
    }
}

/// Says what is on a way.
struct Namer {
    tools: Jvmti,
    lines: Jvmti,
    env: Env,
    /// By their numbers.
    threads: Option<HashMap<i64, String>>,
}

impl Namer {
    fn new(tools: Jvmti, lines: Jvmti, env: Env) -> Namer {
        Namer {
            tools,
            lines,
            env,
            threads: None,
        }
    }

    /// `None`: an object of it is gone.
    fn way(&mut self, steps: &[Step]) -> Option<Vec<Link>> {
        let all = steps
            .iter()
            .flat_map(|step| step.from.into_iter().chain([step.to]));
        let mut tags: Vec<i64> = all.collect();
        tags.sort_unstable();
        tags.dedup();
        let objects = self.tools.tagged(&tags);
        let object = |tag: i64| {
            let found = objects.iter().find(|(_, of)| *of == tag);
            found.map(|(object, _)| *object)
        };
        let links = steps.iter().map(|step| {
            let to = object(step.to)?;
            let from = match step.from {
                Some(tag) => Some(object(tag)?),
                None => None,
            };
            Some(self.link(step, from, to))
        });
        let links: Option<Vec<Link>> = links.collect();
        for (object, _) in objects {
            self.env.forget(object);
        }
        links
    }

    fn link(&mut self, step: &Step, from: Option<jobject>, to: jobject) -> Link {
        let mut link = Link {
            by: word(step.by),
            class: None,
            name: None,
            index: None,
            line: None,
            thread: None,
            is_soft: step.is_soft,
            of: self.type_of(to),
        };
        match step.by {
            ReferenceKind::Field(number) => {
                if let Some(from) = from {
                    let class = self.env.class_of(from);
                    self.field(&mut link, class, number);
                    self.env.forget(class);
                }
            }
            ReferenceKind::Static(number) => {
                if let Some(class) = from {
                    self.field(&mut link, class, number);
                }
            }
            ReferenceKind::Element(index) => link.index = Some(index),
            ReferenceKind::Local {
                thread,
                method,
                location,
                ..
            } => {
                link.thread = self.thread(thread);
                self.method(&mut link, method, Some(location));
            }
            ReferenceKind::JniLocal { thread, method } => {
                link.thread = self.thread(thread);
                self.method(&mut link, method, None);
            }
            ReferenceKind::Thread => link.thread = self.name_of(to),
            _ => {}
        }
        link
    }

    fn type_of(&self, object: jobject) -> String {
        let class = self.env.class_of(object);
        let of = self.tools.signature(class).unwrap_or_default();
        self.env.forget(class);
        clipped(of)
    }

    fn field(&self, link: &mut Link, class: jclass, number: i32) {
        let fields = Fields::of(self.tools, self.env, class);
        if let Some((owner, name)) = fields.get(number) {
            link.class = Some(clipped(owner.clone()));
            link.name = Some(clipped(name.clone()));
        }
    }

    fn method(&self, link: &mut Link, id: usize, location: Option<i64>) {
        if id == 0 {
            return;
        }
        let method = heap::method(id);
        let named = self
            .tools
            .method_name(method)
            .map(|(name, _)| clipped(name));
        link.name = named;
        if let Some(class) = self.tools.declaring_class(method) {
            link.class = self.tools.signature(class).map(clipped);
            self.env.forget(class);
        }
        let lines = self.lines.lines(method);
        let at = |location: i64| {
            lines
                .iter()
                .take_while(|(start, _)| *start <= location)
                .last()
        };
        link.line = location.and_then(at).map(|(_, line)| *line);
    }

    fn thread(&mut self, number: i64) -> Option<String> {
        if self.threads.is_none() {
            self.threads = Some(self.all_threads());
        }
        let known = self.threads.as_ref()?.get(&number).cloned();
        Some(known.unwrap_or_else(|| format!("thread {number}")))
    }

    fn all_threads(&self) -> HashMap<i64, String> {
        let env = self.env;
        let class = env.find_class(c"java/lang/Thread");
        let number = class.and_then(|class| env.field(class, c"tid", c"J"));
        let mut threads = HashMap::new();
        for thread in self.tools.threads() {
            if let (Some(number), Some(name)) = (number, self.name_of(thread)) {
                threads.insert(env.get_long(thread, number), name);
            }
            env.forget(thread);
        }
        env.forget(class.unwrap_or(std::ptr::null_mut()));
        threads
    }

    /// A thread's.
    fn name_of(&self, thread: jobject) -> Option<String> {
        let env = self.env;
        let class = env.find_class(c"java/lang/Thread")?;
        let field = env.field(class, c"name", c"Ljava/lang/String;");
        let name = field.map(|field| env.get_object(thread, field));
        env.forget(class);
        let name = name.filter(|name| !name.is_null())?;
        let text = env.text(name, LONGEST);
        env.forget(name);
        Some(text)
    }
}

fn clipped(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// As JSON has it.
fn word(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Field(_) => "field",
        ReferenceKind::Static(_) => "static",
        ReferenceKind::Element(_) => "element",
        ReferenceKind::Class => "class",
        ReferenceKind::ClassLoader => "class_loader",
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
