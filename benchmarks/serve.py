"""Bars of the live page: no error, p95 of the first answer below 1 s, flat memory.

``nice python benchmarks/serve.py [--clients C] [--seconds S] [RECORDING]``. C clients (20 by default) drag
the sliders of one page of ``tierwise serve`` for S seconds (60), as ``live.js`` does: a question follows
50 ms after the one before, or once that has its first answer, and cancels it. Each client rests after 10 to
30 questions until the seeds agree.

It prints the number of questions, times to the first answer and to the last, errors, the machine's load, and
the server's resident memory: when the page is made, after the first 10 s, and at the end. Exit status is 1 if
a bar is missed; memory is flat if it grows by less than 5 % after the first 10 s.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil

RECORDING = Path(__file__).parents[1] / "examples" / "recordings" / "order-entry"
DEVICE = "ssd-nvme-dc"
FIRST_BAR_S = 1.0
GROWTH_BAR = 1.05
PACE_S = 0.05
WARM_S = 10.0


@dataclass
class Seen:
    """What the clients saw, in seconds; appended to by all of them."""

    first_s: list[float] = field(default_factory=list)
    last_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Hand(threading.Thread):
    """One client that drags."""

    def __init__(
        self, number: int, url: str, sliders: list[dict[str, Any]], until: float, seen: Seen
    ) -> None:
        super().__init__()
        self._address = urlsplit(url)
        self._name, self._sliders, self._until, self._seen = f"hand-{number}", sliders, until, seen
        self._random = random.Random(number)
        self._stops = {slider["name"]: slider["as_recorded"] for slider in sliders}

    def run(self) -> None:
        """Drag until the time is over."""
        while time.monotonic() < self._until:
            slider = self._random.choice(self._sliders)
            way = self._random.choice((-1, 1))
            for _ in range(self._random.randrange(10, 30)):
                self._move(slider, way)
                self._ask(rests=False)
            self._ask(rests=True)

    def _move(self, slider: dict[str, Any], way: int) -> None:
        stop = self._stops[slider["name"]] + way
        self._stops[slider["name"]] = min(max(stop, 0), len(slider["stops"]) - 1)

    def _scenario(self) -> dict[str, Any]:
        chosen = {slider["name"]: slider["stops"][self._stops[slider["name"]]] for slider in self._sliders}
        moved = {name: value for name, value in chosen.items() if value is not None}
        return {"placement": {"log": self._random.choice((DEVICE, "recorded"))}, **moved}

    def _ask(self, rests: bool) -> None:
        body = json.dumps({"client": self._name, "scenario": self._scenario()})
        connection = http.client.HTTPConnection(self._address.netloc, timeout=60)
        asked = time.monotonic()
        try:
            connection.request(
                "POST", f"{self._address.path}1/ask", body, {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            first = json.loads(response.readline())
            self._seen.first_s.append(time.monotonic() - asked)
            if response.status != 200 or "error" in first:
                self._seen.errors.append(f"{response.status} {first}")
            elif rests:
                lines = response.read().splitlines()
                last = json.loads(lines[-1]) if lines else first
                self._seen.last_s.append(time.monotonic() - asked)
                if last.get("stage") != "final":
                    self._seen.errors.append(f"the last answer is not final: {last}")
            else:
                time.sleep(max(0.0, PACE_S - (time.monotonic() - asked)))
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._seen.errors.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()


def sliders_of(url: str) -> list[dict[str, Any]]:
    """The sliders of the first page, once it is made."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=600)
    connection.request("GET", f"{address.path}1/")
    page = connection.getresponse().read().decode()
    data = page.partition('id="data">')[2].partition("</script>")[0]
    sliders: list[dict[str, Any]] = json.loads(data)["live"]["sliders"]
    return sliders


def main() -> int:
    """Serve, drag, print; whether a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", nargs="?", type=Path, default=RECORDING)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    command = [sys.executable, "-m", "tierwise", "serve", str(options.recording), "--devices", DEVICE]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        url = server.stdout.readline().strip()
        sliders = sliders_of(url)
        process, seen = psutil.Process(server.pid), Seen()
        memory = [process.memory_info().rss]
        before = os.getloadavg()[0]
        until = time.monotonic() + options.seconds
        hands = [Hand(number, url, sliders, until, seen) for number in range(options.clients)]
        for hand in hands:
            hand.start()
        time.sleep(min(WARM_S, options.seconds))
        memory.append(process.memory_info().rss)
        for hand in hands:
            hand.join()
        memory.append(process.memory_info().rss)
        used_s = process.cpu_times().user + process.cpu_times().system
    finally:
        server.send_signal(signal.SIGINT)
        status = server.wait(60)
    return report(seen, memory, options, before, used_s, status)


def report(
    seen: Seen, memory: list[int], options: argparse.Namespace, load: float, used_s: float, status: int
) -> int:
    """Print what was seen; 1 if a bar was missed."""
    first = np.array(seen.first_s or [np.inf])
    p50, p95, p99 = np.quantile(first, [0.5, 0.95, 0.99])
    print(f"{options.clients} clients, {options.seconds:g} s, {os.cpu_count()} cores, load before {load:.1f}")
    print(f"{len(first)} questions; the server used {used_s:.0f} s of processor time")
    print(f"first answer: p50 {p50:.3f} s, p95 {p95:.3f} s (bar {FIRST_BAR_S:g} s), p99 {p99:.3f} s")
    if seen.last_s:
        print(f"final answer of {len(seen.last_s)} that rested: p50 {np.median(seen.last_s):.2f} s")
    shown = ", ".join(f"{bytes_used / 1e6:.0f}" for bytes_used in memory)
    print(f"resident memory, MB: {shown} (pages made, after {WARM_S:g} s, end)")
    print(f"errors: {len(seen.errors)}{''.join(f'{chr(10)}  {error[:200]}' for error in seen.errors[:5])}")
    print(f"status after SIGINT: {status}")
    flat = memory[-1] <= GROWTH_BAR * memory[1]
    return 0 if p95 < FIRST_BAR_S and flat and not seen.errors and status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
