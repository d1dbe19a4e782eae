"""An advised placement for other tools: golden files, parsers of each format, hostile names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from support.fake_replay import predictor
from support.paths import RECORDINGS, TESTS
from support.recording_factory import ONE_COMMIT, write_recording
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.cli import app
from tierwise.cli.advise import ChangeTool, emit_change
from tierwise.device_models import profiles
from tierwise.model.errors import FailedCheckError, TierwiseError
from tierwise.model.placement import Role
from tierwise.predict.inseparable_roles import MOVES
from tierwise.predict.usability import UsabilityRemark
from tierwise.recording import Recording
from tierwise.recording.role_requests import RequestDirection, RoleRequests, role_requests
from tierwise.report.change import (
    PlacementChange,
    ansible_playbook,
    cluster_patch,
    fio_jobs,
    recommended_change,
    terraform_volumes,
)
from tierwise.report.change.fio import block_size_split
from tierwise.report.change.terraform import terraform_resource_of

GIB = 1 << 30
RUNNER = CliRunner()
SCHEMA = json.loads((TESTS / "support" / "cnpg_cluster.json").read_text("utf-8"))
SIZES = {Role.LOG: 6 * GIB + 1, Role.DATA: 40 * GIB, Role.TEMP: 3 * GIB, Role.SYSTEM: GIB // 2}
EVIL = 'a"\n${file("/etc/passwd")} %{ if true } {{ 7 * 7 }} {% raw %} \\'
EXAMPLE = RECORDINGS / "order-entry"


def change(moves: Mapping[Role, str], engine: str = "postgres", **more: Any) -> PlacementChange:
    change: dict[str, Any] = {"needed_bytes": SIZES, "rented_gib": {}, "owned": frozenset()}
    return PlacementChange(engine=engine, moves=moves, **{**change, **more})


SPLIT = change({Role.LOG: "volume-aws-io2", Role.DATA: "volume-aws-gp3", Role.TEMP: "ssd-nvme-dc"})
CLOUDS = change(
    {
        Role.LOG: "volume-azure-premium-v2",
        Role.DATA: "volume-gcp-hyperdisk-balanced",
        Role.TEMP: "volume-gcp-pd-ssd",
    }
)
REQUESTS = {
    Role.LOG: RoleRequests(
        role=Role.LOG,
        reads=RequestDirection(),
        writes=RequestDirection(requests=1000, sizes={8192: 667, 16384: 333}, random_share=0.01),
        syncs=490,
        depth=1.2,
    ),
    Role.DATA: RoleRequests(
        role=Role.DATA,
        reads=RequestDirection(requests=300, sizes={8192: 300}, random_share=0.97),
        writes=RequestDirection(requests=100, sizes={8192: 90, 262144: 10}, random_share=0.5),
        syncs=4,
        depth=7.6,
    ),
}


def hcl(text: str) -> dict[str, Any]:
    hcl2 = pytest.importorskip("hcl2", reason="make env installs python-hcl2")
    content: dict[str, Any] = hcl2.loads(text)
    return content


def merged(patch: str) -> dict[str, Any]:
    """A patch, applied to the smallest Cluster as a merge patch is."""
    content = yaml.safe_load(patch)
    return {**content, "metadata": {"name": "shop"}, "spec": {"instances": 1, **content["spec"]}}


def test_a_patch_of_a_cluster_is_valid_by_the_published_schema(snapshot: SnapshotAssertion) -> None:
    patch = cluster_patch(SPLIT)
    assert patch == snapshot
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(merged(patch), SCHEMA)
    spec = yaml.safe_load(patch)["spec"]
    assert spec["walStorage"] == {"size": "64Gi", "storageClass": "volume-aws-io2"}, "the least for its speed"
    assert spec["tablespaces"][0]["temporary"] is True


def test_a_volume_of_a_cluster_is_as_large_as_it_is_billed() -> None:
    def sizes(made: PlacementChange) -> list[str]:
        spec = yaml.safe_load(cluster_patch(made))["spec"]
        return [spec[name]["size"] for name in ("walStorage", "storage") if name in spec]

    log = change({Role.LOG: "volume-aws-gp3"})
    assert sizes(log) == ["7Gi"], "rounded up"
    assert "if the cluster has spec.walStorage already, recreate the instances" in cluster_patch(log)
    assert sizes(change({Role.LOG: "volume-aws-gp3"}, rented_gib={"volume-aws-gp3": 10.0})) == ["10Gi"]
    assert sizes(change({Role.LOG: "volume-aws-io2"}, rented_gib={"volume-aws-io2": 64.0})) == ["64Gi"]
    both = change(dict.fromkeys([Role.LOG, Role.DATA], "volume-aws-io2"), rented_gib={"volume-aws-io2": 70.0})
    assert sizes(both) == ["64Gi", "64Gi"], "the least for its speed"
    assert "# The advice has the data and the log on one volume-aws-io2: here each has" in cluster_patch(both)


def test_what_moves_along_in_pgdata_is_named() -> None:
    """The advice is to move the data alone, and prices a volume for it alone."""
    sizes = {**SIZES, Role.INDEX: 9 * GIB}
    patch = cluster_patch(change({Role.DATA: "volume-aws-gp3"}, needed_bytes=sizes))
    assert "# PGDATA is one volume: the indexes and the system files move along, and it is larger" in patch
    whole = dict.fromkeys([Role.DATA, Role.INDEX, Role.SYSTEM], "volume-aws-gp3")
    assert "PGDATA is one volume" not in cluster_patch(change(whole, needed_bytes=sizes))


def test_pgdata_has_room_for_all_that_stays_in_it() -> None:
    moved = change({Role.DATA: "volume-aws-gp3"}, directory_bytes=60 * GIB)
    assert yaml.safe_load(cluster_patch(moved))["spec"]["storage"]["size"] == "60Gi"
    alone = change({Role.DATA: "volume-aws-gp3"})
    assert yaml.safe_load(cluster_patch(alone))["spec"]["storage"]["size"] == "50Gi", "with log and temp"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (change({Role.LOG: "ram"}, engine="mariadb"), "CloudNativePG runs PostgreSQL, not mariadb"),
        (change({Role.ARCHIVE: "volume-aws-st1"}), "cannot place the archive"),
        (change({Role.SYSTEM: "volume-aws-gp3"}), "keeps system in PGDATA"),
        (change({Role.DATA: "ssd-nvme-dc", Role.INDEX: "volume-aws-gp3"}), "keeps index in PGDATA"),
    ],
)
def test_what_cloudnativepg_cannot_place_is_refused_with_the_reason(
    made: PlacementChange, expected: str
) -> None:
    with pytest.raises(TierwiseError, match=expected):
        cluster_patch(made)


@pytest.mark.parametrize("made", [SPLIT, CLOUDS], ids=["aws", "others"])
def test_volumes_are_terraform(made: PlacementChange, snapshot: SnapshotAssertion) -> None:
    text = terraform_volumes(made)
    assert text == snapshot
    resources = hcl(text)
    assert len(resources["resource"]) == sum(1 for device in made.devices if device.startswith("volume"))
    assert text.count("prevent_destroy = true") == len(resources["resource"])
    declared = {name.strip('"') for variable in resources["variable"] for name in variable}
    assert set(re.findall(r"var\.(\w+)", text)) == declared


def test_every_shipped_volume_has_a_resource_and_nothing_else_has() -> None:
    for name in profiles.profile_names():
        profile = profiles.load_profile(name)
        assert (terraform_resource_of(profile) is not None) == (profile.kind == "volume"), name


def test_a_volume_is_as_large_as_it_is_billed_and_an_owned_one_is_not_rented_again() -> None:
    io2 = change({Role.LOG: "volume-aws-io2"}, rented_gib={"volume-aws-io2": 64.0})
    assert "size              = 64\n" in terraform_volumes(io2)
    owned = change({Role.LOG: "volume-aws-io2"}, owned=frozenset({"volume-aws-io2"}))
    assert "you own it" in terraform_volumes(owned) and not hcl(terraform_volumes(owned)).get("resource")


def test_a_playbook_has_the_steps_and_the_way_back(snapshot: SnapshotAssertion) -> None:
    text = ansible_playbook(SPLIT)
    assert text == snapshot
    there, back = yaml.safe_load(text)
    assert there["become"] and "tags" not in there
    assert back["tags"] == ["back", "never"]
    moved = [task["name"].split()[2] for task in there["tasks"] if task["name"].startswith("Move the")]
    assert moved == ["log", "data", "index", "temp"]
    assert [task["name"].split()[2] for task in back["tasks"]] == moved[::-1]
    assert there["environment"].keys() == {"PATH", "PGDATA", "DB", "NEW1", "NEW2", "NEW3"}
    assert there["vars"].keys() == {"path"}, "what only the reader knows has no default"


def test_a_playbook_asks_for_what_its_steps_use_alone() -> None:
    there, back = yaml.safe_load(ansible_playbook(change({Role.LOG: "ssd-nvme-dc"})))
    assert there["environment"].keys() == back["environment"].keys() == {"PATH", "PGDATA", "NEW"}
    _, back = yaml.safe_load(ansible_playbook(change({Role.ARCHIVE: "ssd-nvme-dc"})))
    assert back["environment"]["BEFORE"] == "{{ before }}"
    there, _ = yaml.safe_load(ansible_playbook(change({Role.LOG: "ssd-nvme-dc"}, engine="mariadb")))
    assert there["vars"]["datadir"] == "/var/lib/mysql"


def test_the_head_of_a_playbook_lists_what_its_steps_use() -> None:
    head = [
        line for line in ansible_playbook(change({Role.LOG: "ssd-nvme-dc"})).splitlines() if line[:3] == "#  "
    ]
    assert [line.split()[1].rstrip(":") for line in head] == ["pgdata", "new", "path"]


@pytest.mark.parametrize("file", sorted(MOVES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_engine_s_steps_are_a_playbook(file: Path) -> None:
    every = change(dict.fromkeys(Role, "ssd-nvme-dc"), engine=file.stem)
    for play in yaml.safe_load(ansible_playbook(every)):
        environment = {name: value for name, value in play["environment"].items() if name != "PATH"}
        assert all(value == f"{{{{ {name.lower()} }}}}" for name, value in environment.items())
        for task in play["tasks"]:
            script = task.get("ansible.builtin.shell", {}).get("cmd", "")
            assert not re.sub(r"\{% raw %\}.*\{% endraw %\}", "", script, flags=re.DOTALL).strip()


def test_a_playbook_moves_no_files_whose_program_has_to_open_them_elsewhere() -> None:
    """RocksDB opened without the moved log, and lost what it held."""
    text = ansible_playbook(change(dict.fromkeys(Role, "ssd-nvme-dc"), engine="rocksdb"))
    tasks = [task for play in yaml.safe_load(text) for task in play["tasks"]]
    assert tasks and all("ansible.builtin.debug" in task for task in tasks)


def test_an_engine_without_steps_has_no_playbook() -> None:
    with pytest.raises(TierwiseError, match="no steps are known"):
        ansible_playbook(change({Role.LOG: "ssd-nvme-dc"}, engine="versant"))


def test_jobs_are_the_recorded_requests(snapshot: SnapshotAssertion) -> None:
    text = fio_jobs(SPLIT, REQUESTS)
    assert text == snapshot
    assert "directory=${DEVICE_DIRECTORY}\nfilename=tierwise-fio.test" in text and "direct=1" in text


def test_sizes_are_split_in_whole_percentages() -> None:
    assert block_size_split({4096: 1, 8192: 1, 16384: 1}) == "4096/34:8192/33:16384/33"
    assert block_size_split({8192: 1000, 1 << 20: 1}) == "8192/100"
    many = block_size_split({4096 * n: n for n in range(1, 40)})
    assert sum(int(part.partition("/")[2]) for part in many.split(":")) == 100 and many.count(":") == 7


def test_requests_are_read_from_the_tables(tmp_path: Path) -> None:
    block = (0, 2048, 16, "write", False, False, True, False, 0, 1_000_000, 0, 0)
    blocks = [
        block,
        (*block[:1], 2056, *block[2:8], 1_000_000, 2_000_000, 0, 0),  # the last page again, and one more
        (*block[:1], 2072, *block[2:8], 1_500_000, 2_500_000, 0, 0),
        (*block[:1], 9000, *block[2:8], 3_000_000, 4_000_000, 0, 0),
    ]
    recording = Recording.open(write_recording(tmp_path / "rec", {**ONE_COMMIT, "blocks": blocks}))
    log = role_requests(recording)[Role.LOG]
    assert (log.writes.requests, log.reads.requests, log.syncs) == (4, 0, 1)
    assert log.writes.sizes == {8192: 4}
    assert log.writes.random_share == pytest.approx(1 / 3)
    assert log.depth == pytest.approx(4.0 / 3.5)


def test_a_job_without_requests_is_refused() -> None:
    with pytest.raises(TierwiseError, match="no requests"):
        fio_jobs(SPLIT, {})


def test_hostile_names_stay_text_in_every_format(tmp_path: Path) -> None:
    """Names of engines are a recording's, and devices are files of anybody."""
    file = tmp_path / "{{ lookup('env', 'HOME') }}{%\n[job]\nfilename=.toml"
    summary = json.dumps(EVIL.replace("\n", "\\n"))
    file.write_text(f'like = "volume-aws-gp3"\nsummary = {summary}\n', "utf-8")
    made = change({Role.LOG: str(file)})
    resources = hcl(terraform_volumes(change({Role.LOG: str(file)}, engine=EVIL)))["resource"]
    assert len(resources) == 1
    name = resources[0]['"aws_ebs_volume"']['"log"']["tags"]["Name"]
    assert "$${file" in name and "%%{ if" in name and not re.search(r"(?<!\$)\$\{|(?<!%)%\{", name)
    jsonschema.validate(merged(cluster_patch(made)), SCHEMA)
    for play in yaml.safe_load(ansible_playbook(made)):
        assert not [task["name"] for task in play["tasks"] if re.search(r"\{[{%#]", task["name"])]
        assert all(not re.search(r"\{[{%#]", value) for value in play["vars"].values())
    lines = fio_jobs(made, REQUESTS).splitlines()
    assert [line for line in lines if line.startswith("[")] == ["[global]", "[log]"]
    assert [line for line in lines if line.startswith("filename")] == ["filename=tierwise-fio.test"]


def test_an_advice_that_moves_nothing_changes_nothing(tmp_path: Path) -> None:
    slow = advise(predictor(), AdviceOptions.parse("7k2", None, None, PaymentTerms(), fresh=False))
    assert slow.decision.stays and recommended_change(slow) is None
    out = tmp_path / "out.tf"
    asked = ["advise", str(EXAMPLE), "--devices", "hdd-7k2", "--seeds", "2", "--emit", "terraform"]
    ran = RUNNER.invoke(app, [*asked, "-o", str(out)])
    assert ran.exit_code == 0 and "nothing to emit" in ran.stderr
    assert not out.exists()
    assert not RUNNER.invoke(app, asked).stdout


def test_a_setting_in_place_of_a_move_emits_nothing(tmp_path: Path) -> None:
    asked = [
        "advise",
        str(EXAMPLE),
        "--devices",
        "gp3",
        "--seeds",
        "2",
        "--may-lose",
        "1s",
        "--emit",
        "ansible",
    ]
    ran = RUNNER.invoke(app, asked)
    assert ran.exit_code == 0 and not ran.stdout
    assert "to set synchronous_commit=off in place of a move; there is nothing to emit" in ran.stderr
    out = tmp_path / "move.yml"
    assert RUNNER.invoke(app, [*asked, "-o", str(out)]).stdout.startswith("Set synchronous_commit=off")
    assert not out.exists()


def test_headroom_is_in_the_sizes() -> None:
    terms = PaymentTerms.parse(headroom="50%")
    advice = advise(predictor(), AdviceOptions.parse("nvme-dc", None, None, terms, fresh=False))
    made, roomy = recommended_change(advice), recommended_change(advice, terms.room)
    assert made and roomy and roomy.needed_bytes[Role.LOG] == 1.5 * made.needed_bytes[Role.LOG]


def test_a_volume_has_room_for_more_than_its_files_without_a_headroom_given() -> None:
    """A log of max_wal_size = 1GB got a volume of 1 GiB, less what its file system takes."""
    asked = ["advise", str(EXAMPLE), "--devices", "gp3", "--seeds", "2", "--emit", "cnpg"]
    exact, roomy = (
        max(int(size) for size in re.findall(r'"(\d+)Gi"', RUNNER.invoke(app, [*asked, *more]).stdout))
        for more in (["--headroom", "0%"], [])
    )
    assert roomy >= 1.2 * exact


@pytest.mark.parametrize("emit", ["cnpg", "terraform", "ansible", "fio"])
def test_the_command_prints_the_file_alone_or_writes_it(emit: str, tmp_path: Path) -> None:
    asked = ["advise", str(EXAMPLE), "--devices", "nvme-dc,gp3", "--seeds", "2", "--emit", emit]
    printed = RUNNER.invoke(app, asked)
    assert printed.exit_code == 0 and printed.stdout.startswith("# ")
    out = tmp_path / "out"
    written = RUNNER.invoke(app, [*asked, "-o", str(out)])
    assert written.exit_code == 0 and written.stdout.startswith("Move ")
    assert out.read_text("utf-8") == printed.stdout


def test_a_day_has_no_single_change(tmp_path: Path) -> None:
    write_recording(tmp_path / "day" / "first")
    ran = RUNNER.invoke(app, ["advise", str(tmp_path / "day"), "--devices", "gp3", "--emit", "fio"])
    assert isinstance(ran.exception, TierwiseError) and "is a day" in ran.exception.message


def test_a_format_beside_a_file_on_standard_output_is_refused() -> None:
    """It was ignored."""
    command = ["advise", str(EXAMPLE), "--devices", "gp3", "--emit", "fio", "--format", "json"]
    assert "--emit and --format: both" in str(RUNNER.invoke(app, command).exception)


def test_no_change_is_emitted_from_an_unusable_recording() -> None:
    advice = advise(predictor(), AdviceOptions.parse("nvme-dc", None, None, PaymentTerms(), fresh=False))
    lost = UsabilityRemark(reason="half of the events are missing", fix="record again", blocks=True)
    unusable = advice.model_copy(update={"usable": False, "remarks": [lost]})
    with pytest.raises(FailedCheckError, match="not usable: half of the events"):
        emit_change(ChangeTool.TERRAFORM, unusable, PaymentTerms(), EXAMPLE, None)


def test_what_a_restart_loses_stands_first() -> None:
    lost = change({Role.LOG: "ram"})
    for text in (ansible_playbook(lost), cluster_patch(lost), fio_jobs(lost, REQUESTS)):
        first, rest = lost.cautioned(text).split("\n", 1)
        assert (
            first.startswith("# Caution: a power cut or a restart of the machine loses the log")
            and rest == text
        )
    assert change({Role.LOG: "ssd-nvme-dc"}).cautioned("x") == "x"
