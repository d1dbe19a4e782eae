"""Workloads shipped, of a user's folder, or of pgbench scripts: read and checked, or started anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.lab.workloads import pgbench_scripts
from tierwise.lab.workloads.program import RoleSql
from tierwise.lab.workloads.workload_spec import Step, WorkloadSpec
from tierwise.model import input_files
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, parse_as_model, parse_toml
from tierwise.model.names import checked_file_below, nearest_names
from tierwise.model.output_files import make_new_folder, require_own_parents, write_file
from tierwise.model.placement import ROLES_OF_FILES, Role

WORKLOAD_FILE = "workload.toml"
SCHEMA_FILE = "schema.sql"
AFTER_LOAD_FILE = "after_load.sql"

_ROLE_MARKER = re.compile(r"^--\s*role:\s*(\S+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class WorkloadLayer:
    """A folder of a workload, or of one that it is like, and the content of its workload.toml."""

    folder: Path
    raw: dict[str, Any]


def read_workload_spec(file: str, layers: Sequence[WorkloadLayer]) -> WorkloadSpec:
    """The content of the first layer, together with those that it is like.

    Args:
        file: what the first layer was read from, for messages.
        layers: the workload, the one that it is like, and so on.
    """
    raw, folders = _merged(layers), [layer.folder for layer in layers]
    fix = "mend that field; see docs/reference/workloads.md"
    if raw.get("pgbench"):
        raw = _with_scripts(parse_as_model(WorkloadSpec, raw, file, fix), raw, folders)
    spec = parse_as_model(WorkloadSpec, raw, file, fix)
    spec = _with_sql_inline(file, spec, folders)
    for problem, fix in spec.contradictions():
        raise TierwiseError(f"{file}: {problem}", fix)
    return spec


def read_schema_statements(layers: Sequence[WorkloadLayer], spec: WorkloadSpec) -> tuple[RoleSql, RoleSql]:
    """Statements to run before and after the load phase; those of objects are derived from their fields."""
    folders = [layer.folder for layer in layers]
    schema_file, after_load_file = (_file(folders, name) for name in (SCHEMA_FILE, AFTER_LOAD_FILE))
    if spec.objects:
        for file in (schema_file, after_load_file):
            if file.exists():
                raise TierwiseError(f"{file}: the workload declares objects", "remove the file, or [objects]")
        return [statement for name, kind in spec.objects.items() for statement in kind.tables(name)], []
    if spec.program and not schema_file.exists():
        return [], []
    after_load = statements_with_roles(after_load_file) if after_load_file.exists() else []
    return statements_with_roles(schema_file), after_load


def read_workload_toml(folder: Path) -> dict[str, Any]:
    """The folder's workload.toml, parsed but not checked."""
    file = folder / WORKLOAD_FILE
    return parse_toml(read_workload_text(checked_file_below(folder, WORKLOAD_FILE)), str(file))


def _merged(layers: Sequence[WorkloadLayer]) -> dict[str, Any]:
    """The first layer merged over the others: constants and tables one by one, transactions as a whole."""
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        below = {field: merged.get(field) for field in ("constants", "tables")}
        if "transactions" in layer.raw or "pgbench" in layer.raw:
            for field in ("transactions", "pgbench", "parameters", "laps"):
                merged.pop(field, None)
        merged |= layer.raw
        for field, inherited in below.items():
            if isinstance(inherited, dict) and isinstance(merged[field], dict):
                merged[field] = inherited | merged[field]
    return merged


def _with_scripts(spec: WorkloadSpec, raw: dict[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """The fields with the transactions of pgbench's scripts in place of their names."""
    scripts = [pgbench_scripts.split_weight(script) for script in spec.pgbench]
    files = [(_file(folders, name), weight) for name, weight in scripts]
    shared = pgbench_scripts.read_pgbench_scripts(files, spec.constants)
    for field in ("parameters", "transactions"):
        if field in raw:
            raise TierwiseError(f"{folders[0] / WORKLOAD_FILE}: both pgbench and {field}", "give one of them")
    return {**raw, **shared, "pgbench": []}


def _file(folders: Sequence[Path], name: str) -> Path:
    """The file in the first folder that has it; it must lie in that folder."""
    paths = [checked_file_below(folder, name) for folder in folders]
    return next((file for file in paths if file.exists()), paths[0])


def statements_with_roles(path: Path) -> RoleSql:
    """Statements of a script; a line ``-- role: data`` says the role of all that follow."""
    sections = _ROLE_MARKER.split(read_workload_text(path))
    if _core.split_statements(sections[0]):
        raise TierwiseError(f"{path}: a statement before the first role", "begin with a line '-- role: data'")
    result: RoleSql = []
    for name, script in zip(sections[1::2], sections[2::2], strict=True):
        if name not in ROLES_OF_FILES:
            raise TierwiseError(f"{path}: unknown role {name!r}", f"use one of {', '.join(Role)}")
        result += [(Role(name), statement) for statement in _core.split_statements(script)]
    return result


def read_workload_text(path: Path) -> str:
    """Text of one of a workload's files."""
    return input_files.read_text(
        path, "a workload is a folder of readable files; see docs/reference/workloads.md"
    )


def _with_sql_inline(file: str, spec: WorkloadSpec, folders: Sequence[Path]) -> WorkloadSpec:
    """The spec with single statements in place of scripts, file names and operations on objects."""
    transactions = {}
    for name, transaction in spec.transactions.items():
        where = f"{file}: transactions.{name}.steps"
        steps = [
            step.model_copy(update={"sql": _statements(f"{where}.{number}", step, spec, folders)})
            for number, step in enumerate(transaction.steps)
        ]
        transactions[name] = transaction.model_copy(update={"steps": steps})
    return spec.model_copy(update={"transactions": transactions})


def _statements(where: str, step: Step, spec: WorkloadSpec, folders: Sequence[Path]) -> list[str]:
    if [bool(step.sql), step.file is not None, step.operation is not None].count(True) != 1:
        raise TierwiseError(where, "give one of sql, file and object")
    if step.operation is not None:
        for problem, fix in step.operation.problems(spec.objects):
            raise TierwiseError(f"{where}.object: {problem}", fix)
        return [step.operation.sql(spec.objects[step.operation.kind])]
    scripts = [step.sql] if isinstance(step.sql, str) else step.sql
    if step.file is not None:
        scripts = [read_workload_text(_file(folders, step.file))]
    single = [statement for text in scripts for statement in _core.split_statements(text)]
    if not single:
        raise TierwiseError(f"{where} holds no statement", "write one, or remove the step")
    return single


_SHIPPED = DATA / "workloads"
_NO_SCRIPTS = (SCHEMA_FILE, AFTER_LOAD_FILE)
PGBENCH_TABLES = "tpcb"
"""The shipped workload that provides the tables for a script without a schema of its own."""


def workload_names() -> list[str]:
    """Workloads that ship with tierwise."""
    return sorted(folder.name for folder in _SHIPPED.iterdir() if (folder / WORKLOAD_FILE).is_file())


def find_workload(name_or_path: str) -> tuple[str, str, list[WorkloadLayer]]:
    """A workload by the name of a shipped one, by its folder, or by a pgbench script.

    Returns:
        Its name, its name in messages, and its layers.
    """
    if name_or_path in workload_names():
        return name_or_path, *_folder(_SHIPPED / name_or_path)
    path = Path(name_or_path)
    script = Path(pgbench_scripts.split_weight(name_or_path)[0])
    if script.suffix in pgbench_scripts.SUFFIXES and script.is_file():
        real = script.resolve()
        return script.stem, str(script), _scripts(real.parent, [real])
    if not path.is_dir():
        near = nearest_names(name_or_path, workload_names(), 3) or workload_names()
        raise TierwiseError(
            f"unknown workload {name_or_path!r}",
            f"use one of {', '.join(near)}, a folder with a {WORKLOAD_FILE}, or a pgbench script",
        )
    name = path.resolve().name
    if not (path / WORKLOAD_FILE).exists() and (
        scripts := pgbench_scripts.pgbench_scripts_in(path, _NO_SCRIPTS)
    ):
        return name, str(path), _scripts(path, scripts)
    return name, *_folder(path)


def _folder(folder: Path) -> tuple[str, list[WorkloadLayer]]:
    """The folder, and those of the workloads that it is like, each like the next."""
    layers = [WorkloadLayer(folder, read_workload_toml(folder))]
    while isinstance(like := layers[-1].raw.get("like"), str):
        known = workload_names()
        if like not in known or _SHIPPED / like in [layer.folder for layer in layers]:
            where = layers[-1].folder / WORKLOAD_FILE
            raise TierwiseError(f"{where}: like: {like!r}", f"use another one of {', '.join(known)}")
        layers.append(WorkloadLayer(_SHIPPED / like, read_workload_toml(_SHIPPED / like)))
    return str(folder / WORKLOAD_FILE), layers


def _scripts(folder: Path, scripts: list[Path]) -> list[WorkloadLayer]:
    """Scripts with the schema in their folder, or else with pgbench's own tables."""
    raw = {"summary": "scripts of pgbench", "pgbench": [script.name for script in scripts]}
    own = WorkloadLayer(folder, raw)
    if (folder / SCHEMA_FILE).exists():
        return [own]
    return [own, *_folder(_SHIPPED / PGBENCH_TABLES)[1]]


_TEMPLATE = DATA / "templates" / "workload"


def write_new_workload(folder: Path) -> list[Path]:
    """Make a new folder with a small workload that runs unchanged; return its files."""
    try:
        require_own_parents(folder)
        make_new_folder(folder, 0o755)
        written = []
        for source in sorted(_TEMPLATE.iterdir(), key=lambda path: path.name, reverse=True):
            text = source.read_text("utf-8").replace("FOLDER", str(folder))
            write_file(folder / source.name, text)
            written.append(folder / source.name)
        return written
    except FileExistsError as error:
        raise TierwiseError(f"{folder} is there already", "name a folder that is not") from error
    except OSError as error:
        raise TierwiseError(f"{folder}: {error.strerror}", "name a folder that can be made") from error
