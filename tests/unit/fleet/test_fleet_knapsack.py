"""The best set of moves against brute force, and the draws against what their intervals say."""

from __future__ import annotations

import ctypes
import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from support.fleet_factory import advised, database, option, recorded
from tierwise.fleet.sensitivity import DRAWS, sample_speedups
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

pytest.importorskip("scipy.optimize", reason="scipy of the extra cluster is not installed")
from tierwise.fleet.knapsack import Knapsack, solve_relaxed

FLEETS = 200


def fleet(seed: int) -> tuple[list[list[float]], list[list[float]], float]:
    """Costs and gains of the options of up to six databases, and a budget; some options gain the same."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=rng.integers(1, 7))
    costs = [[0.0, *rng.uniform(-20, 400, size - 1)] for size in sizes]
    gains = [[0.0, *rng.uniform(-0.2, 3.0, size - 1)] for size in sizes]
    for each in gains:
        if len(each) > 3:
            each[3] = each[2]
    return costs, gains, float(rng.uniform(0, 150 * len(sizes)))


def brute_force(costs: list[list[float]], gains: list[list[float]], budget: float) -> tuple[float, float]:
    """Gain and cost of the best set within a budget; of sets with that gain, the cheapest."""
    sets = [
        (sum(map(lambda row, n: row[n], gains, choice)), sum(map(lambda row, n: row[n], costs, choice)))
        for choice in itertools.product(*(range(len(each)) for each in costs))
    ]
    most = max(gain for gain, cost in sets if cost <= budget)
    return most, min(cost for gain, cost in sets if gain > most - 1e-9 and cost <= budget)


@pytest.mark.parametrize("first", range(0, FLEETS, 20))
def test_the_best_set_is_that_of_brute_force(first: int) -> None:
    for seed in range(first, first + 20):
        costs, gains, budget = fleet(seed)
        flat = np.array([gain for each in gains for gain in each])
        best = Knapsack(costs).best(flat, budget)
        gain, cost = brute_force(costs, gains, budget)
        assert best.gain == pytest.approx(gain, abs=1e-9), seed
        assert best.cost == pytest.approx(cost, abs=1e-9) and best.gap == 0, seed
        everything = brute_force(costs, gains, math.inf)
        free = Knapsack(costs).best(flat, None)
        assert (free.gain, free.cost) == pytest.approx(everything, abs=1e-9), seed


def test_300_databases_are_solved_exactly_and_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    """The bound of the relaxed problem is no proof here: it lies above the best set by up to an option."""
    rng = np.random.default_rng(4)  # for this fleet the solver of scipy 1.17.1 prints 19 lines
    costs = [[0.0, *np.sort(rng.lognormal(3.5, 1.2, 5))] for _ in range(300)]
    gains = np.concatenate([[0.0, *(1 - 1 / (1 + np.cumsum(rng.lognormal(-1, 1, 5))))] for _ in costs])
    knapsack = Knapsack(costs)
    budget = 0.1 * knapsack.best(gains, None).cost
    best = knapsack.best(gains, budget)
    starts = np.arange(0, 1800, 6)
    near = solve_relaxed(np.concatenate(costs), gains, starts, budget)
    kept = near.keep
    assert 0.99 * best.gain < near.gain <= best.gain <= near.most
    assert np.concatenate(costs)[near.options].sum() <= budget and (near.options // 6 == np.arange(300)).all()
    assert kept.sum() < 600 and kept[starts + np.array(best.options)].all()
    assert best.gap == 0 and budget - 1 < best.cost <= budget + 1e-6
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("gap", [1e-3, 0.1])
def test_a_set_is_as_near_to_the_best_as_was_asked_for(gap: float) -> None:
    stopped_early = 0
    for seed in range(60):
        costs, gains, budget = fleet(seed)
        flat = np.array([gain for each in gains for gain in each])
        best, near = Knapsack(costs).best(flat, budget), Knapsack(costs).best(flat, budget, gap)
        assert near.cost <= budget + 1e-9 and near.gap <= gap + 1e-12
        assert near.gain <= best.gain + 1e-9 <= near.gain * (1 + near.gap) + 1e-8
        stopped_early += near.gap > 0
    assert gap < 0.1 or stopped_early


def test_a_budget_below_what_must_be_spent_is_refused() -> None:
    with pytest.raises(TierwiseError, match=r"12\.50 \$/month"):
        Knapsack([[7.5, 9.0], [5.0]]).best(np.array([0.1, 0.2, 0.3]), 12.0)


@pytest.mark.parametrize("costs", [[50 / 7], [0.1, 0.2], [1234.1], [99.999]])
def test_the_least_budget_that_a_refusal_names_is_enough(costs: list[float]) -> None:
    knapsack, gains = Knapsack([[cost] for cost in costs]), np.ones(len(costs))
    with pytest.raises(TierwiseError, match=r"\$/month") as refused:
        knapsack.best(gains, 0.0)
    least = float(refused.value.message.split(" ")[-2].replace("\u202f", ""))
    assert knapsack.best(gains, least).cost == pytest.approx(least, abs=0.01)


def test_a_budget_that_is_the_price_of_a_set_pays_for_it_and_no_more_is_spent() -> None:
    """Prices in cents have sums that are above the budget, or below it, by their rounding alone."""
    for seed in range(FLEETS):
        rng = np.random.default_rng(seed)
        costs = [[0.0, *(rng.integers(1, 30_000, 3) / 100)] for _ in range(rng.integers(2, 8))]
        gains = rng.uniform(0, 3, 4 * len(costs)) * np.tile([0, 1, 1, 1], len(costs))
        wanted = rng.integers(0, 4, len(costs))
        budget = round(sum(row[number] for row, number in zip(costs, wanted, strict=True)), 2)
        knapsack = Knapsack(costs)
        best = knapsack.best(gains, budget)
        assert best.cost <= budget, seed
        assert best.gain >= knapsack.gain(list(wanted), gains) - 1e-9, seed
        alone = Knapsack([[row[number]] for row, number in zip(costs, wanted, strict=True)])
        assert alone.best(np.ones(len(costs)), budget).cost == budget, seed


def test_the_least_that_must_be_spent_is_named_in_the_currency_of_the_prices() -> None:
    with pytest.raises(TierwiseError, match=r"costs 8\.00 CHF/month"):
        Knapsack([[8.0]], "CHF").best(np.ones(1), 1.0)


def test_more_money_gains_no_less_and_the_curve_ends_at_everything() -> None:
    databases = [database(f"db{n}", option(40 + n, 1.2 + n / 10), option(300, 3 + n / 10)) for n in range(9)]
    advice = advised(*databases, budget="500/month")
    gains = [point.gain_share for point in advice.curve]
    assert gains == sorted(gains) and gains[0] == 0 and gains[-1] == pytest.approx(1)
    assert all(point.cost_per_month <= point.budget_per_month + 1e-9 for point in advice.curve)
    assert advice.curve[-1].cost_per_month == pytest.approx(advice.full_cost_per_month)
    assert advice.next and advice.next.gain_share > 0
    (asked,) = (point for point in advice.curve if point.budget_per_month == 500)
    assert asked.gain_share == pytest.approx(advice.gain / advice.full_gain)


def test_an_interval_holds_95_percent_of_its_draws_and_none_is_beyond_the_bound() -> None:
    wide = option(10, 2.0, spread=1.5, seed_half_width=0.1)
    bounded = wide.model_copy(update={"most_speedup": 2.2})
    drawn = np.array(list(sample_speedups([[recorded(), wide], [recorded(), bounded]], seed=1, draws=4000)))
    inside = np.mean((drawn[:, 1] >= wide.speedup.low) & (drawn[:, 1] <= wide.speedup.high))
    assert inside == pytest.approx(0.95, abs=0.014)  # four standard errors
    assert np.median(drawn[:, 1]) == pytest.approx(2.0, rel=0.03)
    assert drawn[:, 3].max() == 2.2 and (drawn[:, [0, 2]] == 1).all()


def test_the_error_of_the_model_is_shared_by_the_options_of_a_database() -> None:
    """Alone it changes no order among them; the seeds do, as often as two normal variables change theirs."""
    moves = [option(10, 2.2, [Role.LOG], spread=2), option(10, 2.0, [Role.DATA], spread=2)]
    shares = {
        move.role: move.draws_share for move in advised(database("a", *moves), budget="50", draws=DRAWS).moves
    }
    assert shares[Role.LOG] > 0.8 and Role.DATA not in shares
    half = 0.2
    noisy = [
        move.model_copy(
            update={"seed_half_width": half, "speedup": option(0, value, spread=math.exp(half)).speedup}
        )
        for move, value in zip(moves, (2.2, 2.0), strict=True)
    ]
    shares = {
        move.role: move.draws_share for move in advised(database("a", *noisy), budget="50", draws=DRAWS).moves
    }
    expected = NormalDist().cdf(math.log(1.1) / (math.sqrt(2) * half / 1.96))
    four_errors = 4 * math.sqrt(expected * (1 - expected) / DRAWS)
    assert shares[Role.LOG] == pytest.approx(expected, abs=four_errors)
    assert shares[Role.DATA] == pytest.approx(1 - shares[Role.LOG])


def test_draws_are_those_of_their_seed() -> None:
    options = [[recorded(), option(10, 2.0, spread=1.5)]]
    first, same, other = (np.array(list(sample_speedups(options, seed, 5))) for seed in (1, 1, 2))
    assert (first == same).all() and (first != other).any()
