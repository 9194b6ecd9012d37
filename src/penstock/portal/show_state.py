"""The command `penstock state`, for people and machines."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table

from penstock.engine.admission import insisted
from penstock.engine.terminal import cell, say, terminal
from penstock.portal.live import short_bytes
from penstock.portal.show import Snapshot, ask
from penstock.portal.table import print_table
from penstock.portal.watch import say_json


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
    grid = Table("operator", title=f"{snapshot.storage.url}: after epoch {manifest.epoch}", title_justify="left")
    for name in ("bucket", "group", "runs", "rows", "bytes", "age (epochs)"):
        grid.add_column(name, justify="right")
    grid.add_column("waits for", overflow="fold")
    for u in units:
        size = short_bytes(u.bytes)
        counts = (u.bucket, u.group, u.runs)
        grid.add_row(u.operator, *map(str, counts), f"{u.rows:,}", size, str(u.age), cell(u.waits))
    grid.add_section()
    size = short_bytes(sum(u.bytes for u in units))
    grid.add_row("all", "", "", str(sum(u.runs for u in units)), f"{sum(u.rows for u in units):,}", size, "", "")
    out.print(grid)
    ahead = Table("operator", "attribute", "complete", title="frontiers", title_justify="left")
    for f in frontiers:
        ahead.add_row(*map(cell, (f.operator, f.attribute, f.reached)))
    out.print(ahead)
    totals = manifest.totals
    dead = ", ".join(f"{reason} {count:,}" for reason, count in sorted(totals.get("dead", {}).items())) or "none"
    print(f"rows in {totals.get('rows_in', 0):,}, out {totals.get('rows_out', 0):,}, dead letters: {dead}")
    if (allowed := insisted(snapshot.storage)) is not None:
        say(f"allowed to grow for ever ({', '.join(allowed['operators'])}): {allowed['reason']}")
