"""Files of results that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.model.errors import TierwiseError
from tierwise.results.measurements import StrictModel
from tierwise.results.result_files import append_record, replace_results


def test_a_folder_that_was_removed_meanwhile_is_not_told_to_make_room_only(tmp_path: Path) -> None:
    file = tmp_path / "removed" / "results.jsonl"
    for write in (lambda: append_record(file, StrictModel()), lambda: replace_results(file, [])):
        with pytest.raises(TierwiseError, match="No such file or directory") as raised:
            write()
        assert "keep that folder" in raised.value.fix and "room" in raised.value.fix
