//! `lucce ctl PID holders`: what keeps followed objects alive, from roots on.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Write};

use lucce_control::{Command, Walks, ask};
use lucce_decoder::escape::Text;
use lucce_decoder::{Number, Profile, type_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::human::human;
use super::output::{json, plural, stdout};
use super::{End, Failure, complain, ctl, open};

#[derive(clap::Args)]
pub struct Args {
    /// The context's number, as `lucce leaks` prints it; all of them, if it has several
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Objects of this type only, named as `lucce leaks` does; without it, some of each type that is made there
    #[arg(long = "type", value_name = "NAME", allow_hyphen_values = true)]
    of: Option<String>,
    /// Do not ask, whatever the walks may take
    #[arg(long)]
    yes: bool,
    /// So many walks at most: each finds who refers to what the one before has found
    #[arg(long, default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=1000))]
    walks: u32,
}

/// Nanoseconds that the JVM stands still in a walk, for each byte of its heap (docs/performance.md).
const NANOS_FOR_A_BYTE: f64 = 4.0;
/// Walks that a usual path takes.
const USUAL: f64 = 10.0;
/// What may take longer is asked for.
const AT_ONCE: f64 = 2e9;

/// Types that a line names, of those that there are besides.
const NAMED: usize = 5;

/// What a search would take.
#[derive(Deserialize)]
struct Ahead {
    followed: u64,
    alive: u64,
    of: Option<String>,
    heap_bytes: Option<u64>,
    /// Not told by older agents.
    types: Option<Vec<Counts>>,
}

/// Objects of one type.
#[derive(Deserialize)]
struct Counts {
    /// A descriptor.
    of: String,
    alive: u64,
}

/// As the agent tells it.
#[derive(Deserialize)]
struct Answer {
    followed: u64,
    alive: u64,
    looked_for: u64,
    pauses_us: Vec<u64>,
    cut: bool,
    over: bool,
    changed: u64,
    /// In the order of their types.
    paths: Vec<Vec<Link>>,
    /// Not told by older agents, whose answer is of all types together.
    types: Option<Vec<OfType>>,
}

#[derive(Deserialize)]
struct OfType {
    /// A descriptor.
    of: Option<String>,
    followed: u64,
    alive: u64,
    looked_for: u64,
    changed: u64,
    /// How many there are of it.
    paths: usize,
}

#[derive(Serialize, Deserialize, Clone)]
struct Link {
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    soft: bool,
    /// The type of the object that it leads to.
    of: String,
}

/// Of one type. Pauses, and how the search ended, are those of all types of the number.
#[derive(Serialize)]
struct Holders {
    schema: &'static str,
    version: u32,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
    class: Option<String>,
    followed: u64,
    alive: u64,
    looked_for: u64,
    /// Looked for, and no root leads to them.
    not_held: u64,
    /// They, or what is on their way, have changed meanwhile.
    changed: u64,
    /// Milliseconds.
    pauses: Vec<f64>,
    /// There may be a shorter path.
    cut: bool,
    /// The walks were over before all was found.
    over: bool,
    paths: Vec<Held>,
}

/// Objects that are held in the same way.
#[derive(Serialize)]
struct Held {
    objects: u64,
    /// Of one of them, from the root to the object.
    links: Vec<Link>,
    /// Where the objects lie in arrays differs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    elsewhere: bool,
}

/// Each number is a search of its own: objects are followed by the number that they were made under.
pub fn run(pid: u32, args: &Args, as_json: bool) -> Result<End, Failure> {
    let numbers = args.ids.iter().map(|id| number(id));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let status: Value = answered(&ask(pid, &Command::Status)?)?;
    for (number, text) in numbers.iter().zip(&args.ids) {
        recorded_by(pid, &status, (*number, text))?;
    }
    // Holders are told without it, too.
    let log = ctl::log_in(&status);
    let profile = log.and_then(|log| open(&log).ok());
    let mut out = stdout();
    for (at, number) in numbers.into_iter().enumerate() {
        if at > 0 && !as_json {
            writeln!(out)?;
        }
        let context = Context::new(number, profile.as_ref());
        search(pid, args, &context, as_json, &mut out)?;
        out.flush()?;
    }
    Ok(End::Fine)
}

/// Whose objects are looked for.
struct Context {
    number: Number,
    /// Its content id, if the log can be read.
    stack: Option<String>,
}

impl Context {
    fn new(number: Number, profile: Option<&Profile>) -> Context {
        let trace = profile.and_then(|profile| profile.trace(number.id).ok());
        let stack = trace.map(|trace| trace.stack.to_string());
        Context { number, stack }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "context {}", self.number)?;
        match &self.stack {
            Some(stack) => writeln!(out, "  {stack}"),
            None => writeln!(out),
        }
    }
}

fn search(
    pid: u32,
    args: &Args,
    context: &Context,
    as_json: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let number = context.number;
    let ahead: Ahead = answered(&ask(pid, &Command::Holders(number.id.0, None))?)?;
    if ahead.followed == 0 {
        let none = "no object of this number is followed now";
        return absent(
            args,
            number,
            &format!("{none}; `lucce leaks {pid}` lists contexts"),
        );
    }
    let wanted = match (&args.of, &ahead.types) {
        (Some(name), Some(types)) => match types.iter().find(|of_type| of_type.is(name)) {
            Some(of_type) => Some(of_type),
            None => return absent(args, number, &other_types(name, types)),
        },
        (Some(_), None) => {
            complain(
                "the agent is older than this command and tells no types apart: this is of all of them",
            );
            None
        }
        (None, _) => None,
    };
    if wanted.map_or(ahead.alive, |of_type| of_type.alive) > 0 {
        tell_beforehand(pid, args, &ahead)?;
    }
    let walks = Walks {
        most: args.walks,
        of: wanted.map(|of_type| of_type.of.clone()),
    };
    let answer: Answer = answered(&ask(pid, &Command::Holders(number.id.0, Some(walks)))?)?;
    let of = wanted.map(|of_type| of_type.of.clone()).or(ahead.of);
    let holders = Holders::of_types(context, of, answer);
    if as_json {
        holders.iter().try_for_each(|of_type| json(out, of_type))?;
        return Ok(());
    }
    context.write(out)?;
    Ok(write(&holders, args.walks, out)?)
}

/// One of several numbers may have nothing to tell.
fn absent(args: &Args, number: Number, why: &str) -> Result<(), Failure> {
    let text = format!("{number}: {why}");
    if args.ids.len() == 1 {
        return Err(Failure::Usage(text));
    }
    complain(text);
    Ok(())
}

fn other_types(name: &str, types: &[Counts]) -> String {
    let others = some(types.iter().map(|of_type| type_name(&of_type.of)));
    format!(
        "no {} that was made there is followed now; there are {others}",
        Text(name)
    )
}

/// The first names, and how many more there are.
fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named: Vec<_> = names
        .take(NAMED)
        .map(|name| Text(&name).to_string())
        .collect();
    match more {
        0 => named.join(", "),
        _ => format!(
            "{} and {}",
            named.join(", "),
            plural(more as u64, "more type")
        ),
    }
}

/// The option for a type as it is printed, as a shell takes it.
pub fn type_option(class: &str) -> String {
    let class = Text(class).to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
    match class.chars().all(is_plain) {
        true => format!("--type {class}"),
        false => format!("--type '{}'", class.replace('\'', r"'\''")),
    }
}

impl Counts {
    fn is(&self, name: &str) -> bool {
        Text(&type_name(&self.of)).to_string() == name
    }
}

fn number(text: &str) -> Result<Number, Failure> {
    match Number::all_in(text).as_slice() {
        [number] => Ok(*number),
        _ => Err(Failure::Usage(format!(
            "{text:?} is no number: lucce:RUN:0x…, as `lucce leaks` prints it"
        ))),
    }
}

/// The number is one of the run that the JVM records.
fn recorded_by(pid: u32, status: &Value, (number, text): (Number, &str)) -> Result<(), Failure> {
    let run = number.run.map(|run| run.to_string());
    match run.is_none_or(|run| status["run"] == run) {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "{text} is a number of another run: process {pid} records {}",
            Text(status["run"].as_str().unwrap_or("none"))
        ))),
    }
}

fn answered<T: for<'a> Deserialize<'a>>(answer: &str) -> Result<T, Failure> {
    serde_json::from_str(answer)
        .map_err(|_| Failure::Refused("the answer is foreign".into(), End::Damaged))
}

/// What it takes, before it is done.
fn tell_beforehand(pid: u32, args: &Args, ahead: &Ahead) -> Result<(), Failure> {
    let Some(bytes) = ahead.heap_bytes else {
        return confirmed(pid, args, f64::INFINITY);
    };
    let pause = bytes as f64 * NANOS_FOR_A_BYTE;
    complain(format_args!(
        "{} in the heap: each walk stops JVM {pid} for up to {}; a path of n steps takes n walks, at most {} in 60 s",
        human(bytes as f64, "bytes"),
        human(pause.max(1e6), "ns"),
        args.walks
    ));
    confirmed(pid, args, pause * USUAL)
}

fn confirmed(pid: u32, args: &Args, nanos: f64) -> Result<(), Failure> {
    if args.yes || nanos <= AT_ONCE {
        return Ok(());
    }
    let refused = || {
        Failure::Usage(format!(
            "nothing was done to JVM {pid}: say --yes to walk through its heap"
        ))
    };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(refused());
    }
    eprint!("go on? [y/N] ");
    let mut said = String::new();
    io::stdin().lock().read_line(&mut said)?;
    match said.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(refused()),
    }
}

impl Holders {
    /// `of`: what is known of the type, if the agent tells none.
    fn of_types(context: &Context, of: Option<String>, answer: Answer) -> Vec<Holders> {
        let all = OfType {
            of,
            followed: answer.followed,
            alive: answer.alive,
            looked_for: answer.looked_for,
            changed: answer.changed,
            paths: answer.paths.len(),
        };
        let pauses: Vec<_> = answer.pauses_us.iter().map(|us| *us as f64 / 1e3).collect();
        let mut paths = answer.paths.into_iter();
        let of_type = |of_type: OfType| {
            let paths: Vec<_> = paths.by_ref().take(of_type.paths).collect();
            let found = paths.len() as u64 + of_type.changed;
            Holders {
                schema: "lucce-holders",
                version: 1,
                id: context.number.to_string(),
                stack: context.stack.clone(),
                class: of_type.of.as_deref().map(type_name),
                followed: of_type.followed,
                alive: of_type.alive,
                looked_for: of_type.looked_for,
                not_held: of_type.looked_for.saturating_sub(found),
                changed: of_type.changed,
                pauses: pauses.clone(),
                cut: answer.cut,
                over: answer.over,
                paths: held(paths),
            }
        };
        let types = answer.types.filter(|types| !types.is_empty());
        let types = types.unwrap_or_else(|| vec![all]);
        types.into_iter().map(of_type).collect()
    }

    fn class(&self) -> &str {
        self.class.as_deref().unwrap_or("objects")
    }

    /// `walks`: how many were allowed.
    fn write(&self, walks: u32, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{}: {} followed, {} alive, {} of them looked for",
            Text(self.class()),
            super::output::grouped(self.followed),
            super::output::grouped(self.alive),
            self.looked_for
        )?;
        for held in &self.paths {
            held.write(self.looked_for, out)?;
        }
        writeln!(out)?;
        self.write_rest(walks, out)
    }

    fn has_rest(&self) -> bool {
        self.not_held > 0 || self.changed > 0
    }

    /// What was not found.
    fn write_rest(&self, walks: u32, out: &mut impl Write) -> io::Result<()> {
        let are = |number: u64| if number == 1 { "is" } else { "are" };
        if self.not_held > 0 && self.over {
            let objects = plural(self.not_held, "object");
            match (self.pauses.len() as u64) < u64::from(walks) {
                true => writeln!(
                    out,
                    "of {objects} no path was found within a minute, after which no walk begins: `jcmd PID GC.heap_dump FILE` shows longer ones"
                )?,
                false => writeln!(
                    out,
                    "of {objects} no path was found in {}: what holds them is a longer chain, such as a linked list; --walks {} looks further, or ask for the number of what the chain is made of",
                    plural(walks.into(), "walk"),
                    walks.saturating_mul(4).min(1000)
                )?,
            }
        } else if self.not_held > 0 {
            writeln!(
                out,
                "{} {} held by nothing: the next collection of the old generation takes {}",
                plural(self.not_held, "object"),
                are(self.not_held),
                if self.not_held == 1 { "it" } else { "them" }
            )?;
        }
        if self.changed > 0 {
            writeln!(
                out,
                "what held {} changed meanwhile: ask again",
                plural(self.changed, "object")
            )?;
        }
        Ok(())
    }

    /// How the search went.
    fn write_search(&self, out: &mut impl Write) -> io::Result<()> {
        if self.cut {
            writeln!(
                out,
                "more objects refer to some on these paths than were looked at: there may be a shorter path"
            )?;
        }
        let most = self.pauses.iter().copied().fold(0.0, f64::max);
        let sum: f64 = self.pauses.iter().sum();
        writeln!(
            out,
            "{}: the JVM stood still for {} at most, {} together",
            plural(self.pauses.len() as u64, "walk"),
            human(most * 1e6, "ns"),
            human(sum * 1e6, "ns")
        )
    }
}

/// All types of a number, which one search has looked for.
fn write(types: &[Holders], walks: u32, out: &mut impl Write) -> io::Result<()> {
    let (looked_for, others): (Vec<_>, Vec<_>) =
        types.iter().partition(|of_type| of_type.looked_for > 0);
    let Some(any) = looked_for.first() else {
        for of_type in types.iter().take(NAMED) {
            of_type.write(walks, out)?;
        }
        return writeln!(out, "nothing was walked: none of them is alive any more");
    };
    let mut before: Option<&Holders> = None;
    for of_type in &looked_for {
        if before.is_some_and(Holders::has_rest) {
            writeln!(out)?;
        }
        of_type.write(walks, out)?;
        before = Some(of_type);
    }
    let others = others.iter().filter(|of_type| of_type.alive > 0);
    let others: Vec<_> = others.map(|of_type| of_type.class().to_owned()).collect();
    if !others.is_empty() {
        let others = some(others.into_iter());
        writeln!(
            out,
            "not looked for, as types are many (--type NAME): {others}"
        )?;
    }
    any.write_search(out)
}

/// Paths that differ in places in arrays only are one. The most frequent first.
fn held(paths: Vec<Vec<Link>>) -> Vec<Held> {
    let mut by_shape: BTreeMap<Vec<String>, Held> = BTreeMap::new();
    for path in paths {
        let links: Vec<Link> = path.into_iter().map(Link::named).collect();
        let shape = links.iter().map(|link| link.text(false)).collect();
        match by_shape.get_mut(&shape) {
            None => {
                let held = Held {
                    objects: 1,
                    links,
                    elsewhere: false,
                };
                by_shape.insert(shape, held);
            }
            Some(held) => {
                held.objects += 1;
                held.elsewhere |= held
                    .links
                    .iter()
                    .map(|link| link.index)
                    .ne(links.iter().map(|link| link.index));
            }
        }
    }
    let mut all: Vec<Held> = by_shape.into_values().collect();
    all.sort_by_key(|held| std::cmp::Reverse(held.objects));
    all
}

impl Held {
    fn write(&self, of: u64, out: &mut impl Write) -> io::Result<()> {
        let elsewhere = match self.elsewhere {
            true => " (one of them; the others are elsewhere in the arrays)",
            false => "",
        };
        let are = if self.objects == 1 { "is" } else { "are" };
        writeln!(out, "\n{} of {of} {are} held by{elsewhere}:", self.objects)?;
        self.links
            .iter()
            .try_for_each(|link| writeln!(out, "\t{}", link.text(true)))
    }
}

impl Link {
    /// With types as Java code names them.
    fn named(mut self) -> Link {
        self.of = type_name(&self.of);
        self.class = self.class.as_deref().map(type_name);
        self
    }

    /// In words; `exactly`: with the place in an array.
    fn text(&self, exactly: bool) -> String {
        let member = || {
            let (class, name) = (self.class.as_deref(), self.name.as_deref());
            format!(
                "{}.{}",
                Text(class.unwrap_or("?")),
                Text(name.unwrap_or("?"))
            )
        };
        let thread = || format!("\"{}\"", Text(self.thread.as_deref().unwrap_or("?")));
        let line = self
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        let soft = if self.soft { "soft reference, " } else { "" };
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
            other => Text(&other.replace('_', " ")).to_string(),
        };
        format!("{soft}{by}: {}", Text(&self.of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(by: &str, of: &str, index: Option<i64>) -> Link {
        Link {
            by: by.into(),
            class: Some("La/B;".into()),
            name: Some("all".into()),
            index,
            line: None,
            thread: None,
            soft: false,
            of: of.into(),
        }
    }

    #[test]
    fn paths_that_differ_in_places_only_are_one() {
        let path = |at| {
            vec![
                link("static", "[Ljava/lang/Object;", None),
                link("element", "La/C;", Some(at)),
            ]
        };
        let held = held(vec![
            vec![link("thread", "La/C;", None)],
            path(1),
            path(2),
            path(1),
        ]);
        assert_eq!(
            held.iter().map(|held| held.objects).collect::<Vec<_>>(),
            [3, 1]
        );
        let mut text = Vec::new();
        held[0].write(4, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "\n3 of 4 are held by (one of them; the others are elsewhere in the arrays):\n\tstatic field a.B.all: java.lang.Object[]\n\telement [1]: a.C\n"
        );
    }

    fn told(answer: Answer) -> String {
        let number = Number {
            run: None,
            id: lucce_decoder::ContextId(1),
        };
        let context = Context::new(number, None);
        let holders = Holders::of_types(&context, Some("La/C;".into()), answer);
        let mut text = Vec::new();
        write(&holders, 48, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_was_not_found_says_how_to_go_on() {
        let told = |walked: usize| {
            told(Answer {
                followed: 3,
                alive: 3,
                looked_for: 3,
                pauses_us: vec![1_000; walked],
                cut: false,
                over: true,
                changed: 0,
                paths: vec![vec![link("static", "La/C;", None)]],
                types: None,
            })
        };
        let walks = told(48);
        assert!(
            walks.contains("of 2 objects no path was found in 48 walks")
                && walks.contains("--walks 192"),
            "{walks}"
        );
        let minute = told(20);
        assert!(
            minute.contains("within a minute") && !minute.contains("--walks"),
            "{minute}"
        );
    }

    #[test]
    fn each_type_has_paths_of_its_own() {
        let of_type = |of: &str, looked_for, paths| OfType {
            of: Some(of.into()),
            followed: 30,
            alive: 20,
            looked_for,
            changed: 0,
            paths,
        };
        let static_of = |name: &str, of: &str| Link {
            name: Some(name.into()),
            ..link("static", of, None)
        };
        let text = told(Answer {
            followed: 90,
            alive: 60,
            looked_for: 3,
            pauses_us: vec![1_000],
            cut: false,
            over: false,
            changed: 0,
            paths: vec![
                vec![static_of("LEAK", "La/Node;")],
                vec![static_of("LEAK", "La/Node;")],
                vec![static_of("CACHE", "[J")],
            ],
            types: Some(vec![
                of_type("La/Node;", 2, 2),
                of_type("[J", 2, 1),
                of_type("La/C$D;", 0, 0),
            ]),
        });
        let wanted = "\
a.Node: 30 followed, 20 alive, 2 of them looked for

2 of 2 are held by:
\tstatic field a.B.LEAK: a.Node

long[]: 30 followed, 20 alive, 2 of them looked for

1 of 2 is held by:
\tstatic field a.B.CACHE: long[]

1 object is held by nothing: the next collection of the old generation takes it
not looked for, as types are many (--type NAME): a.C$D
";
        let (found, pauses) = text.split_at(wanted.len());
        assert_eq!(found, wanted);
        assert!(
            pauses.starts_with("1 walk: the JVM stood still for"),
            "{pauses}"
        );
    }

    /// `leaks` prints the command.
    #[test]
    fn a_type_is_quoted_for_shells_and_found_again() {
        let is = |of: &str, name: &str| {
            let (of, alive) = (of.into(), 1);
            Counts { of, alive }.is(name)
        };
        for (of, name, option) in [
            ("La/B;", "a.B", "--type a.B"),
            ("LMix$Node;", "Mix$Node", "--type 'Mix$Node'"),
            ("[J", "long[]", "--type 'long[]'"),
            ("La/It's;", "a.It's", r"--type 'a.It'\''s'"),
            ("La/\u{1b};", "a.\\u001b", r"--type 'a.\u001b'"),
        ] {
            assert_eq!(type_option(&type_name(of)), option);
            assert!(is(of, name), "{name}");
        }
        assert!(!is("LMix$Node;", "Mix$Nod"));
    }

    #[test]
    fn names_change_no_terminal() {
        let mut hostile = link("field", "La/\u{1b}[2J;", None);
        hostile.name = Some("\nx".into());
        assert_eq!(hostile.named().text(true), "field a.B.\\nx: a.\\u001b[2J");
    }
}
