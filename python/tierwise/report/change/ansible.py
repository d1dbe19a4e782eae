"""Ansible: the steps of data/moves as a playbook, with the way back as a play that runs on request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tierwise.model.errors import TierwiseError
from tierwise.report.advice.steps import Guide, Steps, guide
from tierwise.report.change.change import Change
from tierwise.report.change.quoting import Block, comment, joined, without_jinja, yaml_lines

_VARIABLE = re.compile(r"(\w+)=(\S+)\s*(?:#\s*(.*))?")
_USED = re.compile(r"\$\{?([A-Z][A-Z0-9_]*)")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HOSTS = "database"


def playbook(change: Change) -> str:
    """A playbook: a play of the moves in order, and one of the way back with the tags ``back`` and ``never``.

    Raises:
        TierwiseError: no role that moves has steps.
    """
    found = guide(change.engine, change.moves, change.needed_bytes)
    if not found.steps:
        reasons = "; ".join(found.without) or f"no steps are known for {change.engine}"
        raise TierwiseError(f"--emit ansible: {reasons}", "move the files by the engine's manual")
    plays = [_play("Move to the advised placement", found, found.steps, [])]
    back = _play("Move back", found, list(reversed(found.steps)), ["back", "never"])
    return joined([*_header(found), *yaml_lines([*plays, back])])


def _header(found: Guide) -> Iterator[str]:
    yield comment("ansible-playbook -i INVENTORY FILE              moves the files")
    yield comment("ansible-playbook -i INVENTORY FILE --tags back  moves them back")
    yield comment("Set the variables of both plays first. Take a backup, and try it on a replica.")
    for line in found.variables.splitlines():
        if match := _VARIABLE.fullmatch(line.strip()):
            yield comment(f"{match[1].lower()}: {match[3]}" if match[3] else match[1].lower())
    yield comment("path: directories of the programs that the steps call, such as that of pg_ctl")
    yield from (comment(line) for line in (*found.along, *found.without))
    yield from (comment(source) for source in found.sources)


def _play(name: str, found: Guide, steps: Sequence[Steps], tags: list[str]) -> dict[str, Any]:
    variables = dict(_variables(found))
    used = {one for step in steps for one in _USED.findall(step.back if tags else step.there)}
    asked = sorted(one for one in used - variables.keys() if not _is_set_in(one, steps))
    environment = {one: f"{{{{ {one.lower()} }}}}" for one in ("PATH", *variables, *asked)}
    play: dict[str, Any] = {"name": name, "hosts": _HOSTS, "gather_facts": False, "become": True}
    if tags:
        play["tags"] = tags
    else:
        play["any_errors_fatal"] = True
    play["vars"] = {"path": _PATH, **{one.lower(): value for one, value in variables.items()}}
    play["environment"] = environment
    play["tasks"] = [*_directories(found, variables, tags), *(_task(one, found, tags) for one in steps)]
    return play


def _is_set_in(name: str, steps: Sequence[Steps]) -> bool:
    """Whether the steps set a shell variable themselves."""
    return any(re.search(rf"\b{name}=", line) for one in steps for line in (one.there, one.back))


def _variables(found: Guide) -> Iterator[tuple[str, str]]:
    for line in found.variables.splitlines():
        if match := _VARIABLE.fullmatch(line.strip()):
            yield match[1], without_jinja(match[2])


def _directories(found: Guide, variables: dict[str, str], tags: list[str]) -> Iterator[dict[str, Any]]:
    """The directories on the new devices, which the account of the steps must be able to write to."""
    if tags:
        return
    for name in variables:
        if re.fullmatch(r"NEW\d*", name):
            yield {
                "name": f"Directory on the new device: {name.lower()}",
                "ansible.builtin.file": {
                    "path": f"{{{{ {name.lower()} }}}}",
                    "state": "directory",
                    "owner": found.account,
                    "mode": "0755",
                },
            }


def _task(step: Steps, found: Guide, tags: list[str]) -> dict[str, Any]:
    where = "back" if tags else f"to {step.device}"
    lines = step.back if tags else step.there
    task: dict[str, Any] = {"name": without_jinja(f"Move the {step.role} {where}. {step.note}")}
    if step.by_hand:
        return task | {"ansible.builtin.debug": {"msg": _raw(f"By hand:\n{lines}")}}
    if found.account != "root":
        task["become_user"] = found.account
    return task | {"ansible.builtin.shell": {"cmd": _raw(f"set -eu\n{lines}")}}


def _raw(text: str) -> Block:
    """Text that Jinja leaves as it is; no name of a recording is in the lines of a step."""
    return Block(f"{{% raw %}}\n{text}\n{{% endraw %}}")
