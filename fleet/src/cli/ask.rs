//! `lucce fleet ask`: questions that have names.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use clap::{Arg, ArgMatches, Command};

use crate::cli::{End, limits};
use crate::error::Error;
use crate::output;
use crate::questions::{ALL, Parameter, Question};

/// Asks a question that has a name: lucce fleet ask top-growth --from 1.3 --to 1.4. Without a name: tells which there are.
#[derive(clap::Args)]
pub struct Args {
    /// The question.
    name: Option<String>,
    #[command(flatten)]
    limits: limits::Args,
    /// Prints its SQL, for other engines: parameters are the columns p_NAME of a table `parameters` of one row.
    #[arg(long)]
    sql: bool,
    #[command(flatten)]
    given: Given,
}

/// The parameters of all questions are options; whether a question has them is asked later.
struct Given(Vec<Parameter>);

/// Every name once, with its first meaning.
fn names() -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<_> = ALL
        .iter()
        .flat_map(Question::slots)
        .map(|slot| slot.name)
        .collect();
    names.into_iter()
}

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        names().fold(command, |command, name| {
            let of = ALL
                .iter()
                .filter(|question| question.slots().any(|slot| slot.name == name));
            let of: Vec<_> = of.map(|question| question.name).collect();
            let help = format!("of {}", of.join(", "));
            command.arg(
                Arg::new(name)
                    .long(name)
                    .help(help)
                    .help_heading("Parameters"),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = names().filter_map(|name| {
            let value = matches.get_one::<String>(name)?.clone();
            let name = name.to_owned();
            Some(Parameter { name, value })
        });
        Ok(Given(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub fn run(args: &Args) -> Result<End, Error> {
    let mut out = BufWriter::new(io::stdout().lock());
    let Some(name) = &args.name else {
        list(&mut out).map_err(Error::Output)?;
        return Ok(End::Fine);
    };
    let question = Question::named(name)?;
    if args.sql {
        out.write_all(question.sql.as_bytes())
            .map_err(Error::Output)?;
        return Ok(End::Fine);
    }
    let parameters = question.parameters(&args.given.0)?;
    let mut engine = args.limits.engine()?;
    engine.parameters(&parameters)?;
    output::answer(&engine, question.sql, args.limits.output, &mut out)?;
    Ok(End::Fine)
}

fn list(out: &mut impl Write) -> io::Result<()> {
    for question in ALL {
        writeln!(out, "{}\n    {}", question.name, question.about())?;
        for slot in question.slots() {
            let default = slot.default.filter(|default| !default.is_empty());
            let default = default.map_or_else(String::new, |default| format!(" ({default})"));
            writeln!(out, "    --{}: {}{default}", slot.name, slot.meaning)?;
        }
    }
    out.flush()
}
