//! `tierwise-record`: records a running database on a host without Python.

mod arguments;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tierwise_recorder::{RecordingControl, UserError, megabytes_text, record};
use tierwise_recording::About;

use arguments::CommandLineRequest;

/// Set by the signals that end a recording early.
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

struct TerminalControl;

impl RecordingControl for TerminalControl {
    fn wait(&self, longest: Duration) -> bool {
        if !STOP.load(Ordering::Relaxed) {
            thread::sleep(longest);
        }
        STOP.load(Ordering::Relaxed)
    }

    fn say(&self, sentence: &str) {
        print_error_line(sentence);
    }
}

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let order = match arguments::parse_arguments(words) {
        Ok(CommandLineRequest::Help) => {
            print!("{}", arguments::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(CommandLineRequest::Version) => {
            print_line(concat!("tierwise-record ", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        Ok(CommandLineRequest::Recording(order)) => order,
        Err(error) => return exit_with_error(&error, 2),
    };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the function only stores to an atomic.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    match record(&order, &TerminalControl) {
        Ok(about) => {
            print_summary(&order.out, &about);
            ExitCode::SUCCESS
        }
        Err(error) => exit_with_error(&error, 1),
    }
}

fn exit_with_error(error: &UserError, status: u8) -> ExitCode {
    print_error_line(&format!("error: {error}"));
    print_error_line(&format!("fix: {}", error.fix));
    ExitCode::from(status)
}

fn count_text(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn print_summary(out: &std::path::Path, about: &About) {
    let files = std::fs::read_dir(out).into_iter().flatten().flatten();
    let size_bytes: u64 = files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum();
    let out = out.display();
    print_line(&format!(
        "{out}: {:.1} s of {}, {}, {}, {} lost, {}",
        about.duration_s,
        about.engine,
        count_text(about.bursts.len() as u64, "burst"),
        count_text(about.losses.recorded_events, "event"),
        about.losses.lost_events,
        megabytes_text(size_bytes)
    ));
    let clients = about.clients.iter();
    for client in clients.filter(|client| !client.program.is_empty()) {
        let sessions = count_text(u64::from(client.sessions), "session");
        print_line(&format!("client: {}, {sessions}", client.program));
    }
    let failed = about.checks.iter().filter(|check| !check.passed);
    let failed = failed.map(|check| format!("{}: {}", check.name, check.detail));
    for warning in about.warnings.iter().cloned().chain(failed) {
        print_line(&format!("warning: {warning}"));
    }
    print_line(
        "not known without a connection: settings changed at run time, the engine's own counters",
    );
    let next = "copy the directory to where tierwise is installed, then: tierwise profile";
    print_line(&format!("{next} {out}"));
}

// The one way to a terminal: what is printed commands nothing, whatever name or message is in it.

fn print_line(text: &str) {
    println!("{}", without_control_characters(text));
}

fn print_error_line(text: &str) {
    eprintln!("{}", without_control_characters(text));
}

/// A text with a question mark for each control character, direction mark and separator but spaces.
fn without_control_characters(text: &str) -> String {
    let shown = |letter| if is_unprintable(letter) { '?' } else { letter };
    text.chars().map(shown).collect()
}

/// Whether Rust shows a letter as a code; a mark that belongs to the letter before it is none of these.
fn is_unprintable(letter: char) -> bool {
    let after_another = String::from_iter(['a', letter]);
    !"\"'\\".contains(letter) && after_another.escape_debug().count() > 2
}

#[cfg(test)]
mod tests {
    use super::without_control_characters;

    #[test]
    fn what_is_printed_commands_no_terminal() {
        let name = "\u{1b}]0;owned\u{7}\u{9b}2J\r\n\u{8}\u{202e}\u{2028}\u{feff}\u{7f}";
        assert_eq!(without_control_characters(name), "?]0;owned??2J???????");
    }

    #[test]
    fn what_is_plain_is_printed_as_it_is() {
        let text = "error: it's \"Bücher\\e\u{301}\" 名前 of 1 µs";
        assert_eq!(without_control_characters(text), text);
    }
}
