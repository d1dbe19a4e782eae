"""Ratios measured in blocks on several hosts: intervals with the host as blocking factor, hosts that differ.

A block is one repeat of every arm of a study, all on one host. A ratio is taken within a block, so that the
speed of the host and of that hour cancels. Model of the logarithm of the ratio in block b on host h:
``mean + effect(h) + error(h, b)``, with normal errors of one variance.

Two intervals, both of Student, both for the equally weighted mean over hosts (Searle, Casella and McCulloch,
*Variance Components*, 1992, chapter 3, the one-way classification):

- *These hosts* (effects fixed): the variance is that within hosts, with blocks - hosts degrees of freedom.
  With one block on each host it is unknown, and the other interval replaces this one.
- *Further hosts* (effects drawn at random): the variance is that of the hosts' means, with hosts - 1 degrees
  of freedom. It is exact if all hosts have equally many blocks.

Which host differs. Each host's mean is compared with that of the blocks on all others, by a t test on the
variance within hosts. The host that differs most is named and set aside if it is significant at 5 % after
Bonferroni's correction for the number of hosts; then the rest is tested. Of two hosts neither is the
deviant, so both are named. ``tests/unit/analysis/test_host_blocks.py`` checks coverage and false findings by
simulation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tierwise.model.statistics import LEVEL, BoundKind, Interval, student_95

Blocks = Mapping[str, Sequence[float]]
"""Host -> the logarithm of a positive figure in each of its blocks, at least one each."""


@dataclass(frozen=True)
class MultiHostRatio:
    """A ratio over blocks on several hosts.

    Attributes:
        here: its geometric mean on these hosts.
        elsewhere: the interval for a further host of this kind; none with one host.
        of_hosts: host -> its own ratio, the geometric mean over its blocks.
        differing: hosts whose ratio differs from the others' by more than the noise within hosts.
    """

    here: Interval
    elsewhere: Interval | None
    of_hosts: dict[str, float]
    differing: list[str]


def multi_host_ratio(log_ratios: Blocks, bound: BoundKind = BoundKind.EXACT) -> MultiHostRatio:
    """Intervals of a ratio, and the hosts that differ."""
    means = {host: fmean(values) for host, values in log_ratios.items()}
    count, blocks = len(means), sum(map(len, log_ratios.values()))
    mean, variance = fmean(means.values()), variance_within_hosts(log_ratios)
    elsewhere = here = None
    if count > 1:
        between = math.fsum((host_mean - mean) ** 2 for host_mean in means.values()) / (count - 1)
        elsewhere = student_95(count - 1) * math.sqrt(between / count)
    if variance is not None:
        error = math.sqrt(variance * math.fsum(1 / len(values) for values in log_ratios.values())) / count
        here = student_95(blocks - count) * error
    elif elsewhere is not None:
        here = elsewhere
    return MultiHostRatio(
        here=_ratio(mean, here, blocks, bound),
        elsewhere=None if elsewhere is None else _ratio(mean, elsewhere, blocks, bound),
        of_hosts={host: math.exp(logarithm) for host, logarithm in means.items()},
        differing=differing_hosts(log_ratios),
    )


def differing_hosts(values: Blocks) -> list[str]:
    """Hosts whose mean differs from the others' by more than the noise within hosts, most different first."""
    variance = variance_within_hosts(values)
    if variance is None:
        return []
    freedom = sum(map(len, values.values())) - len(values)
    rest, differing = dict(values), list[str]()
    while len(rest) > 1:
        distances = {host: _distance(host, rest, variance) for host in rest}
        worst = max(distances, key=lambda host: distances[host])
        tests = len(rest) if len(rest) > 2 else 1
        if two_sided_p_value(distances[worst], freedom) * tests >= 1 - LEVEL:
            break
        named = [worst] if len(rest) > 2 else list(rest)
        differing += named
        rest = {host: own for host, own in rest.items() if host not in named}
    return differing


def variance_within_hosts(values: Blocks) -> float | None:
    """Variance within hosts, pooled; none if no host has two blocks."""
    freedom = sum(map(len, values.values())) - len(values)
    squares = [(value - fmean(own)) ** 2 for own in values.values() for value in own]
    return math.fsum(squares) / freedom if freedom else None


def two_sided_p_value(distance: float, freedom: int) -> float:
    """Probability that Student's t lies further from 0 than ``distance`` (at least 0).

    Source: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4; exact.
    """
    angle = math.atan2(distance, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(max(1 - inside, 0.0), 1.0)


def _distance(host: str, values: Blocks, variance: float) -> float:
    """The t statistic of one host against the blocks on all others."""
    own, others = values[host], [value for name, rest in values.items() if name != host for value in rest]
    difference = abs(fmean(own) - fmean(others))
    error = math.sqrt(variance * (1 / len(own) + 1 / len(others)))
    return difference / error if error else math.inf if difference else 0.0


def _ratio(mean: float, half_width: float | None, blocks: int, bound: BoundKind) -> Interval:
    if half_width is None:
        return Interval(math.exp(mean), None, None, blocks, bound)
    return Interval(math.exp(mean), math.exp(mean - half_width), math.exp(mean + half_width), blocks, bound)
