"""Addresses of a fleet: a few stores, no chains, and no credentials in what is kept or shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import forked
from tierwise.cluster import remote
from tierwise.fleet.fleet_databases import find_recordings
from tierwise.model.errors import HostError, TierwiseError

EXAMPLE = Path(__file__).parents[3] / "examples" / "recordings" / "keyed-update"
SECRET = "wJalrXUtnFEMI"

REFUSED = [
    "memory://fleet/x",
    "python://x",
    "ssh://host/x",
    "sftp://host/x",
    "github://owner:repo@main/x",
    "reference://x",
    "zip://x",
    "http://host/x",
    "ftp://host/x",
    "hdfs://host/x",
    "local://tmp/x",
    "FILE:///tmp/x",
    "file://relative",
    "s3n://b/x",
    "simplecache::s3://b/x",
    "zip://x::https://host/x.zip",
    "filecache::memory://x",
    "s3://b/x::zip://y",
    "file:///tmp/x::memory://y",
    "://x",
]
WITH_CREDENTIALS = [
    f"https://user:{SECRET}@host/x",
    f"https://{SECRET}@host/x",
    f"https://host/x?X-Amz-Signature={SECRET}",
    f"https://host/x?{SECRET}",
    f"https://host/x#{SECRET}=1",
    f"s3://AKIA:{SECRET}@bucket/x",
    f"s3://AKIA:{SECRET}/with/slashes@bucket/x",
    f"s3://{SECRET}@bucket/x",
    f"s3://bucket/x?AWSAccessKeyId={SECRET}",
    f"abfs://container@account.dfs.core.windows.net/x?sv=1&sig={SECRET}",
    f"abfs://container:{SECRET}@account.dfs.core.windows.net/x",
    f"simplecache::s3://AKIA:{SECRET}@bucket/x",
    f"ftp://user:{SECRET}@host/x",
]


@pytest.mark.parametrize("uri", REFUSED)
def test_other_stores_and_chains_are_refused(uri: str) -> None:
    tasks, (left_out,) = find_recordings([uri])
    assert not tasks and "tierwise reads no such address" in left_out.problem
    with pytest.raises(TierwiseError, match="no such address"), remote.local_recording_copy(uri):
        pass
    with pytest.raises(TierwiseError, match="no such address"):
        remote.file_versions(uri)


@pytest.mark.parametrize("uri", WITH_CREDENTIALS)
def test_credentials_are_neither_kept_nor_shown(uri: str, tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="the best set needs scipy")
    page, kept = tmp_path / "fleet.html", tmp_path / "kept"
    asked = ["fleet", "advise", EXAMPLE, uri, "--devices", "nvme-dc", "--seeds", "2"]
    for format in ("json", "text", "md"):
        ended = forked.command(*asked, "-o", page, "--results", kept, "--format", format)
        assert ended.status == 0 and SECRET not in ended.printed, ended
        assert SECRET not in page.read_text("utf-8")
    for file in kept.rglob("*.parquet"):
        assert SECRET.encode() not in file.read_bytes()
    ended = forked.command(*asked[:2], uri, *asked[4:])
    assert SECRET not in ended.refusal
    with pytest.raises(TierwiseError) as raised, remote.local_recording_copy(uri):
        pass
    assert SECRET not in str(raised.value)


def test_what_a_store_says_is_shown_without_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("fsspec.core", reason="URIs are read through fsspec")

    def failing(_: str) -> None:
        raise OSError(f"403 for https://host/x?sv=1&sig={SECRET}")

    monkeypatch.setattr(core, "url_to_fs", failing)
    _, (left_out,) = find_recordings(["az://container/x"])
    assert "403" in left_out.problem and SECRET not in left_out.model_dump_json()


@pytest.mark.parametrize(
    "uri", ["s3://b/x", "gs://b/x", "az://c/x", "abfs://c@a.dfs.core.windows.net/x", "https://h:8443/x"]
)
def test_the_stores_that_are_read_are_asked(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("fsspec.core", reason="URIs are read through fsspec")
    asked = []

    def missing(given: str) -> None:
        asked.append(given)
        raise ImportError("install the package", name="package")

    monkeypatch.setattr(core, "url_to_fs", missing)
    with pytest.raises(HostError, match="further package"):
        find_recordings([uri])
    assert asked == [uri]


def test_a_file_uri_is_its_path(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="the best set needs scipy")
    tasks, left_out = find_recordings([f"file://{EXAMPLE}", f"file://{EXAMPLE.parent}/key*"])
    assert [task.uri for task in tasks] == [str(EXAMPLE)] and not left_out
    ended = forked.command(
        "fleet", "advise", f"file://{EXAMPLE}", "--devices", "nvme-dc", "--seeds", "2", "--format", "json"
    )
    assert json.loads(ended.printed)["fleet"]["databases"][0]["uri"] == str(EXAMPLE)


def test_wildcards_of_a_store_are_no_query() -> None:
    for uri in ("s3://bucket/rec-?", "s3://bucket/day=2026-11-??/*", "gs://b/[ab]*"):
        remote.require_allowed_uri(uri)
