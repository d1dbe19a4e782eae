"""The invariants that ARCHITECTURE.md lists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.paths import ROOT, TESTS
from support.rust_modules import circles, module_graph
from tierwise.lab import engines

PACKAGE = ROOT / "python" / "tierwise"

# A module may import what stands above it in this list, and its own line; never what stands below.
LAYERS = [
    {"_core"},
    {"model"},
    {"results"},
    {"device_models"},
    {"recording"},
    {"predict"},
    {"advise"},
    {"host"},
    {"cluster"},
    {"probe"},
    {"capture"},
    {"fleet"},
    {"report"},
    {"lab"},
    {"lab.analysis"},
    {"lab.workloads"},
    {"lab.engines"},
    {"lab.studies"},
    {"lab.validation"},
    {"lab.report"},
    {"api"},
    {"serve"},
    {"cli", "__main__"},
    {"lab.cli"},
]

HOLD_FOLDERS = ("tierwise", "tierwise.lab", "tierwise.report")
"""What has no names of its own: an import from there is of a module."""

# What of the core may import the lab, and only when a function that needs it is called.
IMPORT_THE_LAB_ON_USE = {"api", "cli"}

# Rust crates, and the workspace crates each may depend on.
CRATES = {
    "confine": set[str](),
    "device": set[str](),
    "input": set[str](),
    "latency": set[str](),
    "pattern": {"device"},
    "simulate": {"device", "input", "latency", "pattern"},
    "disk": {"device", "latency"},
    "load": {"device", "latency", "tpch"},
    "sqlite": {"load"},
    "probe": {"device", "latency", "pattern"},
    "tpch": set[str](),
    "recording": {"input"},
    "recorder": {"input", "recording"},
    "work": {"recording"},
    "network": {"device", "latency", "recording", "work"},
    "bindings": {
        "confine",
        "device",
        "disk",
        "load",
        "network",
        "pattern",
        "probe",
        "recorder",
        "recording",
        "simulate",
        "sqlite",
        "tpch",
        "work",
    },
}

# Circles of more than three Rust modules, each with its reason. None is to be added without one.
KNOWN_CIRCLES: list[set[str]] = [
    # The machine owns all stations of crates/network. A station's file has its type, and what tasks do there:
    # read together, a commit is one page.
    {
        "kernel/machine.rs",
        "kernel/progress_watch.rs",
        "kernel/arrivals.rs",
        "kernel/task.rs",
        "page_cache/mod.rs",
        "page_cache/write_back.rs",
        "stations/client_threads.rs",
        "stations/cores.rs",
        "stations/locks.rs",
        "stations/log.rs",
        "stations/log_replica.rs",
        "stations/session_signals.rs",
        "stations/sync.rs",
    },
]

# Crates for use on their own have no circle at all; elsewhere up to three files may use each other.
CIRCLE_FREE = {"device"}

SOURCES = sorted(path for path in PACKAGE.rglob("*.py"))
RUST_SOURCES = sorted((ROOT / "crates").glob("*/src/**/*.rs"))
TEST_SOURCES = sorted(TESTS.rglob("*.py"))


def part_of(path: Path) -> str:
    return part_named(path.relative_to(PACKAGE).with_suffix("").parts)


def part_named(names: Sequence[str]) -> str:
    """The part of a module: its folder; in the lab, its folder there."""
    inner = [name for name in names[:2] if name != "__init__"]
    return ".".join(inner) if names[0] == "lab" else names[0]


def layer_of(part: str) -> int:
    for number, parts in enumerate(LAYERS):
        if part in parts:
            return number
    raise AssertionError(f"{part} has no place in LAYERS: give it one, here and in ARCHITECTURE.md")


def imported_parts(path: Path, *, on_import: bool = False) -> set[str]:
    """Parts that a file imports; ``on_import``: less those that only its functions and its types need."""
    return {part_named(name.split(".")[1:]) for name in imported(path, on_import=on_import)}


def imported(path: Path, *, on_import: bool = False) -> set[str]:
    """Modules of tierwise that a file imports, in the same way."""
    names: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    for node in at_import(tree) if on_import else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names.update(full if node.module in HOLD_FOLDERS else [node.module])
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name for name in names if name.startswith("tierwise.")}


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from at_import(child)


def test_imports_go_one_way() -> None:
    wrong = {
        str(path.relative_to(ROOT)): below
        for path in SOURCES
        if path != PACKAGE / "__init__.py"
        and (below := {part for part in imported_parts(path) if layer_of(part) > layer_of(part_of(path))})
    }
    assert not wrong, "these import what stands below them"


def test_the_core_never_imports_the_lab() -> None:
    def labs(path: Path) -> set[str]:
        on_use = part_of(path) in IMPORT_THE_LAB_ON_USE
        parts = imported_parts(path, on_import=on_use)
        return {part for part in parts if part.partition(".")[0] == "lab"}

    core = [path for path in SOURCES if part_of(path).partition(".")[0] != "lab"]
    found = {str(path.relative_to(ROOT)): used for path in core if (used := labs(path))}
    assert not found, "what both need belongs into the core; cli and api import the lab inside functions"


def test_report_measures_nothing() -> None:
    for path in [*(PACKAGE / "report").rglob("*.py"), *(PACKAGE / "lab" / "report").rglob("*.py")]:
        measuring = {"host", "capture", "lab.engines", "lab.workloads", "lab.studies"}
        assert not imported_parts(path) & measuring, path


def test_an_analysis_makes_no_document() -> None:
    """It takes colours, and sentences about emulated devices, from ``report``."""
    allowed = {"tierwise.report.palette", "tierwise.report.device_report"}
    for path in (PACKAGE / "lab" / "analysis").rglob("*.py"):
        used = {name for name in imported(path) if name.startswith("tierwise.report")}
        assert used <= allowed, f"{path}: tables and charts belong into lab/report"


def test_engines_and_workloads_do_not_know_each_other() -> None:
    for path in (PACKAGE / "lab" / "engines").rglob("*.py"):
        assert "lab.workloads" not in imported_parts(path), path
    for path in (PACKAGE / "data" / "workloads").rglob("*.*"):
        text = path.read_text("utf-8").lower()
        assert not [name for name in engines.engine_names() if name in text], f"{path} names an engine"


def test_libraries_never_print() -> None:
    prints = re.compile(r"(?<![\w.])print\(|sys\.std(out|err)|rich\.console")
    libraries = [path for path in SOURCES if part_of(path) not in ("cli", "lab.cli")]
    assert not [path for path in libraries if prints.search(path.read_text("utf-8"))]


LIBRARY_SOURCES = [p for p in RUST_SOURCES if p.parts[-3] != "bin" and p.parent.name != "tests"]
"""A test says why it skips itself."""


def test_crates_never_print() -> None:
    prints = re.compile(r"\be?print(ln)?!|\bdbg!")
    assert not [path for path in LIBRARY_SOURCES if prints.search(path.read_text("utf-8"))]


@pytest.mark.parametrize("crate", ["device", "work", "network"])
def test_models_touch_nothing_outside(crate: str) -> None:
    forbidden = r"std::(fs|net|thread|process|env)|Instant::now|SystemTime|libc::|rand::rng|thread_rng"
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
        matches = set(re.findall(forbidden, path.read_text("utf-8"), re.DOTALL))
        # many scenarios are replayed on as many threads as there are cores: one file may know of threads
        runs_threads = path.parts[-4:] == ("network", "src", "api", "parallel.rs")
        assert matches <= ({"thread"} if runs_threads else set()), path


@pytest.mark.parametrize("crate", CRATES)
def test_crates_depend_one_way(crate: str) -> None:
    manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text("utf-8"))
    ours = {
        name.removeprefix("tierwise-") for name in manifest["dependencies"] if name.startswith("tierwise-")
    }
    assert ours <= CRATES[crate]


@pytest.mark.parametrize("crate", CRATES)
def test_modules_use_each_other_in_no_large_circle(crate: str) -> None:
    most = 1 if crate in CIRCLE_FREE else 3
    large = [
        circle for circle in circles(module_graph(ROOT / "crates" / crate / "src")) if len(circle) > most
    ]
    unknown = [sorted(circle) for circle in large if not any(circle <= known for known in KNOWN_CIRCLES)]
    assert not unknown, f"crates/{crate}: move what all of them use into a module of its own: {unknown}"


@pytest.mark.parametrize("crate", ["work", "network"])
def test_the_model_names_engines_in_one_module(crate: str) -> None:
    """Comments and unit tests may name one."""
    named = re.compile(r"(?i)sqlite|rocks|mariadb|innodb|postgres|shared_buffers|duckdb|mysql|journal_mode")
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
        code = re.sub(r"//[^\n]*", "", path.read_text("utf-8")).split("#[cfg(test)]")[0]
        allowed = path.stem == "engines" or path.name == "tests.rs"
        assert allowed or not named.search(code), f"{path.relative_to(ROOT)}: rules belong into engines/"


def test_every_crate_is_placed() -> None:
    assert {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")} == set(CRATES)


def test_files_have_one_reason_to_exist() -> None:
    sources = [*SOURCES, *RUST_SOURCES]
    lines = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in sources}
    assert not {path: count for path, count in lines.items() if count > 600}, "split them by reason to change"


# What starts a program, besides tierwise.host.programs and what that is made of, each with the reason.
STARTERS = {
    "host/processes.py": "subprocess.Popen",  # the one place; what follows must not call it
    "host/programs.py": "processes.start processes.spawn_untracked",  # drops privileges
    "host/python_process.py": "sys.executable",  # command lines of Python for programs.py
    "host/users.py": "subprocess.run",  # useradd, which makes the account
    "host/mounts.py": "subprocess.run os.fork",  # mkfs, dmsetup, cp on what root alone may see; a trial mount
    "capture/record.py": "processes.start",  # the command that the caller typed, as the caller
}
STARTS = re.compile(
    r"subprocess\.(?!TimeoutExpired|SubprocessError|DEVNULL|STDOUT)\w+"
    r"|os\.(system|popen|fork|forkpty|exec\w+|spawn\w+|posix_spawn\w*)"
    r"|asyncio\.create_subprocess_\w+|(pty|multiprocessing)\.\w+|processes\.(start|spawn_untracked)|sys\.executable"
)


def starts(path: Path) -> set[str]:
    """What a file uses to start programs, by its names in the standard library or in tierwise.host."""
    table_set: set[str] = set()
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    types = {node.value for node in nodes if isinstance(node, ast.Subscript)}  # subprocess.Popen[bytes]
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node not in types:
            table_set.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module:
            table_set.update(f"{node.module.rpartition('.')[2]}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            table_set.update(f"{alias.name}.{alias.asname}" for alias in node.names if alias.asname)
    return {name for name in table_set if STARTS.fullmatch(name)}


def test_programs_are_started_in_one_place() -> None:
    """As tierwise's own account, with a clean environment (docs/concepts/threat-model.md)."""
    starters = {str(path.relative_to(PACKAGE)): starts(path) for path in SOURCES}
    allowed = {name: set(starters.split()) for name, starters in STARTERS.items()}
    assert {name: used for name, used in starters.items() if used} == allowed, "use tierwise.host.programs"


def test_architecture_page_names_every_part() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    parts = {part for layer in LAYERS for part in layer}
    missing = [part for part in parts | set(CRATES) if part.removeprefix("lab.") not in page]
    assert not missing, f"ARCHITECTURE.md does not mention {missing}"


PACKAGES = [*PACKAGE.glob("*/__init__.py"), *PACKAGE.glob("lab/*/__init__.py")]


@pytest.mark.parametrize("folder", sorted(path.parent for path in PACKAGES), ids=str)
def test_folders_say_what_they_hold(folder: Path) -> None:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    assert re.fullmatch(r"[A-Z][^\n]+\.\n\nNot here: [^\n]+\.", text), f"{folder.name}: {text!r}"


def test_the_package_holds_folders_only() -> None:
    loose = {path.name for path in PACKAGE.glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}, "each module belongs into a folder"


def test_no_test_module_imports_another() -> None:
    """What several need is in tests/support."""
    imports = re.compile(
        r"^\s*(from|import) (\.|tests\b|unit\b|integration\b|lab\b|release\b|\S*test_)", re.M
    )
    assert not [path for path in TEST_SOURCES if imports.search(path.read_text("utf-8"))]


def test_what_a_test_costs_follows_from_its_folder() -> None:
    marked = re.compile(r"pytest\.mark\.(?!parametrize|skipif|skip|usefixtures|timeout)\w+")
    conftest = TESTS / "conftest.py"
    assert not [path for path in TEST_SOURCES if path != conftest and marked.search(path.read_text("utf-8"))]
    assert {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"} == {
        "unit", "integration", "lab", "release", "support",
    }  # fmt: skip


def test_unit_tests_lie_in_folders_of_the_package() -> None:
    folders = {path.relative_to(TESTS / "unit").parts[0] for path in (TESTS / "unit").rglob("test_*.py")}
    parts = [*PACKAGE.iterdir(), *(PACKAGE / "lab").iterdir()]
    assert folders <= {path.name for path in parts if path.is_dir()} | {"project", "security"}


def test_tests_that_run_apart_share_no_server() -> None:
    conftest = ast.parse((TESTS / "conftest.py").read_text("utf-8"))
    assigned = {
        ast.unparse(assignment.targets[0]): assignment.value
        for assignment in conftest.body
        if isinstance(assignment, ast.Assign)
    }
    apart = ast.literal_eval(assigned["APART"])
    shared = [path for path in TEST_SOURCES if path.parent.name in apart and "unit" not in path.parts]
    assert shared and not [path for path in shared if 'scope="module"' in path.read_text("utf-8")]
