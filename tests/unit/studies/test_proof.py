"""Proof of placement from the figures of a run."""

from __future__ import annotations

import pytest

from tierwise.lab.studies.runner import placement_proof
from tierwise.model.placement import Role
from tierwise.results.measurements import RoleProof

pytestmark = pytest.mark.usefixtures("run_dir")


def test_a_log_whose_bytes_did_not_arrive_fails_the_run() -> None:
    log = RoleProof(device="d", reached_bytes=500, written_bytes=1000, share=0.5, files=1)
    assert placement_proof.placement_problems({Role.LOG: log}) == [
        "role log leaked: of 1000 bytes of log 500 reached device d"
    ]
    assert placement_proof.placement_problems({Role.TEMP: log}) == []
    assert placement_proof.placement_problems({Role.LOG: log.model_copy(update={"share": 0.95})}) == []
