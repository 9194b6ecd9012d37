"""The command `penstock qos`: the graphs of what answers are worth, on the terminal or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.engine.terminal import say
from penstock.errors import UserError
from penstock.portal.options import File, Json, Quiet, writable
from penstock.portal.outcome import queries_of
from penstock.portal.script import load
from penstock.portal.watch import say_json
from penstock.shedding.graph import Graph, plain
from penstock.shedding.qos import QoS

WIDTH, HEIGHT = 48, 8


def qos(
    file: File,
    png: Annotated[str | None, typer.Option(metavar="PATH", help="Draw them into this picture.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw what the results of a query are worth, by how many of them come, how late, and by their values."""
    script = load(file)
    parts = {n.id: n.operator for n in queries_of(script, as_json=True, quiet=True).plan.sinks}
    found = {name: worth for name, sink in parts.items() if isinstance(worth := getattr(sink, "qos", None), QoS)}
    if not found:
        raise UserError(
            f"{script.title} says nothing of what its results are worth",
            hint="qos = ps.QoS(loss=[(100, 1), (50, .7), (0, 0)]), or query.to(sink, qos=…)",
        )
    if png is not None:
        draw({name: graphs(worth) for name, worth in found.items()}, writable(png, "--png"))
    if as_json:
        say_json({name: repr(worth) for name, worth in found.items()})
    elif not quiet:
        for name, worth in found.items():
            say(f"{name}: ps.{worth!r}")
            for title, graph in graphs(worth).items():
                say(f"  {title}", *(f"  {line}" for line in plotted(graph)))


def graphs(worth: QoS) -> dict[str, Graph]:
    """The graphs of a quality of service, by title."""
    found = {"utility by percent delivered": worth.loss}
    if worth.latency is not None:
        found["utility by seconds until it is out"] = worth.latency
    return found


def plotted(graph: Graph, width: int = WIDTH, height: int = HEIGHT) -> list[str]:
    """A graph in characters.

    >>> for line in plotted(Graph(((100, 1), (50, 0.7), (0, 0))), 11, 3):
    ...     print(line)
    1.0 ┤•••••
        │     ••••
    0.0 ┤         ••
         100       0
    """
    first, last = graph.points[0][0], graph.points[-1][0]
    cells = [[" "] * width for _ in range(height)]
    for column in range(width):
        utility = graph.at(first + (last - first) * column / (width - 1))
        cells[round((1 - utility) * (height - 1))][column] = "•"
    lines = [
        f"{'1.0 ┤' if n == 0 else '0.0 ┤' if n == height - 1 else '    │'}{''.join(row).rstrip()}"
        for n, row in enumerate(cells)
    ]
    ends = plain(first), plain(last)
    return [*lines, f"     {ends[0]}{ends[1]:>{width - len(ends[0])}}"]


def draw(found: dict[str, dict[str, Graph]], path: Path) -> None:
    """All graphs in one picture."""
    try:
        import matplotlib
    except ImportError:
        raise UserError("--png needs the package matplotlib", hint="pip install 'penstock[demo]'") from None

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    shown = [(f"{name}: {title}", graph) for name, each in found.items() for title, graph in each.items()]
    figure, axes = plt.subplots(len(shown), 1, figsize=(7, 2.6 * len(shown)), squeeze=False, layout="constrained")
    for axis, (title, graph) in zip(axes[:, 0], shown, strict=True):
        xs, utilities = zip(*graph.points, strict=True)
        axis.plot(xs, utilities, marker="o", color="#0b6e99")
        axis.set_xlim(xs[0], xs[-1])
        axis.set_ylim(0, 1.05)
        axis.set_title(title, loc="left", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    known = figure.canvas.get_supported_filetypes()
    if (form := path.suffix.removeprefix(".").lower()) not in known:
        raise UserError(
            f"--png '{path}': nothing is drawn as '{path.suffix}'", hint=f"one of {', '.join(sorted(known))}"
        )
    figure.savefig(path, dpi=130, format=form)
    plt.close(figure)
