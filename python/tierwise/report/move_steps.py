"""What to type to move a role, and the way back: data/moves, one file for each engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tierwise.model.names import printable
from tierwise.model.placement import Role
from tierwise.predict.inseparable_roles import engine_moves
from tierwise.report.document import Block, Text, Tone

_NUMBERED = "NEW"
_ENDED = "Not done: the line above failed, and none after it was run."
_USED = """# whether a program has a file, or one in a directory, open
used() (
    path=$(readlink -f "$1")
    find /proc/[0-9]*/fd -lname "$path" -o -lname "$path/*" | grep -q .
) 2>/dev/null
unused() { ! used "$1"; }"""
_FITS = """# whether a directory can be written, and has room for files
fits() (
    to="$1" && shift && test -w "$to" || exit
    free=$(df -Pk "$to" | sed -n 's/.* \\([0-9][0-9]*\\)  *[0-9][0-9]*% .*/\\1/p')
    need=$(du -ckH "$@" | tail -n 1 | cut -f 1)
    test "$need" -lt "$free" && test "${most:-0}" -lt "$free"
) 2>/dev/null"""


_APPARMOR = """# whether AppArmor lets MySQL use a directory, by a line for it or for one above it
allowed() {
    grep -qs 'mysqld (enforce)' /sys/kernel/security/apparmor/profiles || return 0
    at="$1"
    while test -n "$at"; do
        tr -d '\\042,' < /etc/apparmor.d/local/usr.sbin.mysqld | sed 's/^ *//' |
            grep -qxF "$at/** rwk" && return
        at="${at%/*}"
    done
    return 1
} 2>/dev/null"""
_HELPERS = {"used ": _USED, "fits ": _FITS, "allowed ": _APPARMOR}
"""Word of a line -> the function that it calls."""


@dataclass(frozen=True)
class MoveSteps:
    """The steps of one move.

    Attributes:
        role: the role to move.
        device: its new device.
        note: what happens meanwhile, and what to watch.
        there: lines to type.
        back: lines to type to undo it.
        by_hand: whether no playbook runs the lines: a session, or a program's environment or options, change.
    """

    role: Role
    device: str
    note: str
    there: str
    back: str
    by_hand: bool = False


@dataclass(frozen=True)
class MoveGuide:
    """The steps for a placement.

    Attributes:
        variables: shell lines that set the paths, for the reader to fill in; empty without a shell.
        steps: one for each role that moves, log first.
        along: sentences on roles that these steps move too, since the engine keeps them beside the others.
        without: sentences on roles without steps: why they cannot move alone, or that no steps are known.
        sources: pages of the engine's manual.
        account: the system's account that types the steps.
    """

    variables: str
    steps: list[MoveSteps]
    along: list[str]
    without: list[str]
    sources: list[str]
    account: str = "root"


def move_guide(
    engine: str, placement: Mapping[Role, str], recorded: Collection[Role] = tuple(Role)
) -> MoveGuide:
    """The steps to reach a placement on an engine; an unknown engine has none.

    No name from a recording goes into a line to type: paths are shell variables that the reader sets.

    Args:
        placement: the new device of each role that moves.
        recorded: roles that the recording tells apart; any other moves with the one that it is recorded as.
    """
    moves = engine_moves(engine)
    for role in set(Role).difference(recorded):
        lead = moves.get(role.value, {}).get("recorded_as")
        if lead in placement:
            placement = {**placement, role: placement[Role(lead)]}
    moved = [role for role in Role if role in placement]
    known = {role: moves[role.value] for role in moved if "there" in moves.get(role.value, {})}
    leads = {role: moves[role.value]["with"] for role in moved if "with" in moves.get(role.value, {})}
    beside = {role: lead for role, lead in leads.items() if placement.get(Role(lead)) == placement[role]}
    devices = list(dict.fromkeys(placement[role] for role in known))
    numbers = {
        device: f"{_NUMBERED}{n}" if len(devices) > 1 else _NUMBERED for n, device in enumerate(devices, 1)
    }
    mounts = [
        f"{name}=/path/on/new/device    # {printable(device)}, mounted before the database starts"
        for device, name in numbers.items()
    ]
    return MoveGuide(
        variables="\n".join([moves.get("variables", "").strip(), *mounts]).strip() if known else "",
        steps=[
            MoveSteps(
                role,
                placement[role],
                move["note"],
                _lines(move["there"], numbers[placement[role]], move),
                _lines(move["back"], numbers[placement[role]], move),
                by_hand=bool(move.get("by_hand") or move.get("session")),
            )
            for role, move in known.items()
        ],
        along=[f"{role} moves with the {lead}: {moves['together']}" for role, lead in beside.items()],
        without=[
            f"{role}: {_reason(moves, role)}" for role in moved if role not in known and role not in beside
        ],
        sources=list(moves.get("sources", [])) if known else [],
        account=moves.get("account", "root"),
    )


def steps_texts(guide: MoveGuide) -> list[Block]:
    """A guide as texts: what to set, then the lines of each move and their way back."""
    lines = [Text(guide.variables)] if guide.variables else []
    for step in guide.steps:
        lines += [Text(step.note), Text(step.there), Text(f"The way back:\n{step.back}")]
    lines += [Text(f"The {reason}.") for reason in guide.along]
    return [*lines, *(Text(f"No steps for the {reason}.", Tone.WARNING) for reason in guide.without)]


def _reason(move: Mapping[str, Any], role: Role) -> str:
    own = move.get(role.value, {})
    if "with" in own:
        return f"it moves with the {own['with']}, since {move['together']}"
    return str(own.get("reason", "no steps are known for this engine"))


def _lines(text: str, new: str, move: Mapping[str, Any]) -> str:
    """The lines of a step; those for a shell end at the first that fails, also if all are pasted."""
    lines = text.strip().replace("$NEW", f"${new}")
    if move.get("session"):
        return lines
    helpers = [text for word, text in _HELPERS.items() if word in lines]
    head = ["(", "set -eu", *helpers, f"trap 'test $? = 0 || echo \"{_ENDED}\" >&2' EXIT", "set -x"]
    if f"${new}" in lines:  # a link or a setting would have another way from where the shell is
        head.append(f'{new}=$(CDPATH= cd -- "${{{new}:?}}" && pwd)')
    return "\n".join([*head, lines, ")"])
