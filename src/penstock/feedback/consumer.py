"""Consumers: whoever reads the results of a run, from the same process or from another, and talks upstream.

All a consumer needs is the run's checkpoint. The query, its schemas and its contract are written there, and messages
are left there for the run, which takes them up when it plans its next epoch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from graphlib import TopologicalSorter
from typing import Any, TypeVar

import pyarrow as pa

from penstock.checkpoint.checkpoint import FORMAT, Checkpoint
from penstock.checkpoint.generation import records_of
from penstock.checkpoint.lock import is_held
from penstock.checkpoint.names import BESIDE_SINK
from penstock.checkpoint.storage import Storage, unseal
from penstock.errors import CheckpointError, UserError, did_you_mean
from penstock.feedback.account import read_account, read_table
from penstock.feedback.address import Address, address, told_to
from penstock.feedback.answers import answer, refusal
from penstock.feedback.contract_record import read_contract
from penstock.feedback.handle import Talking
from penstock.feedback.log import DIAL, SHED, ControlLog
from penstock.feedback.receipt import Guard, Receipt, inside
from penstock.feedback.talk import Talk, WaitingMessage
from penstock.feedback.trail import CLIENT, Stop, Trail
from penstock.pattern.feedback import Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.consistency import Consistency
from penstock.plan.place import Place
from penstock.plan.plan import Exit
from penstock.shedding.policy import Shedding
from penstock.statistics.measured import RunStatistics

#: A run deletes old records while somebody reads: so often is it tried again.
_ATTEMPTS = 5
T = TypeVar("T")


class Consumer:
    """Gives feedback to a run, and sees what is made of it."""

    def __init__(self, storage: Storage, operators: Mapping[str, Mapping[str, Any]]) -> None:
        self._storage = storage
        #: By operator, as the checkpoint has it, its inputs, schema and definition.
        self.description = operators
        self._inputs: dict[str, tuple[str, ...]] = {i: tuple(o["inputs"]) for i, o in operators.items()}
        self._schemas = {i: Schema.parse(o["schema"]) for i, o in operators.items()}

    @classmethod
    def at(cls, checkpoint: str | os.PathLike[str] | Storage) -> Consumer:
        """The consumer of the run with this checkpoint, or with its checkpoint beside the results in this folder."""
        storage = checkpoint if isinstance(checkpoint, Storage) else Storage.at(os.fspath(checkpoint))
        if not storage.exists("meta.json") and records_of(storage.within(BESIDE_SINK)).exists("meta.json"):
            storage = storage.within(BESIDE_SINK)
        records = records_of(storage)
        if not records.exists("meta.json"):
            raise UserError(
                f"'{storage.url}' is not the checkpoint of a run",
                hint="name the folder that start(checkpoint=…) names, or the folder of the results",
            )
        meta = unseal(records.read("meta.json"), f"{records.url}/meta.json")
        if meta["format"] != FORMAT:
            raise CheckpointError(
                f"checkpoint '{storage.url}' has format {meta['format']} (Penstock {meta['version']})",
                hint=f"talk to it with that version; this one knows format {FORMAT}",
            )
        return cls(storage, meta["plan"])

    @property
    def url(self) -> str:
        """Where the checkpoint is."""
        return self._storage.url

    @property
    def exits(self) -> tuple[Exit, ...]:
        """Where results leave the query: by operator, and, as far as the run has noted it, by sink."""
        if found := read_contract(self._storage).exits:
            return found
        fed = {i for inputs in self._inputs.values() for i in inputs}
        return tuple(Exit(i) for i in self._inputs if i not in fed)

    @property
    def root(self) -> str:
        """The operator whose output is the result; an error if there are several results."""
        return self.address(None).node

    def address(self, to: str | None) -> Address:
        """Whom a message is for: a sink, or an operator."""
        return address(to, self.exits, self._inputs)

    def shedding(self) -> dict[str, Any]:
        """Where shedding stands after the newest epoch, its table of plans, and its account."""

        def read() -> dict[str, Any]:
            done = Checkpoint(self._storage).latest()
            found = {} if done is None else done.shed
            return {"state": found, "table": read_table(self._storage), "account": read_account(self._storage)}

        return self._steadily(read)

    @property
    def schema(self) -> Schema:
        """What the results look like, and so what a feedback has to have restrictions for."""
        return self._schemas[self.root]

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the query, each before its inputs: the way that feedback goes."""
        return tuple(TopologicalSorter(self._inputs).static_order())[::-1]

    def schema_of(self, operator: str) -> Schema:
        """What leaves an operator."""
        if operator not in self._schemas:
            raise UserError(
                f"'{self._storage.url}' has no operator '{operator}'", hint=did_you_mean(operator, self._schemas)
            )
        return self._schemas[operator]

    @property
    def active(self) -> bool:
        """Whether the run is there. If not, messages wait until it is started again."""
        return is_held(self._storage)

    # --- talking ------------------------------------------------------------------------------------------------

    def feedback(self, text: str, *, to: str | None = None) -> Receipt:
        """Leave `not [ … ]`, `prefer [ … ]` or `now [ … ]` for the run: one restriction per attribute of the results.

        With `to`, it speaks of what leaves another operator, or of what one of several sinks is given.
        """
        whom = self.address(to)
        told = told_to(whom, text, self.schema_of(whom.node))
        remarks = read_contract(self._storage).remarks(whom.node, told, whom.way_out)
        remarks += inside(whom.node, told) if whom.way_out is None else ()
        name = ControlLog(self._storage).submit({"text": str(told), "node": whom.name})
        return Receipt(name, str(told), whom.name, lambda: remarks)

    def ignore(self, pattern: str, *, to: str | None = None) -> Receipt:
        """Matching results are ignored from now on: nothing need be done for them."""
        return self.feedback(f"{Intent.ASSUMED} {pattern}", to=to)

    def prefer(self, pattern: str, *, to: str | None = None) -> Receipt:
        """Matching results first; the others as well."""
        return self.feedback(f"{Intent.DESIRED} {pattern}", to=to)

    def demand(self, pattern: str = "", *, to: str | None = None) -> Receipt:
        """Matching results as they are now, before they are final; without a pattern, all that are open.

        `answer` gives them. If there are several sinks, `to` names one.
        """
        schema = self.schema_of(self.address(to).node)
        return self.feedback(f"{Intent.DEMANDED} {pattern or Pattern.all(schema)}", to=to)

    def answer(self, receipt: Receipt) -> pa.Table | None:
        """The answer to a demand, None as long as there is none."""
        return answer(self._storage, receipt.id)

    def consistency(self, consistency: Consistency) -> Receipt:
        """Turn the dial of the run; `way` says whether it could."""
        name = ControlLog(self._storage).submit({"text": f"{DIAL} {consistency.text}"})
        return Receipt(name, repr(consistency), "the query")

    def shed(self, shedding: Shedding) -> Receipt:
        """Have the run give up so much from its next epoch on; `way` says whether it could."""
        name = ControlLog(self._storage).submit({"text": f"{SHED} {shedding.text}"})
        return Receipt(name, repr(shedding), "the query")

    # --- looking ------------------------------------------------------------------------------------------------

    def guards(self) -> list[Guard]:
        """What is dropped where, as of the newest epoch that is planned."""
        return list(self.talk().guards)

    def way(self, receipt: Receipt) -> tuple[Stop, ...] | None:
        """What operators have made of a message, in the order it reached them; None as long as it waits."""
        if self._storage.exists(f"control/requests/{receipt.id}.json"):
            return None
        if (refused := refusal(self._storage, receipt.id)) is not None:
            raise refused
        order = {node: k for k, node in enumerate(self.operators)}
        return tuple(sorted(self.talk().way(CLIENT, receipt.text), key=lambda s: order.get(s.node, len(order))))

    def withdraw(self, receipt: Receipt) -> None:
        """Take a message back, if no epoch has taken it up."""
        ControlLog(self._storage).discard([receipt.id])

    def talk(self) -> Talk:
        """All that is said and saved."""
        return self._steadily(self._talk)

    def _talk(self) -> Talk:
        checkpoint, log = Checkpoint(self._storage), ControlLog(self._storage)
        done = checkpoint.latest()
        epoch, version = (0, 0) if done is None else (done.epoch, done.control)
        planned, after = version, epoch
        while (plan := checkpoint.plan_of(after := after + 1)) is not None:
            planned = plan.control
        body = log.read(planned)
        if done is not None and planned == version:
            # Less than the version says, if punctuation has covered some of it.
            body = {**body, **done.feedback.get("live", {})}
        exits = self.exits
        whole = exits[0].root if len(exits) == 1 else "the query"
        return Talk(
            epoch,
            self._guards(body.get("places", {}), self._speaker),
            self._guards(body.get("prefers", {}), self._wisher),
            tuple(Trail.from_json(body.get("trail", ()))),
            tuple(WaitingMessage(name, said["text"], said.get("node") or whole) for name, said in log.requests()),
            {} if done is None else done.totals.get("saved", {}),
            RunStatistics() if done is None else RunStatistics.from_json(done.measured),
            Consistency.parse(dial["at"]) if (dial := body.get("dial")) else read_contract(self._storage).consistency,
        )

    def _guards(self, places: Mapping[str, Any], speaker: Callable[[Place], str]) -> tuple[Guard, ...]:
        return tuple(
            Guard(place, Pattern.from_json(r["pattern"], self._schemas[speaker(place)]), r["since"], r["pinned"])
            for place, records in sorted((Place(text), records) for text, records in places.items())
            if place.node in self._schemas  # Else it is gone with its operator.
            for r in records
        )

    def _steadily(self, read: Callable[[], T]) -> T:
        for _ in range(_ATTEMPTS - 1):
            try:
                return read()
            except (CheckpointError, FileNotFoundError):
                continue  # Retired while it was read: what is newer is there by now.
        return read()

    def _speaker(self, place: Place) -> str:
        """The operator behind which the events of a place are."""
        return place.speaker(self._inputs)

    def _wisher(self, node: str) -> str:
        """The operator of whose output wishes speak: what a queue takes first is what waits in it."""
        return next(iter(self._inputs[node]), node)


def consumer(run: Talking | str | os.PathLike[str]) -> Consumer:
    """The consumer of a run, or of the run with this checkpoint (or with its results in this folder).

    >>> consumer("nowhere")
    Traceback (most recent call last):
    penstock.errors.UserError: '...nowhere' is not the checkpoint of a run. Hint: name the folder that start(...
    """
    if not isinstance(run, Talking | str | os.PathLike):
        raise UserError(f"consumer({run!r}): no run", hint="a run, or the folder of its checkpoint or of its results")
    return Consumer.at(run.checkpoint if isinstance(run, Talking) else run)
