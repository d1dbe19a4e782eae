"""A guest's root file system: packages of a Debian suite, tierwise and the checks, as one image of a disk."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = HERE.parent
BUILT = PROJECT / "target" / "compat"
IMAGE_SIZE = "12G"
"""Size of the sparse file; the guest's writes go to a temporary overlay."""

START = """
[Unit]
Description=Checks of tierwise
After=multi-user.target

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /opt/compat/guest.py {checks}
ExecStopPost=/bin/systemctl --no-block poweroff

[Install]
WantedBy=multi-user.target
"""
PROGRAM = "#!/usr/bin/python3\nfrom tierwise.__main__ import main\nmain()\n"


@dataclass(frozen=True)
class Guest:
    """One guest of ``guests.toml``."""

    name: str
    suite: str
    kernel: str
    packages: list[str]
    kernel_files: tuple[Path, ...] = ()
    """Packages of another kernel, in place of that of the suite."""

    @property
    def folder(self) -> Path:
        """Directory of all its generated files."""
        return BUILT / "-".join([self.name, *(file.stem for file in self.kernel_files[:1])])


def guests() -> dict[str, Guest]:
    """Every guest by its name."""
    text = tomllib.loads((HERE / "guests.toml").read_text("utf-8"))
    return {
        name: Guest(name, guest["suite"], guest["kernel"], [*text["packages"], *guest.get("packages", [])])
        for name, guest in text["guests"].items()
    }


def make_image(guest: Guest, wheel: Path, checks: list[str]) -> Path:
    """Make the image of a guest's disk; its packages are installed once and kept.

    Raises:
        subprocess.CalledProcessError: if a tool fails; its messages are on standard error.
    """
    root = _packages(guest)
    _install_tierwise(root, wheel)
    compat = root / "opt" / "compat"
    shutil.rmtree(compat, ignore_errors=True)
    compat.mkdir(parents=True)
    shutil.copy(HERE / "guest.py", compat)
    shutil.copytree(HERE / "checks", compat / "checks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PROJECT / "examples", compat / "examples")
    unit = root / "etc/systemd/system/tierwise-compat.service"
    unit.write_text(START.format(checks=" ".join(checks)), "utf-8")
    wanted = root / "etc/systemd/system/multi-user.target.wants" / unit.name
    wanted.unlink(missing_ok=True)
    wanted.symlink_to(f"/etc/systemd/system/{unit.name}")
    image = guest.folder / "disk.img"
    image.unlink(missing_ok=True)
    _run("truncate", "--size", IMAGE_SIZE, image)
    _run("mke2fs", "-q", "-t", "ext4", "-d", root, image)
    return image


def _packages(guest: Guest) -> Path:
    """Root directory with only the guest's packages, from the mirror of this machine's apt."""
    root = guest.folder / "root"
    mirror = debian_mirror()
    wanted = [*(["linux-base"] if guest.kernel_files else [guest.kernel]), *guest.packages]
    files = [hashlib.sha256(file.read_bytes()).hexdigest() for file in guest.kernel_files]
    key = hashlib.sha256(repr((guest.suite, wanted, files)).encode()).hexdigest()
    made = guest.folder / "packages"
    if made.exists() and made.read_text("ascii") == key:
        return root
    shutil.rmtree(guest.folder, ignore_errors=True)
    guest.folder.mkdir(parents=True)
    suites = [guest.suite, *(package.partition("/")[2] for package in wanted if "/" in package)]
    sources = [f"deb {mirror} {suite} main" for suite in suites]
    # The last packages need an account for the ordinary user; a fixed machine has a host name.
    finish = [
        '--customize-hook=chroot "$1" useradd --create-home dba',
        '--customize-hook=echo guest >"$1/etc/hostname"',
    ]
    if guest.kernel_files:
        names = " ".join(shlex.quote(str(file)) for file in guest.kernel_files)
        finish += [
            f"--customize-hook=copy-in {names} /root",
            """--customize-hook=chroot "$1" sh -c 'dpkg --install /root/*.deb && rm /root/*.deb'""",
        ]
    include = f"--include={','.join(wanted)}"
    _run("mmdebstrap", "--quiet", "--variant=apt", include, *finish, guest.suite, root, *sources)
    made.write_text(key, "ascii")
    return root


def debian_mirror() -> str:
    """Address of Debian's packages, as this machine's apt has it.

    Raises:
        SystemExit: if its apt does not use Debian's packages.
    """
    command = [
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN) $(RELEASE) $(REPO_URI)",
        "Created-By: Packages",
    ]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        origin, release, address = line.split(" ", 2)
        if origin == "Debian" and not release.endswith("-security"):
            return address
    raise SystemExit("compat: apt of this machine has no source of Debian's packages: add one")


def _install_tierwise(root: Path, wheel: Path) -> None:
    """Install the wheel and what it needs, as packages for every user of the guest's own Python."""
    library = next((root / "usr/lib").glob("python3.[0-9]*"))
    place = root / "usr/local/lib" / library.name / "dist-packages"
    shutil.rmtree(place, ignore_errors=True)
    _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--target", place, "--only-binary=:all:"),
        *("--python-version", library.name.removeprefix("python"), f"{wheel}[all]"),
    )
    program = root / "usr/local/bin/tierwise"
    program.write_text(PROGRAM, "ascii")
    program.chmod(0o755)


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)
