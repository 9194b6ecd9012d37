"""The part of a run's handle that consumers talk to: feedback, demands, and what has become of them."""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.analysis.feedback_check import remarks
from penstock.checkpoint.storage import Storage
from penstock.errors import UserError
from penstock.feedback.account import read_account
from penstock.feedback.address import told_to
from penstock.feedback.answers import answer, answers, marked
from penstock.feedback.receipt import Guard, Receipt, inside
from penstock.pattern.feedback import Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.consistency import Consistency
from penstock.plan.plan import Plan
from penstock.shedding.policy import Shedding

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver


class Talking:
    """What a run hears through its handle. From other processes see `control.consumer`."""

    driver: Driver
    checkpoint: Storage
    _plan: Plan
    _thread: Thread

    def _raise(self) -> None:
        """Raise what the run has ended with, if that was an error."""
        raise NotImplementedError

    def feedback(self, text: str, *, to: str | None = None) -> Receipt:
        """Tell the query what its consumer will ignore, wants first, or wants now; it holds from the next epoch on.

        `not [*, > 40]`: matching results are ignored from now on, so nothing need be done for them. `prefer [3, *]`:
        do what these results need first. `now [3, *]`: give the results as they are, marked as partial (see `demand`).
        One restriction per attribute of the result (or of the output of operator `to`). If the query has several
        sinks, `to` names the one that is meant. The receipt has the message's `id` and, as `remarks`, what the contract
        says: which guards nothing will ever cover.
        """
        heard = self.driver.feedback
        whom = heard.address(to)
        parsed = told_to(whom, text, heard.nodes[whom.node].operator.schema)
        name = heard.say(whom, parsed)

        def contract() -> tuple[str, ...]:
            assumed = parsed.intent is Intent.ASSUMED
            found = remarks(self._plan, parsed, whom.node, edge=whom.edge) if assumed else []
            over = () if self._thread.is_alive() else ("the run has ended: it waits until the run is started again",)
            return (*over, *found, *(inside(whom.node, parsed) if whom.way_out is None else ()))

        return Receipt(name, str(parsed), whom.name, contract)

    def consistency(self, consistency: Consistency) -> Receipt:
        """Turn the dial: how long results wait, and how long they can be corrected, from the next epoch on.

        What was final stays so, and what was late. A run that corrects its results goes on to do so; whether a query
        does is settled when it is started.
        """
        told = self.driver.feedback.turn(consistency)
        over = () if self._thread.is_alive() else ("the run has ended: it waits until the run is started again",)
        return Receipt(told, repr(consistency), "the query", lambda: over)

    def shed(self, shedding: Shedding) -> Receipt:
        """Give up so much from the next epoch on: `ps.Shedding.to("60%")`, `.auto()`, or `.off()` for nothing."""
        told = self.driver.feedback.shed(shedding)
        over = () if self._thread.is_alive() else ("the run has ended: it waits until the run is started again",)
        return Receipt(told, repr(shedding), "the query", lambda: over)

    @property
    def account(self) -> pa.Table:
        """What was given up: by epoch and sink the windows that have passed, those dropped, and the longest gap."""
        return read_account(self.checkpoint)

    def demand(self, pattern: str = "", *, timeout: float = 60.0, to: str | None = None) -> pa.Table:
        """Results as they are now, before they are final: `run.demand("[3, *]")`; all that are open without a pattern.

        The rows are marked: `partial` is true, `as_of_epoch` says when. The final ones come as if nobody had asked. If
        the query has several sinks, `to` names the one whose results are wanted.
        """
        schema = self._results(to)[1]
        name = self.feedback(f"now {pattern or Pattern.all(schema)}", to=to).id
        deadline = time.monotonic() + timeout
        while (found := answer(self.checkpoint, name)) is None:
            self._raise()
            if time.monotonic() > deadline or not self._thread.is_alive():
                if (found := answer(self.checkpoint, name)) is not None:
                    return found  # The last epoch has given it just now.
                self.driver.feedback.log.discard([name])  # Nobody waits for it any more.
                raise UserError(
                    f"demand({pattern!r}): no answer within {timeout:g} s",
                    hint="demands are answered after an epoch; is the run going on?",
                )
            time.sleep(0.01)
        return found

    def partials(self, *, to: str | None = None) -> pa.Table:
        """All partial results that were demanded so far (the last hundred answers), of the only sink or of `to`."""
        sink, schema = self._results(to)
        nothing = marked(schema.arrow.empty_table(), 0)
        return pa.concat_tables([nothing, *(t.cast(nothing.schema) for t in answers(self.checkpoint, sink))])

    def _results(self, to: str | None) -> tuple[str, Schema]:
        """A sink, and what the results that it gets look like."""
        whom = self.driver.feedback.address(to)
        if whom.way_out is None:
            raise UserError(f"'{whom.name}' is not what the query results in", hint="name a sink")
        return whom.sink, self.driver.feedback.nodes[whom.node].operator.schema

    def guards(self) -> list[Guard]:
        """What is dropped where, by feedback from outside or of operators."""
        # A copy, since the epochs go on meanwhile.
        places = dict(self.driver.feedback.guards.places)
        return [Guard(p, r.pattern, r.since, r.pinned) for p, records in sorted(places.items()) for r in records]

    @property
    def saved(self) -> dict[str, int]:
        """What feedback has spared so far, such as `source:traffic never read` or `join-1 purged`."""
        return dict(self.driver.manifest.totals.get("saved", {}))
