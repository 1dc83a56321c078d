//! `lucce fleet ask`: questions that have names.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use clap::{Arg, ArgMatches, Command};

use crate::cli::engine_args;
use crate::error::FleetError;
use crate::output;
use crate::questions::{ALL, ParameterValue, Question};
use lucce_command::CommandStatus;

/// Ask a question that has a name, such as top-growth; without a name, list the questions.
#[derive(clap::Args)]
pub struct FleetAskArgs {
    /// Name of the question
    #[arg(value_name = "QUESTION")]
    name: Option<String>,
    #[command(flatten)]
    limits: engine_args::QueryEngineArgs,
    /// Print its SQL for other engines; parameters are the columns p_NAME of a table `parameters` of one row
    #[arg(long)]
    sql: bool,
    #[command(flatten)]
    given: QuestionParameterArgs,
}

/// The parameters of all questions are options; whether a question has them is asked later.
struct QuestionParameterArgs(Vec<ParameterValue>);

/// Every name once, with its first meaning.
fn parameter_names() -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<_> = ALL
        .iter()
        .flat_map(Question::parameter_specs)
        .map(|slot| slot.name)
        .collect();
    names.into_iter()
}

impl clap::Args for QuestionParameterArgs {
    fn augment_args(command: Command) -> Command {
        parameter_names().fold(command, |command, name| {
            let of = ALL
                .iter()
                .filter(|question| question.parameter_specs().any(|slot| slot.name == name));
            let of: Vec<_> = of.map(|question| question.name).collect();
            let help = format!("Parameter of {}", of.join(", "));
            command.arg(
                Arg::new(name)
                    .long(name)
                    .value_name("VALUE")
                    .help(help)
                    .help_heading("Parameters"),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for QuestionParameterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = parameter_names().filter_map(|name| {
            let value = matches.get_one::<String>(name)?.clone();
            let name = name.to_owned();
            Some(ParameterValue { name, value })
        });
        Ok(QuestionParameterArgs(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub fn run(args: &FleetAskArgs) -> Result<CommandStatus, FleetError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let Some(name) = &args.name else {
        print_questions(&mut out).map_err(FleetError::Output)?;
        return Ok(CommandStatus::Fine);
    };
    let question = Question::find_by_name(name)?;
    if args.sql {
        out.write_all(question.sql.as_bytes())
            .map_err(FleetError::Output)?;
        return Ok(CommandStatus::Fine);
    }
    let parameters = question.resolve_parameters(&args.given.0)?;
    let mut engine = args.limits.open_engine()?;
    engine.set_parameters(&parameters)?;
    output::write_answer(&engine, question.sql, args.limits.output, &mut out)?;
    Ok(CommandStatus::Fine)
}

fn print_questions(out: &mut impl Write) -> io::Result<()> {
    for question in ALL {
        writeln!(out, "{}\n    {}", question.name, question.description())?;
        for slot in question.parameter_specs() {
            let default = slot.default.filter(|default| !default.is_empty());
            let default = default.map_or_else(String::new, |default| format!(" ({default})"));
            writeln!(out, "    --{}: {}{default}", slot.name, slot.meaning)?;
        }
    }
    out.flush()
}
