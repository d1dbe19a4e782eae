"""Files, folders, modes and owners are made in one module, which no other user can turn elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path

from support.paths import ROOT

PACKAGE = ROOT / "python" / "tierwise"
METHODS = {"mkdir", "write_text", "write_bytes", "touch", "chmod", "lchmod", "symlink_to", "hardlink_to"}
FUNCTIONS = {
    "os": {"mkdir", "makedirs", "chmod", "chown", "lchown", "fchmod", "fchown", "symlink", "mkfifo", "open"},
    "tempfile": {"mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory"},
}

# What makes or changes something elsewhere, with the reason.
KNOWN = {
    "model/output_files.py": "the one module",
    "model/input_files.py": "opens files to read them",
    "capture/record.py": "the caller's standard error",
    "capture/postgres_files.py": "opens files to read them, as the user of the recorded server",
    "capture/postgres_names.py": "opens a directory, which that user reads",
    "cli/__init__.py": "a file of a random name, for the details of a defect",
    "cluster/remote.py": "new files in a private directory",
    "lab/engines/duckdb/engine.py": "a new file, which is written by descriptor",
    "lab/engines/commit_load.py": "maps its own file, past no link",
    "lab/engines/postgres/server.py": "a link in the data directory, which the server's account owns",
    "lab/engines/rocksdb/adapter.py": "in the worker, as its account",
    "fleet/knapsack.py": "/dev/null",
    "fleet/option_row_store.py": "opens a directory to write it out",
    "host/ledger.py": "in the ledger's own directory",
    "model/file_lock.py": "an open descriptor",
    "host/block_devices.py": "devices and the kernel's files",
    "host/cgroups.py": "the kernel's files",
    "host/page_cache.py": "files that are read, and the kernel's switch",
    "host/disk/attainable_rates.py": "a loop device",
    "host/disk/disk_teardown.py": "the kernel's files",
    "host/processes.py": "/dev/null",
    "host/programs.py": "copies of programs in a directory of the caller's",
    "host/users.py": "open descriptors",
    "lab/studies/runner/study_runner.py": "the link `latest` in a folder of results",
    "lab/validation/clients/go_tpc.py": "a link in a directory of the caller's",
    "lab/validation/clients/sqlite_shell.py": "a pipe, which is given away by descriptor",
    "lab/validation/servers/case_database.py": "input in a directory of the caller's",
    "lab/validation/servers/mariadb.py": "a link in the data directory, which the server's account owns",
    "lab/validation/servers/postgres.py": "a link in the data directory, which the server's account owns",
}


def makes(path: Path) -> set[str]:
    """Calls in a file that make files or folders, or change modes or owners."""
    table_set = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        module = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(module, ast.Name) and module.id in FUNCTIONS:
            if name in FUNCTIONS[module.id]:
                table_set.add(f"{module.id}.{name}")
        elif (isinstance(node.func, ast.Attribute) and name in METHODS) or (name == "open" and writes(node)):
            table_set.add(name)
    return table_set


def writes(call: ast.Call) -> bool:
    """Whether a call of ``open`` has a mode of writing."""
    arguments = [*call.args[:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    modes = [
        argument.value
        for argument in arguments
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return any(set(mode) & set("wax+") and len(mode) <= 3 for mode in modes)


def test_outputs_are_made_by_one_module() -> None:
    makers = {
        path.relative_to(PACKAGE).as_posix(): made
        for path in sorted(PACKAGE.rglob("*.py"))
        if (made := makes(path))
    }
    unknown = {name: made for name, made in makers.items() if name not in KNOWN}
    assert not unknown, "use tierwise.model.output_files"
    assert not KNOWN.keys() - makers.keys(), "these no longer make anything"
