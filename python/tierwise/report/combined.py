"""Many studies as one HTML file, a section each: none is empty, for one without results says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierwise.report.answer import Answer
from tierwise.report.page import (
    Section,
    SweepSection,
    environment,
    sections_of,
    sweep_sections_of,
    unfinished,
)

_MOST_FINDINGS = 2
"""That the table of contents repeats of one study."""


@dataclass(frozen=True)
class Chapter:
    """One study. ``problem`` says why it has no answer."""

    name: str
    question: str
    answer: Answer | None
    problem: str

    @property
    def summary(self) -> str:
        """What the table of contents says of it: its findings, or why there are none."""
        if self.answer is None:
            return self.problem
        said = [f"{one.words.finding} {one.words.others}".strip() for one in self.answer.comparisons]
        findings = list(dict.fromkeys(said))
        more = len(findings) - _MOST_FINDINGS
        tail = [f"{more} more below."] if more > 0 else []
        return " ".join([*findings[:_MOST_FINDINGS], *tail])


@dataclass(frozen=True)
class _Drawn:
    """A chapter and its drawings."""

    id: str
    chapter: Chapter
    sections: list[Section]
    sweeps: list[SweepSection]
    unfinished: str


def render_combined(chapters: Sequence[Chapter]) -> str:
    """One page with a table of contents and a section for each study, with its chief figures."""
    return (
        environment()
        .get_template("combined.html.j2")
        .render(chapters=[_drawn(f"study{n}", one) for n, one in enumerate(chapters, start=1)], brief=True)
    )


def _drawn(name: str, chapter: Chapter) -> _Drawn:
    answer = chapter.answer
    if answer is None:
        return _Drawn(name, chapter, [], [], "")
    sections = sections_of(answer, f"{name}-", brief=True)
    return _Drawn(name, chapter, sections, sweep_sections_of(answer, f"{name}-"), unfinished(answer))
