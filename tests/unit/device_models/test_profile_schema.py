"""The schema of device profiles agrees with the compiled reader: what one refuses, the other refuses."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tierwise.device_models import profiles
from tierwise.device_models.profile_schema import MEANINGS_FILE, keys_by_kind, profile_schema
from tierwise.model.errors import TierwiseError

VALIDATOR = Draft202012Validator(profile_schema())
KEYS = keys_by_kind()
WHOLE = {
    name: table
    for name, text in profiles.shipped_profile_texts().items()
    if "like" not in (table := tomllib.loads(text))
}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {toml(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def is_read(table: dict[str, Any]) -> bool:
    """Whether the compiled reader takes the profile."""
    text = "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in table.items())
    try:
        profiles.parse_profile(text, profiles.FOLDER / "changed.toml")
    except TierwiseError as error:
        assert "not TOML" not in str(error)
        return False
    return True


def tables(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table of a profile that has fixed keys, with its path and a dot."""
    yield path, value
    for key, entry in value.items():
        if isinstance(entry, dict) and key not in ("range", "source"):
            yield from tables(entry, f"{path}{key}.")
        elif isinstance(entry, list) and isinstance(entry[0], dict):
            yield from tables(entry[0], f"{path}{key}[].")


@pytest.mark.parametrize("name", profiles.profile_names())
def test_profiles_that_ship_are_valid(name: str) -> None:
    assert not list(VALIDATOR.iter_errors(tomllib.loads(profiles.shipped_profile_texts()[name])))


def test_bounds_and_unknown_keys_are_those_of_the_reader() -> None:
    tried = set()
    for name, original in WHOLE.items():
        table = copy.deepcopy(original)
        assert is_read(table), name
        kind = table["kind"]
        for path, part in tables(table):
            part["no_such_key"] = 1
            assert not is_read(table) and not VALIDATOR.is_valid(table), (name, path)
            del part["no_such_key"]
            for key in set(part) & {key.removeprefix(path) for key in KEYS[kind]}:
                known = KEYS[kind][path + key]
                if known["form"] not in {"number", "integer"} or (kind, path + key) in tried:
                    continue
                tried.add((kind, path + key))
                before = part[key]
                for beyond in (known["least"] - 1, known["most"] + 1):
                    part[key] = int(beyond) if known["form"] == "integer" else beyond
                    assert not is_read(table), (name, path + key, beyond)
                    assert not VALIDATOR.is_valid(table), (name, path + key, beyond)
                part[key] = before
    assert len(tried) > 90


@pytest.mark.parametrize("text", ["a password", "estimated: "])
def test_a_short_source_is_refused_by_its_length(text: str) -> None:
    table = copy.deepcopy(WHOLE["ram"])
    table["source"] = dict.fromkeys(table["source"], text)
    assert not VALIDATOR.is_valid(table)
    with pytest.raises(TierwiseError, match=r"is shorter than 12 characters"):
        profiles.parse_profile(
            "\n".join(f"{key} = {toml(entry)}" for key, entry in table.items()), Path("short.toml")
        )


def test_a_profile_like_another_may_leave_out_keys() -> None:
    change = {"like": "ssd-nvme-dc", "flush_us": 400, "source": {"flush_us": "measured on a server"}}
    assert VALIDATOR.is_valid(change)
    assert not VALIDATOR.is_valid({**change, "flush_us": -1})
    assert not VALIDATOR.is_valid({key: value for key, value in change.items() if key != "like"})


def test_every_key_has_a_meaning_and_every_meaning_a_key() -> None:
    meanings = tomllib.loads(MEANINGS_FILE.read_text("utf-8"))
    for kind, keys in KEYS.items():
        names = {part for path in keys for part in (path, path.rpartition(".")[2])}
        assert set(meanings[kind]) - {""} <= names
        assert set(meanings["any"]) <= names
