"""The advice for a fleet: the options of each database, then the best set of them under one budget."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tierwise.advise import AdviceOptions
from tierwise.advise.costs import price_sources
from tierwise.advise.priced_placement import rent_unknown_note
from tierwise.device_models.instances import instance_rent_per_month
from tierwise.device_models.prices import cost_per_month
from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, FleetOption
from tierwise.fleet.fleet_databases import FleetWeights, RecordingLocation, SkippedRecording
from tierwise.fleet.knapsack import Knapsack, require_solver
from tierwise.fleet.option_row_store import OptionRowStore, option_rows
from tierwise.fleet.packing import JointReplays, SharingLimits, advice_with_shared_logs
from tierwise.fleet.records import FleetAdvice, FleetDatabase, FleetRemark
from tierwise.fleet.sensitivity import (
    DRAWS,
    NEAR,
    budget_curve,
    extra_budget,
    gain_share,
    moves_by_certainty,
    sample_speedups,
)
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import Executor
from tierwise.model.extras import np
from tierwise.model.names import group_by_key
from tierwise.predict import resolve_device
from tierwise.predict.model_error import ModelError
from tierwise.predict.named_devices import own_profiles
from tierwise.predict.predictor import SEEDS

if TYPE_CHECKING:
    from tierwise.fleet.knapsack import ChosenOptions, Floats


def advise_fleet(
    recordings: Sequence[RecordingLocation],
    options: AdviceOptions,
    executor: Executor,
    weights: FleetWeights | None = None,
    *,
    left_out: Sequence[SkippedRecording] = (),
    seeds: int = SEEDS,
    seed: int = 0,
    share: SharingLimits | None = None,
    results: OptionRowStore | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> FleetAdvice:
    """Advise on the moves of many databases under one budget.

    Args:
        options: candidate devices, budget of all databases together, terms of payment.
        weights: what the databases' owner says of them.
        left_out: recordings that are left out already, for the answer.
        seeds: runs of the simulator for each prediction.
        share: what the sharing of devices may cost; none is shared if not given.
        results: where rows are kept; those of former runs are taken from it.
        progress: called with the number of finished databases and the number of all.
    """
    require_solver()  # before hours of simulation, not after
    weights = weights or FleetWeights()
    weights.require_known(
        [*(recording.name for recording in recordings), *(recording.name for recording in left_out)]
    )
    devices = _candidates(options)
    frozen = [recording.name for recording in recordings if weights.of(recording.name).frozen]
    profiles = own_profiles([*devices, *options.terms.recorded_on.values()])
    model_error = ModelError.read()
    tasks = [
        DatabaseOptionsTask(
            recording,
            devices,
            options.terms,
            weights.of(recording.name).goal,
            seeds,
            options.fresh,
            profiles,
            model_error,
        )
        for recording in recordings
        if recording.name not in frozen
    ]
    rows = option_rows(tasks, executor, results, progress)
    advice = fleet_advice_from_options(rows, options, weights, left_out=left_out, frozen=frozen, seed=seed)
    if share is None:
        return advice
    together = JointReplays(
        recordings,
        most_open=2 * share.most_databases,
        seeds=seeds,
        fresh=options.fresh,
        profiles=profiles,
        model_error=model_error,
    )
    return advice_with_shared_logs(advice, options.terms, together, share)


def fleet_advice_from_options(
    outcomes: Iterable[DatabaseOptions | SkippedRecording],
    options: AdviceOptions,
    weights: FleetWeights,
    *,
    left_out: Sequence[SkippedRecording] = (),
    frozen: Sequence[str] = (),
    seed: int = 0,
    draws: int = DRAWS,
) -> FleetAdvice:
    """The advice from the rows of each database.

    Args:
        outcomes: the rows, or why there are none.
        left_out: recordings that are left out beside those in ``outcomes``.
        frozen: names of databases that stay as they are.
    """
    devices = _candidates(options)
    budget = options.budget_per_month
    rows, copies = _without_copies(outcome for outcome in outcomes if isinstance(outcome, DatabaseOptions))
    skipped = (outcome for outcome in outcomes if isinstance(outcome, SkippedRecording))
    without = [*left_out, *skipped, *copies]
    if not rows:
        raise _nothing(without)
    allowed = [row.options[:1] if row.unusable else options_reaching_goal(row.options) for row in rows]
    currency = options.terms.prices.currency
    unbounded = budget is None and instance_rent_per_month([], 1, currency) is None
    knapsack = Knapsack([[option.cost_per_month for option in each] for each in allowed], currency)
    importance = np.repeat([weights.of(row.name).importance for row in rows], [len(row) for row in allowed])
    gains = importance * np.array([option.gain for each in allowed for option in each])
    worth = np.array([*_worthwhile_options(rows, allowed)] if budget is None else [True] * len(gains))

    def best_for(gains: Floats, gap: float = 0.0) -> ChosenOptions:
        return knapsack.best(np.where(worth, gains, -np.inf), budget, gap)

    best, full = best_for(gains), knapsack.best(gains, None)
    databases = [
        _database(row, each, weights, number)
        for row, each, number in zip(rows, allowed, best.options, strict=True)
    ]

    def drawn() -> Iterator[Floats]:
        """The gains of every draw, made anew: those of a large fleet are too many to keep."""
        return (importance * (1 - 1 / speedups) for speedups in sample_speedups(allowed, seed, draws))

    return FleetAdvice(
        devices=list(devices),
        currency=currency,
        budget_per_month=budget,
        databases=databases,
        frozen=list(frozen),
        left_out=without,
        gain=best.gain,
        full_gain=full.gain,
        gain_share=gain_share(knapsack, best, full, drawn()),
        cost_per_month=best.cost,
        full_cost_per_month=full.cost,
        gap=best.gap,
        moves=moves_by_certainty(databases, [best_for(gains, NEAR) for gains in drawn()]),
        curve=budget_curve(knapsack, gains, full, budget),
        next=None if budget is None else extra_budget(knapsack, gains, full, best, budget, databases),
        draws=draws,
        seed=seed,
        prices=price_sources(devices, options.terms, datetime.date.today()),
        notes=_remarks(
            (row.name, [*row.notes, *([rent_unknown_note(currency)] if unbounded else [])]) for row in rows
        ),
        warnings=_remarks((row.name, row.warnings) for row in rows),
    )


def _without_copies(
    rows: Iterable[DatabaseOptions],
) -> tuple[list[DatabaseOptions], list[SkippedRecording]]:
    """The first of the rows of each recorded run; the others would count one database twice."""
    first: dict[str, DatabaseOptions] = {}
    copies = []
    for number, row in enumerate(rows):
        kept = first.setdefault(row.recorded_run or str(number), row)
        if kept is not row:
            problem = f"it is a copy of the recording of {kept.name}"
            copies.append(
                SkippedRecording(name=row.name, uri=row.uri, problem=problem, fix="name one of the two")
            )
    return list(first.values()), copies


def options_reaching_goal(options: Sequence[FleetOption]) -> list[FleetOption]:
    """The options that surely reach the p99 of a goal, else those that likely do, else all."""
    for verdict in ("reached", "likely reached"):
        if reaching := [option for option in options if option.verdict == verdict]:
            return reaching
    return list(options)


def _worthwhile_options(
    rows: Sequence[DatabaseOptions], allowed: Sequence[Sequence[FleetOption]]
) -> Iterator[bool]:
    """Whether each option is worth its price; the cheapest of a database is, as it has no other."""
    for row, each in zip(rows, allowed, strict=True):
        least = min(option.cost_per_month for option in each)
        most = math.inf if row.worth_per_month is None else max(row.worth_per_month, least)
        yield from (option.cost_per_month <= most for option in each)


def _candidates(options: AdviceOptions) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(resolve_device(name).name for name in options.devices))
    if not names:
        raise TierwiseError("no device to move files to", "name one or more with --devices, as nvme-dc,gp3")
    prices = options.terms.prices
    for name in names:
        profile = resolve_device(name).profile
        if cost_per_month(profile, prices, 0) is None:
            raise TierwiseError(
                f"device {name} has no price in {prices.currency}",
                f"add [devices.{profile.name}] to a file for --prices, or leave it out",
            )
    return names


def _nothing(left_out: Sequence[SkippedRecording]) -> TierwiseError:
    if not left_out:
        return TierwiseError("no database may move", "name recordings that --weights does not freeze")
    first, more = left_out[0], len(left_out) - 1
    others = f" (and {more} more)" if more else ""
    return TierwiseError(f"no recording can be used; {first.name}: {first.problem}{others}", first.fix)


def _database(
    rows: DatabaseOptions, allowed: Sequence[FleetOption], weights: FleetWeights, chosen: int
) -> FleetDatabase:
    weight = weights.of(rows.name)
    return FleetDatabase(
        name=rows.name,
        uri=rows.uri,
        engine=rows.engine,
        engine_version=rows.engine_version,
        unit=rows.unit,
        unusable=rows.unusable,
        importance=weight.importance,
        must_have_p99_us=weight.goal.bound if weight.goal else None,
        p99_missed=bool(weight.goal)
        and not rows.unusable
        and not str(allowed[0].verdict).endswith("reached"),
        options=list(allowed),
        chosen=chosen,
    )


def _remarks(texts_of: Iterable[tuple[str, Sequence[str]]]) -> list[FleetRemark]:
    """Each sentence once, with the databases that it holds for."""
    by_text = group_by_key(
        (sentence, name) for name, sentences in texts_of for sentence in dict.fromkeys(sentences)
    )
    return [FleetRemark(text=text, databases=names) for text, names in by_text.items()]
