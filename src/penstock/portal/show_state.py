"""The command `penstock state`, for people and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from penstock.checkpoint.runs import UnitKey
from penstock.checkpoint.storage import below
from penstock.engine.admission import insisted
from penstock.engine.terminal import cell, say, terminal
from penstock.portal.live import short_bytes
from penstock.portal.show import ShownUnit, Snapshot, ask
from penstock.portal.table import print_table
from penstock.portal.watch import say_json

#: Columns of a terminal from which on what a unit waits for has a column of its own.
WIDE = 110


def show(checkpoint: str, query: str | None, *, as_json: bool, quiet: bool) -> None:
    """Print units, frontiers and totals, or the answer to a query over the state."""
    if query is not None:
        answer = ask(checkpoint, query)
        if not quiet:
            print_table(answer, as_json)
        return
    snapshot = Snapshot.open(checkpoint)
    units, frontiers = snapshot.units(), snapshot.frontiers()
    manifest = snapshot.manifest
    if quiet:
        return
    if as_json:
        say_json(
            {
                "checkpoint": snapshot.storage.url,
                "epoch": manifest.epoch,
                "totals": manifest.totals,
                "units": [asdict(u) for u in units],
                "frontiers": [asdict(f) for f in frontiers],
                "ended": list(manifest.ended),
                "allowed_unbounded": insisted(snapshot.storage),
            }
        )
        return
    out = terminal()
    wide = out.width >= WIDE
    grid = Table(title=f"{snapshot.storage.url}: after epoch {manifest.epoch}", title_justify="left")
    grid.add_column("operator", no_wrap=True)
    for name in ("bucket", "group", "runs", "rows", "bytes", "age (epochs)"):
        grid.add_column(name, justify="right")
    if wide:
        grid.add_column("waits for", overflow="fold")
    for u in units:
        size = short_bytes(u.bytes)
        counts = (u.bucket, UnitKey(u.operator, u.bucket, u.group, u.share).part, u.runs)
        grid.add_row(u.operator, *map(str, counts), f"{u.rows:,}", size, str(u.age), *([cell(u.waits)] if wide else []))
    grid.add_section()
    size = short_bytes(sum(u.bytes for u in units))
    runs, rows = sum(u.runs for u in units), sum(u.rows for u in units)
    grid.add_row("all", "", "", str(runs), f"{rows:,}", size, *([""] * (1 + wide)))
    out.print(grid)
    if not wide and (waiting := _waiting(units)):
        say(*waiting)
    ahead = Table("operator", "attribute", "complete", title="frontiers", title_justify="left")
    for f in frontiers:
        ahead.add_row(*map(cell, (f.operator, f.attribute, f.reached)))
    out.print(ahead)
    totals = manifest.totals
    dead = ", ".join(f"{reason} {count:,}" for reason, count in sorted(totals.get("dead", {}).items())) or "none"
    if totals.get("dead") and snapshot.storage.exists("dead_letters"):  # Else in a folder of their user's.
        dead += f", in {below(snapshot.storage.url, 'dead_letters')}"
    say(f"rows in {totals.get('rows_in', 0):,}, out {totals.get('rows_out', 0):,}, dead letters: {dead}")
    if (allowed := insisted(snapshot.storage)) is not None:
        say(f"allowed to grow for ever ({', '.join(allowed['operators'])}): {allowed['reason']}")


def _waiting(units: Sequence[ShownUnit]) -> list[str]:
    """On narrow terminals what units wait for, a line for each thing."""
    places: dict[tuple[str, str], list[str]] = {}
    for u in units:
        if u.waits:
            places.setdefault((u.operator, u.waits), []).append(str(u.bucket))
    return [
        f"{operator} (bucket{'' if len(at) == 1 else 's'} {', '.join(dict.fromkeys(at))}) waits for {waits}"
        for (operator, waits), at in places.items()
    ]
