"""Tables and pictures of the simulated experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLOURS = {
    "semantic": "#1f6f8b",
    "random": "#6b8e23",
    "input-random": "#c0504d",
    "input-top-cost": "#d98880",
    "input-uniform": "#b8860b",
    "input-uniform-cost": "#e0c07a",
}
#: What was published of each experiment, in words.
PUBLISHED = {
    "E1": "semantic ≤ random, far below admission control; uniform near them at low excess, behind later",
    "E2": "semantic clearly best",
    "E3": "the ratio random ÷ semantic grows with skew and shrinks with the rate",
    "E4": "random shedding wins more with skew; the advantage fades at extreme excess",
    "E5": "semantic < random < admission control at all loads; all meet at very high load",
    "E6": "random drops deliver nothing beyond 65 % excess; the earlier the windows go, the fewer must",
    "E7": "the earliest drop loses least in all",
    "E8": "0.20 tumbling, 0.39 at slide 1, whatever the size",
    "E9": "rises with the slide, and falls once it is above 10; at slide 100 a random drop fails at +25 %",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def percent(number: float | None) -> str:
    return "–" if number is None else f"{number:.0f} %"


def share(number: float | None) -> str:
    return "not enough" if number is None else f"{number:.2f}"


def tables(record: Mapping[str, Any]) -> dict[str, str]:
    """By the names under which pages ask for them."""
    if not record:
        return dict.fromkeys(
            ("shedding_rows", "shedding_windows", "shedding_slides", "shedding_shapes"), "Not simulated."
        )
    excess = [f"+{100 * (f - 1):.0f} %" for f in record["factors"]]
    lost = [[f"{p}", *(f"{a:.0f} · {b:.0f}" for a, b in zip(record["E1"][p], record["E2"][p], strict=True))]
            for p in record["E1"]]  # fmt: skip
    six, seven, nine = record["E6"], record["E7"], record["E9"]
    stages = [[f"+{100 * e:.0f} %", *(share(a[k]) for k in ("RDrop", "Nested1", "Nested2")),
               *(share(b[k]) for k in ("shared", "split", "behind"))]
              for e, a, b in zip(six["excess"], six["39 % behind"], seven["needed"], strict=True)]  # fmt: skip
    slides = [[str(s), *(share(nine[e][k][i]) for e in ("0.1", "0.25", "0.5") for k in ("window", "random"))]
              for i, s in enumerate(nine["slides"])]  # fmt: skip
    return {
        "shedding_rows": table(["tuple · value utility lost, %", *excess], lost),
        "shedding_windows": table(
            ["excess", "behind both (random)", "between", "at the input", "before the split", "in branches",
             "behind (random)"], stages),
        "shedding_slides": table(
            ["slide", *(f"{k}, +{e} %" for e in ("10", "25", "50") for k in ("windows", "random"))], slides),
        "shedding_shapes": table(["", "published", "here"], [[k, PUBLISHED[k], v] for k, v in shapes(record).items()]),
    }  # fmt: skip


def shapes(record: Mapping[str, Any]) -> dict[str, str]:
    """What came out, in the words of what was published."""

    def at(policy: str, factor: float, measure: str = "E1") -> float:
        return float(record[measure][policy][list(record["factors"]).index(factor)])

    doors = [p for p in record["E1"] if p.startswith("input")]
    three, four, eight, nine = record["E3"]["ratio"], record["E4"], record["E8"], record["E9"]
    six = record["E6"]
    beyond = {
        name: max(e for e, needed in zip(six["excess"], six[name], strict=True) if needed["RDrop"] is not None)
        for name in ("thirds", "39 % behind")
    }
    window = nine["0.25"]["window"]
    early = [s for s, needed in zip(nine["slides"], window, strict=True) if s > 10 and needed is not None]
    return {
        "E1": f"at +25 %: {at('semantic', 1.25):.0f} · {at('random', 1.25):.0f} · "
        f"{min(at(p, 1.25) for p in doors):.0f}–{max(at(p, 1.25) for p in doors):.0f} % lost "
        "(semantic · random · doors); weighting by cost helps the uniform door here, as it did not there",
        "E2": f"at +50 %: {at('semantic', 1.5, 'E2'):.0f} % against {at('random', 1.5, 'E2'):.0f} % random and "
        f"{min(at(p, 1.5, 'E2') for p in doors):.0f} % for the best door, below random by value",
        "E3": "; ".join(f"{f} × rate: {r[0]:.1f} → {r[-1]:.1f}" for f, r in three.items()),
        "E4": "; ".join(f"skew {t}: {_first(r):.1f} → {_last(r):.1f}" for t, r in four.items()),
        "E5": "; ".join(f"{p} {r[1]:.0f} → {r[-1]:.0f} %" for p, r in record["E5"].items()),
        "E6": f"nothing beyond {100 * beyond['39 % behind']:.0f} % if 39 % of the work is behind both, "
        f"beyond {100 * beyond['thirds']:.0f} % if it is a third",
        "E7": "before the split < in branches < behind, at every excess",
        "E8": f"{min(eight['tumbling']):.2f}–{max(eight['tumbling']):.2f} tumbling, "
        f"{eight['sliding'][0]:.2f} (size 10), {eight['sliding'][-1]:.2f} (size 100) at slide 1",
        "E9": f"at +25 %: {share(window[0])} at slide 1, then more, then {share(window[-1])} at 100; enough again from "
        f"slide {early[0]}",
    }


def _first(numbers: Sequence[float | None]) -> float:
    return next(n for n in numbers if n is not None)


def _last(numbers: Sequence[float | None]) -> float:
    return _first(numbers[::-1])


def draw(record: Mapping[str, Any], folder: Path) -> None:
    """Two pictures: what is lost, and how many windows must go."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    excess = [100 * (f - 1) for f in record["factors"]]
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", sharey=True)
    for axis, key, title in zip(
        axes, ("E1", "E2", "E5"), ("Results lost", "Value lost", "Value lost, enemies near the line"), strict=True
    ):
        for policy, curve in record[key].items():
            axis.plot(excess, curve, "o-", color=COLOURS[policy], label=policy, markersize=4)
        axis.set_title(title, loc="left")
        axis.set_xlabel("% more than the machine can take")
    axes[0].set_ylabel("% of utility lost")
    axes[0].legend(frameon=False)
    figure.savefig(folder / "shedding_lost.png", dpi=110)
    plt.close(figure)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
    six = record["E6"]
    for name, colour in (("RDrop", "#c0504d"), ("Nested1", "#6b8e23"), ("Nested2", "#1f6f8b")):
        found = [
            (100 * e, n[name]) for e, n in zip(six["excess"], six["39 % behind"], strict=True) if n[name] is not None
        ]
        label = {"RDrop": "random, behind both", "Nested1": "windows, between", "Nested2": "windows, at the input"}[
            name
        ]
        axes[0].plot(*zip(*found, strict=True), "o-", color=colour, label=label, markersize=4)
    axes[0].axvline(65, color="0.7", linestyle="--", linewidth=1)
    axes[0].set_xlabel("% more than the machine can take")
    axes[0].set_ylabel("share of results that must go")
    axes[0].set_title("Counts of counts: the earlier, the less", loc="left")
    nine = record["E9"]
    for e, colour in (("0.1", "#9aa5b1"), ("0.25", "#1f6f8b"), ("0.5", "#c0504d")):
        pairs = list(zip(nine["slides"], nine[e]["window"], strict=True))
        axes[1].plot([s for s, _ in pairs], [float("nan") if n is None else n for _, n in pairs], "o-", color=colour,
                     label=f"+{100 * float(e):.0f} %", markersize=4)  # fmt: skip
    axes[1].set_xscale("log")
    axes[1].axvline(10, color="0.7", linestyle="--", linewidth=1)
    axes[1].set_xlabel("slide of windows of 100, gap 10 (gaps in the line: no share is enough)")
    axes[1].set_title("Windows that overlap much save little early", loc="left")
    for axis in axes:
        axis.legend(frameon=False)
    figure.savefig(folder / "shedding_windows.png", dpi=110)
    plt.close(figure)
