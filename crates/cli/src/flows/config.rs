//! The file of flows: what each runs, and what is wrong with it.

use crate::{Command, Failure, Program, dedup, index, visits};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The subcommands that can be flows.
const COMMANDS: [&str; 3] = ["dedup", "visits", "index"];

/// Fields that name files which one flow alone may write.
const WRITTEN: [&str; 8] =
    ["output", "duplicates", "late", "invalid", "missing", "skewed", "state", "summary"];

/// A file of flows.
#[derive(Debug)]
pub struct Config {
    /// In the order of the file.
    pub flows: Vec<Flow>,
}

/// What one process runs.
#[derive(Clone, Debug)]
pub struct Flow {
    pub name: String,
    /// The subcommand.
    command: String,
    line: usize,
    fields: Vec<Field>,
}

/// A flag and its values, or the inputs.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    line: usize,
    words: Vec<String>,
}

/// Something wrong with a file of flows, and where.
#[derive(Debug)]
pub struct Mistake {
    pub path: PathBuf,
    pub line: Option<usize>,
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.what)
    }
}

impl PartialEq for Flow {
    /// Whether both run the same, wherever they stand in the file.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments() == other.arguments()
    }
}

impl Flow {
    /// What the program is started with.
    pub fn arguments(&self) -> Vec<&str> {
        let words = self.fields.iter().flat_map(|field| &field.words).map(String::as_str);
        std::iter::once(self.command.as_str()).chain(words).collect()
    }

    /// The same as a person would write it in a shell.
    pub fn shown(&self) -> String {
        let plain = |char: char| char.is_ascii_alphanumeric() || "-_=./:,@%+".contains(char);
        let quoted = |word: &str| match word.chars().all(plain) && !word.is_empty() {
            true => word.to_owned(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        };
        let words: Vec<_> = self.arguments().into_iter().map(quoted).collect();
        words.join(" ")
    }
}

/// A file as it is read.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    mistakes: Vec<Mistake>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader { path, text, mistakes: Vec::new() };
        let table = match DeTable::parse(text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let line = error.span().map(|span| reader.line(span.start));
                return Err(vec![Mistake {
                    path: path.into(),
                    line,
                    what: error.message().into(),
                }]);
            }
        };
        let mut tables: Vec<_> = table.iter().collect();
        tables.sort_by_key(|(name, _)| name.span().start);
        let flows: Vec<_> =
            tables.into_iter().filter_map(|(name, value)| reader.flow(name, value)).collect();
        if flows.is_empty() && reader.mistakes.is_empty() {
            reader.mistake(None, "there is no flow in it; see `lately run --help` for one");
        }
        reader.refuse_shared(&flows);
        reader.mistakes.sort_by_key(|mistake| mistake.line);
        if reader.mistakes.is_empty() { Ok(Self { flows }) } else { Err(reader.mistakes) }
    }
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
    }

    fn mistake(&mut self, line: Option<usize>, what: impl Into<String>) {
        self.mistakes.push(Mistake { path: self.path.into(), line, what: what.into() });
    }

    /// One flow; `None` if it is none.
    fn flow(
        &mut self,
        name: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Flow> {
        let (line, name) = (self.line(name.span().start), name.get_ref().as_ref().to_owned());
        let DeValue::Table(table) = value.get_ref() else {
            self.mistake(
                Some(line),
                format!("`{name}` is not a flow; a flow is a table: [{name}]"),
            );
            return None;
        };
        let mut fields: Vec<_> = table.iter().collect();
        fields.sort_by_key(|(field, _)| field.span().start);
        let at = table.iter().find(|(field, _)| field.get_ref() == "command");
        let command = match at.map(|(_, value)| (value.span().start, text(value.get_ref()))) {
            None => COMMANDS[0].to_owned(),
            Some((_, Some(command))) if COMMANDS.contains(&command.as_str()) => command,
            Some((at, _)) => {
                let known = COMMANDS.join(", ");
                self.mistake(
                    Some(self.line(at)),
                    format!("{name}: `command` must be one of {known}"),
                );
                return None;
            }
        };
        let before = self.mistakes.len();
        let mut flow = Flow { name, command, line, fields: Vec::new() };
        for (field, value) in fields {
            let (line, field) = (self.line(field.span().start), field.get_ref().as_ref());
            if field != "command" {
                match words(&flow.command, field, value.get_ref()) {
                    Ok(words) => flow.fields.push(Field { name: field.into(), line, words }),
                    Err(why) => self.mistake(Some(line), format!("{}: {why}", flow.name)),
                }
            }
        }
        if self.mistakes.len() == before {
            self.check(&flow);
        }
        Some(flow)
    }

    /// What its subcommand has to say about it.
    fn check(&mut self, flow: &Flow) {
        let named = |name: &str| flow.fields.iter().find(|field| field.name == name);
        if named("input").is_none() {
            self.mistake(
                Some(flow.line),
                format!("{}: there is no `input`: a flow has no standard input", flow.name),
            );
        }
        if flow.command != "index" && named("output").is_none() {
            self.mistake(
                Some(flow.line),
                format!("{}: there is no `output`: a flow has no standard output", flow.name),
            );
        }
        let words = std::iter::once("lately").chain(flow.arguments());
        let made = Program::command().try_get_matches_from(words);
        let made = made.and_then(|matches| Program::from_arg_matches(&matches));
        let wrong = match made {
            Ok(Program { command, .. }) => match check(&command) {
                Ok(()) => return,
                Err(Failure::Usage(why) | Failure::Trouble(why)) => why,
                Err(_) => "it cannot run".into(),
            },
            Err(error) => plain(&error),
        };
        let field = flow.fields.iter().find(|field| {
            let flag = format!("--{}", field.name);
            let after = wrong.find(&flag).and_then(|at| wrong.get(at + flag.len()..));
            after.is_some_and(|rest| {
                !rest.starts_with(|char: char| char == '-' || char.is_alphanumeric())
            })
        });
        let line = field.map_or(flow.line, |field| field.line);
        self.mistake(Some(line), format!("{}: {wrong}", flow.name));
    }

    /// Refuses files that two flows would write.
    fn refuse_shared(&mut self, flows: &[Flow]) {
        let mut writers = BTreeMap::new();
        for flow in flows {
            for field in flow.fields.iter().filter(|field| WRITTEN.contains(&field.name.as_str())) {
                let value = field.words.first().and_then(|word| word.split_once('='));
                let Some((_, value)) =
                    value.filter(|(_, value)| !crate::brokers::is_address(value))
                else {
                    continue;
                };
                let path = std::path::absolute(value).unwrap_or_else(|_| value.into());
                let Some((other, line)) = writers.insert(path, (&flow.name, field.line)) else {
                    continue;
                };
                if *other != flow.name {
                    self.mistake(
                        Some(field.line),
                        format!(
                            "{}: `{}`: {value} is written by the flow `{other}`, too (line {line})",
                            flow.name, field.name
                        ),
                    );
                }
            }
        }
    }
}

/// Refuses what the subcommand refuses before it touches a file.
fn check(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Dedup(arguments) => dedup::check(arguments),
        Command::Visits(arguments) => visits::check(arguments),
        Command::Index(arguments) => index::check(arguments),
        _ => Ok(()),
    }
}

/// What clap says, in one line and without its hints about usage.
fn plain(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    match (error.kind(), context(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(missing)) => format!("{missing} is missing"),
        _ => first.trim_end_matches(':').to_owned(),
    }
}

/// The words that a field stands for on the command line.
fn words(command: &str, field: &str, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let values = values(field, value)?;
    if field == "input" {
        let is_input = |input: &String| !input.starts_with('-');
        return match values.iter().all(is_input) && !values.is_empty() {
            true => Ok(values),
            false => Err("`input` is a file, an address, or a list of files".into()),
        };
    }
    let program = Program::command();
    let known = program.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments);
    let Some(arg) = known.into_iter().find(|arg| arg.get_long() == Some(field)) else {
        return Err(unknown(command, field));
    };
    if !arg.get_action().takes_values() {
        return match value {
            DeValue::Boolean(true) => Ok(vec![format!("--{field}")]),
            DeValue::Boolean(false) => Ok(Vec::new()),
            _ => Err(format!("`{field}` is true or false")),
        };
    }
    if let DeValue::Boolean(given) = value
        && arg.get_num_args().is_some_and(|count| count.min_values() == 0)
    {
        return Ok(given.then(|| format!("--{field}")).into_iter().collect());
    }
    if values.len() > 1 && !matches!(arg.get_action(), ArgAction::Append) {
        return Err(format!("`{field}` takes one value"));
    }
    Ok(values.iter().map(|value| format!("--{field}={value}")).collect())
}

/// Why a field is none, with the flag that may be meant.
fn unknown(command: &str, field: &str) -> String {
    let made =
        Program::command().try_get_matches_from(["lately", command, &format!("--{field}=x")]);
    let near = made.err().and_then(|error| match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(near)) => Some(near.trim_start_matches('-').to_owned()),
        _ => None,
    });
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("`{field}` is not a flag of `lately {command}`{near}")
}

/// The values of a field as texts.
fn values(field: &str, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let wrong = || format!("`{field}` is a text, a number, or a list of them");
    match value {
        DeValue::Array(array) => {
            let one = |value: &Spanned<DeValue<'_>>| text(value.get_ref()).ok_or_else(wrong);
            array.iter().map(one).collect()
        }
        other => Ok(vec![text(other).ok_or_else(wrong)?]),
    }
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Vec<String>> {
        let mistakes = |all: Vec<Mistake>| all.iter().map(Mistake::to_string).collect();
        Config::parse(Path::new("f.toml"), text).map_err(mistakes)
    }

    #[test]
    fn flows_are_what_a_person_would_write() {
        let config = parse(
            "[docks]\n\
             input = [\"a.csv\", \"b c.csv\"]\noutput = \"clean.csv\"\n\
             key = [\"epc\", \"antenna\"]\nwithin = \"5s\"\nfpr = 0.001\nmark = true\nstrict = false\n\
             count = \"n\"\n\
             [tags]\ncommand = \"index\"\ninput = \"a.csv\"\nkey = \"epc\"\nstate = \"tags.index\"\nlast = 1000\n",
        );
        let error = config.unwrap_err();
        // What does not go together is told at one of the two.
        assert_eq!(error.len(), 1, "{error:?}");
        assert!(error[0].starts_with("f.toml:") && error[0].contains("--mark"), "{error:?}");
        let config = parse(
            "[docks]\n\
             input = [\"a.csv\", \"b c.csv\"]\noutput = \"clean.csv\"\n\
             key = [\"epc\", \"antenna\"]\nwithin = \"5s\"\nfpr = 0.001\nmark = true\nstrict = false\n\
             [tags]\ncommand = \"index\"\ninput = \"a.csv\"\nkey = \"epc\"\nstate = \"tags.index\"\nlast = 1000\n",
        )
        .unwrap();
        let shown: Vec<_> = config.flows.iter().map(Flow::shown).collect();
        assert_eq!(
            shown,
            [
                "dedup a.csv 'b c.csv' --output=clean.csv --key=epc --key=antenna --within=5s --fpr=0.001 --mark",
                "index a.csv --key=epc --state=tags.index --last=1000",
            ]
        );
        assert_eq!(config.flows[0].name, "docks");
    }

    #[test]
    fn mistakes_name_their_line_and_field() {
        for (text, line, words) in [
            ("[a]\ninput = \"x\"\noutput = \"y\"\nwithim = \"5s\"\n", 4, "did you mean `within`?"),
            ("[a]\ninput = \"x\"\noutput = \"y\"\nwithin = \"5 parsecs\"\n", 4, "--within"),
            ("[a]\ninput = \"x\"\nwithin = \"5s\"\n", 1, "no `output`"),
            ("[a]\noutput = \"x\"\n", 1, "no `input`"),
            ("a = 1\n", 1, "`a` is not a flow"),
            ("[a]\ncommand = \"serve\"\n", 2, "`command` must be one of dedup"),
            ("[a]\ninput = \"x\"\noutput = \"y\"\nmark = 1\n", 4, "`mark` is true or false"),
            ("[a]\ninput = \"x\"\noutput = \"y\"\nfpr = [1, 2]\n", 4, "`fpr` takes one value"),
            ("[a]\ninput = \"-\"\noutput = \"y\"\n", 2, "`input` is a file"),
            ("[a]\ninput = \"x\"\noutput = \"y\"\nbest = \"r:max\"\n", 1, "--hold"),
            ("[a]\ninput = \"x\"\noutput = \"y\"\n\nwithin = \n", 5, ""),
            (
                "[a]\ninput = \"x\"\noutput = \"y\"\n[b]\ninput = \"x\"\noutput = \"./y\"\n",
                6,
                "written by the flow `a`, too (line 3)",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.len(), 1, "{error:?}");
            assert!(error[0].starts_with(&format!("f.toml:{line}: ")), "{error:?}");
            assert!(error[0].contains(words), "{error:?}");
        }
        assert!(parse("").unwrap_err()[0].contains("no flow"));
        // All of them at once.
        assert_eq!(parse("[a]\nx = 1\ny = 2\n[b]\nz = 3\n").unwrap_err().len(), 3);
    }
}
