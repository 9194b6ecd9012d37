"""The pictures of the pages, made of `results.json` as the tables are."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.contest import DUCKDB, FLINK, NATIVE, PATHWAY, PENSTOCK, POLARS

COLOURS = {
    PENSTOCK.name: "#1f6f8b",
    NATIVE: "#c0504d",
    FLINK.name: "#b8860b",
    PATHWAY.name: "#6b8e23",
    DUCKDB.name: "#9aa5b1",
    POLARS.name: "#c9d0d8",
}


def draw(record: dict[str, Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    from benchmarks.tables import RACES, times

    cases = [record["cases"][s] for s in RACES if s != "tiny" and record["cases"].get(s, {}).get("complete")]
    if cases:
        figure, axis = plt.subplots(figsize=(11, 1.2 * len(cases) + 1.5), layout="constrained")
        height = 0.8 / len(COLOURS)
        for k, (name, colour) in enumerate(COLOURS.items()):
            found = [(i, times(case, name)) for i, case in enumerate(cases)]
            places = [i + (k - (len(COLOURS) - 1) / 2) * height for i, t in found if t]
            rates = [cases[i]["rows"] / statistics.median(t) / 1e6 for i, t in found if t]
            axis.barh(places, rates, height, label=name, color=colour)
        axis.set_yticks(range(len(cases)), [case["name"] for case in cases])
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_xlabel("million rows per second (logarithmic), median; DuckDB and Polars in batch")
        axis.set_title("Whole runs, start of the query included", loc="left")
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        figure.savefig(folder / "engine.png", dpi=110)
        plt.close(figure)
    if (told := record["cases"].get("stalls")) is not None:
        figure, axis = plt.subplots(figsize=(9, 3.5), layout="constrained")
        axis.plot([1e3 * t for t in told["epochs"]], ".", markersize=3, color=COLOURS[PENSTOCK.name])
        axis.axhline(3e3 * statistics.median(told["epochs"]), color="0.7", linestyle="--", linewidth=1)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("epoch")
        axis.set_ylabel("ms; dashed: 3 × the median")
        axis.set_title(f"{told['held'] / 1e6:g} M groups held, {told['delta']:,} rows in every epoch", loc="left")
        figure.savefig(folder / "stalls.png", dpi=110)
        plt.close(figure)
