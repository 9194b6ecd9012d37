"""How a run listens: from messages and operators' own findings to the guards of an epoch, and back to a checkpoint.

Messages are taken up when an epoch is planned. What then holds is a version of the control log, written down with the
plan, so an epoch that is run again after a crash runs under the same guards. What operators find in an epoch is kept in
its manifest until a later plan takes it up: with epochs that overlap, that of the epoch after next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.analysis.propagate import Propagation
from penstock.analysis.turning import setting_of, turned
from penstock.checkpoint.storage import Storage
from penstock.errors import PenstockError, UserError, shortly
from penstock.feedback.address import Address, address, told_to
from penstock.feedback.answers import refuse
from penstock.feedback.guards import Guards
from penstock.feedback.log import DIAL, SHED, ControlLog
from penstock.feedback.trail import CLIENT
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.plan.consistency import Consistency
from penstock.plan.place import Place
from penstock.plan.plan import Plan
from penstock.shedding.policy import Shedding

if TYPE_CHECKING:
    from penstock.checkpoint.checkpoint import EpochPlan
    from penstock.engine.tasks.report import TaskReport

#: What a finding of an operator looks like: who, on which input (-1: about its own output), what, and since when.
Issued = dict[str, Any]
#: The sink whose results are wanted now, and which of them.
Demand = tuple[str, Pattern]
#: What is said: to an operator, that the dial is to stand elsewhere, or how much is to be given up.
Heard = tuple[Address, Feedback] | Consistency | Shedding


class Listening:
    """The feedback of one run."""

    def __init__(
        self,
        plan: Plan,
        storage: Storage,
        warnings: list[str] | None = None,
        records: Storage | None = None,
        *,
        sheds: Shedding | None = None,
    ) -> None:
        self.plan = plan
        #: How much the run was to give up when it was started (None: nothing, ever), and what it was told since.
        self.sheds = sheds
        self.shedding: Shedding | None = None
        self.log = ControlLog(storage, records)
        self.nodes = {n.id: n for n in plan.nodes}
        self.guards = Guards(plan)
        self.version = 0
        #: Where the query stands on the dial, and where it was told to stand while it ran.
        self.started = self.setting = setting_of(plan)
        self.turned: Consistency | None = None
        #: Findings of operators that no version has taken up yet.
        self.issued: list[Issued] = []
        #: Demands that wait for an answer; their requests stay until they have one, so that a crash loses none.
        self.demands: dict[str, Demand] = {}
        self.epoch = 0
        #: For people: the last message and its way.
        self.told = ""
        #: Messages that could not be read are told here.
        self.warnings = [] if warnings is None else warnings
        #: Versions that have a record of their own.
        self._recorded: set[int] = set()
        #: Messages from the run's own process, as they were understood.
        self._said: dict[str, tuple[Address, Feedback]] = {}
        #: Messages that could not be read: once, and twice.
        self._doubtful: frozenset[str] = frozenset()
        self._damaged: set[str] = set()
        self._frozen: dict[int, Guards] = {0: Guards(plan)}
        self._covered = False
        self._taken: list[str] = []
        #: The newest version, if no plan holds it yet, or if nothing but the plan does that was the first to name it.
        self._unwritten: dict[str, Any] | None = None
        self._in_plan: dict[str, Any] | None = None

    # --- being told -----------------------------------------------------------------------------------------------

    def address(self, to: str | None) -> Address:
        """Whom a message is for."""
        return address(to, self.plan.exits, {n.id: n.inputs for n in self.plan.nodes})

    def say(self, to: Address, feedback: Feedback) -> str:
        """Leave a message to an operator, from the run's own process; returns its id."""
        name = self.log.submit({"text": str(feedback), "node": to.name})
        self._said[name] = to, feedback
        return name

    def turn(self, consistency: Consistency) -> str:
        """Have the dial stand elsewhere from the next epoch on; returns the id of the message."""
        if not isinstance(consistency, Consistency):
            raise UserError(
                f"consistency({shortly(consistency)}) is not possible",
                hint="ps.Consistency.middle(remember='1 h'), .weak(block='5 s', remember='1 min')",
            )
        turned(self.plan, consistency)
        return self.log.submit({"text": f"{DIAL} {consistency.text}"})

    def shed(self, shedding: Shedding) -> str:
        """Have so much given up from the next epoch on; returns the id of the message."""
        if not isinstance(shedding, Shedding):
            raise UserError(f"shed({shortly(shedding)}) is not possible", hint="ps.Shedding.to('60%'), .auto(), .off()")
        self._check_sheds()
        return self.log.submit({"text": f"{SHED} {shedding.text}"})

    def _check_sheds(self) -> None:
        if self.sheds is None:
            raise UserError(
                "the run was started without qos= and shedding=, so it gives nothing up",
                hint="stop it and start it again with shedding=ps.Shedding.off() and the same checkpoint",
            )

    def _turn(self, consistency: Consistency | None) -> None:
        self.setting = self.started if consistency is None else turned(self.plan, consistency)
        self.turned = consistency

    # --- taking up ----------------------------------------------------------------------------------------------

    def freeze(self, epoch: int) -> tuple[int, bool]:
        """Take up what is new: the version under which the epoch runs, and whether somebody outside has spoken."""
        requests: list[tuple[str, dict[str, Any], Heard]] = []
        asked = len(self.demands)
        waiting = self.log.requests()
        self._warn_of_damaged()
        for name, error in self.log.odd.items():
            self._refuse(name, "a message in control/requests", error)
        for name, body in waiting:
            if name in self._taken or name in self.demands:
                continue
            try:
                said = self._said.pop(name, None) or self._parsed(body)
            except UserError as error:
                # It was checked where it was said; another version of the program, or of the query, sees it otherwise.
                self._refuse(name, f"feedback {shortly(body['text'])}", error)
                continue
            if isinstance(said, Consistency | Shedding):
                requests.append((name, body, said))
            elif said[1].intent is Intent.DEMANDED:
                # Demands change no guard: they are answered after an epoch.
                self.demands[name] = said[0].sink, said[1].pattern
            else:
                requests.append((name, body, said))
        for name in set(self._said) - {name for name, _ in waiting}:
            self._said.pop(name, None)  # Taken back, or taken up before it was noted here.
        news = bool(requests) or len(self.demands) > asked
        if not requests and not self.issued and not self._covered:
            return self.version, news
        self.guards.begin(epoch)
        for issued in self.issued:
            self._take(issued)
        requests = [r for r in requests if self._hear(*r)]
        told = [{**i, "by": i["node"]} for i in self.issued] + [{**b, "by": CLIENT} for _, b, _ in requests]
        # A version that no plan has named yet goes on to grow.
        self._taken = [*(self._taken if self._unwritten is not None else ()), *(name for name, *_ in requests)]
        if self._unwritten is None:
            self.version += 1
        # What each version takes up stays readable for people; the guards are what counts.
        told = [*(self._unwritten or {}).get("told", ()), *told]
        body = {
            **self.guards.to_json(),
            "trail": self.guards.trail.to_json(),
            "told": told,
            "requests": self._taken,
            "after": self.epoch,
        }
        if self.turned is not None:
            body["dial"] = {"at": self.turned.text, "over": self.started}
        if self.shedding is not None and self.sheds is not None:
            body["shed"] = {"at": self.shedding.text, "over": self.sheds.text}
        self._unwritten, self.told = body, self.guards.trail.latest
        self._frozen[self.version] = self.guards.copy()
        self.issued, self._covered = [], False
        return self.version, news

    def to_write(self) -> dict[str, Any]:
        """What the next plan is to hold: the version it names, if it is new. If not, that has a record of its own."""
        if self._unwritten is not None:
            self._in_plan, self._unwritten = self._unwritten, None
            return self._in_plan
        if self._in_plan is not None:
            self.log.write(self.version, self._in_plan)
            self._recorded.add(self.version)
            self._in_plan = None
        return {}

    def planned(self) -> None:
        """The plan that names the version is written: its messages cannot get lost any more."""
        self.log.discard(self._taken)
        self._taken = []

    def _parsed(self, body: Mapping[str, Any]) -> Heard:
        word, _, rest = body["text"].partition(" ")
        if word == DIAL:
            consistency = Consistency.parse(rest)
            turned(self.plan, consistency)
            return consistency
        if word == SHED:
            self._check_sheds()
            return Shedding.parse(rest)
        to = self.address(body.get("node") or None)
        return to, told_to(to, body["text"], self.nodes[to.node].operator.schema)

    def _refuse(self, name: str, what: str, error: PenstockError) -> None:
        """A message that is not taken up: whoever said it finds out why, and so does whoever runs the query."""
        self.warnings.append(f"{what} was refused: {error}")
        refuse(self.log.storage, [name], error)
        self.log.discard([name])

    def _warn_of_damaged(self) -> None:
        """Of messages that cannot be read, the second time: at first they may be half written."""
        for name in self.log.damaged & self._doubtful - self._damaged:
            self.warnings.append(f"control/requests/{name}.json cannot be read: delete it and say it again")
            self._damaged.add(name)
        self._doubtful = self.log.damaged

    def answered(self, name: str) -> None:
        """A demand has had its answer."""
        self.log.discard([name])
        del self.demands[name]

    def _hear(self, name: str, body: Mapping[str, Any], said: Heard) -> bool:
        """Take a message up; False if no operator could make sense of it, which must not stop the run."""
        if isinstance(said, Consistency):
            self._turn(said)
            return True
        if isinstance(said, Shedding):
            self.shedding = said
            return True
        to, feedback = said
        before = self.guards.copy()
        try:
            self.guards.tell(to.node, feedback, edge=to.edge, by=CLIENT)
        except Exception as error:
            self.guards = before
            why = UserError(f"it cannot be taken up: {type(error).__name__}: {error}", hint="please report it")
            self._refuse(name, f"feedback {shortly(body['text'])}", why)
            return False
        return True

    def _take(self, issued: Issued) -> None:
        if issued["node"] not in self.nodes:
            return  # The query was changed since.
        node = self.nodes[issued["node"]]
        port = issued["port"]
        if port >= 0 and not node.operator.switches.propagate:
            return
        if port < 0:
            feedback = Feedback.from_json(issued["feedback"], node.operator.schema)
            self.guards.tell(node.id, feedback, by=node.id)
        else:
            below = self.nodes[node.inputs[port]]
            feedback = Feedback.from_json(issued["feedback"], below.operator.schema)
            self.guards.tell(below.id, feedback, edge=Place.at(node.id, port), by=node.id)

    # --- after an epoch -----------------------------------------------------------------------------------------

    def heard(
        self,
        epoch: int,
        reports: Sequence[TaskReport],
        propagation: Propagation,
        behind: Mapping[str, Sequence[Pattern]],
    ) -> None:
        """What operators have found out, and which guards punctuation has made needless."""
        known, self.epoch = len(self.issued), epoch
        for report in reports:
            for node_id, patterns in report.doomed.items():
                self.issued += [
                    {"node": node_id, "port": -1, "feedback": {"intent": Intent.ASSUMED.value, "pattern": p}}
                    for p in patterns
                ]
            for node_id, said in report.issued.items():
                self.issued += [{"node": node_id, "port": port, "feedback": f} for port, f in said]
        for node_id, port, feedback in propagation.issued():
            self.issued.append({"node": node_id, "port": port, "feedback": feedback.to_json()})
        for issued in self.issued[known:]:
            issued["epoch"] = epoch
        if self.guards.cover(behind):
            self._covered = True

    def logged(self, saved: Mapping[str, int]) -> dict[str, int]:
        """What guards have spared, of the operators that are to count it."""
        return {what: n for what, n in saved.items() if self._logs(what)}

    def _logs(self, what: str) -> bool:
        """Whether the operator of `join-1#0 dropped` or `source:my cars row groups skipped` is to count it."""
        names = [n for n in self.nodes if what.startswith((f"{n} ", f"{n}#", f"{n}:groups"))]
        return all(self.nodes[n].operator.switches.log for n in sorted(names, key=len)[-1:])

    def under(self, version: int) -> Guards:
        """The guards of a version."""
        if version not in self._frozen:
            self._frozen[version] = Guards.from_json(self.log.read(version), self.plan)
        return self._frozen[version]

    def retire(self, before: int) -> None:
        """Forget versions that only older epochs ran under."""
        for version in [v for v in self._frozen if v < before]:
            del self._frozen[version]
        # What a crash has left behind is swept at the start.
        for version in [v for v in self._recorded if v < before]:
            self.log.delete(version)
            self._recorded.remove(version)

    def sweep(self, oldest: int) -> None:
        """Delete versions that a crash left behind: older than any epoch within reach, or named by no plan."""
        for version in self.log.versions():
            if not oldest <= version <= self.version:
                self.log.delete(version)
        self._recorded = set(self.log.versions())

    # --- in a checkpoint ----------------------------------------------------------------------------------------

    def to_json(self, control: int) -> dict[str, Any]:
        """What a manifest has to say beyond the version its epoch ran under."""
        body: dict[str, Any] = {}
        # A version that no plan holds is gone with a crash; messages are taken up again then, and so are these.
        unheld = (self._unwritten or {}).get("told", ())
        found = [{k: v for k, v in t.items() if k != "by"} for t in unheld if t["by"] != CLIENT]
        if found or self.issued:
            body["issued"] = [*found, *self.issued]
        if self._covered:
            body["live"] = self.guards.to_json()
        return body

    def restore(self, control: int, stored: Mapping[str, Any], epoch: int) -> None:
        """Where the manifest of an epoch left off."""
        body = self._go_on_from(control)
        self.guards = Guards.from_json({**body, **stored.get("live", {})}, self.plan)
        self.issued = list(stored.get("issued", ()))
        self.epoch = epoch
        self._covered |= "live" in stored
        self._taken = list(body.get("requests", ()))
        self.planned()

    def take_up(self, control: int, epoch: int) -> None:
        """Epochs that were planned after this one, and did not happen, know more: go on from the last of them."""
        if control == self.version:
            return
        live, body = self.guards, self._go_on_from(control)
        self.guards = Guards.from_json(body, self.plan)
        self.guards.go_on_from(live, epoch)
        self._covered = True
        self.issued = [i for i in self.issued if i["epoch"] > body["after"]]
        self._taken = list(body.get("requests", ()))
        self.planned()

    def _go_on_from(self, control: int) -> dict[str, Any]:
        self.version, body = control, self.log.read(control)
        self._in_plan = None if control == 0 or control in self.log.versions() else body
        dial = body.get("dial")
        # Whoever starts the query at another point means that one. Then no later version is to say otherwise.
        same = dial is not None and {i: tuple(e) for i, e in dial["over"].items()} == self.started
        self._turn(Consistency.parse(dial["at"]) if dial is not None and same else None)
        self._covered = dial is not None and not same
        shed = body.get("shed")
        same = shed is not None and self.sheds is not None and shed["over"] == self.sheds.text
        self.shedding = Shedding.parse(shed["at"]) if shed is not None and same else None
        return body

    def give_back(self, plans: Iterable[EpochPlan]) -> None:
        """Epochs that were planned are not to happen as planned: what they had taken up waits again.

        What operators have found in an epoch that happened is to be taken up still.
        """
        for plan in plans:
            told = [({k: v for k, v in t.items() if k != "by"}, t["by"]) for t in plan.heard.get("told", ())]
            said = [body for body, by in told if by == CLIENT]
            for name, body in zip(plan.heard.get("requests", ()), said, strict=True):
                self.log.put(name, body)
            found = [body for body, by in told if by != CLIENT and body["epoch"] <= self.epoch]
            self.issued = [*(f for f in found if f not in self.issued), *self.issued]
