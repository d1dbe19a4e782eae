"""Draw the charts of docs/evidence/models.md: models against drives, closed forms and documented limits.

The cliff and the knee are drawn from docs/evidence/*.csv, which the examples of crates/device print.
"""

import csv
import gzip
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import altair as alt

from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.device_models.profiles import DeviceProfile, profile_from_drive_files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "evidence"
CHARTS = DOCS / "models"
GOLDEN = ROOT.parent / "shared" / "golden" / "hdd"
POINTS = 100
"""Points of a distribution's curve."""
SPARE_SHARES = (0.07, 0.1, 0.15, 0.2, 0.28, 0.4, 0.5)
MINUTE_S = 60

Row = dict[str, float | str]


def main() -> None:
    """Draw all charts; that of the drives only if their measurements are available."""
    CHARTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        times = Path(scratch) / "times.csv"
        if GOLDEN.is_dir():
            drives = [
                row for drive in sorted(GOLDEN.iterdir()) if drive.is_dir() for row in service(drive, times)
            ]
            service_chart(drives).save(CHARTS / "hdd-service-times.svg")
        credits = [row for name in ("volume-aws-st1", "volume-aws-sc1") for row in throughput(name, times)]
    throughput_chart(credits).save(CHARTS / "volume-credits.svg")
    amplification_chart(list(amplification())).save(CHARTS / "ssd-write-amplification.svg")
    cliff_chart(printed("ssd-cliff")).save(DOCS / "ssd-cliff.svg")
    knee_chart(printed("array-knee")).save(DOCS / "array-knee.svg")


def service(drive: Path, times: Path) -> Iterator[Row]:
    """Quantiles of the service times of a measured drive, and of the model made from its files."""
    text = profile_from_drive_files(drive / "geometry.json", drive / "seek.csv").text
    requests = drive / "requests.csv.gz"
    profile = profiles.parse_profile(text, drive / "profile.toml")
    simulate_job(profile, SimulationJob(requests=requests, times=times))
    with gzip.open(requests, "rt") as packed:
        yield from quantiles(drive.name, "measured", packed)
    with times.open() as plain:
        yield from quantiles(drive.name, "model", plain)


def quantiles(drive: str, source: str, requests: Iterator[str]) -> Iterator[Row]:
    """Of one list of requests with their times."""
    times_ms = sorted(float(row["service_us"]) / 1e3 for row in csv.DictReader(requests))
    for point in range(POINTS + 1):
        share = point / POINTS
        yield {
            "drive": drive,
            "source": source,
            "share": share,
            "ms": times_ms[round(share * (len(times_ms) - 1))],
        }


def service_chart(rows: list[Row]) -> alt.FacetChart:
    """Cumulative distributions, one panel per drive."""
    line: alt.Chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_line(strokeWidth=1.5)
        .encode(
            alt.X("ms:Q", title="service time, ms"),
            alt.Y("share:Q", title="share of requests"),
            alt.Color("source:N", title=None),
            alt.StrokeDash("source:N", title=None),
            alt.Order("share:Q"),
        )
        .properties(width=210, height=130)
    )
    panels: alt.FacetChart = line.facet(alt.Facet("drive:N", title=None), columns=3)
    independent: alt.FacetChart = panels.resolve_scale(x="independent")
    return independent


def throughput(name: str, times: Path) -> Iterator[Row]:
    """Throughput by minute of reads from a volume that starts with full credits."""
    job = SimulationJob(preset="seqread-16m", virtual_s=7 * 3600, times=times)
    simulate_job(profiles.load_profile(name), job)
    minutes: dict[int, float] = {}
    with times.open() as file:
        for row in csv.DictReader(file):
            minute = int(float(row["arrival_us"]) / 1e6 / MINUTE_S)
            minutes[minute] = minutes.get(minute, 0) + int(row["sectors"]) * 512
    for minute, read_bytes in minutes.items():
        yield {"volume": name, "hours": minute / 60, "mb_per_s": read_bytes / MINUTE_S / 1e6}


def throughput_chart(rows: list[Row]) -> alt.Chart:
    """Throughput over time, one colour per volume."""
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_line(strokeWidth=1.5)
        .encode(
            alt.X("hours:Q", title="time, hours"),
            alt.Y("mb_per_s:Q", title="MB/s"),
            alt.Color("volume:N", title=None),
        )
        .properties(width=560, height=170)
    )
    return chart


def amplification() -> Iterator[Row]:
    """Write amplification of uniform random writes in the steady state, replayed and by the closed form; each
    writes one unit of the device's map."""
    base = profiles.load_profile("ssd-sata-slc-2008")
    for share in SPARE_SHARES:
        job = SimulationJob(preset="randwrite-16k-qd32", count=2_000_000, precondition="random")
        write_amplification = simulate_job(with_spare(base, share), job).write_amplification
        yield {"spare": share, "source": "model", "amplification": write_amplification or math.nan}
    for percent in range(6, 52):
        share = percent / 100
        yield {"spare": share, "source": "closed form", "amplification": closed_form(share)}


def with_spare(base: DeviceProfile, share: float) -> DeviceProfile:
    """The device with another share of spare space."""
    lines = base.text.splitlines()
    changed = [f"spare_share = {share}" if line.startswith("spare_share =") else line for line in lines]
    return profiles.parse_profile("\n".join(changed), base.file)


def closed_form(spare_share: float) -> float:
    """(1 + ρ) / (1 + ρ + W₀(−(1 + ρ) e^−(1 + ρ))), with Lambert's W found by Newton's method."""
    total = 1 + spare_share
    argument, w = -total * math.exp(-total), -0.5
    for _ in range(100):
        w -= (w * math.exp(w) - argument) / (math.exp(w) * (w + 1))
    return total / (total + w)


def amplification_chart(rows: list[Row]) -> alt.LayerChart:
    """The closed form as a line, the model as points."""
    base = alt.Chart(alt.InlineData(rows)).encode(
        alt.X("spare:Q", title="spare space, share of the capacity"),
        alt.Y("amplification:Q", title="write amplification"),
        alt.Color("source:N", title=None),
    )
    line = base.mark_line(strokeWidth=1.5).transform_filter("datum.source == 'closed form'")
    points = base.mark_point(filled=True, size=50).transform_filter("datum.source != 'closed form'")
    both: alt.LayerChart = (line + points).properties(width=560, height=200)
    return both


def printed(example: str) -> alt.InlineData:
    """Printed output of an example."""
    return alt.InlineData((DOCS / f"{example}.csv").read_text(), format=alt.CsvDataFormat(type="csv"))


def cliff_chart(data: alt.InlineData) -> alt.VConcatChart:
    """Throughput above, 99th percentile of latency below, over written volume; one colour per device."""
    written = alt.X("written_gb:Q", title="written, GB")
    base = alt.Chart(data).mark_line(strokeWidth=1.5).properties(width=560, height=170)
    colour = alt.Color("device:N", title=None, legend=alt.Legend(orient="top"))
    rate = base.encode(written, alt.Y("mb_per_s:Q", title="MB/s").scale(type="log"), colour)
    p99 = base.encode(written, alt.Y("p99_us:Q", title="99th percentile, µs").scale(type="log"), colour)
    return alt.vconcat(rate, p99)


def knee_chart(data: alt.InlineData) -> alt.HConcatChart:
    """Writes completed a second and their mean time, over time; one colour per arrival rate."""
    colour = alt.Color("offered_per_s:N", title="writes offered a second")
    base = alt.Chart(data).mark_line(strokeWidth=1.5).properties(width=300, height=180)
    time = alt.X("seconds:Q", title="time, s")
    done = base.encode(time, alt.Y("done_per_s:Q", title="writes completed a second"), colour)
    mean = base.encode(time, alt.Y("mean_ms:Q", title="mean time, ms").scale(type="log"), colour)
    return alt.hconcat(done, mean)


if __name__ == "__main__":
    main()
