"""What other tools write, given as a recording: it is named, with what is accepted instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor
from tierwise.recording import Recording

TEXTS = {
    "iostat": (
        "Linux 6.1 (db1)\n\navg-cpu:  %user   %nice %system %iowait\n  5.0  0 1 1\n\nDevice  r/s  rkB/s\n",
        "an output of iostat",
    ),
    "iostat without processors": ("Device             tps    kB_read/s\nsda  1 2\n", "an output of iostat"),
    "vmstat": ("procs -----------memory---------- ---swap--\n r  b\n", "an output of vmstat or sar"),
    "AWR": (
        "<html><head><title>AWR Report for DB: ORCL, Inst: orcl</title>",
        "a report of Oracle",
    ),
    "fio as JSON": ('{\n  "fio version" : "fio-3.33",\n  "jobs" : []\n}', "an output of fio"),
    "fio as text": ("fio-3.33\nStarting 1 process\n", "an output of fio"),
    "a job of fio": ("[global]\nioengine=libaio\n[job]\nrw=randwrite\n", "a job file of fio"),
    "blkparse": ("  8,0    3        1     0.000000000   697  G   W 223490 + 8\n", "an output of blkparse"),
    "slow queries": ("# Time: 2026-11-25T10:00:00\n# User@Host: app\nSELECT 1;\n", "a log of slow queries"),
    "a table": ("PAR1\x15\x04", "a single table"),
    "anything": ("a,b\n1,2\n", "is no folder"),
    "nothing": ("", "is no folder"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_is_named_with_what_is_accepted(name: str, tmp_path: Path) -> None:
    text, expected = TEXTS[name]
    file = tmp_path / "given"
    file.write_text(text)
    for opened in (Recording.open, Predictor.open):
        with pytest.raises(TierwiseError, match=expected) as raised:
            opened(file)
        assert "tierwise record" in str(raised.value) and "tierwise observe" in str(raised.value)
        assert "\n" not in str(raised.value)


def test_what_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="is no folder"):
        Recording.open(tmp_path / "none")
