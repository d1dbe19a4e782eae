"""Draw docs/ssd-cliff.svg from docs/ssd-cliff.csv, which the example ssd_cliff of crates/device printed."""

from pathlib import Path

import altair as alt

DOCS = Path(__file__).parents[1] / "docs"


def chart() -> alt.VConcatChart:
    """Throughput above, 99th percentile of latency below, over written volume; a colour a device."""
    data = alt.InlineData((DOCS / "ssd-cliff.csv").read_text(), format=alt.CsvDataFormat(type="csv"))
    written = alt.X("written_gb:Q", title="written, GB")
    base = alt.Chart(data).mark_line(strokeWidth=1.5).properties(width=560, height=170)
    colour = alt.Color("device:N", title=None, legend=alt.Legend(orient="top"))
    rate = base.encode(written, alt.Y("mb_per_s:Q", title="MB/s").scale(type="log"), colour)
    p99 = base.encode(written, alt.Y("p99_us:Q", title="99th percentile, µs").scale(type="log"), colour)
    return alt.vconcat(rate, p99)


if __name__ == "__main__":
    chart().save(DOCS / "ssd-cliff.svg")
