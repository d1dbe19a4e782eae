"""Machines: shipped ones, files of a user, and what the provider prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tierwise.device_models.instances import find_instance, find_instances, larger
from tierwise.model.errors import TierwiseError

OWN = """
[instances."big.one"]
vcpus = 8
memory_gib = 32
iops = 5000
mb_per_s = 200
source = "the provider's page, of last week"
"""


def described(**limits: Any) -> dict[str, Any]:
    """One type as ``aws ec2 describe-instance-types`` prints it."""
    described = {
        "BaselineBandwidthInMbps": 650,
        "BaselineThroughputInMBps": 81.25,
        "BaselineIops": 3600,
        "MaximumBandwidthInMbps": 10000,
        "MaximumThroughputInMBps": 1250.0,
        "MaximumIops": 40000,
    }
    return {
        "InstanceType": "m6i.large",
        "VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1},
        "MemoryInfo": {"SizeInMiB": 8192},
        "EbsInfo": {"EbsOptimizedSupport": "default", "EbsOptimizedInfo": described | limits},
    }


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_shipped_machines_have_sources_and_none_is_checked() -> None:
    instances = find_instances(["m6i.large", "Standard_D4s_v5", "n2-standard-8", "r6g.xlarge"])
    assert [instance.vcpus for instance in instances] == [2, 4, 8, 4]
    assert all(instance.source and instance.date and not instance.checked for instance in instances)
    assert [instance.name for instance in larger(instances[0])] == [
        "m6i.xlarge",
        "m6i.2xlarge",
        "m6i.4xlarge",
    ]


def test_what_the_provider_prints_is_read(tmp_path: Path) -> None:
    shipped = find_instance("m6i.large")
    for answer in ({"InstanceTypes": [described()]}, [described()], described()):
        instance = find_instance(written(tmp_path, "m6i.json", json.dumps(answer)))
        assert (
            instance.vcpus,
            instance.memory_gib,
            instance.iops,
            instance.mb_per_s,
            instance.burst,
            instance.family,
        ) == (
            shipped.vcpus,
            shipped.memory_gib,
            shipped.iops,
            shipped.mb_per_s,
            shipped.burst,
            shipped.family,
        )
        assert instance.checked
    even = described(MaximumThroughputInMBps=81.25, MaximumIops=3600)
    assert find_instance(written(tmp_path, "m6i.json", json.dumps(even))).burst is None


def test_a_file_of_a_user_is_read(tmp_path: Path) -> None:
    instance = find_instance(written(tmp_path, "own.toml", OWN))
    assert (instance.name, instance.iops, instance.burst, instance.per_month) == ("big.one", 5000, None, None)


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("own.toml", OWN.replace("iops = 5000", "iops = -1"), "instances.big.one.iops"),
        ("own.toml", OWN.replace("mb_per_s = 200", ""), "instances.big.one.mb_per_s"),
        ("own.toml", OWN + "burst = { iops = 10, mb_per_s = 300 }", "burst is below"),
        ("own.toml", OWN + "colour = 1", "instances.big.one.colour"),
        ("own.toml", "instances = {}", "instances"),
        ("own.toml", OWN.replace("big.one", "\\u001b[2J"), "instances"),
        ("own.toml", "[", "own.toml"),
        ("own.json", "{", "no JSON"),
        ("own.json", "3", "valid dictionary"),
        ("own.json", json.dumps({"InstanceTypes": []}), "InstanceTypes"),
        (
            "own.json",
            json.dumps({"InstanceTypes": [described(BaselineIops="many")]}),
            "InstanceTypes.0.EbsInfo.EbsOptimizedInfo.BaselineIops",
        ),
    ],
)
def test_a_bad_file_is_named_with_its_field(tmp_path: Path, name: str, text: str, where: str) -> None:
    with pytest.raises(TierwiseError, match=name) as refused:
        find_instances([written(tmp_path, name, text)])
    assert where in refused.value.message and refused.value.fix


def test_an_unknown_name_and_a_file_with_several_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"'m6i\.larg' is not known") as refused:
        find_instance("m6i.larg")
    assert "did you mean m6i.large?" in refused.value.fix
    several = written(tmp_path, "own.toml", OWN + OWN.replace("big.one", "big.two"))
    assert len(find_instances([several])) == 2
    marked = written(tmp_path, "marked.toml", "\ufeff" + OWN)
    assert len(find_instances([marked])) == 1, "as Windows writes it"
    with pytest.raises(TierwiseError, match="describes 2 machines"):
        find_instance(several)
