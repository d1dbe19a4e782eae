"""Generated parts of the documentation: commands from the help, formats and results from the JSON Schemas.

MkDocs calls the two functions at the end (mkdocs.yml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from posixpath import join, normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tierwise.cli.commands import all_commands
from tierwise.cli.schema import SCHEMAS

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)")


@dataclass(frozen=True)
class Entry:
    """One command: its name with its arguments, its help, and names and help of arguments and options."""

    name: str
    help: str
    parameters: list[tuple[str, str]]


def entries() -> Iterator[Entry]:
    """Every command, in the order of the help."""
    for name, command in all_commands():
        yield from _entries(f"tierwise {name}", command)


def _entries(name: str, command: Any) -> Iterator[Entry]:
    """Entry of a command, or of each command of a group."""
    for subcommand in getattr(command, "commands", {}).values():
        yield from _entries(f"{name} {subcommand.name}", subcommand)
    if hasattr(command, "commands"):
        return
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and "--help" not in parameter.opts
    ]
    yield Entry(
        name="".join([name, *(f" {_metavar(argument)}" for argument in arguments)]),
        help=" ".join((command.help or "").split()),
        parameters=[
            *((_metavar(argument), argument.help or "") for argument in arguments),
            *((", ".join([*option.opts, *option.secondary_opts]), option.help or "") for option in options),
        ],
    )


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def commands() -> str:
    """Every command with its arguments and options."""
    lines = [
        "# Commands",
        "",
        "Generated from the help. [Options with one meaning](cli.md) are in the guide.",
    ]
    for entry in entries():
        lines += ["", f"## `{entry.name}`", "", entry.help]
        if entry.parameters:
            lines += ["", "| parameter | meaning |", "|---|---|"]
            lines += [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in entry.parameters]
    return "\n".join(lines) + "\n"


def formats() -> str:
    """The fields of every schema that ``tierwise schema`` prints."""
    lines = [
        "# Formats",
        "",
        "Generated from the JSON Schemas, which `tierwise schema NAME` prints for editors.",
    ]
    for name, made in SCHEMAS.items():
        schema = made()
        lines += ["", f"## `{name}`", "", _paragraph(schema), *_fields(schema)]
        for part, part_schema in sorted(schema.get("$defs", {}).items()):
            lines += ["", f"### {name}: {part}", "", _paragraph(part_schema), *_fields(part_schema)]
    return "\n".join(lines) + "\n"


def results() -> str:
    """The fields of all records of a study, for the end of the page on results."""
    lines: list[str] = []
    schemas = [SCHEMAS[name]() for name in ("result", "study-info")]
    records = {schema["title"]: schema for schema in schemas}
    for schema in schemas:
        records |= {name: part for name, part in schema["$defs"].items() if "properties" in part}
    for name, record in records.items():
        lines += ["", f"## {name}", "", _paragraph(record), *_fields(record)]
    return "\n".join(lines) + "\n"


def _paragraph(schema: Mapping[str, Any]) -> str:
    values = ", ".join(f"`{value}`" for value in schema.get("enum", []))
    return " ".join([*schema.get("description", "").split(), f"One of {values}." if values else ""])


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    if not schema.get("properties"):
        return
    required = schema.get("required", [])
    yield from ("", "| field | type | required | meaning |", "|---|---|---|---|")
    for name, field in schema["properties"].items():
        meaning = _cell(" ".join(field.get("description", "").split()))
        yield f"| `{name}` | {_cell(_type(field))} | {'yes' if name in required else ''} | {meaning} |"


def _type(field: Mapping[str, Any]) -> str:
    """Of a field, in words: ``number or null``, ``list of Device``."""
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"])
    if "enum" in field or "const" in field:
        return " or ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    more = field.get("additionalProperties")
    if field.get("type") == "object" and isinstance(more, Mapping):
        return f"table of {_type(more)}"
    return str(field.get("type", "any"))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for uri, text in (("reference/commands.md", commands()), ("reference/formats.md", formats())):
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Add generated parts, and name files of the repository outside docs/, which the site does not have.

    Raises:
        FileNotFoundError: if there is no such file.
    """

    def named(link: re.Match[str]) -> str:
        path = normpath(join("docs", page.file.src_uri, "..", link[2]))
        if path.startswith("docs/"):
            return link[0]
        if not (ROOT / path).exists():
            raise FileNotFoundError(f"docs/{page.file.src_uri}: there is no {path}")
        return f"{link[1]} (`{path}` in the repository)"

    if page.file.src_uri == "reference/results.md":
        markdown += results()
    return _LINK.sub(named, markdown)
