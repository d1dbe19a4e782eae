"""Plants a defect: one file in a hundred is never flushed. Do power cuts find it?

A library that an engine's process loads first answers ``fsync`` and ``fdatasync`` of the chosen files with
success. A file is chosen by its name, so that it stays chosen. It needs a C compiler.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from tierwise.host import programs

EVERY = 100
ENGINE = "rocksdb"
"""It makes many files: a log and a table file for each memtable."""
SETTINGS = {"write_buffer_size": "262144", "level0_file_num_compaction_trigger": "16"}
"""A memtable of a few commits, and table files that live for a while."""
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int is_chosen(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (!strstr(path, "/" ENGINE "-")) return 0;
    unsigned hash = SALT;
    for (const char *at = strrchr(path, '/'); *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619u;
    return (hash >> 8) % EVERY == 0;
}

static int pass(const char *call, int fd) {
    return is_chosen(fd) ? 0 : ((int (*)(int))dlsym(RTLD_NEXT, call))(fd);
}

int fsync(int fd) { return pass("fsync", fd); }
int fdatasync(int fd) { return pass("fdatasync", fd); }
"""


@contextmanager
def planted(folder: Path, salt: int) -> Iterator[None]:
    """Plant the defect in every engine's worker that is started meanwhile.

    Args:
        folder: a directory for the library.
        salt: chooses the files.
    """
    library = folder / "skipped_fsync.so"
    define = [f"-DSALT={salt}u", f"-DEVERY={EVERY}", f'-DENGINE="{ENGINE}"']
    compiler = ["cc", "-shared", "-fPIC", "-O2", *define, "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(compiler, input=SOURCE, text=True, check=True)
    clean = programs.clean_environment
    preloaded = {"LD_PRELOAD": str(library)}
    with patch.object(programs, "clean_environment", lambda *given: {**clean(*given), **preloaded}):
        yield
