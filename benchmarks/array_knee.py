"""Draw docs/array-knee.svg from docs/array-knee.csv, which the example array_knee of crates/device prints."""

from pathlib import Path

import altair as alt

DOCS = Path(__file__).parents[1] / "docs"


def chart() -> alt.HConcatChart:
    """Writes completed a second and their mean time, over time; a colour a rate of arrival."""
    data = alt.InlineData((DOCS / "array-knee.csv").read_text(), format=alt.CsvDataFormat(type="csv"))
    colour = alt.Color("offered_per_s:N", title="writes offered a second")
    base = alt.Chart(data).mark_line(strokeWidth=1.5).properties(width=300, height=180)
    time = alt.X("seconds:Q", title="time, s")
    done = base.encode(time, alt.Y("done_per_s:Q", title="writes completed a second"), colour)
    mean = base.encode(time, alt.Y("mean_ms:Q", title="mean time, ms").scale(type="log"), colour)
    return alt.hconcat(done, mean)


if __name__ == "__main__":
    chart().save(DOCS / "array-knee.svg")
