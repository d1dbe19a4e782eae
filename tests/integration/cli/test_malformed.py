"""A short run of malformed inputs; the long one is `make robust`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.malformed import KINDS, attempt
from support.malformed_kinds import Kind
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text

_EACH = 40


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_malformed_inputs_end_in_one_line(kind: Kind) -> None:
    problems = {seed: problem for seed in range(_EACH) if (problem := attempt(kind, seed)) is not None}
    assert not problems


def test_only_a_file_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(TierwiseError, match=r"(?i)no regular file|is a directory"):
            read_text(path, "name a file")


def test_a_file_has_the_size_that_a_person_writes(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TierwiseError, match="bytes, above"):
        read_text(large, "name a file")
