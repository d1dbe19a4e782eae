"""Numbers of system calls that are written down here, against the kernel's own headers (linux-libc-dev)."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from tierwise.host.page_cache import CACHESTAT
from tierwise.lab.engines import thread_waits
from tierwise.lab.engines.thread_waits import NUMBERS

HEADERS = {
    "x86_64": ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
    "aarch64": ["/usr/include/asm-generic/unistd.h", "/usr/aarch64-linux-gnu/include/asm-generic/unistd.h"],
}
# `__NR3264_fcntl` is a name for both widths; `__NR_fcntl` then stands for it.
LINE = re.compile(r"^#define __NR(?:3264)?_(\w+) (\d+)$", re.MULTILINE)


def kernel_numbers(processor: str) -> dict[str, int]:
    paths = [path for path in map(Path, HEADERS[processor]) if path.exists()]
    if not paths:
        pytest.skip(f"no kernel header tells the numbers of {processor}: install linux-libc-dev")
    return {name: int(number) for name, number in LINE.findall(paths[0].read_text("utf-8"))}


@pytest.mark.parametrize("processor", sorted(HEADERS))
def test_numbers_are_the_kernels(processor: str) -> None:
    kernel = kernel_numbers(processor)
    ours = {name: number for calls in NUMBERS[processor].values() for name, number in calls.items()}
    assert ours == {name: kernel.get(name) for name in ours}


@pytest.mark.parametrize("processor", sorted(HEADERS))
def test_no_call_is_left_out_that_the_processor_has(processor: str) -> None:
    kernel = kernel_numbers(processor)
    for call, x86_64 in NUMBERS["x86_64"].items():
        assert list(NUMBERS[processor][call]) == [name for name in x86_64 if name in kernel]


@pytest.mark.parametrize("processor", sorted(HEADERS))
def test_cachestat_has_one_number(processor: str) -> None:
    # The headers of Linux 6.5 are the first that know it.
    assert kernel_numbers(processor).get("cachestat", CACHESTAT) == CACHESTAT


@pytest.mark.skipif(platform.machine() not in NUMBERS, reason="the processor has no table")
def test_this_processor_has_the_table_of_its_name() -> None:
    for call, numbers in NUMBERS[platform.machine()].items():
        assert {thread_waits.CALLS[number] for number in numbers.values()} == {call}
