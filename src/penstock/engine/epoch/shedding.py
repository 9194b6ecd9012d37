"""Shedding between epochs: what is given up in the next one, as patterns that nobody need look at.

What was decided is written into the plan of the epoch before it runs, so an epoch that is run again drops the same.
The way of a drop is that of feedback: `not [window_start in {…}]` at the output, from operator to operator as far as
each can translate it. It is told apart from what consumers say, and counted by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.source.formats.footer import measured_attribute
from penstock.engine.tasks.dropping import Dropping
from penstock.errors import UserError
from penstock.feedback.guards import Guards
from penstock.kernels.ticks import from_tick
from penstock.pattern.feedback import VALUES, Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, one_of
from penstock.plan.plan import Plan
from penstock.plan.weight import is_weighted
from penstock.shedding.by_value import ValueDrops, pieces, restrictions
from penstock.shedding.controller import Controller, RoadStanding
from penstock.shedding.fates import Fates
from penstock.shedding.graph import CLOSE
from penstock.shedding.outgoing import Outgoing, coins, outgoing
from penstock.shedding.outlook import Outlook, Settled, numbers, size
from penstock.shedding.policy import Shedding
from penstock.shedding.qos import QoS
from penstock.shedding.road_map import RoadMap
from penstock.shedding.shed_state import ShedState, WindowTally
from penstock.shedding.sheddable import Sheddable
from penstock.shedding.terms import Terms
from penstock.shedding.value import ValueGraph
from penstock.shedding.worthless import loss_graph
from penstock.statistics.measured import RunStatistics

if TYPE_CHECKING:
    from penstock.checkpoint.checkpoint import EpochPlan
    from penstock.engine.epoch.begun import Begun, Places
    from penstock.engine.sink.final import FinalUpTo
    from penstock.engine.tasks.report import TaskReport

#: Windows that are decided ahead of the newest event: at least, and at most.
AHEAD = 64, 2_048
#: So many times as many windows as the last epoch has gone through are decided ahead.
FORESIGHT = 4


@dataclass(frozen=True)
class SheddingWish:
    """What was said at the start about giving up; what results are worth stands at their sinks."""

    policy: Shedding
    sheddable: dict[str, Sheddable]


class Shedder:
    """Decides before every epoch what it gives up. Without a wish it does nothing, and costs nothing."""

    def __init__(self, plan: Plan, wish: SheddingWish | None, warnings: list[str], cores: int = 1) -> None:
        self.plan, self.wish, self.warnings, self.cores = plan, wish, warnings, cores
        self.outputs: tuple[Outgoing, ...] = () if wish is None else outgoing(plan, wish.sheddable)
        #: What results are worth by value, where they are given up by that: a gap asks for whole windows instead.
        self.valued: dict[str, ValueGraph] = {
            o.name: graph
            for o in self.outputs
            if (graph := self._qos(o).value) is not None and self._qos(o).gap is None and self._by_value(o)
        }
        self._priced: set[str] = set()
        #: On what terms outputs give something up; those of which nothing can go are not among them.
        self.terms = {
            o.name: Terms.of(self._qos(o)) for o in self.outputs if o.label or o.chance or o.name in self.valued
        }
        self.controller = Controller(plan, self.terms, tuple(n for n, t in self.terms.items() if t.least))
        self.state = ShedState()
        #: What was settled when the last epoch had been read.
        self.settled: dict[str, Settled] = {}
        self._patterns: dict[int, tuple[dict[str, Any], Places]] = {}
        self._gone_through: dict[str, int] = {}
        self._told: set[str] = set()
        self._shown: RoadMap | None = None

    @property
    def active(self) -> bool:
        return self.wish is not None

    @property
    def clocks(self) -> dict[str, tuple[str, ...]]:
        """By source, the attributes of which tasks are to tell the newest tick."""
        found: dict[str, set[str]] = {}
        for output in self.outputs:
            for source, attribute in output.times:
                found.setdefault(source, set()).add(attribute)
        return {source: tuple(sorted(names)) for source, names in sorted(found.items())}

    # --- before an epoch ----------------------------------------------------------------------------------------

    def plan_epoch(
        self,
        policy: Shedding | None,
        final: Mapping[str, FinalUpTo],
        oldest: Mapping[str, int],
        measured: RunStatistics,
    ) -> ShedState:
        """What the next epoch gives up. `oldest` is, by source and attribute, where streams begin, if that is news."""
        assert self.wish is not None
        policy = policy or self.wish.policy
        shares, off, road = self._shares(policy, measured)
        self._say(off)
        before = replace(self.state, policy=policy.text, seed=policy.seed, delivered=shares, off=off, road=road)
        outlooks = {o.name: self._outlook(before, o, shares[o.name], final, oldest) for o in self.outputs if o.label}
        values = {name: self._planned_values(before, name, shares[name], final) for name in self.valued}
        self.state = replace(before, outlooks=outlooks, values=values, random=self._random(shares))
        return self.state

    def _planned_values(self, state: ShedState, name: str, share: float, final: Mapping[str, FinalUpTo]) -> ValueDrops:
        """What is given up by value of one output; once it is known how often values occur, that decides what costs."""
        output, graph = next(o for o in self.outputs if o.name == name), self.valued[name]
        drops, schema = state.values.get(name, ValueDrops()), self.plan[output.exit.root].operator.schema
        seen = drops.histogram(graph)
        if seen is not None and name not in self._priced:
            self._priced.add(name)
            self.terms[name] = Terms.of(self._qos(output), loss_graph(graph, seen))
            self.controller.forget()
        known = final.get(output.exit.sink)
        if output.window is not None and known is not None and output.label in known.bounds:
            drops = drops.final(output.number(known.bounds[output.label] - 1) + 1 - output.overlap)
        whole = pa.types.is_integer(schema.type_of(graph.attribute))
        return drops.planned(graph, 1 - share, whole_numbers=whole)

    def _shares(
        self, policy: Shedding, measured: RunStatistics
    ) -> tuple[dict[str, float], tuple[str, ...], dict[str, Any]]:
        """The share of its results that each output still gets, those switched off, and where the controller stands."""
        everything = {o.name: 1.0 for o in self.outputs}
        if policy.kind == "to":
            return {**everything, **{n: max(policy.share, t.least) for n, t in self.terms.items()}}, (), {}
        if policy.kind == "off" or not self.terms:
            return everything, (), {}
        before = RoadStanding.from_json(self.state.road)
        row, at = self.controller.decide(policy, before, measured, self.cores)
        road = dict(self.state.road) if at is before and self.state.road else at.to_json()
        return {**everything, **row.delivered}, tuple(sorted(row.off)), road

    def new_table(self) -> list[dict[str, Any]] | None:
        """The table of plans for people, if it was made anew."""
        roads = self.controller.table
        if roads is None or roads is self._shown:
            return None
        self._shown = roads
        return roads.to_json()

    def _say(self, off: tuple[str, ...]) -> None:
        """Whoever is switched off, or on again, is to hear of it."""
        for name in sorted(set(off) - set(self.state.off)):
            gap = self._qos(next(o for o in self.outputs if o.name == name)).gap
            self.warnings.append(
                f"{name} is switched off: with every gap of {gap} windows that it allows it is still too much"
            )
        for name in sorted(set(self.state.off) - set(off)):
            self.warnings.append(f"{name} is switched on again")

    def _by_value(self, output: Outgoing) -> bool:
        assert self.wish is not None
        ways = self.wish.sheddable[output.name]
        # Results of single events go or come, whoever else reads these events.
        return ways["semantic"].possible and (bool(output.label) or ways["random"].possible)

    def _qos(self, output: Outgoing) -> QoS:
        found = getattr(self.plan[output.exit.sink].operator, "qos", None) if output.exit.sink else None
        return found if isinstance(found, QoS) else QoS()

    def fates(self, state: ShedState, output: Outgoing) -> Fates:
        """Who decides about the windows of an output; the same for outputs of the same streams, so they share work."""
        gap = None if output.name in state.off else self._qos(output).gap
        of, batch = self._coins[output.name]
        return Fates(state.seed, of, gap, batch=batch)

    @cached_property
    def _coins(self) -> dict[str, tuple[str, int]]:
        return coins(self.outputs, {o.name: self._qos(o).gap for o in self.outputs})

    def _outlook(
        self,
        state: ShedState,
        output: Outgoing,
        share: float,
        final: Mapping[str, FinalUpTo],
        oldest: Mapping[str, int],
    ) -> Outlook:
        before, known = state.outlooks.get(output.name, Outlook()), final.get(output.exit.sink)
        bound = None if known is None else known.bounds.get(output.label)
        if bound is not None:
            # Windows overlap: what comes for one of them may be looked at as part of the next.
            before = before.final(output.number(bound - 1) + 1 - output.overlap)
        first = self._first(output, bound, oldest)
        if first is None and before.next is None:
            return before
        if size(before.outstanding) > VALUES // 2:
            self._warn(f"{output.name}: {VALUES // 2:,} dropped windows wait to be over; till then no more are dropped")
            share = 1.0
        ahead = min(max(AHEAD[0], FORESIGHT * self._gone_through.get(output.name, AHEAD[1])), AHEAD[1])
        # As little as the gap allows is to drop all, as far as it allows that: no coin need be tossed.
        drop = 1.0 if share <= 1 - self._qos(output).most + CLOSE else 1 - share
        if output.name in self.valued and output.name not in state.off:
            drop = 0.0  # By value, not by window.
        return before.planned(self.fates(state, output), drop, first or 0, ahead)

    def _first(self, output: Outgoing, bound: int | None, oldest: Mapping[str, int]) -> int | None:
        """The first window whose fate is open: of a stream that has just begun, that of its oldest event."""
        if newest := [self.state.newest[n] for n in output.clocks if n in self.state.newest]:
            return output.number(max(newest)) + 1
        found = [oldest[n] for n in output.clocks if n in oldest]
        ticks = [*([] if bound is None else [bound]), *([min(found)] if found else [])]
        return output.number(max(ticks)) if ticks else None

    def _random(self, shares: Mapping[str, float]) -> dict[str, float]:
        """The share of events of each source that go by chance: where all that reads it takes that."""
        found: dict[str, float] = {}
        for source in self.plan.sources:
            reached = [o for o in self.outputs if _reaches(self.plan, source.id, o.exit.root)]
            if reached and all(source.id in o.chance and not o.label and o.name not in self.valued for o in reached):
                kept = max(shares[o.name] for o in reached)
                if kept < 1:
                    found[source.id] = round(1 - kept, 12)
        return found

    @property
    def begins(self) -> bool:
        """Whether nothing is known yet of where streams are."""
        known = any(o.next is not None for o in self.state.outlooks.values())
        return self.active and not self.state.newest and not known

    def patterns(self, epoch: int, state: ShedState) -> Places:
        """By place what nobody need look at in an epoch, found in the way of feedback."""
        told = {name: (o.unwanted, o.next, o.until, state.values.get(name)) for name, o in state.outlooks.items()}
        told |= {name: ((), None, 0, v) for name, v in state.values.items() if name not in told}
        known, found = self._patterns.get(epoch, ({}, {}))
        if known != told:
            guards = Guards(self.plan)
            guards.begin(epoch)
            for output in self.outputs:
                for pattern in self._unwanted(output, state):
                    dropped = Feedback(Intent.ASSUMED, pattern)
                    guards.tell(output.exit.root, dropped, edge=output.exit.edge, by="shed")
            self._patterns = {e: p for e, p in self._patterns.items() if e >= epoch - 2}
            found = guards.patterns
            self._patterns[epoch] = told, found
        return found

    def _unwanted(self, output: Outgoing, state: ShedState) -> Iterator[Pattern]:
        """What of an output nobody need look at."""
        schema = self.plan[output.exit.root].operator.schema
        outlook, window, values = state.outlooks.get(output.name), output.window, state.values.get(output.name)
        if outlook is not None and window is not None and outlook.unwanted:
            t = schema.type_of(output.label)
            labels = one_of(from_tick(window.start(n), t) for n in numbers(outlook.unwanted))
            yield Pattern.by_name(schema, {output.label: labels})
        if values is None:
            return
        attribute = self.valued[output.name].attribute
        if window is None:
            yield from (Pattern.by_name(schema, {attribute: r}) for r in restrictions(values.ahead, schema, attribute))
        elif outlook is not None and outlook.next is not None:
            yield from values.patterns(schema, attribute, output.label, window, outlook.next, outlook.until)

    def dropping(self, plan: EpochPlan) -> Dropping | None:
        """What the tasks of an epoch are told."""
        if not self.active:
            return None
        state = ShedState.from_json(plan.shed) if plan.shed else ShedState()
        return Dropping(self.patterns(plan.epoch, state), self.clocks, state.random, state.seed, self._counted)

    @cached_property
    def _counted(self) -> dict[str, tuple[str, tuple[Restriction, ...]]]:
        """By sink, what tasks count the results by."""
        found = {}
        for output in self.outputs:
            if (graph := self.valued.get(output.name)) is not None:
                schema = self.plan[output.exit.root].operator.schema
                spans = tuple((s.low, s.high, True) for s in pieces(graph))
                found[output.name] = graph.attribute, tuple(restrictions(spans, schema, graph.attribute))
        return found

    # --- after its events were read -----------------------------------------------------------------------------

    def saw(self, begun: Begun, reports: Sequence[TaskReport]) -> None:
        """Take note of how new the events of an epoch are; what was planned for windows that have begun now holds."""
        if not self.active:
            return
        newest: dict[str, int] = {}
        for report in reports:
            for name, tick in report.account.newest.items():
                newest[name] = max(tick, newest.get(name, tick))
        blind = self._unread(begun, newest)
        self.state = self.state.seen(newest)
        settled: dict[str, Settled] = {}
        outlooks, tallies, values = dict(self.state.outlooks), dict(self.state.tallies), dict(self.state.values)
        for output in self.outputs:
            if output.name not in outlooks:
                continue
            outlook, fates = outlooks[output.name], self.fates(self.state, output)
            ticks = [self.state.newest[n] for n in output.clocks if n in self.state.newest]
            last = max((output.number(t) for t in ticks), default=None)
            if blind & {source for source, _ in output.times}:
                # What was not read may have been of any of the windows that were told away.
                last = max(outlook.until - 1, outlook.until - 1 if last is None else last)
            if last is None:
                continue
            done, outlooks[output.name] = outlook.passed(fates, last)
            if done is not None:
                settled[output.name] = done
                if output.name in values:
                    values[output.name] = values[output.name].passed(done)
                tallies[output.name] = tallies.get(output.name, WindowTally()).with_settled(done)
                self._gone_through[output.name] = max(done.windows, self._gone_through.get(output.name, 0) // 2)
        begun.settled = self.settled = settled
        self.state = replace(self.state, outlooks=outlooks, tallies=tallies, values=values)
        begun.shed_state = self.state.to_json()

    def counted(self, begun: Begun, reports: Sequence[TaskReport]) -> None:
        """Take note of how often values have occurred among the results of an epoch."""
        values = dict(self.state.values)
        for name in self.valued:
            counts = [r.account.values[name] for r in reports if name in r.account.values]
            if counts:
                values[name] = values.get(name, ValueDrops()).counted([sum(n) for n in zip(*counts, strict=True)])
        if values != self.state.values:
            self.state = replace(self.state, values=values)
            begun.shed_state = {**begun.shed_state, "values": {n: v.to_json() for n, v in values.items()}}

    def _unread(self, begun: Begun, newest: dict[str, int]) -> set[str]:
        """Add what is known of the parts of files that were passed over; the sources of which it is not known."""
        blind = set[str]()
        for source, attributes in self.clocks.items():
            for split in begun.plan.splits.get(source, ()):
                if not split["spared"]:
                    continue
                if split["high"] is None or len(attributes) > 1 or attributes[0] != self._measured(source):
                    blind.add(source)
                else:
                    name = f"{source}.{attributes[0]}"
                    newest[name] = max(split["high"], newest.get(name, split["high"]))
        return blind

    def _measured(self, source: str) -> str | None:
        """The attribute of which splits of a source tell the newest tick."""
        operator = self.plan[source].operator
        return measured_attribute(operator.schema, getattr(operator, "promises", ()))

    # --- at a start ---------------------------------------------------------------------------------------------

    def restore(self, stored: Mapping[str, Any], epoch: int) -> None:
        """Go on from a manifest, or from a plan that was written and is to be run."""
        if not self.active:
            return
        if stored:
            self.state = ShedState.from_json(stored)
        elif epoch and any(is_weighted(n.operator) for n in self.plan.nodes):
            raise UserError(
                "shedding cannot begin in the middle of a run that corrects its results: what it has told would stay",
                hint="start it with a new checkpoint, or leave shedding= and qos= out",
            )

    def _warn(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.warnings.append(text)


def _reaches(plan: Plan, source: str, root: str) -> bool:
    stack, seen = [root], {root}
    while stack:
        if (top := stack.pop()) == source:
            return True
        more = [i for i in plan[top].inputs if i not in seen]
        stack += more
        seen.update(more)
    return False
