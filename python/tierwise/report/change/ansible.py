"""Ansible: the steps of data/moves as a playbook, with the way back as a play that runs on request.

Steps are tasks of the module ``shell``, in order; the paths that they use are variables of the environment.
A path that only the reader knows has no default, so that nothing runs before it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tierwise.model.errors import TierwiseError
from tierwise.report.change.placement_change import (
    PlacementChange,
    YamlBlock,
    comment_line,
    text_of_lines,
    without_jinja,
    yaml_lines,
)
from tierwise.report.move_steps import MoveGuide, MoveSteps, move_guide

_VARIABLE = re.compile(r"(\w+)=(\S+)\s*(?:#\s*(.*))?")
_USED = re.compile(r"\$\{?([A-Z][A-Z0-9_]*)")
_TO_FILL_IN = re.compile(r"/path/|name_of_")
"""How a value begins that stands for the reader's own."""
_NEW = re.compile(r"NEW\d*")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HOSTS = "database"


def ansible_playbook(change: PlacementChange) -> str:
    """A playbook: a play of the moves in order, and a play back with the tags ``back`` and ``never``."""
    steps_of = move_guide(change.engine, change.moves, change.needed_bytes)
    if not steps_of.steps:
        reasons = "; ".join(steps_of.without) or f"no steps are known for {change.engine}"
        raise TierwiseError(f"--emit ansible: {reasons}", "move the files by the engine's manual")
    plays = [_play(steps_of, steps_of.steps, back=False), _play(steps_of, steps_of.steps[::-1], back=True)]
    return text_of_lines([*_header(steps_of), *yaml_lines(plays)])


def _header(guide: MoveGuide) -> Iterator[str]:
    variables = _variables(guide)
    names = [*variables, *_unknown(guide.steps, variables, back=False)]
    asked = [
        name for name in names if name in _used(guide.steps, back=False) and not _default(variables, name)
    ]
    given = " ".join(f"-e {name.lower()}=..." for name in asked)
    yield comment_line(f"ansible-playbook -i INVENTORY FILE {given}")
    yield comment_line("The same with --tags back moves the files back; that play never runs without.")
    yield comment_line("Take a backup, and try it on a replica. Variables:")
    used = _used(guide.steps, back=False) | _used(guide.steps, back=True)
    for name, default in ((name, default) for name, (_, default) in variables.items() if name in used):
        yield comment_line(f"  {name.lower()}: {default}" if default else f"  {name.lower()}")
    for name in _unknown(guide.steps, variables, back=True):
        yield comment_line(f"  {name.lower()}: for the way back, see its task")
    yield comment_line("  path: directories of the programs that the steps call, such as that of pg_ctl")
    yield from (comment_line(line) for line in (*guide.along, *guide.without))
    yield from (comment_line(source) for source in guide.sources)


def _play(guide: MoveGuide, steps: Sequence[MoveSteps], *, back: bool) -> dict[str, Any]:
    variables, used = _variables(guide), _used(steps, back=back)
    known = [name for name in variables if name in used]
    environment = ["PATH", *known, *_unknown(steps, variables, back=back)]
    defaults = {name.lower(): value for name in known if (value := _default(variables, name))}
    news = [] if back else [name for name in known if _NEW.fullmatch(name)]
    return {
        "name": "Move back" if back else "Move to the advised placement",
        "hosts": _HOSTS,
        "gather_facts": False,
        "become": True,
        **({"tags": ["back", "never"]} if back else {}),
        "vars": {"path": _PATH, **defaults},
        "environment": {name: f"{{{{ {name.lower()} }}}}" for name in environment},
        "tasks": [
            *(_directory(name, guide) for name in news),
            *(_task(step, guide, back=back) for step in steps),
        ],
    }


def _variables(guide: MoveGuide) -> dict[str, tuple[str, str]]:
    """Each variable of the steps with its value and what is said of it."""
    matches = [_VARIABLE.fullmatch(line.strip()) for line in guide.variables.splitlines()]
    return {match[1]: (match[2], match[3] or "") for match in matches if match}


def _default(variables: dict[str, tuple[str, str]], name: str) -> str:
    value, _ = variables.get(name, ("", ""))
    return "" if _TO_FILL_IN.match(value) else value


def _used(steps: Sequence[MoveSteps], *, back: bool) -> set[str]:
    return {
        name
        for step in steps
        if not step.by_hand
        for name in _USED.findall(step.back if back else step.there)
    }


def _unknown(steps: Sequence[MoveSteps], variables: dict[str, tuple[str, str]], *, back: bool) -> list[str]:
    """Variables that steps use and that nobody sets."""
    return sorted(_used(steps, back=back) - variables.keys())


def _directory(name: str, guide: MoveGuide) -> dict[str, Any]:
    """The directory on a new device, which the account of the steps must be able to write to."""
    path = f"{{{{ {name.lower()} }}}}"
    made = {"path": path, "state": "directory", "owner": guide.account, "mode": "0755"}
    return {"name": f"Make the directory {name.lower()} on the new device", "ansible.builtin.file": made}


def _task(step: MoveSteps, guide: MoveGuide, *, back: bool) -> dict[str, Any]:
    where, lines = ("back", step.back) if back else (f"to {step.device}", step.there)
    task: dict[str, Any] = {"name": without_jinja(f"Move the {step.role} {where}. {step.note}")}
    if step.by_hand:
        return task | {"ansible.builtin.debug": {"msg": _raw(f"By hand:\n{lines}")}}
    if guide.account != "root":
        task["become_user"] = guide.account
    return task | {"ansible.builtin.shell": {"cmd": _raw(lines)}}


def _raw(text: str) -> YamlBlock:
    """Text that Jinja leaves as it is; no name of a recording is in the lines of a step."""
    return YamlBlock(f"{{% raw %}}\n{text}\n{{% endraw %}}")
