"""Machines: shipped ones, files of a user, and what the provider prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tierwise.device_models.instances import find_instance, find_instances, larger_instances
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


def sku(**others: str) -> dict[str, Any]:
    """One type as ``az vm list-skus`` prints it."""
    capabilities = {
        "vCPUs": "4",
        "MemoryGB": "16",
        "PremiumIO": "True",
        "UncachedDiskIOPS": "6400",
        "UncachedDiskBytesPerSecond": "152043520",
    }
    return {
        "name": "Standard_D4s_v5",
        "resourceType": "virtualMachines",
        "family": "standardDSv5Family",
        "capabilities": [{"name": name, "value": value} for name, value in (capabilities | others).items()],
    }


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_shipped_machines_have_sources_and_none_is_checked() -> None:
    instances = find_instances(["m6i.large", "Standard_D4s_v5", "n2-standard-8", "r6g.xlarge"])
    assert [instance.vcpus for instance in instances] == [2, 4, 8, 4]
    assert all(instance.source and instance.date and not instance.checked for instance in instances)
    assert [instance.name for instance in larger_instances(instances[0])] == [
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


def test_what_azure_prints_is_read(tmp_path: Path) -> None:
    for answer in ([sku()], sku()):
        instance = find_instance(written(tmp_path, "d4s.json", json.dumps(answer)))
        assert (instance.name, instance.vcpus, instance.memory_gib) == ("Standard_D4s_v5", 4, 16)
        assert (instance.iops, round(instance.mb_per_s, 2), instance.burst) == (6400, 152.04, None)
        assert [other.name for other in larger_instances(instance)] == ["Standard_D8s_v5"]
        assert instance.source == "d4s.json: az vm list-skus"


def test_a_file_of_a_user_is_read(tmp_path: Path) -> None:
    instance = find_instance(written(tmp_path, "own.toml", OWN))
    assert (instance.name, instance.iops, instance.burst, instance.per_month) == ("big.one", 5000, None, None)


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("own.toml", OWN.replace("iops = 5000", "iops = -1"), "instances.big.one.iops"),
        ("own.toml", OWN.replace("mb_per_s = 200", ""), "instances.big.one.mb_per_s"),
        ("own.toml", OWN + "burst = { iops = 10, mb_per_s = 300 }", "burst is below"),
        ("own.toml", OWN.replace("iops = 5000", "iops = 0"), "or equal to 0.000001, not 0"),
        ("own.toml", OWN + "colour = 1", "instances.big.one.colour: no such field"),
        ("own.toml", OWN.replace("memory_gib", "memory_gb"), "no such field; did you mean memory_gib?"),
        ("own.toml", "instances = {}", "instances"),
        ("own.toml", OWN.replace("big.one", "\\u001b[2J"), "instances"),
        ("own.toml", "[", "own.toml"),
        ("own.json", "{", "no JSON: Expecting property name"),
        ("own.json", "", "no JSON: Expecting value (at line 1, column 1)"),
        ("own.json", f"{json.dumps(described())}\n{{}}", "no JSON: Extra data (at line 2, column 1)"),
        ("own.json", json.dumps(described(BaselineIops=float("nan"))), "the number NaN is not finite"),
        ("own.json", json.dumps(described(BaselineIops=10**30)), "the number 10000000000000000000… is"),
        ("own.json", "[" * 100_000, "nested too deeply"),
        ("own.json", "3", "valid dictionary"),
        ("own.json", '{"InstanceType": "a", "InstanceType": "b"}', "the field 'InstanceType' is there twice"),
        ("own.json", json.dumps([sku(UncachedDiskIOPS="many")]), "skus.0.capabilities.UncachedDiskIOPS"),
        ("own.json", json.dumps([sku() | {"capabilities": [1]}]), "skus.0.capabilities: not a list of"),
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


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("n2.json", '{"kind": "compute#machineType", "name": "n2-standard-4"}', "another cloud"),
        ("d4.json", '[{"name": "Standard_D4s_v5", "capabilities": []}]', "another cloud"),
        ("m6i.yaml", "InstanceTypes:\n- InstanceType: m6i.large", "name a file of JSON"),
        ("m6i.txt", json.dumps(described()), "name a file of JSON"),
    ],
)
def test_what_another_cloud_or_format_gives_is_refused_with_a_way_on(
    tmp_path: Path, name: str, text: str, fix: str
) -> None:
    with pytest.raises(TierwiseError, match=name) as refused:
        find_instances([written(tmp_path, name, text)])
    assert fix in refused.value.fix


def test_two_machines_of_one_name_are_refused(tmp_path: Path) -> None:
    """The second one was left out of the answer without a word."""
    twice = written(tmp_path, "m6i.json", json.dumps([described(), described(BaselineIops=4000)]))
    for names in ([twice], ["m6i.large", "m6i.large"], [written(tmp_path, "own.toml", OWN)] * 2):
        with pytest.raises(TierwiseError, match=r"two machines are named (m6i\.large|big\.one)"):
            find_instances(names)


def test_an_unknown_name_and_a_file_with_several_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"'m6i\.larg' is not known") as refused:
        find_instance("m6i.larg")
    assert "did you mean m6i.large?" in refused.value.fix
    with pytest.raises(TierwiseError, match=r"'M6I\.LARGE' is not known") as refused:
        find_instance("M6I.LARGE")
    assert "did you mean m6i.large?" in refused.value.fix
    several = written(tmp_path, "own.toml", OWN + OWN.replace("big.one", "big.two"))
    assert len(find_instances([several])) == 2
    marked = written(tmp_path, "marked.toml", "\ufeff" + OWN)
    assert len(find_instances([marked])) == 1, "as Windows writes it"
    with pytest.raises(TierwiseError, match="describes 2 machines"):
        find_instance(several)
