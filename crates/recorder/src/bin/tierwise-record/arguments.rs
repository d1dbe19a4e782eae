//! The command line.

use std::path::PathBuf;

use tierwise_recorder::{
    BurstSchedule, DEFAULT_LIMIT_BYTES, DEFAULT_S, RecordingOrder, UserError, WantedDatabase,
    default_burst_s, default_burst_share, parse_role_by_path,
};

/// What `--help` prints.
pub const HELP: &str = "\
KernelRecord what a running database does, for tierwise on another machine.

  tierwise-record -o DIR --data-dir /var/lib/postgresql/15/main
  tierwise-record -o DIR --pid PID --duration 5min
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
  --duration TIME   how long to record, such as 30s, 10min or 1h; default 2min
  --duty SHARE      share of that time in which events are taken; default 1/25, and
                    of less than two minutes more: 4.8 s of events, up to 1/10
  --burst TIME      length of one burst; default 500ms, or an eighth of what is
                    recorded if that is shorter
  --limit MB        largest size of the recording; events are taken in a smaller
                    share of the time where it would be exceeded; default 1000
  --rules NAME      rules for the roles of files: an engine's name or a TOML file
  --role PATH=ROLE  role of a file, or of all files below a directory; * stands for any letters
  --version         print the version
  --help            print this
";

pub enum CommandLineRequest {
    Help,
    Version,
    Recording(RecordingOrder),
}

/// Reads the arguments after the program's name.
pub fn parse_arguments(
    words: impl Iterator<Item = String>,
) -> Result<CommandLineRequest, UserError> {
    let mut words = words;
    let (mut wanted, mut out, mut rules, mut roles) = (Vec::new(), None, None, Vec::new());
    let (mut seconds, mut duty, mut burst_s, mut limit_bytes) =
        (DEFAULT_S, None, None, DEFAULT_LIMIT_BYTES);
    while let Some(word) = words.next() {
        let (option, mut given) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let mut value = || {
            let value = given.take().or_else(|| words.next());
            value.ok_or_else(|| usage_error(format!("{option} needs a value")))
        };
        match option.as_str() {
            "-h" | "--help" => return Ok(CommandLineRequest::Help),
            "--version" => return Ok(CommandLineRequest::Version),
            "-o" | "--output" => out = Some(PathBuf::from(value()?)),
            "--pid" => wanted.push(WantedDatabase::Pid(parse_number(&option, &value()?)?)),
            "--data-dir" => wanted.push(WantedDatabase::DataDirectory(value()?.into())),
            "--engine" => wanted.push(WantedDatabase::Engine(value()?)),
            "--rules" => rules = Some(value()?),
            "--role" => roles.push(parse_role_by_path(&value()?)?),
            "--duration" => seconds = parse_time_s(&option, &value()?)?,
            "--burst" => burst_s = Some(parse_time_s(&option, &value()?)?),
            "--duty" => duty = Some(parse_share(&option, &value()?)?),
            "--limit" => {
                limit_bytes = parse_number::<u64>(&option, &value()?)?.saturating_mul(1_000_000)
            }
            _ => return Err(usage_error(format!("there is no option {option}"))),
        }
    }
    let out =
        out.ok_or_else(|| usage_error("the directory of the recording is missing: -o DIR"))?;
    let Ok([wanted]) = <[WantedDatabase; 1]>::try_from(wanted) else {
        let asked = "record what? give one of --data-dir, --pid and --engine";
        return Err(usage_error(asked));
    };
    let duty = duty.unwrap_or_else(|| default_burst_share(seconds));
    let burst_s = burst_s.unwrap_or_else(|| default_burst_s(Some(seconds), duty));
    Ok(CommandLineRequest::Recording(RecordingOrder {
        wanted,
        rules,
        roles,
        out,
        schedule: BurstSchedule::new(Some(seconds), duty, burst_s, limit_bytes)?,
    }))
}

fn parse_number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, UserError> {
    text.parse()
        .map_err(|_| usage_error(format!("{option}: {text:?} is no number")))
}

/// Seconds of a time such as `500ms`, `30s`, `10min` or `1h`; a number alone is seconds.
fn parse_time_s(option: &str, text: &str) -> Result<f64, UserError> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_s = match text[digits.len()..].trim() {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        _ => {
            return Err(usage_error(format!(
                "{option}: {text:?} is no time such as 30s or 10min"
            )));
        }
    };
    Ok(unit_s * parse_number::<f64>(option, digits.trim())?)
}

/// A share such as `1/10` or `0.1`.
fn parse_share(option: &str, text: &str) -> Result<f64, UserError> {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    Ok(parse_number::<f64>(option, above)? / parse_number::<f64>(option, below)?)
}

fn usage_error(message: impl Into<String>) -> UserError {
    UserError::new(message, "see tierwise-record --help")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn asked(line: &str) -> Result<CommandLineRequest, UserError> {
        parse_arguments(line.split_whitespace().map(str::to_owned))
    }

    fn refusal(line: &str) -> String {
        asked(line).err().unwrap().message
    }

    #[test]
    fn a_recording_is_asked_for() {
        let line = "-o out --pid 7 --duty 1/4 --limit=5 --duration 10min --burst=100ms";
        let Ok(CommandLineRequest::Recording(order)) = asked(line) else {
            panic!("it is one");
        };
        assert!(matches!(order.wanted, WantedDatabase::Pid(7)));
        let schedule = order.schedule;
        assert_eq!((schedule.duty, schedule.limit_bytes), (0.25, 5_000_000));
        assert_eq!(schedule.length, Some(Duration::from_secs(600)));
        assert_eq!(schedule.burst, Duration::from_millis(100));
        assert!(matches!(
            asked("--pid 7 --help"),
            Ok(CommandLineRequest::Help)
        ));
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
        assert!(refusal("-o out --seconds 60").contains("there is no option --seconds"));
        assert!(refusal("-o out --pid 7 --duration 10m").starts_with("--duration: \"10m\""));
        assert!(refusal("-o out --pid 7 --duration 0").starts_with("--duration"));
        assert!(refusal("-o out --pid 7 --duty 1/0").starts_with("--duty"));
    }
}
