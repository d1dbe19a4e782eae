//! Input that makes no sense is refused in one line that names file, line and column, or the option.

use crate::{file, memory};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use tierwise_simulate::{SimulationJob, UserError};

fn refused(job: &SimulationJob) -> UserError {
    let error = job
        .run(&memory(), &AtomicBool::new(false))
        .expect_err("bad input");
    assert!(
        !error.message.contains('\n') && !error.fix.is_empty(),
        "{error}"
    );
    error
}

fn refused_file(content: &[u8], open: bool) -> String {
    let file = file(content);
    let error = refused(&SimulationJob {
        requests: Some(file.clone()),
        open,
        ..SimulationJob::default()
    });
    let name = file.display().to_string();
    assert!(
        error.message.contains(&name),
        "{error} does not name the file"
    );
    error.message.replace(&name, "FILE")
}

#[test]
fn a_bad_line_is_named_with_its_column() {
    let cases: [(&str, &str); 22] = [
        (
            "op,lbn,sectors\r\n\r\nX,0,8",
            "FILE, line 3, column op: \"X\"",
        ),
        ("\n\n", "FILE, line 1: the file is empty"),
        ("", "FILE, line 1: the file is empty"),
        (
            "op,lbn,sectors\n",
            "FILE has no request below its first line",
        ),
        ("op,lbn\nR,0\n", "FILE, line 1: no column sectors"),
        (
            "op,lbn,sectors,size\nR,0,8,1\n",
            "FILE, line 1: unknown column \"size\"",
        ),
        ("R,0,8\n", "FILE, line 1: unknown column \"R\""),
        (
            "op,lbn,sectors,lbn\nR,0,8,0\n",
            "FILE, line 1: column lbn stands there twice",
        ),
        (
            "op,lbn,sectors\nR,0,8\n\nX,0,8\n",
            "FILE, line 4, column op: \"X\" is not known",
        ),
        (
            "op,lbn,sectors\nR,0,-8\n",
            "FILE, line 2, column sectors: \"-8\" is negative",
        ),
        (
            "op,lbn,sectors\nR,-1,8\n",
            "FILE, line 2, column lbn: \"-1\" is negative",
        ),
        (
            "op,lbn,sectors\nR,1.5,8\n",
            "FILE, line 2, column lbn: \"1.5\" is not a whole number",
        ),
        (
            "op,lbn,sectors\nR,,8\n",
            "FILE, line 2, column lbn: \"\" is not a whole number",
        ),
        (
            "op,lbn,sectors\nR,0,0\n",
            "FILE, line 2, column sectors: 0 sectors",
        ),
        (
            "op,lbn,sectors\nR,0,5000000000\n",
            "FILE, line 2, column sectors: \"5000000000\" is too large",
        ),
        (
            "op,lbn,sectors\nR,0,8\nW,1946,8\n",
            "FILE, line 3, column lbn: sectors 1946 to 1953 lie past the end",
        ),
        (
            "op,lbn,sectors\nR,18446744073709551615,8\n",
            "FILE, line 2, column lbn: sectors 18446744073709551615 to",
        ),
        (
            "op,lbn,sectors\nR,0\n",
            "FILE, line 2: 2 fields, where the first line has 3",
        ),
        (
            "op,lbn,sectors,think_ms\nR,0,8,-1\n",
            "FILE, line 2, column think_ms: \"-1\" is negative",
        ),
        (
            "op,lbn,sectors,think_ms\nR,0,8,nan\n",
            "FILE, line 2, column think_ms: \"nan\" is not a number",
        ),
        (
            "op,lbn,sectors,think_ms\nR,0,8,inf\n",
            "FILE, line 2, column think_ms: \"inf\" is too large",
        ),
        (
            "op,lbn,sectors,arrival_us\nR,0,8,10\nR,0,8,9.5\n",
            "FILE, line 3, column arrival_us: 9.5 is earlier than 10 on the line before",
        ),
    ];
    for (content, expected) in cases {
        let message = refused_file(content.as_bytes(), false);
        assert!(
            message.starts_with(expected),
            "{content:?} gave {message:?}, not {expected:?}"
        );
    }
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    assert!(refused_file(b"op,lbn,sectors\nR,\xff\xfe,8\n", false).contains("line 2, column lbn"));
    assert!(refused_file(b"\x1f\x8b\x08 not gzip", false).contains("cannot read"));
}

#[test]
fn an_open_loop_needs_times_of_arrival() {
    let message = refused_file(b"op,lbn,sectors\nR,0,8\n", true);
    assert_eq!(
        message,
        "FILE, line 1: no column arrival_us, which --open needs"
    );
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let requests = Some(folder.join("none.csv"));
    assert!(
        refused(&SimulationJob {
            requests,
            ..SimulationJob::default()
        })
        .message
        .contains("none.csv")
    );
    let directory = SimulationJob {
        requests: Some(folder.clone()),
        ..SimulationJob::default()
    };
    assert!(refused(&directory).message.contains("cannot read"));
    let requests = Some(file(b"op,lbn,sectors\nR,0,8\n"));
    let same = SimulationJob {
        times: requests.clone(),
        requests: requests.clone(),
        ..SimulationJob::default()
    };
    assert!(refused(&same).message.contains("overwrite"));
    let times = Some(folder.join("none/times.csv"));
    assert!(
        refused(&SimulationJob {
            requests,
            times,
            ..SimulationJob::default()
        })
        .message
        .contains("cannot write")
    );
}

#[test]
fn options_that_make_no_sense_are_named() {
    let preset = || SimulationJob {
        preset: Some("randread-4k".into()),
        ..SimulationJob::default()
    };
    let file = || SimulationJob {
        requests: Some("requests.csv".into()),
        ..SimulationJob::default()
    };
    let cases = [
        (SimulationJob::default(), "nothing to simulate"),
        (
            SimulationJob {
                preset: preset().preset,
                ..file()
            },
            "--requests and --preset",
        ),
        (
            SimulationJob {
                count: Some(5),
                ..file()
            },
            "--count and --duration limit a preset",
        ),
        (
            SimulationJob {
                virtual_s: Some(5.0),
                ..file()
            },
            "--count and --duration limit a preset",
        ),
        (
            SimulationJob {
                open: true,
                ..preset()
            },
            "--open needs times",
        ),
        (
            SimulationJob {
                count: Some(1),
                virtual_s: Some(1.0),
                ..preset()
            },
            "--count and --duration are both",
        ),
        (
            SimulationJob {
                count: Some(0),
                ..preset()
            },
            "--count 0",
        ),
        (
            SimulationJob {
                virtual_s: Some(0.0),
                ..preset()
            },
            "--duration",
        ),
        (
            SimulationJob {
                virtual_s: Some(f64::NAN),
                ..preset()
            },
            "--duration",
        ),
        (
            SimulationJob {
                open: true,
                depth: Some(2),
                ..file()
            },
            "--open and --depth",
        ),
        (
            SimulationJob {
                depth: Some(0),
                ..preset()
            },
            "--depth",
        ),
        (
            SimulationJob {
                preset: Some("randread".into()),
                ..SimulationJob::default()
            },
            "\"randread\"",
        ),
        (
            SimulationJob {
                preset: Some("randread-4m".into()),
                ..SimulationJob::default()
            },
            "larger than the device",
        ),
        (
            SimulationJob {
                precondition: Some("used".into()),
                ..preset()
            },
            "\"used\"",
        ),
        (
            SimulationJob {
                precondition: Some("random:0".into()),
                ..preset()
            },
            "\"random:0\"",
        ),
        (
            SimulationJob {
                precondition: Some("random:1.1".into()),
                ..preset()
            },
            "\"random:1.1\"",
        ),
    ];
    for (job, expected) in cases {
        let error = refused(&job);
        assert!(
            error.message.contains(expected),
            "{job:?} gave {error}, not {expected}"
        );
    }
}
