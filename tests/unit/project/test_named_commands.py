"""Commands and options that pages, docstrings and messages name are those of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from support.paths import ROOT
from tierwise.cli.commands import all_commands

COMMANDS = dict(all_commands())
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^ *(?:\$ )?tierwise (.+)$", re.MULTILINE)
_SPAN = re.compile(r"`tierwise ([^`\n]+)`")
_NAMED = re.compile(r"\btierwise ([a-z]+)\b")


def options_of(command: Any) -> set[str]:
    """The options of a command, or of all commands of a group."""
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*map(options_of, getattr(command, "commands", {}).values()))


def unknown_in(line: str) -> Iterator[str]:
    """What a line to type names that is no command, or no option of it."""
    words = re.split(r" #| \| | > ", line)[0].split()
    words = list(dropwhile(lambda word: word.startswith("-"), words))
    if not words or words[0] == "COMMAND":
        return
    command = COMMANDS.get(words[0])
    if command is None:
        yield words[0]
        return
    if len(words) > 1 and re.fullmatch("[a-z]+", words[1]) and hasattr(command, "commands"):
        command = command.commands.get(words[1])
    if command is None:
        yield " ".join(words[:2])
        return
    given = {name for word in words for name in re.findall(r"^\[?(--[a-z][a-z-]+)", word)}
    yield from sorted(given - options_of(command) - {"--help"})


def typed_in(text: str) -> Iterator[str]:
    """What follows ``tierwise`` in the code blocks and spans of a page."""
    for block in _BLOCK.findall(text):
        yield from _LINE.findall(block)
    yield from _SPAN.findall(_BLOCK.sub("", text))


def constants(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_pages_name_commands_that_exist() -> None:
    lines = [(page, line) for page in PAGES for line in typed_in(page.read_text("utf-8"))]
    assert len(lines) > 150
    unknown = [f"{page.name}: tierwise {line}: {name}" for page, line in lines for name in unknown_in(line)]
    assert not unknown, unknown


def test_messages_name_groups_of_commands_in_full() -> None:
    parts = {name for command in COMMANDS.values() for name in getattr(command, "commands", {})}
    unknown = [
        f"{path.name}: {text[:200]}"
        for path in sorted((ROOT / "python" / "tierwise").rglob("*.py"))
        for text in constants(path.read_text("utf-8"))
        for name in _NAMED.findall(text)
        if name in parts - COMMANDS.keys()
    ]
    assert not unknown, unknown
