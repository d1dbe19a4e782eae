"""One queue of simulations, with as many threads as cores.

First answers go before refinements; among equals, the client that was served longest ago is next. A client's
new question cancels its former one: what was not yet started is dropped, and a simulation under way ends
unheard.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, TypeVar

from tierwise.model import executor
from tierwise.model.errors import TierwiseError
from tierwise.serve.page_questions import RequestError
from tierwise.serve.refinement import AnswerRefinement, RefinedAnswer

MOST_QUESTIONS = 64
"""Most questions at once; further clients are turned away until one of them is answered."""
T = TypeVar("T")
Reply = RefinedAnswer | TierwiseError | None
"""An answer, why there is none, or ``None`` for a question that a newer one replaced."""

_LOG = logging.getLogger(__name__)
_DEFECT = TierwiseError(
    "the simulation failed", "change the question; the terminal of `tierwise serve` shows the cause"
)


def _ended() -> RequestError:
    return RequestError(503, "the server ends", "start `tierwise serve` again")


@dataclass(eq=False)
class QueuedQuestion:
    """A question in the queue.

    Attributes:
        client: who asks.
        refinement: its simulations.
        on_reply: called with each answer from a thread of the simulator.
    """

    client: str
    refinement: AnswerRefinement
    on_reply: Callable[[Reply], None]


class SimulationQueue:
    """Runs simulations for all clients."""

    def __init__(self, threads: int | None = None) -> None:
        self._changed = Condition()
        self._questions: dict[str, QueuedQuestion] = {}
        """By client, the one served longest ago first."""
        self._jobs: deque[tuple[Future[Any], Callable[[], None]]] = deque()
        self._running: Future[Any] | None = None
        """That of the job under way."""
        self._closed = False
        self._threads = [
            Thread(target=self._work, daemon=True) for _ in range(threads or executor.usable_processors())
        ]
        for thread in self._threads:
            thread.start()

    def ask(
        self, client: str, refinement: AnswerRefinement, on_reply: Callable[[Reply], None]
    ) -> QueuedQuestion:
        """Queue a question and cancel the client's former one.

        Raises:
            RequestError: too many clients ask.
        """
        question = QueuedQuestion(client, refinement, on_reply)
        with self._changed:
            self.require_open()
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

    def cancel(self, question: QueuedQuestion) -> None:
        """Drop what was not yet started of a question; nothing more is told."""
        with self._changed:
            self._drop(question)

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Run something long, such as opening a recording, on one of the threads; one such job at a time."""
        future: Future[T] = Future()

        def job() -> None:
            settle: Callable[[Any], None] = future.set_result
            result: Any
            try:
                result = work()
            except Exception as error:
                settle, result = future.set_exception, error
            with suppress(InvalidStateError):  # the server ended meanwhile
                settle(result)

        with self._changed:
            self.require_open()
            self._jobs.append((future, job))
            self._changed.notify_all()
        return future

    def require_open(self) -> None:
        """Long jobs call this from time to time.

        Raises:
            RequestError: the simulator ends.
        """
        if self._closed:
            raise _ended()

    @property
    def waiting(self) -> int:
        """Number of questions that are not fully answered."""
        with self._changed:
            return len(self._questions)

    def end(self) -> None:
        """Answer all questions and jobs by the end of the server; a simulation under way ends unheard."""
        with self._changed:
            self._closed = True
            questions, self._questions = list(self._questions.values()), {}
            futures = [*filter(None, [self._running]), *(future for future, _ in self._jobs)]
            self._jobs.clear()
            self._changed.notify_all()
        for future in futures:
            with suppress(InvalidStateError):  # it has just come
                future.set_exception(_ended())
        for question in questions:
            question.on_reply(None)

    def close(self) -> None:
        """:meth:`end`, then wait for the simulations under way."""
        self.end()
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
        if self._jobs and not self._running:
            self._running, job = self._jobs.popleft()
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
            self._running = None
            self._changed.notify_all()

    def _simulate(self, question: QueuedQuestion) -> None:
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

    def _drop(self, question: QueuedQuestion) -> None:
        if self._questions.get(question.client) is question:
            del self._questions[question.client]
