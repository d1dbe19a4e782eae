//! Limits of a recording, as sentences.

use tierwise_recording::ThreadClass;

use crate::engines::FlushSharing;
use crate::index::view::View;
use crate::{CommitDelay, Pace, Work};

/// The wait of a flush's leader, which every device keeps.
fn commit_delay(delay: CommitDelay) -> String {
    let by = match delay.from_settings {
        true => "as its settings say",
        false => "as inferred from the recorded waits, since its settings are not known",
    };
    let others = match delay.siblings {
        0 => String::new(),
        1 => " if another transaction is open".to_owned(),
        count => format!(" if {count} other transactions are open"),
    };
    format!(
        "before each flush of the log, the engine waits {:.1} ms for more commits{others}, {by}: the wait stays on \
         every device",
        f64::from(delay.time_ns) / 1e6
    )
}

/// Limits that apply to every use of the work; `replica`: whether the threads of a replica of the log were recorded.
pub(crate) fn limits(view: &View<'_>, work: &Work, unexplained: f64, replica: bool) -> Vec<String> {
    let mut limits = Vec::new();
    if unexplained > 0.02 {
        limits.push(format!(
            "{:.0} % of the sessions' time went to waits for other sessions that no commit explains; they are left out",
            unexplained * 100.0
        ));
    }
    if let Some(each) = work.observed.counted_per_shown.filter(|each| *each != 1.0) {
        let (off, than) = (
            (each - 1.0).abs() * 100.0,
            if each > 1.0 { "more" } else { "fewer" },
        );
        limits.push(format!(
            "{off:.0} % {than} transactions were counted than the recorded events show: rates follow the count"
        ));
    }
    if view.threads(ThreadClass::Client).next().is_none() {
        limits.push(
            "the clients were not recorded: their time between reply and request is kept as it was"
                .to_owned(),
        );
    }
    if view.recording.blocks.is_empty() {
        limits.push(
            "no requests to devices were recorded: what a flush asks of a file system is assumed"
                .to_owned(),
        );
    }
    if work.log.is_none() {
        limits.push("nothing was written to a log while recording".to_owned());
    }
    let delay = work.log.as_ref().and_then(|log| log.commit_delay);
    limits.extend(delay.map(commit_delay));
    let settings = &view.recording.about.settings;
    let commits = view.engine.commit_limits(settings, replica);
    limits.extend(commits);
    if work.log.is_some() && view.engine.flush_sharing == FlushSharing::Inferred {
        limits.push(format!(
            "there are no rules for the engine \"{}\": how its commits share flushes of the log was inferred from \
             which threads woke which, and its own buffer is not known",
            view.recording.about.engine
        ));
    }
    let helpers = work
        .sessions
        .iter()
        .filter(|session| session.class == ThreadClass::Background && session.pace == Pace::Loop);
    if helpers.count() > 0 {
        limits.push(
            "sessions waited for helper threads: their hand-overs are kept in the recorded order"
                .to_owned(),
        );
    }
    limits
}
