"""One page for many studies, with a section for each. A study without results states the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierwise.report.document import Bullets, Page, Section, Text, Tone, texts
from tierwise.report.study.answer import Answer
from tierwise.report.study.page import FOOTER, answer_sections, below_title, condition_blocks

_MOST_FINDINGS = 2
"""Maximum findings of one study in the table of contents."""


@dataclass(frozen=True)
class Chapter:
    """One study. ``problem`` says why it has no answer."""

    name: str
    question: str
    answer: Answer | None
    problem: str

    @property
    def summary(self) -> str:
        """Its entry in the table of contents: its findings, or why there are none."""
        if self.answer is None:
            return self.problem
        if self.answer.of_faults:
            return self.answer.headline
        said = [f"{one.words.finding} {one.words.others}".strip() for one in self.answer.comparisons]
        findings = list(dict.fromkeys(said))
        more = len(findings) - _MOST_FINDINGS
        tail = [f"{more} more below."] if more > 0 else []
        return " ".join([*findings[:_MOST_FINDINGS], *tail])


def combined_page(chapters: Sequence[Chapter]) -> Page:
    """One page with a table of contents and a section for each study, with its chief figures."""
    ids = [f"study{number}" for number in range(1, len(chapters) + 1)]
    contents = [f"{one.name}: {one.question} {one.summary}" for one in chapters]
    count = f"{len(chapters)} {'study' if len(chapters) == 1 else 'studies'}"
    return Page(
        title="all studies",
        header=[Text(count, Tone.HEADLINE), Bullets(contents, ids)],
        body=[_section(one, name) for one, name in zip(chapters, ids, strict=True)],
        footer=FOOTER,
    )


def _section(chapter: Chapter, name: str) -> Section:
    title = chapter.question or chapter.name
    answer = chapter.answer
    if answer is None:
        reason = Text(f"No answer: {chapter.problem}", Tone.WARNING)
        return Section(title, [reason], id=name, label=chapter.name)
    single = answer.comparisons[0].words if len(answer.comparisons) == 1 else None
    headline = [Text(single.title, Tone.HEADLINE), *below_title(single)] if single else []
    conditions = Section("Conditions", condition_blocks(answer.conditions), folded=True)
    blocks = [
        *texts(answer.notes, Tone.WARNING),
        *headline,
        *answer_sections(answer, f"{name}-", brief=True),
        conditions,
    ]
    return Section(title, blocks, id=name, label=chapter.name)
