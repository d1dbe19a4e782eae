"""Write the chart library of the advice page into the package, from the vl-convert that is installed.

``python tools/vega_bundle.py`` after each change of vl-convert in constraints.txt. The package carries the
script, because vl-convert takes 88 MB and seconds to make it.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import vl_convert

FILE = Path(__file__).parents[1] / "python" / "tierwise" / "data" / "templates" / "advice" / "vega.js.gz"
_LICENCE = "/* Vega, Vega-Lite, Vega-Embed: University of Washington Interactive Data Lab, BSD 3-clause */\n"


def bundle() -> str:
    """The script, which sets ``window.vegaEmbed``."""
    made = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"{_LICENCE}(() => {{\n{made}\n}})();"


if __name__ == "__main__":
    FILE.write_bytes(gzip.compress(bundle().encode(), mtime=0))
