"""Which Rust modules of a crate use which others, and the circles among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]
"""Module file, as a path below ``src`` -> the module files that it uses."""

_COMMENT = re.compile(r"//[^\n]*")
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*\Z", re.DOTALL)
_USE = re.compile(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([^;]+);")
_ALIAS = re.compile(r"\s+as\s+(\w+)")
_PATH = re.compile(r"(?<![\w:])[a-z]\w*(?:::\w+)+")


def module_graph(source: Path) -> Graph:
    """The uses between the files below a crate's ``src``, by ``use`` and by paths.

    A name that a module re-exports counts as a use of the file that the name comes from; the re-export itself
    is no use. Modules in tests are left out.
    """
    files = {_module(source, path): path for path in sorted(source.rglob("*.rs")) if path.name != "tests.rs"}
    modules = {
        name: _TESTS.sub("", _COMMENT.sub("", path.read_text("utf-8"))) for name, path in files.items()
    }
    exports = {name: dict(_exports(name, modules)) for name in modules}
    graph: Graph = {}
    for name in modules:
        used = {_defining(path, exports) for path in _uses(name, modules)}
        graph[_shown(source, files[name])] = {
            _shown(source, files[target]) for target in used if target and target != name
        }
    return graph


def circles(graph: Graph) -> list[set[str]]:
    """Sets of files each of which uses all others of its set, directly or through them; largest first."""
    reached = {name: _reachable(graph, name) for name in graph}
    circles: list[set[str]] = []
    for name in graph:
        circle = {other for other in reached[name] if name in reached[other]}
        if len(circle) > 1 and circle not in circles:
            circles.append(circle)
    return sorted(circles, key=len, reverse=True)


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def _shown(source: Path, path: Path) -> str:
    return path.relative_to(source).as_posix()


def _module(source: Path, path: Path) -> str:
    parts = list(path.relative_to(source).with_suffix("").parts)
    if parts[-1] in {"mod", "lib"}:
        parts.pop()
    return "::".join(["crate", *parts])


def _uses(name: str, modules: dict[str, str]) -> Iterator[str]:
    """Full paths that a module names, those of its re-exports left out."""
    text = modules[name]
    for exporting, tree in _USE.findall(text):
        if not exporting:
            yield from (path for _, path in _full_paths(name, tree, modules))
    for path in _PATH.findall(_USE.sub("", text)):
        yield from (full for _, full in _full_paths(name, path, modules))


def _exports(name: str, modules: dict[str, str]) -> Iterator[tuple[str, str]]:
    for exporting, tree in _USE.findall(modules[name]):
        if exporting:
            yield from _full_paths(name, tree, modules)


def _full_paths(name: str, tree: str, modules: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The names that a use declaration brings, with their paths from the root; not those of other crates."""
    for alias, path in _flattened("", "".join(_ALIAS.sub(r"@\1", tree).split())):
        first, *rest = path.split("::")
        base = name
        while first == "super":
            base = base.rpartition("::")[0]
            first, *rest = rest or [""]
        if base != name or first == "self":
            yield alias, "::".join([base, *([first] if first != "self" else []), *rest])
        elif first == "crate":
            yield alias, path
        elif f"{name}::{first}" in modules:
            yield alias, f"{name}::{path}"


def _flattened(prefix: str, tree: str) -> Iterator[tuple[str, str]]:
    for part in _split(tree):
        head, brace, rest = part.partition("{")
        if brace:
            yield from _flattened(prefix + head, rest[:-1])
        else:
            path, _, alias = (prefix + part).partition("@")
            path = path.removesuffix("::self")
            yield alias or path.rsplit("::", 1)[-1], path


def _split(tree: str) -> Iterator[str]:
    """The parts of a list between commas that are in no inner braces."""
    depth, begin = 0, 0
    for at, letter in enumerate(tree):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield tree[begin:at]
            begin = at + 1
    if tree[begin:]:
        yield tree[begin:]


def _defining(path: str, exports: dict[str, dict[str, str]]) -> str | None:
    """The module that defines what a path names, through the re-exports on its way."""
    while True:
        module = path
        while module and module not in exports:
            module = module.rpartition("::")[0]
        name, *rest = path.removeprefix(module).removeprefix("::").split("::")
        target = exports.get(module, {}).get(name)
        if target is None or target == f"{module}::{name}":
            return module or None
        path = "::".join([target, *rest])
