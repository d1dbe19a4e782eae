"""`tierwise serve`: who may ask, what is refused, how answers come, and how it ends."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.engine_contract import until
from support.live_server import JSON, RECORDING, LiveServer, live_server
from tierwise.cli import app
from tierwise.predict import Predictor, Scenario

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
pytest.importorskip("starlette", reason="needs the extra `serve`")

from tierwise.advise import AdviceOptions
from tierwise.serve.page_server import listening_socket, serve_recordings
from tierwise.serve.refinement import AnswerRefinement, RefinedAnswer
from tierwise.serve.served_recordings import ServedRecordings
from tierwise.serve.simulation_queue import SimulationQueue

SLOW = {"clients": 2000, "cores": 64, "placement": {"log": "ssd-nvme-dc"}}
"""Its simulations take long enough to be overtaken."""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(str(RECORDING), "--devices", "nvme-dc") as started:
        yield started


def test_only_the_token_opens_anything(server: LiveServer) -> None:
    pages = [
        "/",
        "/1/",
        "/wrong/1/",
        f"/{server.token[:-1]}/1/",
        f"/{server.token}x/1/",
        f"//{server.token}/1/",
    ]
    assert {server.get(path).status for path in pages} == {404}
    assert server.get(f"/{server.token}/1/").status == 200
    assert {server.get(f"/{server.token}/{page}/").status for page in ("2", "-1", "x", "9" * 5000)} == {404}
    assert server.get(f"/{server.token}/1/ask").status == 405
    assert len(server.token) >= 32


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""]
)
def test_another_host_is_refused_even_with_the_token(server: LiveServer, host: str) -> None:
    reply = server.get(f"/{server.token}/1/", {"Host": host})
    assert reply.status in (400, 421)
    assert "advice" not in reply.text


def test_headers_let_nothing_out_and_no_other_origin_in(server: LiveServer) -> None:
    reply = server.get(f"/{server.token}/1/", {"Origin": "http://evil.example"})
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert re.fullmatch(r"('sha256-\S+'\s?)+", policy["script-src"])
    assert not [name for name in reply.headers if name.startswith("access-control-")]
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "server" not in reply.headers
    preflight = server.request("OPTIONS", f"/{server.token}/1/ask", headers={"Origin": "http://evil.example"})
    assert preflight.status == 405


def body(**scenario: Any) -> bytes:
    return json.dumps({"client": "a", "scenario": scenario}).encode()


@pytest.mark.parametrize(
    ("status", "sent", "expected"),
    [
        (400, b"{", "not JSON"),
        (400, b"[" * 10_000, "not JSON"),
        (400, b'"\xff"', "not JSON"),
        (400, b'{"client": "a", "scenario": {"settings": ["\\ud800=1"]}}', "not JSON"),
        (413, b" " * 20_000, "16384 bytes"),
        (422, b"[]", "dictionary"),
        (422, b'{"client": "a"}', "scenario"),
        (422, b'{"client": "../a", "scenario": {}}', "client"),
        (422, body(clients=0), "clients"),
        (422, body(clients=10**6), "clients"),
        (422, body(clients=50_000), "live page"),
        (422, body(clients="<b>"), "clients"),
        (422, body(cores=10**9), "cores"),
        (422, body(memory_bytes=10**40), "memory_bytes"),
        (422, body(memory_bytes=4), "memory_bytes"),
        (422, body(growth=float("nan")), "growth"),
        (422, body(rate_per_s=9e6), "live page"),
        (422, body(growth=1000, rate_per_s=float("inf")), "rate_per_s"),
        (422, body(clients=True), "clients: Input should be a valid integer"),
        (422, body(memory_bytes="1000000000"), "memory_bytes: Input should be a valid integer"),
        (422, body(placement={"log": "/etc/passwd"}), "not on this page"),
        (422, body(placement={"log": ["nvme-dc"]}), "not on this page"),
        (422, body(placement={"nothing": "ssd-nvme-dc"}), "unknown role"),
        (422, body(placement=3), "placement"),
        (422, body(placement={"public.orders": "ssd-nvme-dc"}), "not tables"),
        (422, body(settings=["<b>=1"]), "cannot be predicted"),
        (422, body(settings="x"), "settings"),
        (422, body(unknown=1), "unknown"),
    ],
    ids=str,
)
def test_bad_input_gets_a_message(server: LiveServer, status: int, sent: bytes, expected: str) -> None:
    reply = server.post(sent)
    assert reply.status == status
    problem = json.loads(reply.text)
    assert expected in problem["message"] and problem["fix"]
    assert "Traceback" not in reply.text and len(reply.text) < 500


def test_a_form_cannot_ask(server: LiveServer) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert server.post(body(clients=2), {"Content-Type": kind}).status == 415
    chunked = {**JSON, "Transfer-Encoding": "chunked"}
    assert server.post(b"5000\r\n" + b" " * 0x5000 + b"\r\n0\r\n\r\n", chunked).status == 413


def test_the_first_answer_is_short_and_the_last_is_that_of_predict(server: LiveServer) -> None:
    first, *_, last = server.answers("b", clients=2, placement={"log": "recorded"})
    assert (first["stage"], first["seeds"]) == ("first", 1)
    assert (last["stage"], last["agreed"]) == ("final", True)
    (alone,) = Predictor.open(RECORDING, seeds=last["seeds"]).predict([Scenario(clients=2)])
    assert alone.rate_per_s and alone.p99_us
    assert last["rate_per_s"]["value"] == pytest.approx(
        alone.rate_per_s.value, rel=2e-3
    )  # other seeds reproduced
    assert last["rate_half_width"] <= 0.01
    again = server.answers("b", clients=2, placement={"log": "recorded"})
    assert again == [last]


def test_settings_are_answered_with_a_placement_that_no_page_has(server: LiveServer) -> None:
    scenario: dict[str, Any] = {
        "settings": ["synchronous_commit=off"],
        "placement": {"log": "ssd-nvme-dc"},
        "cores": 3,
    }
    *_, last = server.answers("s", **scenario)
    (direct,) = Predictor.open(RECORDING).predict([Scenario.model_validate(scenario)])
    assert direct.rate_per_s and last["rate_per_s"]["value"] == pytest.approx(
        direct.rate_per_s.value, rel=0.05
    )
    assert any(text.startswith("synchronous_commit=off: ") for text in last["warnings"])


def test_what_the_recording_cannot_answer_is_refused_as_an_answer(server: LiveServer) -> None:
    (only,) = server.answers("c", memory_bytes=2 << 20)[-1:]
    assert only["refused"] and only["refused"]["fix"] and only["rate_per_s"] is None


def test_a_new_question_cancels_the_former(server: LiveServer) -> None:
    former = server.question("d", **SLOW)
    assert json.loads(former.readline())["stage"] == "first"
    newer = server.question("d", clients=3)
    rest = [json.loads(line) for line in former.read().splitlines()]
    assert rest[-1] == {"superseded": True}
    assert json.loads(newer.readline())["stage"] == "first"


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LiveServer, SimulationQueue]]:
    """A server in this process, so that its parts can be held; its page is empty."""
    monkeypatch.setattr("tierwise.serve.served_recordings.make_live_page", lambda *_: "")
    simulator = SimulationQueue()
    listening = listening_socket("127.0.0.1", 0)
    recordings = ServedRecordings([RECORDING], AdviceOptions(["nvme-dc"]), simulator)
    running = serve_recordings(recordings, simulator, listening, "127.0.0.1")
    thread = threading.Thread(target=running.run)
    thread.start()
    yield LiveServer(running.url, None), simulator
    running.stop()
    thread.join(60)
    assert not thread.is_alive()


def test_a_replaced_recording_has_a_page_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = iter(["old", "new"])
    monkeypatch.setattr("tierwise.serve.served_recordings.make_live_page", lambda *_: next(pages))
    file = Path(shutil.copytree(RECORDING, tmp_path / "one")) / "about.json"
    simulator = SimulationQueue()
    served = ServedRecordings([file.parent], AdviceOptions(["nvme-dc"]), simulator)
    assert served.opened(1).result().page == b"old"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"started_at": "2026-01-02T03:04:05Z"}))
    for _ in range(2):
        served._open.clear()  # as further recordings do
        assert served.opened(1).result().page == b"new"
    simulator.close()


def test_who_leaves_cancels_the_question(
    inside: tuple[LiveServer, SimulationQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, simulator = inside
    released = threading.Event()

    class Held(AnswerRefinement):
        def simulate_next(self) -> RefinedAnswer | None:
            if not self.waits_for_first:
                released.wait(60)
            return super().simulate_next()

    monkeypatch.setattr("tierwise.serve.live_app.AnswerRefinement", Held)
    asked = server.question("a", clients=2)
    assert json.loads(asked.readline())["stage"] == "first"
    assert simulator.waiting == 1
    asked.close()
    until(lambda: simulator.waiting == 0)
    released.set()


def test_who_leaves_within_the_body_is_no_defect(
    inside: tuple[LiveServer, SimulationQueue], caplog: pytest.LogCaptureFixture
) -> None:
    server, _ = inside
    head = f"POST /{server.token}/1/ask HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 100\r\n"
    with socket.create_connection(("127.0.0.1", int(server.host.rpartition(":")[2]))) as left:
        left.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
        time.sleep(0.5)
    time.sleep(0.5)
    assert not caplog.records


def test_a_body_without_an_end_is_refused_and_its_connection_closed(
    inside: tuple[LiveServer, SimulationQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tierwise.serve.live_app.BODY_WITHIN_S", 0.2)
    server, _ = inside
    head = f"POST /{server.token}/1/ask HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 100\r\n"
    with socket.create_connection(("127.0.0.1", int(server.host.rpartition(":")[2])), 30) as slow:
        slow.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
        answer = slow.recv(4096)
        answered = time.monotonic()
        answer += b"".join(iter(lambda: slow.recv(4096), b""))
        assert time.monotonic() - answered < 3, "not when an idle connection is closed, after 5 s"
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_defect_is_told_without_its_trace(
    inside: tuple[LiveServer, SimulationQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("secret")

    with monkeypatch.context() as patch:
        patch.setattr("tierwise.serve.live_app.page_questions.read_question", broken)
        reply = inside[0].post(body(clients=2))
    assert reply.status == 500
    assert "secret" not in reply.text and "Traceback" not in reply.text and json.loads(reply.text)["fix"]
    monkeypatch.setattr(AnswerRefinement, "simulate_next", broken)
    (line,) = inside[0].answers("b", clients=2)
    assert "secret" not in str(line) and line["error"]["fix"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_it_with_status_0_while_pages_are_made(
    number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with live_server(str(RECORDING), "--devices", "nvme-dc,hdd-7k2,gp3") as started:
        assert started.process
        waiting = http.client.HTTPConnection(started.host, timeout=60)
        waiting.request("GET", f"/{started.token}/1/")
        assert started.get("/").status == 404  # so it has read the request before
        started.process.send_signal(number)
        assert waiting.getresponse().status in (200, 503)
        assert started.process.wait(60) == 0
        waiting.close()
    assert capfd.readouterr().err == ""


def test_its_end_answers_who_waits_for_a_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()
    monkeypatch.setattr("tierwise.serve.served_recordings.make_live_page", lambda *_: str(released.wait(60)))
    simulator, listening = SimulationQueue(), listening_socket("127.0.0.1", 0)
    recordings = ServedRecordings([RECORDING], AdviceOptions(["nvme-dc"]), simulator)
    running = serve_recordings(recordings, simulator, listening, "127.0.0.1")
    thread = threading.Thread(target=running.run)
    thread.start()
    server = LiveServer(running.url, None)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(server.get, f"/{server.token}/1/")
        until(lambda: running._server.server_state.tasks)
        running.stop()
        assert waiting.result(60).status == 503
    released.set()
    thread.join(60)
    assert not thread.is_alive() and not caplog.records


def test_several_recordings_have_a_list_with_names_as_text(tmp_path: Path) -> None:
    named = tmp_path / "<script>alert(1)<script>"
    named.symlink_to(RECORDING)
    with live_server(str(RECORDING), str(named), "--devices", "nvme-dc") as started:
        reply = started.get(f"/{started.token}/")
    assert reply.status == 200
    assert re.findall(r'href="([^"]*)"', reply.text) == ["1/", "2/"]
    assert "<script>alert" not in reply.text and "&lt;script&gt;alert" in reply.text


def test_a_page_may_advise_a_setting_or_a_device_that_loses_files() -> None:
    for options, expected in (
        (["--devices", "gp3", "--may-lose", "1s"], "<h1>Set synchronous_commit=off"),
        (["--devices", "instance-store", "--rebuildable"], "a stop of the machine loses"),
    ):
        with live_server(str(RECORDING), *options) as started:
            assert expected in started.get(f"/{started.token}/1/").text


def test_an_address_that_is_not_here_is_refused() -> None:
    result = CliRunner().invoke(app, ["serve", str(RECORDING), "--devices", "nvme-dc", "--host", "192.0.2.1"])
    assert "--host 192.0.2.1" in str(result.exception)
