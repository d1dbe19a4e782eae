"""Sources of workloads: shipped ones by name, a user's own folder, or pgbench scripts."""

from __future__ import annotations

from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA
from tierwise.model.names import nearest
from tierwise.workloads import pgbench
from tierwise.workloads.reader import AFTER_LOAD_FILE, SCHEMA_FILE, WORKLOAD_FILE, Layer, read_toml

_SHIPPED = DATA / "workloads"
_NO_SCRIPTS = (SCHEMA_FILE, AFTER_LOAD_FILE)
PGBENCH_TABLES = "tpcb"
"""The shipped workload that provides the tables for a script without a schema of its own."""


def names() -> list[str]:
    """Workloads that ship with tierwise."""
    return sorted(folder.name for folder in _SHIPPED.iterdir() if (folder / WORKLOAD_FILE).is_file())


def find(name_or_path: str) -> tuple[str, str, list[Layer]]:
    """A workload by the name of a shipped one, by its folder, or by a pgbench script.

    Returns:
        Its name, its name in messages, and its layers.

    Raises:
        TierwiseError: if there is none, or its workload.toml cannot be read.
    """
    if name_or_path in names():
        return name_or_path, *_folder(_SHIPPED / name_or_path)
    path = Path(name_or_path)
    script = Path(pgbench.split_weight(name_or_path)[0])
    if script.suffix in pgbench.SUFFIXES and script.is_file():
        real = script.resolve()
        return script.stem, str(script), _scripts(real.parent, [real])
    if not path.is_dir():
        near = nearest(name_or_path, names(), 3) or names()
        raise TierwiseError(
            f"unknown workload {name_or_path!r}",
            f"use one of {', '.join(near)}, a folder with a {WORKLOAD_FILE}, or a pgbench script",
        )
    name = path.resolve().name
    if not (path / WORKLOAD_FILE).exists() and (scripts := pgbench.scripts_in(path, _NO_SCRIPTS)):
        return name, str(path), _scripts(path, scripts)
    return name, *_folder(path)


def _folder(folder: Path) -> tuple[str, list[Layer]]:
    """The folder, and those of the workloads that it is like, each like the next."""
    layers = [Layer(folder, read_toml(folder))]
    while isinstance(like := layers[-1].raw.get("like"), str):
        known = names()
        if like not in known or _SHIPPED / like in [layer.folder for layer in layers]:
            where = layers[-1].folder / WORKLOAD_FILE
            raise TierwiseError(f"{where}: like: {like!r}", f"use another one of {', '.join(known)}")
        layers.append(Layer(_SHIPPED / like, read_toml(_SHIPPED / like)))
    return str(folder / WORKLOAD_FILE), layers


def _scripts(folder: Path, scripts: list[Path]) -> list[Layer]:
    """Scripts with the schema in their folder, or else with pgbench's own tables."""
    raw = {"summary": "scripts of pgbench", "pgbench": [script.name for script in scripts]}
    own = Layer(folder, raw)
    if (folder / SCHEMA_FILE).exists():
        return [own]
    return [own, *_folder(_SHIPPED / PGBENCH_TABLES)[1]]
