//! The command line.

use std::path::PathBuf;

use tierwise_recorder::{
    DEFAULT_LIMIT_BYTES, Order, Schedule, UserError, Wanted, default_burst_s, role_by_path,
};

/// What `--help` prints.
pub const HELP: &str = "\
Record what a running database does, for tierwise on another machine.

  tierwise-record -o DIR --data-dir /var/lib/postgresql/15/main
  tierwise-record -o DIR --pid PID --seconds 300
  tierwise-record -o DIR --engine postgres

It loads programs into the kernel. It asks the database nothing, changes nothing in it and
installs nothing. It needs root and Linux 5.15 or later. Ctrl-C ends it early and keeps the
recording. Copy DIR to a machine with tierwise: tierwise profile DIR, tierwise predict DIR.

Which database, one of:
  --data-dir DIR   the PostgreSQL or MariaDB that works in this directory
  --pid PID        the one whose first process has this pid; also one in a container
  --engine NAME    the only one of this engine on the host

Options:
  -o, --output DIR  new directory for the recording
  --seconds N       how long to record; default 60
  --duty SHARE      share of that time in which events are taken, at most 1/2; default 1/10
  --burst N         length of one burst in seconds; default 0.5, or an eighth
                    of what is recorded if that is shorter
  --limit MB        end early when the recording has reached this size; default 1000
  --rules NAME      rules for the roles of files: an engine's name or a TOML file
  --role PATH=ROLE  role of a file, or of all files below a directory; * stands for any letters
  --version         print the version
  --help            print this
";

pub enum Asked {
    Help,
    Version,
    Recording(Order),
}

/// Reads the arguments after the program's name.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Asked, UserError> {
    let mut words = words;
    let (mut wanted, mut out, mut rules, mut roles) = (Vec::new(), None, None, Vec::new());
    let (mut seconds, mut duty, mut burst_s, mut limit_bytes) =
        (60.0, 0.1, None, DEFAULT_LIMIT_BYTES);
    while let Some(word) = words.next() {
        let (option, mut given) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let mut value = || {
            let value = given.take().or_else(|| words.next());
            value.ok_or_else(|| wrong(format!("{option} needs a value")))
        };
        match option.as_str() {
            "-h" | "--help" => return Ok(Asked::Help),
            "--version" => return Ok(Asked::Version),
            "-o" | "--output" => out = Some(PathBuf::from(value()?)),
            "--pid" => wanted.push(Wanted::Pid(number(&option, &value()?)?)),
            "--data-dir" => wanted.push(Wanted::DataDirectory(value()?.into())),
            "--engine" => wanted.push(Wanted::Engine(value()?)),
            "--rules" => rules = Some(value()?),
            "--role" => roles.push(role_by_path(&value()?)?),
            "--seconds" => seconds = number(&option, &value()?)?,
            "--burst" => burst_s = Some(number(&option, &value()?)?),
            "--duty" => duty = share(&option, &value()?)?,
            "--limit" => limit_bytes = number::<u64>(&option, &value()?)?.saturating_mul(1_000_000),
            _ => return Err(wrong(format!("there is no option {option}"))),
        }
    }
    let out = out.ok_or_else(|| wrong("the directory of the recording is missing: -o DIR"))?;
    let Ok([wanted]) = <[Wanted; 1]>::try_from(wanted) else {
        let asked = "record what? give one of --data-dir, --pid and --engine";
        return Err(wrong(asked));
    };
    let burst_s = burst_s.unwrap_or_else(|| default_burst_s(Some(seconds), duty));
    Ok(Asked::Recording(Order {
        wanted,
        rules,
        roles,
        out,
        schedule: Schedule::new(seconds, duty, burst_s)?,
        limit_bytes,
    }))
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, UserError> {
    text.parse()
        .map_err(|_| wrong(format!("{option}: {text:?} is no number")))
}

/// A share such as `1/10` or `0.1`.
fn share(option: &str, text: &str) -> Result<f64, UserError> {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    Ok(number::<f64>(option, above)? / number::<f64>(option, below)?)
}

fn wrong(message: impl Into<String>) -> UserError {
    UserError::new(message, "see tierwise-record --help")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Asked, UserError> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    fn refusal(line: &str) -> String {
        asked(line).err().unwrap().message
    }

    #[test]
    fn a_recording_is_asked_for() {
        let Ok(Asked::Recording(order)) = asked("-o out --pid 7 --duty 1/4 --limit=5") else {
            panic!("it is one");
        };
        assert!(matches!(order.wanted, Wanted::Pid(7)));
        assert_eq!((order.schedule.duty, order.limit_bytes), (0.25, 5_000_000));
        assert!(matches!(asked("--pid 7 --help"), Ok(Asked::Help)));
    }

    #[test]
    fn what_is_wrong_is_told_with_the_option() {
        assert!(refusal("--pid 7").contains("-o DIR"));
        assert!(refusal("-o out").starts_with("record what?"));
        assert!(refusal("-o out --pid 7 --engine postgres").starts_with("record what?"));
        let role = refusal("-o out --pid 7 --role /srv/l=logs");
        assert!(role.contains("--role: \"logs\" is no role"));
        assert!(refusal("-o out --pid x").contains("--pid: \"x\" is no number"));
        assert!(refusal("-o out --pid").contains("--pid needs a value"));
        assert!(refusal("-o out --duration 60s").contains("there is no option --duration"));
        assert!(refusal("-o out --pid 7 --duty 1/0").starts_with("--duty"));
    }
}
