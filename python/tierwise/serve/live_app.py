"""The application: a list of recordings, a page each with its policy, and answers as a stream of lines."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from tierwise.model.errors import TierwiseError
from tierwise.report.advice.advice_html import source_hash
from tierwise.report.render import PAGE_STYLE
from tierwise.serve import page_questions
from tierwise.serve.page_questions import BODY_WITHIN_S, MOST_BYTES, RequestError
from tierwise.serve.refinement import AnswerRefinement, RefinedAnswer
from tierwise.serve.request_guard import POLICY, Admit, RequestGuard, refusal_response
from tierwise.serve.served_recordings import LiveRecording, ServedRecordings
from tierwise.serve.simulation_queue import QueuedQuestion, Reply, SimulationQueue

_LOG = logging.getLogger(__name__)
_LINES = "application/x-ndjson"
_MOST_DIGITS = 9
"""Of the number of a recording."""
_SHOWN = ("rate_per_s", "elapsed_s", "speedup", "p50_us", "p95_us", "p99_us", "saturated", "bounds_only")


class LiveApp:
    """The handlers. Use :func:`guarded_application`."""

    def __init__(self, recordings: ServedRecordings, simulator: SimulationQueue) -> None:
        self._recordings, self._simulator = recordings, simulator

    async def index(self, request: Request) -> Response:
        """The list of recordings; the only one's page at once."""
        root = request.scope["root_path"]
        if len(self._recordings.paths) == 1:
            return RedirectResponse(f"{root}/1/")
        html = list_page([path.name for path in self._recordings.paths])
        return HTMLResponse(html, headers={"content-security-policy": content_security_policy(html)})

    async def page(self, request: Request) -> Response:
        """The page of one recording."""
        html = (await self._opened(request)).page
        return HTMLResponse(html, headers={"content-security-policy": content_security_policy(html.decode())})

    async def ask(self, request: Request) -> Response:
        """The answers to a question, a line of JSON each, the final one last."""
        question = page_questions.read_question(await _body(request))
        opened = await self._opened(request)
        scenario = page_questions.scenario_of_question(
            question, self._recordings.devices, opened.predictor, opened.most_clients
        )
        refinement = AnswerRefinement(opened.predictor, scenario)
        key = scenario.model_dump_json()
        known = opened.final.recall(key) or refinement.refused
        if known:
            return Response(_line(known), media_type=_LINES)
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[Reply] = asyncio.Queue()

        def on_reply(reply: Reply) -> None:
            loop.call_soon_threadsafe(answers.put_nowait, reply)

        asked = self._simulator.ask(question.client, refinement, on_reply)
        return StreamingResponse(self._answers(asked, answers, opened, key), media_type=_LINES)

    async def _answers(
        self, asked: QueuedQuestion, answers: asyncio.Queue[Reply], opened: LiveRecording, key: str
    ) -> AsyncIterator[bytes]:
        """Lines of one question until its last answer; whoever stops reading cancels it."""
        try:
            while True:
                answer = await answers.get()
                yield _line(answer)
                if not isinstance(answer, RefinedAnswer):
                    return
                if answer.stage == "final":
                    opened.final.keep(key, answer)
                    return
        finally:
            self._simulator.cancel(asked)

    async def _opened(self, request: Request) -> LiveRecording:
        written: str = request.path_params["number"]
        if not (written.isascii() and written.isdecimal() and len(written) <= _MOST_DIGITS):
            raise HTTPException(404)
        number = int(written)
        if number not in self._recordings:
            raise HTTPException(404)
        # a browser that leaves must not cancel what others wait for
        return await asyncio.shield(asyncio.wrap_future(self._recordings.opened(number)))


def guarded_application(
    recordings: ServedRecordings, simulator: SimulationQueue, token: str, host: str, admit: Admit
) -> ASGIApp:
    """The guarded application; closing it closes the simulator."""
    live = LiveApp(recordings, simulator)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(simulator.close)

    app = Starlette(
        routes=[
            Route("/", live.index),
            Route("/{number}/", live.page),
            Route("/{number}/ask", live.ask, methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: _http_problem,
            TierwiseError: _tierwise_problem,
            Exception: _defect,
        },
        lifespan=lifespan,
    )
    return RequestGuard(app, token, host, admit)


async def _body(request: Request) -> bytes:
    """The body of a question; a chunked one states no length."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RequestError(415, "the body is not application/json", "send JSON")
    body = b""
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise RequestError(413, f"the body has more than {MOST_BYTES} bytes", "send less")
    except TimeoutError:
        raise RequestError(408, f"no end of the body within {BODY_WITHIN_S:g} s", "send all of it") from None
    except ClientDisconnect:
        raise RequestError(400, "the connection ended within the body", "send all of it") from None
    return body


def _line(answer: Reply) -> bytes:
    """An answer, an error or ``{"superseded": true}`` as a line of JSON."""
    if answer is None:
        content: dict[str, Any] = {"superseded": True}
    elif isinstance(answer, TierwiseError):
        content = {"error": {"message": answer.message, "fix": answer.fix}}
    else:
        prediction = answer.prediction
        content = {
            "stage": answer.stage,
            "seeds": prediction.seeds,
            "rate_half_width": answer.rate_half_width,
            "agreed": answer.agreed,
            "refused": prediction.refused and prediction.refused.model_dump(),
            "bound": prediction.bound and prediction.bound.speedup,
            "warnings": prediction.warnings,
            **prediction.model_dump(mode="json", include=set(_SHOWN)),
        }
    return json.dumps(content, allow_nan=False).encode() + b"\n"


async def _http_problem(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = "not found" if status == 404 else "this address does not take such a request"
    return refusal_response(status, message, "open the address that was printed")


async def _tierwise_problem(_: Request, error: Exception) -> Response:
    """A question that cannot be answered, or a recording that was damaged since the start."""
    assert isinstance(error, TierwiseError)
    return refusal_response(
        error.status if isinstance(error, RequestError) else 422, error.message, error.fix
    )


async def _defect(_: Request, error: Exception) -> Response:
    _LOG.error("a request failed", exc_info=error)
    return refusal_response(500, "the server failed", "see the terminal of `tierwise serve`")


_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_LIST = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src {{ style_hash }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Recordings – tierwise</title><style>{{ style }}</style></head>
<body><header><p class="eyebrow"><span>tierwise</span> serve</p><h1>Recordings</h1></header>
<main><ul>
{% for name in names %}<li><a href="{{ loop.index }}/">{{ name }}</a></li>
{% endfor %}</ul></main></body></html>
"""


def list_page(names: Sequence[str]) -> str:
    """The list of several recordings: names of their folders, each a link to its page."""
    style = f"{PAGE_STYLE}\nmain {{ padding-top: 1.5rem; }}"
    made = Environment(autoescape=True, undefined=StrictUndefined)
    return made.from_string(_LIST).render(names=names, style=Markup(style), style_hash=source_hash(style))


def content_security_policy(page: str) -> str:
    """The content security policy for the header of a page: its own, and no frame around it."""
    own = _META.search(page)
    return f"{html.unescape(own[1])}; frame-ancestors 'none'" if own else POLICY
