"""A battle watched from the air, and more of it than can be processed: what goes, and what is it worth?

    python examples/battalion.py             three loads, each met in three ways, under a minute
    penstock check examples/battalion.py     can each output be shed, and how?

Friends start at x from 0 to 350, enemies from 350 to 500, and a line lies at 350. Then the enemies attack. Four queries
read one union of all positions: an archive of everything, enemy tanks, enemy aircraft, and enemies that have crossed
the line. Those are what matters, and the queries say so by position. The battle is made up; the queries are those of a
published case study of load shedding.

The same overload is met in three ways:

- semantic: Penstock gives up what is worth least for the work that it makes, by position;
- random: as much at the same outputs, but a number drawn for each row says which rows;
- admission control, what people do today: at the input, a share of all rows is not let in.

Leaves the files in battalion-out/, and the picture battalion-out/battalion.png.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

import penstock as ps

FOLDER = Path("battalion-out")
SCHEMA = "ts bigint, unit int, kind string, enemy boolean, x int, draw int"
LINE, WIDTH = 350, 500
#: Numbers are drawn below this.
DRAWS = 1000
SEMANTIC, RANDOM, ADMISSION = "semantic", "random", "admission control"
WAYS = (SEMANTIC, RANDOM, ADMISSION)
LOADS = (1.25, 2.0, 4.0)
#: What it takes to look at the picture of a unit: the work that there is too much of.
IMAGE = " + ".join(f"sin(x * {n}.5 + ts)" for n in range(1, 25))

Pieces = Sequence[tuple[tuple[int, int], float]]
#: What a row is worth, by where the unit is.
WORTH: Mapping[str, Pieces] = {
    "Analysis": [((0, 199), 0.5), ((200, LINE - 1), 0.3), ((LINE, WIDTH), 0.1)],
    "Enemy Tanks": [((0, LINE - 1), 1), ((LINE, WIDTH), 0.2)],
    "Enemy Aircraft": [((0, LINE - 1), 1), ((LINE, WIDTH), 0.3)],
    "Across The Line": [((0, 249), 1), ((250, LINE - 1), 0.6)],
}


@dataclass(frozen=True)
class Battle:
    """So many units on each side, each seen once a tick; an epoch is as long as a wave of the attack."""

    epochs: int = 6
    ticks: int = 120
    units: int = 60

    @property
    def shed_from(self) -> int:
        """Before this nothing goes: it is not known yet how often values occur, and what work costs."""
        return 3 * self.ticks


def write(battle: Battle, folder: Path) -> None:
    """The positions as files: one of friends and one of enemies for each epoch."""
    # Enemies come from behind their lines, one after another, and turn back somewhere between the line and x = 50.
    start, depth = f"{LINE} + u % 10 * 14.9", f"{LINE - 50} * (0.4 + 0.6 * (u % 7) / 6)"
    marched = f"greatest(0, sin(2 * pi() * (t / {battle.ticks}.0 + u / {battle.units}.0)))"
    enemies = f"{start} - ({start} - {LINE} + {depth}) * {marched}"
    x = f"CASE WHEN enemy THEN {enemies} ELSE u * {LINE - 1.0} / {battle.units} END"
    positions = f"""
        SELECT t AS ts, u::INT AS unit, CASE WHEN u % 3 = 0 THEN 'aircraft' ELSE 'tank' END AS kind, enemy,
               ({x})::INT AS x, (hash(t, u, enemy) % {DRAWS})::INT AS draw
        FROM range({battle.epochs * battle.ticks}) AS t(t), range({battle.units}) AS u(u),
             (VALUES (false), (true)) AS sides(enemy)"""
    with duckdb.connect() as db:
        db.execute("SET threads = 1")
        db.execute(f"CREATE TABLE positions AS {positions}")
        for side, enemy in (("friends", "false"), ("enemies", "true")):
            (folder / side).mkdir(parents=True)
            for epoch in range(battle.epochs):
                rows = f"enemy = {enemy} AND ts // {battle.ticks} = {epoch} ORDER BY ts, unit"
                db.execute(f"COPY (FROM positions WHERE {rows}) TO '{folder}/{side}/{epoch:03}.parquet'")


def battalion(data: Path, let_in: float = 1.0) -> dict[str, ps.Stream]:
    """The four queries over one union. `let_in`: the share of rows that is let in, whatever they are worth."""

    def side(name: str) -> ps.Stream:
        positions = ps.stream(name, SCHEMA, time="ts").read_parquet(str(data / name), order="name").disorder(0)
        return positions if let_in == 1 else positions.where(f"draw < {round(DRAWS * let_in)}")

    units = side("friends").union(side("enemies"))
    found = {
        "Analysis": units,
        "Enemy Tanks": units.where("enemy AND kind = 'tank'"),
        "Enemy Aircraft": units.where("enemy AND kind = 'aircraft'"),
        "Across The Line": units.where(f"enemy AND x < {LINE}"),
    }
    return {name: rows.select("ts", "unit", "enemy", "x", "draw", image=IMAGE) for name, rows in found.items()}


def queries_of(data: Path, out: Path, let_in: float = 1.0, qos: Mapping[str, ps.QoS] | None = None) -> list[ps.Query]:
    streams = battalion(data, let_in).items()
    return [rows.to(ps.parquet(str(out / name)), qos=qos[name] if qos else None) for name, rows in streams]


def by_position() -> dict[str, ps.QoS]:
    return {name: ps.QoS(value={"x": list(pieces)}) for name, pieces in WORTH.items()}


def by_lot(seen: Mapping[str, Mapping[tuple[int, int], int]]) -> dict[str, ps.QoS]:
    """The same loss graphs, so as much goes at the same outputs; but numbers that were drawn say which rows."""
    found = {}
    for name, pieces in WORTH.items():
        low, drawn, total = 0, [], sum(seen[name].values())
        for span, worth in sorted(pieces, key=lambda piece: piece[1]):
            high = low + round(DRAWS * seen[name][span] / total)
            if high > low:
                drawn.append(((low, min(high, DRAWS) - 1), worth))
            low = high
        found[name] = ps.QoS(value={"draw": drawn})
    return found


queries = queries_of(FOLDER / "input", FOLDER / "results", qos=by_position())
settings = {"checkpoint": str(FOLDER / "checkpoint")}


@dataclass(frozen=True)
class Outcome:
    """What came of a run, from when it was shed on.

    `lost`: the share of value lost, the mean of the four outputs. `done`: the share of the results that were computed.
    `crossed`: the share of enemies across the line that the commander heard of.
    """

    lost: float
    done: float
    crossed: float


def run(queries: Sequence[ps.Query], out: Path, battle: Battle, spark: Any, shed: ps.Shedding | None = None) -> None:
    # As many rows of each side as there are in an epoch.
    options = {"checkpoint": str(out / "checkpoint"), "max_rows": battle.ticks * battle.units, "spark": spark}
    ps.start(queries, trigger="available_now", shedding=shed, **options).wait()


def seen(out: Path) -> dict[str, dict[tuple[int, int], int]]:
    """By output, how many results there were in each piece of its value graph."""
    with duckdb.connect() as db:
        return {
            name: {
                (low, high): db.sql(f"SELECT count(*) FROM '{out}/{name}/*.parquet' WHERE x BETWEEN {low} AND {high}")
                .fetchall()[0][0]
                for (low, high), _ in pieces
            }
            for name, pieces in WORTH.items()
        }  # fmt: skip


def compare(out: Path, everything: Path, battle: Battle) -> Outcome:
    """What a run delivered beside what there was; stops if a result is another one, or comes twice."""
    lost, rows, of = {}, 0, 0
    with duckdb.connect() as db:
        for name, pieces in WORTH.items():
            found, whole = (f"(FROM '{folder}/{name}/*.parquet')" for folder in (out, everything))
            if wrong := db.sql(f"SELECT count(*) FROM ({found} EXCEPT ALL {whole})").fetchall()[0][0]:
                raise SystemExit(f"{name}: {wrong} results that are not right")
            worth = " ".join(f"WHEN x BETWEEN {low} AND {high} THEN {u}" for (low, high), u in pieces)
            sums = f"SELECT coalesce(sum(CASE {worth} END), 0), count(*) FROM %s WHERE ts >= {battle.shed_from}"
            (value, n), (full, count) = (db.sql(sums % which).fetchall()[0] for which in (found, whole))
            lost[name], rows, of = 1 - float(value) / float(full), rows + n, of + count
            if name == "Across The Line":
                crossed = n / count
    return Outcome(sum(lost.values()) / len(lost), rows / of, crossed)


def print_comparison(
    battle: Battle, folder: Path, out: Console, spark: Any = None, loads: Sequence[float] = LOADS
) -> dict[str, list[Outcome]]:
    """Every load met in every way."""
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "input"
    write(battle, data)
    session = spark if spark is not None else ps.spark_session("local[2]")
    everything = folder / "everything"
    run(queries_of(data, everything), everything, battle, session)
    lots = by_lot(seen(everything))
    shown = Table("load", "", "results computed", "across the line", "value lost", title_justify="left")
    found: dict[str, list[Outcome]] = {way: [] for way in WAYS}
    for load in loads:
        for way in WAYS:
            mine = folder / f"{way} {load:g}"
            if way == ADMISSION:
                run(queries_of(data, mine, let_in=1 / load), mine, battle, session)
            else:
                qos = by_position() if way == SEMANTIC else lots
                run(queries_of(data, mine, qos=qos), mine, battle, session, ps.Shedding.auto(load=load))
            outcome = compare(mine, everything, battle)
            found[way].append(outcome)
            shown.add_row(f"{load:.0%}" if way == SEMANTIC else "", way, f"{outcome.done:.0%}",
                          f"{outcome.crossed:.0%}", f"{outcome.lost:.1%}", end_section=way == ADMISSION)  # fmt: skip
    for column in shown.columns[2:]:
        column.justify = "right"
    out.print(shown)
    out.print("✓ all results that were delivered are right, and none came twice")
    draw(found, loads, folder / "battalion.png")
    out.print(f"  plot: [b]{folder / 'battalion.png'}[/b]\n\nThis took {time.monotonic() - began:.0f} s.")
    return found


def draw(found: Mapping[str, Sequence[Outcome]], loads: Sequence[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")  # no display needed
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    colours = {SEMANTIC: "#1f6f8b", RANDOM: "#e08e79", ADMISSION: "#c0504d"}
    figure, axis = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for way, outcomes in found.items():
        lost = [100 * o.lost for o in outcomes]
        axis.plot([100 * load for load in loads], lost, "o-", color=colours[way], linewidth=2)
        axis.annotate(way, (100 * loads[-1], lost[-1]), (8, 0), textcoords="offset points", va="center",
                      color=colours[way])  # fmt: skip
    axis.set_xlim(100, 115 * max(loads))
    axis.set_ylim(0)
    axis.xaxis.set_major_formatter("{x:.0f} %")
    axis.yaxis.set_major_formatter("{x:.0f} %")
    axis.set_xlabel("load, as a share of what the machine can take")
    axis.set_ylabel("value lost, mean of four outputs")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title("A battle watched from the air: the same overload, met in three ways", loc="left")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=Battle.epochs)
    parser.add_argument("--units", type=int, default=Battle.units, help="on each side")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    print_comparison(Battle(given.epochs, units=given.units), given.folder, Console(highlight=False))


if __name__ == "__main__":
    main()
