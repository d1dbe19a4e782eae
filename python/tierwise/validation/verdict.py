"""Judges rounds. It compares twice, so that every interval includes the error of other families."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tierwise.model.progress import ProgressCallback
from tierwise.predict import ModelError
from tierwise.predict.replayer import Distribute
from tierwise.validation.accuracy import Accuracy, Pair
from tierwise.validation.answers import Answered, write_answers
from tierwise.validation.calibration import calibrate, calibrate_without
from tierwise.validation.case import names_of
from tierwise.validation.pairs import ComparedRound, RoundData, compare, pairs_of, reproductions_of
from tierwise.validation.rows import Row


def judge(
    rounds: Sequence[RoundData],
    progress: ProgressCallback,
    without: Sequence[str] = (),
    distribute: Distribute | None = None,
) -> tuple[Accuracy, ModelError]:
    """Compare predictions with measurements, and keep the predictions beside the rows.

    The intervals of a family's predictions include the error calibrated from all other families, as for
    a client that was never measured. The returned model error is calibrated from all families;
    a prospective round calibrates nothing.

    Args:
        rounds: recorded and measured rounds.
        progress: receives progress.
        without: mechanisms of the model to switch off; these predictions are not kept.
        distribute: moves the simulations to a cluster, if given.
    """
    day = date.today().isoformat()
    asked = [ComparedRound(one, without, distribute) for one in rounds]
    bare: list[Pair] = []
    for one, recordings in zip(rounds, asked, strict=True):
        answers = compare(recordings, one, lambda _: ModelError(), lambda what: progress(f"learning: {what}"))
        bare += pairs_of(answers, one)
    seen = [pair for pair in bare if pair.round == "building"] or bare
    known = {family: calibrate_without(seen, family, day) for family in {pair.family for pair in bare}}
    every: list[Answered] = []
    pairs: list[Pair] = []
    for one, recordings in zip(rounds, asked, strict=True):
        answers = compare(
            recordings,
            one,
            lambda family: known.get(family, ModelError()),
            lambda what: progress(f"judging: {what}"),
        )
        if not without:
            write_answers(one.folder, answers)
        every += answers
        pairs += pairs_of(answers, one)
    rows = [row for one in rounds for row in one.rows]
    accuracy = Accuracy(
        day=day,
        runs=len(rows),
        reproductions=reproductions_of(every),
        pairs=pairs,
        spreads={
            one.started.round: {"raw": one.truth.raw, "adjusted": one.truth.adjusted}
            for one in rounds
            if one.truth.raw and one.truth.adjusted
        },
        left_out=_absent(rounds) | _problems(rows),
        idle_poll_ns=sorted(
            {one.started.idle_poll_ns for one in rounds if one.started.idle_poll_ns is not None}
        ),
        too_short=sorted({case for one in rounds for case in one.too_short}),
    )
    return accuracy, calibrate([pair for pair in bare if pair.round == "building"], day)


def _absent(rounds: Sequence[RoundData]) -> dict[str, str]:
    """Cases of a round without a comparison, and everything else left out, each with the reason."""
    found: dict[str, str] = {}
    for one in rounds:
        known, measured = one.started.left_out, {case for case, _ in one.truth.figures}
        name = one.started.round
        found |= {f"{name}: {what}": why for what, why in known.items()}
        for case in names_of(one.spec):
            if case not in measured and case not in known:
                chosen = case in one.started.cases
                found[f"{name}: {case}"] = "no run of it counts" if chosen else "not chosen for this round"
    return found


def _problems(rows: Sequence[Row]) -> dict[str, str]:
    """Slots without a run that counts, with the last reason."""
    done = {(row.round, row.slot) for row in rows if row.status == "ok"}
    return {
        f"{row.round}: {row.run_id}": "; ".join([row.status, *row.problems])
        for row in rows
        if (row.round, row.slot) not in done
    }
