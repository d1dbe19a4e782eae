"""One queue of simulations, with as many threads as cores.

First answers go before refinements; among equals, the client that was served longest ago is next. A client's
new question cancels its former one: what was not yet started is dropped, and a simulation under way ends
unheard.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, TypeVar

from tierwise.model import executor
from tierwise.model.errors import TierwiseError
from tierwise.serve.questions import RequestError
from tierwise.serve.refinement import Answer, Refinement

MOST_QUESTIONS = 64
"""Most questions at once; further clients are turned away until one of them is answered."""
T = TypeVar("T")
Reply = Answer | TierwiseError | None
"""An answer, why there is none, or ``None`` for a question that a newer one replaced."""

_LOG = logging.getLogger(__name__)
_DEFECT = TierwiseError(
    "the simulation failed", "change the question; the terminal of `tierwise serve` shows the cause"
)


@dataclass(eq=False)
class Question:
    """A question in the queue.

    Attributes:
        client: who asks.
        refinement: its simulations.
        on_reply: called with each answer from a thread of the simulator.
    """

    client: str
    refinement: Refinement
    on_reply: Callable[[Reply], None]


class Simulator:
    """Runs simulations for all clients."""

    def __init__(self, threads: int | None = None) -> None:
        self._changed = Condition()
        self._questions: dict[str, Question] = {}
        """By client, the one served longest ago first."""
        self._jobs: deque[tuple[Future[Any], Callable[[], None]]] = deque()
        self._job_runs = False
        self._closed = False
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(threads or executor.usable())]
        for thread in self._threads:
            thread.start()

    def ask(self, client: str, refinement: Refinement, on_reply: Callable[[Reply], None]) -> Question:
        """Queue a question and cancel the client's former one.

        Raises:
            RequestError: too many clients ask.
        """
        question = Question(client, refinement, on_reply)
        with self._changed:
            former = self._questions.get(client)
            if former is None and len(self._questions) >= MOST_QUESTIONS:
                raise RequestError(
                    503, f"{MOST_QUESTIONS} questions are being answered", "ask again in a few seconds"
                )
            self._questions[client] = question
            self._changed.notify_all()
        if former:
            former.on_reply(None)
        return question

    def cancel(self, question: Question) -> None:
        """Drop what was not yet started of a question; nothing more is told."""
        with self._changed:
            self._drop(question)

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Run something long, such as opening a recording, on one of the threads; one such job at a time."""
        future: Future[T] = Future()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except Exception as error:
                    future.set_exception(error)

        with self._changed:
            self._jobs.append((future, job))
            self._changed.notify_all()
        return future

    def require_open(self) -> None:
        """Long jobs call this from time to time.

        Raises:
            TierwiseError: the simulator closes.
        """
        if self._closed:
            raise TierwiseError("the server ends", "start `tierwise serve` again")

    @property
    def waiting(self) -> int:
        """Number of questions that are not fully answered."""
        with self._changed:
            return len(self._questions)

    def close(self) -> None:
        """Drop all questions and wait for the simulations under way."""
        with self._changed:
            self._closed = True
            questions, self._questions = list(self._questions.values()), {}
            jobs = list(self._jobs)
            self._jobs.clear()
            self._changed.notify_all()
        for future, _ in jobs:
            future.cancel()
        for question in questions:
            question.on_reply(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (task := self._next()) is None:
                    self._changed.wait()
                if self._closed or task is None:
                    return
            task()

    def _next(self) -> Callable[[], None] | None:
        """What to do next, or ``None``; the caller holds the lock."""
        if self._jobs and not self._job_runs:
            self._job_runs = True
            _, job = self._jobs.popleft()
            return lambda: self._run_job(job)
        open_ = [question for question in self._questions.values() if question.refinement.has_more]
        question = next((each for each in open_ if each.refinement.waits_for_first), next(iter(open_), None))
        if question is None:
            return None
        self._questions[question.client] = self._questions.pop(question.client)
        return lambda: self._simulate(question)

    def _run_job(self, job: Callable[[], None]) -> None:
        job()
        with self._changed:
            self._job_runs = False
            self._changed.notify_all()

    def _simulate(self, question: Question) -> None:
        """Run one simulation."""
        answer: Any
        try:
            answer = question.refinement.simulate_next()
        except TierwiseError as error:
            answer = error
        except Exception:
            _LOG.exception("a simulation failed")
            answer = _DEFECT
        with self._changed:
            heard = self._questions.get(question.client) is question
            if isinstance(answer, TierwiseError) or (answer and answer.stage == "final"):
                self._drop(question)
        if heard and answer:
            question.on_reply(answer)

    def _drop(self, question: Question) -> None:
        if self._questions.get(question.client) is question:
            del self._questions[question.client]
