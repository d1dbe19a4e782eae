"""JSON Schema of device profiles: what ``crates/device`` asks for while it reads the profiles that ship."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.model.input_files import DATA, read_shipped_toml

MEANINGS_FILE = DATA / "profile_keys.toml"
"""What each key means, by kind of device; ``any`` holds the keys of every kind."""
_LIKE = {"type": "string", "description": "Name of a profile whose keys hold where this file gives none."}

_PRICE = '[price]\nusd = 1\n[source]\nprice = "an example for the schema"'
"""A price, which a user's profile may have; those of the profiles that ship are in a file of their own."""
_RANGE = "[range]\n"
"""Which any profile may have."""
_TABLES = {"table", "tables"}
_MB_PER_MIB = 2**20 / 1e6
_RATES = ("limits.mb_per_s", "credits.mb_per_s")
"""Tables that may be given in MiB per second instead, as ``mib_per_s``: the reader converts them."""

Keys = dict[str, dict[str, Any]]
"""Path of a key -> what it may hold: ``form``, ``required`` and the bounds, as the crate notes them."""


def keys_by_kind() -> dict[str, Keys]:
    """Every key that any shipped profile may have, by kind of device, with the widest bounds."""
    by_kind: dict[str, list[Keys]] = defaultdict(list)
    texts = profiles.shipped_profile_texts()
    for name, text in texts.items():
        priced = text.replace("[source]", _PRICE if _RANGE in text else _RANGE + _PRICE, 1)
        noted = {
            profile_keys.pop("path"): profile_keys
            for profile_keys in json.loads(_core.profile_keys(priced, name, texts))
        }
        by_kind[profiles.load_profile(name).kind].append(noted)
    kinds = {kind: _merged(every) for kind, every in sorted(by_kind.items())}
    for keys in kinds.values():
        for path in [path for path, key in keys.items() if key["form"] == "unread"]:
            keys.update(_key_of_other_kind(path, kinds.values()))
        keys.update(_in_mebibytes(keys))
    return kinds


def _in_mebibytes(keys: Keys) -> Keys:
    """The tables of rates again, in the other unit; of the two, one is given."""
    converted: Keys = {}
    for path, key in keys.items():
        table = next((rate for rate in _RATES if path == rate or path.startswith(f"{rate}.")), None)
        if table:
            bounds: dict[str, Any] = {
                bound: key[bound] / _MB_PER_MIB for bound in ("least", "most") if bound in key
            }
            converted[path.replace("mb_per_s", "mib_per_s", 1)] = {**key, **bounds}
    return converted


def _key_of_other_kind(path: str, kinds: Iterable[Keys]) -> Keys:
    """A key that no profile of one kind has, with the keys below it, from a kind that has it.

    Raises:
        StopIteration: if no profile that ships has it.
    """
    known = next(keys for keys in kinds if keys.get(path, {}).get("form", "unread") != "unread")
    return {other: key for other, key in known.items() if f"{other}.".startswith(f"{path}.")}


def profile_schema() -> dict[str, Any]:
    """JSON Schema of a profile's TOML file.

    The schema knows bounds that hold for a key by itself. Bounds that depend on other keys are checked when
    the profile is read.
    """
    meanings = read_shipped_toml(MEANINGS_FILE)
    kinds = {kind: _Kind(kind, keys, meanings) for kind, keys in keys_by_kind().items()}
    definitions: dict[str, Any] = {}
    for kind in kinds.values():
        definitions |= kind.definitions()
    return {
        "title": "device-profile",
        "description": "Parameters of one device, each with its source. The keys depend on the kind.",
        "type": "object",
        "if": {"required": ["like"]},
        "then": {"anyOf": [kind.changes() for kind in kinds.values()]},
        "else": {
            "required": ["kind"],
            "properties": {"kind": {"enum": list(kinds)}},
            "allOf": [
                {
                    "if": {"required": ["kind"], "properties": {"kind": {"const": name}}},
                    "then": {"$ref": f"#/$defs/{name}"},
                }
                for name in kinds
            ],
        },
        "$defs": definitions,
    }


def _merged(every: Iterable[Keys]) -> Keys:
    """The keys of profiles of one kind; one is required if each profile with its table requires it."""
    listed = list(every)
    merged: Keys = {}
    for path in sorted({path for keys in listed for path in keys}):
        parent = path.rpartition(".")[0].removesuffix("[]")
        inside = [
            keys for keys in listed if not parent or keys.get(parent, {}).get("form", "unread") != "unread"
        ]
        read = [keys[path] for keys in listed if path in keys and keys[path]["form"] != "unread"]
        key: dict[str, Any] = dict(read[0]) if read else {"form": "unread"}
        for bound, widest in (("least", min), ("most", max)):
            if bound in key:
                key[bound] = widest(other[bound] for other in read)
        key["required"] = all(path in keys and keys[path]["required"] for keys in inside)
        merged[path] = key
    return merged


class _Kind:
    """The schema of one kind of device."""

    def __init__(self, name: str, keys: Keys, meanings: Mapping[str, Mapping[str, str]]) -> None:
        self._name = name
        self._keys = keys
        self._meanings = {**meanings["any"], **meanings[name]}

    def definitions(self) -> dict[str, Any]:
        """A definition for the profile and one for each of its tables."""
        tables = [path for path, key in self._keys.items() if key["form"] in _TABLES]
        return {self._named(path): self._table(path) for path in ["", *tables]}

    def changes(self) -> dict[str, Any]:
        """The profile on top of another: any of its keys, none of them required."""
        return self._table("", like=True)

    def _table(self, path: str, *, like: bool = False) -> dict[str, Any]:
        prefix = "" if not path else f"{path}[]." if self._keys[path]["form"] == "tables" else f"{path}."
        below = {
            other.removeprefix(prefix): other
            for other in self._keys
            if other.startswith(prefix) and "." not in other.removeprefix(prefix)
        }
        properties = {name: self._value(other, like=like) for name, other in below.items()}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if path:
            schema["description"] = self._meaning(path)
        else:
            properties["kind"] = {"const": self._name, "description": self._meanings["kind"]}
            properties["like"] = _LIKE
            schema["description"] = self._meanings[""]
        required = [name for name, other in below.items() if self._keys[other]["required"]]
        if path and "mib_per_s" in below:
            schema["not"] = {"required": ["mb_per_s", "mib_per_s"]}
            if "mb_per_s" in required:
                required = [name for name in required if name not in ("mb_per_s", "mib_per_s")]
                schema |= {} if like else {"anyOf": [{"required": ["mb_per_s"]}, {"required": ["mib_per_s"]}]}
        return schema if like else {**schema, "required": required}

    def _value(self, path: str, *, like: bool) -> dict[str, Any]:
        key = self._keys[path]
        if key["form"] in _TABLES:
            table = self._table(path, like=True) if like else {"$ref": f"#/$defs/{self._named(path)}"}
            schema = {"type": "array", "items": table, "minItems": 1} if key["form"] == "tables" else table
        else:
            schema = _simple(key)
        return {**schema, "description": self._meaning(path)}

    def _meaning(self, path: str) -> str:
        """Of a key by its path, or by its name alone where several tables have the same keys.

        Raises:
            KeyError: a key without a meaning.
        """
        return self._meanings.get(path) or self._meanings[path.rpartition(".")[2]]

    def _named(self, path: str) -> str:
        return f"{self._name}.{path}" if path else self._name


def _simple(key: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a value that is no table of keys."""
    match key["form"]:
        case "integer":
            schema = {"type": "integer", "minimum": int(key["least"]), "maximum": int(key["most"])}
        case "number":
            schema = _number(key["least"], key["most"])
        case "numbers":
            number_schema = _number(key["least"], key["most"])
            several = {"type": "array", "items": number_schema, "minItems": 1, "maxItems": key["longest"]}
            schema = {"anyOf": [number_schema, several]}
        case "pairs":
            pair = [_number(*bounds) for bounds in zip(key["least"], key["most"], strict=True)]
            items = {"type": "array", "prefixItems": pair, "minItems": 2, "maxItems": 2}
            schema = {"type": "array", "items": items}
        case "word":
            schema = {"enum": key["words"]}
        case "ranges":
            ends = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
            schema = {"type": "object", "additionalProperties": ends}
        case "texts":
            text = {"type": "string", "minLength": key["shortest"]}
            schema = {"type": "object", "additionalProperties": text}
        case form:
            schema = {"type": {"flag": "boolean", "text": "string"}[form]}
    return schema


def _number(least: float, most: float) -> dict[str, Any]:
    return {"type": "number", "minimum": least, "maximum": most}
