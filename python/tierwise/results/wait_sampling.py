"""Wait profiles: where the load's sessions spend their time, sampled many times a second.

An engine provides a :class:`WaitProbe`, which reports the current state of each session. The sampling loop
and the estimate with its error are the same for every engine.
"""

from __future__ import annotations

import random
import threading
import time
from array import array
from typing import TYPE_CHECKING, Protocol, get_args

from tierwise.model.extras import np
from tierwise.model.statistics import student_95
from tierwise.results import WaitClass, WaitProfile, WaitShare

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES: tuple[WaitClass, ...] = get_args(WaitClass)
"""Every wait class, in the order of the columns of a table of counts."""

RATE_HZ = 100.0
"""Samples a second."""

_BATCHES = 10


class WaitProbe(Protocol):
    """The interface of an engine for wait sampling. Used by one thread at a time."""

    def sample_waits(self, delay_s: float) -> list[WaitClass]:
        """The class of each session of the load ``delay_s`` from now; empty while there is none.

        The engine itself should do the waiting if it can. On a busy machine the sampler must first get a
        processor, often one that a session has just left: the more it does after the wait, the more running
        sessions it misses.
        """

    def cpu_s(self) -> float:
        """CPU seconds that the engine has spent on answering :meth:`sample` so far."""

    def close(self) -> None:
        """Release the resources of the probe."""


def profile_of(counts: NDArray[np.int64], rate_hz: float) -> WaitProfile | None:
    """Estimate the share of session time in each class, with its sampling error.

    The share is a ratio estimate, the samples in the class over all samples. Its error must not treat the
    samples as independent: sessions queue behind one another, and a state may outlast many ticks. So the
    ticks are cut into b = 10 consecutive batches; with C_j and S_j the samples of batch j in the class and in
    all, p = sum C / sum S, and S' = sum S / b, the 95 % half-width is

        t(0.975, b - 1) * sqrt( sum_j (C_j - p S_j)^2 / (b (b - 1)) ) / S'

    This is the method of batch means (B. Schmeiser, "Batch size effects in the analysis of simulation
    output", Operations Research 30(3), 1982, who finds 10 to 30 batches enough) with the residuals of a ratio
    (W. G. Cochran, "Sampling Techniques", 3rd ed., 1977, section 2.11). It holds when a batch is longer than
    the correlation time of the ticks. A class that was hardly seen has almost no residuals, so the half-width
    is never below 3 / ticks, the 95 % bound for an event that no tick saw (J. A. Hanley and A. Lippman-Hand,
    "If nothing goes wrong, is everything all right?", JAMA 249(13), 1983).

    Without any session there is no profile. Below 20 ticks the error is given as 1: unknown.

    Args:
        counts: shape (ticks, ``len(CLASSES)``), sessions seen in each class at each tick.
        rate_hz: ticks a second that were achieved.
    """
    samples = int(counts.sum())
    if samples == 0:
        return None
    shares = counts.sum(axis=0) / samples
    errors = _half_widths(counts, shares)
    return WaitProfile(
        ticks=len(counts),
        samples=samples,
        rate_hz=rate_hz,
        shares={
            name: WaitShare(share=float(share), sampling_error=float(error))
            for name, share, error in zip(CLASSES, shares, errors, strict=True)
        },
    )


def _half_widths(counts: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    ticks = len(counts)
    if ticks < 2 * _BATCHES:
        return np.ones(len(shares))
    starts = np.arange(_BATCHES) * ticks // _BATCHES
    in_class = np.add.reduceat(counts, starts, axis=0)
    in_all = in_class.sum(axis=1, keepdims=True)
    residuals = in_class - shares * in_all
    standard_error = np.sqrt((residuals**2).sum(axis=0) / (_BATCHES * (_BATCHES - 1))) / in_all.mean()
    half_widths: NDArray[np.float64] = np.clip(student_95(_BATCHES - 1) * standard_error, 3 / ticks, 1)
    return half_widths


class WaitSampler:
    """Samples a probe ``rate_hz`` times a second, in a thread, from :meth:`start` to :meth:`stop`.

    The schedule does not drift, and the moment within each period is random. An exact period would sample a
    rotating disk always at the same few angles, and the waits of a lone session follow the rotation.
    """

    def __init__(self, probe: WaitProbe, rate_hz: float = RATE_HZ) -> None:
        """Take over ``probe``; it is closed by :meth:`stop`."""
        self._probe = probe
        self._period_s = 1 / rate_hz
        self._random = random.Random(0)
        self._counts = array("l")
        self._ticks = 0
        self._elapsed_s = 0.0
        self.engine_cpu_s = 0.0
        """CPU seconds that the engine spent on sampling, once stopped; its own CPU figure contains them."""
        self.failure: Exception | None = None
        """The error that ended sampling before :meth:`stop`, if any."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wait-sampler", daemon=True)

    def start(self) -> None:
        """Begin to sample. A sampler is used once."""
        self._thread.start()

    def stop(self) -> WaitProfile | None:
        """End sampling and return the profile.

        ``None`` if no session was seen, or if the engine stopped answering.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._probe.close()
        return None if self.failure is not None else self.sampled

    @property
    def sampled(self) -> WaitProfile | None:
        """What was sampled until :meth:`stop`, or until the engine stopped answering; once stopped."""
        if self._elapsed_s == 0 or self._ticks == 0:
            return None
        table = np.array(self._counts, dtype=np.int64).reshape(self._ticks, len(CLASSES))
        return profile_of(table, self._ticks / self._elapsed_s)

    def _run(self) -> None:
        began_s = time.monotonic()
        try:
            engine_before_s = self._probe.cpu_s()
            self._loop(began_s)
            self.engine_cpu_s = self._probe.cpu_s() - engine_before_s
        except Exception as error:
            self.failure = error
        self._elapsed_s = time.monotonic() - began_s

    def _loop(self, began_s: float) -> None:
        slot = 0
        while not self._stopping.is_set():
            due_s = began_s + (slot + self._random.random()) * self._period_s
            states = self._probe.sample_waits(max(0.0, due_s - time.monotonic()))
            self._counts.extend(states.count(name) for name in CLASSES)
            self._ticks += 1
            slot = max(slot + 1, int((time.monotonic() - began_s) / self._period_s))
