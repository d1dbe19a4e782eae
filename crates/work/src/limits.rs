//! Limits of a recording, as sentences.

use tierwise_recording::ThreadClass;

use crate::engines::FlushSharing;
use crate::view::View;
use crate::{CommitDelay, Pace, Work};

/// Limits that apply to every use of the work.
pub(crate) fn limits(view: &View<'_>, work: &Work, unexplained: f64) -> Vec<String> {
    let about = &view.recording.about;
    let mut limits = Vec::new();
    if unexplained > 0.02 {
        limits.push(format!(
            "{:.0} % of the sessions' time went to waits for other sessions that no commit explains; they are left out",
            unexplained * 100.0
        ));
    }
    if let Some(each) = work.observed.counted_per_shown.filter(|each| *each != 1.0) {
        let off = (each - 1.0).abs() * 100.0;
        let than = if each > 1.0 { "more" } else { "fewer" };
        limits.push(format!(
            "{off:.0} % {than} transactions were counted than the recorded events show: rates follow the count"
        ));
    }
    let mut add = |applies: bool, limit: &str| {
        limits.extend(applies.then(|| limit.to_owned()));
    };
    add(
        view.threads(ThreadClass::Client).next().is_none(),
        "the clients were not recorded: their time between reply and request is kept as it was",
    );
    add(
        view.recording.blocks.is_empty(),
        "no requests to devices were recorded: what a flush asks of a file system is assumed",
    );
    add(
        work.log.is_none(),
        "nothing was written to a log while recording",
    );
    let delay = work.log.as_ref().and_then(|log| log.commit_delay);
    limits.extend(delay.map(commit_delay));
    let replica = view.flushes.replica.is_some();
    limits.extend(view.engine.commit_limits(&about.settings, replica));
    if work.log.is_some() && view.engine.flush_sharing == FlushSharing::Inferred {
        limits.push(format!(
            "there are no rules for the engine \"{}\": how its commits share flushes of the log was inferred from \
             which threads woke which, and its own buffer is not known",
            about.engine
        ));
    }
    let is_helper = |class, pace| class == ThreadClass::Background && pace == Pace::Loop;
    let mut sessions = work.sessions.iter();
    if sessions.any(|session| is_helper(session.class, session.pace)) {
        limits.push(
            "sessions waited for helper threads: their hand-overs are kept in the recorded order"
                .to_owned(),
        );
    }
    limits
}

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
