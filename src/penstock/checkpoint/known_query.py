"""What query a checkpoint belongs to: its operators and sinks by their ids, in `meta.json`.

A query that was changed goes on from there, if no state changes its meaning by that; see `penstock.plan.refit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.errors import CheckpointError
from penstock.pattern.schema import Schema
from penstock.plan.plan import Plan
from penstock.plan.refit import Refit, fit, known_sinks, refitted
from penstock.plan.weight import WEIGHT, is_weighted
from penstock.version import __version__

Known = Mapping[str, Any]
_RECORD = "meta.json"
_PARTS = {"format", "version", "buckets", "plan"}


def _check_dial(url: str, plan: Plan, known: Known) -> None:
    """Say it, if all that is wrong with a query is that it waits where the one before corrected, or the reverse."""
    corrected = any(WEIGHT in Schema.parse(d["schema"]) for d in known.values())
    if corrected != any(is_weighted(n.operator) for n in plan.nodes):
        told = "has told results that it may take back, and this start waits until they are final"
        waits = "waits until results are final, and this start would take back at once what nobody was told"
        raise CheckpointError(
            f"checkpoint '{url}': the run {told if corrected else waits}",
            hint=f"start it with {'ps.Consistency.middle(remember=…)' if corrected else 'ps.Consistency.strong()'} "
            "as before, or with a new checkpoint",
        )


@dataclass(frozen=True)
class KnownQuery:
    """Reads and writes the record."""

    storage: Storage
    records: Storage
    format: int

    def read(self, *, fresh: bool) -> Known | None:
        """The record; None if the checkpoint is new."""
        if not self.records.exists(_RECORD):
            if fresh:
                return None
            raise CheckpointError(
                f"checkpoint '{self.storage.url}' has epochs but no meta.json",
                hint="restore meta.json from a backup, or start with an empty checkpoint folder",
            )
        try:
            meta = unseal(self.records.read(_RECORD), f"{self.storage.url}/meta.json")
            if not isinstance(meta, dict) or not meta.keys() >= _PARTS:
                raise CheckpointError(f"{self.storage.url}/meta.json is not the record of a query")
        except CheckpointError as error:
            if fresh:
                return None  # Torn while the checkpoint was made: nothing has happened yet.
            raise CheckpointError(
                error.message, hint="restore meta.json from a backup; nothing has been changed"
            ) from None
        if meta["format"] != self.format:
            raise CheckpointError(
                f"checkpoint '{self.storage.url}' has format {meta['format']} (Penstock {meta['version']}); "
                f"this is Penstock {__version__}, which reads format {self.format}",
                hint="run it with that version, or start with a new checkpoint folder",
            )
        return meta

    def write(self, plan: Plan, known: Known) -> None:
        """Note a plan, after what was known before; nothing is done if it is the same."""
        body = {
            "format": self.format,
            "version": known.get("version", __version__),
            "buckets": int(known["buckets"]),
            "plan": plan.describe(),
            "sinks": known_sinks(plan, known.get("sinks", {})),
            # No other operator is ever called so: there may be more in the checkpoint about them.
            "gone": sorted({*known.get("gone", ()), *known.get("plan", {})} - {n.id for n in plan.nodes}),
        }
        if (record := seal(body)) != seal(dict(known)):
            self.records.write(_RECORD, record)

    def refitted(self, plan: Plan, known: Known | None) -> Plan:
        """The plan with the ids of the record."""
        return plan if known is None else refitted(plan, known["plan"], known["sinks"], known["gone"])

    def fit(self, plan: Plan, known: Known | None) -> Refit:
        """What has changed; an error if that cannot be."""
        if known is None:
            return Refit()
        found = fit(self.refitted(plan, known), known["plan"])
        if found.refused:
            _check_dial(self.storage.url, self.refitted(plan, known), known["plan"])
        if lines := found.refused:
            shown = "; ".join(lines[:3]) + (f"; and {len(lines) - 3} more" if len(lines) > 3 else "")
            raise CheckpointError(
                f"checkpoint '{self.storage.url}' belongs to another query: {shown}",
                hint="use a new checkpoint folder for the changed query, or undo the change",
            )
        return found
