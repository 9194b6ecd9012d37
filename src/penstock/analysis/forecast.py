"""What punctuation will flow: known before a query runs, from what its sources promise.

Values are not known yet, but *forms* are: `ts up to`, `trip: each value`. A form travels as its punctuations will, by
the rules of `through`, `behave` and `meet`. Where no form ever releases the state of an operator, it is said so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Literal

from penstock.contract import template
from penstock.contract.flow import Flow, Verdict
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.impute.operator import Impute
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.meeting import Meeting, meeting_of
from penstock.operators.join.operator import Join
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.process.operator import Process
from penstock.operators.project.operator import Project
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.label import awaited
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.domain import Domains, domains
from penstock.plan.operator import Operator
from penstock.plan.promise import (
    Adaptive,
    After,
    Bounds,
    Declared,
    Disorder,
    EndOfSource,
    InBand,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)
from penstock.plan.spec import spec_of, traits_of
from penstock.plan.window import CountWindow

if TYPE_CHECKING:
    from penstock.plan.plan import Plan

#: "up to" grows with the stream, "value" comes value by value, "bounds" is said once at the start and releases nothing.
Class = Literal["up to", "value", "bounds"]

_TEXTS: dict[Class, str] = {"up to": "{} up to", "value": "{}: each value", "bounds": "{} outside its bounds"}
#: The same in the words of contracts.
_TO_CLASS: dict[Class, template.Class] = {"up to": "+", "value": "#"}
_OF_CLASS: dict[template.Class, Class] = {"+": "up to", "#": "value", "range": "value"}
#: How many combinations of forms of several inputs are looked at.
_MOST = 64


@dataclass(frozen=True)
class Form:
    """Punctuations that look alike: how each attribute is restricted. Without any it is the end of the stream.

    A form that is `open` comes from the data: anything may be promised there.

    >>> print(Form((("ts", "up to"), ("sensor", "value"))), "|", Form())
    ts up to + sensor: each value | everything, at the end
    """

    parts: tuple[tuple[str, Class], ...] = ()
    open: bool = False

    @property
    def attributes(self) -> dict[str, Class]:
        return dict(self.parts)

    @property
    def ends(self) -> bool:
        """Whether it says that the stream is over."""
        return not self.parts and not self.open

    @property
    def releases(self) -> bool:
        """Whether it can release anything while the stream goes on."""
        return self.open or bool(self.parts and all(c != "bounds" for _, c in self.parts))

    def on(self, names: Mapping[str, str]) -> Form | None:
        """The form on attributes under other names, None if one has none."""
        if not all(n in names for n, _ in self.parts):
            return None
        return Form(tuple((names[n], c) for n, c in self.parts), self.open)

    def __str__(self) -> str:
        if self.open:
            return "what the data says"
        return " + ".join(_TEXTS[c].format(n) for n, c in self.parts) or "everything, at the end"


Forms = tuple[Form, ...]


def forecast(plan: Plan) -> dict[str, Forms]:
    """The forms of punctuation behind each operator of a plan, by its id."""
    found: dict[str, Forms] = {}
    for node in plan.nodes:
        found[node.id] = _behind(node.operator, [found[i] for i in node.inputs])
    return found


def releases(plan: Plan) -> dict[str, tuple[str, ...]]:
    """What each operator that keeps state will release, and on which punctuation; or that it never will."""
    forms = forecast(plan)
    found: dict[str, tuple[str, ...]] = {}
    for node in plan.nodes:
        below = [forms[i] for i in node.inputs]
        match node.operator:
            case Aggregate() as a:
                needed = [n for k in a.keys for n in _named(a, k)]
                lines: tuple[str, ...] = (_said("groups", _groups(a, below[0]), needed),)
            case Distinct():
                lines = (_said("rows", below[0], ()),)
            case Impute() as q:
                lines = (f"queued events: {q.budget:,} an epoch",)
            case OrderBy() as o if o.slack is not None:
                lines = (f"rows: the first of {o.slack + 1:,} in order, as events arrive",)
            case OrderBy() as o:
                lines = (_said("sorted prefix", _prefixes(o, below[0]), [o.by[0][0]]),)
            case Top() as t:
                needed = awaited(t)
                lines = (_said("groups", _described(below[0], t.per, domains(t.inputs[0])), needed),)
            case Process() as p:
                lines = (_said("keys", _described(below[0], p.by, domains(p.inputs[0])), p.by),)
            case RowsJoin() as j:
                lines = _rows_join_lines(j, below)
            case Join() | MultiJoin() as j:
                lines = _join_lines(j, below, node.inputs)
            case Source() | Select() | Project() | Map() | TableJoin() | Union() | Pace() | Instrument() | Bucket():
                continue
            case Limit() | Sink():
                continue
            case other:
                if not traits_of(other).keeps_state:
                    continue
                lines = _by_contract(other, below).why
        found[node.id] = lines
    return found


def _said(what: str, forms: Sequence[Form], needed: Iterable[str], of: str = "") -> str:
    """`groups: on ts up to`; if nothing comes but the end, or not even that, what is missing."""
    on = [f for f in forms if f.releases]
    if on:
        return f"{what}: on {of}{' or '.join(f'`{f}`' for f in on)}"
    names = " or ".join(f"`{n}`" for n in dict.fromkeys(needed))
    missing = f"nothing {'of ' + of if of else ''}promises {names or 'anything'}"
    if any(f.ends for f in forms):
        return f"{what}: only at the end: {missing}"
    return f"{what}: never: {missing}"


# --- how forms travel -------------------------------------------------------------------------------------------------


def _behind(operator: Operator, below: Sequence[Forms]) -> Forms:
    match operator:
        case Source():
            told = any(isinstance(p, Declared) for p in operator.promises)
            forms = (f for p in operator.promises for f in _promised(p))
            return _least(f for f in forms if not (f.open and told))  # Declared: nothing else comes in band.
        case Project():
            renames = operator.renames
            kept = _described(below[0], list(renames), domains(operator.inputs[0]))
            moves = ([dict(zip(f.attributes, to, strict=True)) for to in _targets(f, renames)] for f in kept)
            return _least(g for f, names in zip(kept, moves, strict=True) for m in names if (g := f.on(m)) is not None)
        case Map():
            return _least(f for f in below[0] if f.open or set(f.attributes) <= set(operator.keeps))
        case Bucket():
            return _through_bucket(operator, below[0])
        case Aggregate():
            return _groups(operator, below[0])
        case OrderBy():
            return _prefixes(operator, below[0])
        case Limit():
            return _least([*below[0], Form()])  # When the limit is reached, that is the end.
        case Top():
            return _least(_described(below[0], operator.per, domains(operator.inputs[0])))
        case Process():
            ending = _described(below[0], operator.by, domains(operator.inputs[0]))
            return _least(f for f in ending if f.open or set(f.attributes) <= set(operator.kept))
        case Union():
            return _least(_met(below))
        case Pace():
            return _least([Form(((operator.on, "up to"),)), *_met(below)])
        case RowsJoin():
            return _behind_rows_join(operator, below)
        case Join() | MultiJoin():
            return _behind_join(operator, below)
        case Select() | TableJoin() | Distinct() | Instrument() | Sink():
            return below[0]  # Whoever lets events pass or drops them lets every punctuation pass.
        case _:
            flow = _by_contract(operator, below).behind
            passed = (Form(tuple((n, _OF_CLASS[c]) for n, c in sorted(t) if c in _OF_CLASS)) for t in flow.promised)
            return _least([*passed, *([Form(open=True)] if flow.open else []), *([Form()] if flow.ends else [])])


def _by_contract(operator: Operator, below: Sequence[Forms]) -> Verdict:
    """What the contract of an operator says, which is all that is known of one that is from outside."""
    flows = [
        Flow(
            under.schema,
            promised={
                frozenset((n, _TO_CLASS[c]) for n, c in f.parts): frozenset() for f in forms if f.parts and f.releases
            },
            open=any(f.open for f in forms),
            ends=any(f.ends for f in forms),
            finite=domains(under),
        )
        for under, forms in zip(operator.inputs, below, strict=True)
    ]
    return spec_of(operator).judge(operator, flows)


def _promised(promise: Promise) -> list[Form]:
    match promise:
        case Disorder() | Adaptive() | WithinRows():
            return [Form(((promise.attribute, "up to"),))]
        case WhenAll():
            return [Form(((promise.past, "up to"),))]
        case After() | Once():
            return [Form(((promise.key, "value"),))]
        case Bounds():
            return [Form(((promise.attribute, "bounds"),))]
        case InBand():
            return [Form(open=True)]
        case Declared():
            return [Form(tuple((n, _OF_CLASS[c]) for n, c in t if c in _OF_CLASS)) for t in promise.templates]
        case EndOfSource():
            return [Form()]
        case _:  # How often, which values there are, what is measured: no punctuation by itself.
            return []


def _least(forms: Iterable[Form]) -> Forms:
    """Without forms that say less than another: `ts up to` makes `ts up to + trip: each value` superfluous."""
    unique = list(dict.fromkeys(forms))
    return tuple(
        f
        for f in unique
        if not any(
            g is not f and g.releases and not g.open and g.attributes.items() <= f.attributes.items() for g in unique
        )
    )


def _described(forms: Iterable[Form], attributes: Sequence[str], finite: Domains) -> list[Form]:
    """Forms on some attributes alone: others must have finite domains, whose values all come with time."""
    found = []
    for f in forms:
        beyond = {n: c for n, c in f.parts if n not in attributes}
        if all(n in finite and c != "bounds" for n, c in beyond.items()):
            found.append(Form(tuple((n, c) for n, c in f.parts if n not in beyond), f.open))
    return found


def _targets(form: Form, renames: Mapping[str, tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    return product(*(renames.get(n, ()) for n in form.attributes))


def _through_bucket(operator: Bucket, forms: Forms) -> Forms:
    window = operator.window
    found: list[Form] = []
    for f in forms:
        found.append(f)
        if not isinstance(window, CountWindow) and window.on and f.attributes.get(window.on) == "up to":
            found.append(Form(tuple((window.label if n == window.on else n, c) for n, c in f.parts), f.open))
    return _least(found)


def _ending(operator: Aggregate) -> tuple[str, ...]:
    """A landmark window goes on for a key even when no event of it can come: there only its end counts."""
    return (operator.window.label,) if isinstance(operator, LandmarkAggregate) else operator.keys


def _groups(operator: Aggregate, forms: Forms) -> Forms:
    return _least(_described(forms, _ending(operator), domains(operator.inputs[0])))


def _named(operator: Aggregate, key: str) -> list[str]:
    """What a source would have to promise for a grouping attribute: for the label of a window, its time."""
    below = operator.inputs[0]
    if isinstance(below, Bucket) and key == below.window.label:
        return [below.window.on] if below.window.on else []
    return [key]


def _prefixes(operator: OrderBy, forms: Forms) -> Forms:
    if operator.slack is not None:
        return tuple(f for f in forms if f.ends)
    first, descending = operator.by[0]
    finite = domains(operator.inputs[0])
    found = []
    for f in _described(forms, [first], finite):
        listed = f.attributes.get(first) == "value" and first in finite
        rising = f.attributes.get(first) == "up to" and not descending
        if f.open or f.ends or listed or rising:
            found.append(f)
    return _least(found)


# --- several inputs ---------------------------------------------------------------------------------------------------


def _met(inputs: Sequence[Iterable[Form]]) -> list[Form]:
    """What several inputs promise alike: one form of each, taken together."""
    found = []
    for chosen in islice(product(*inputs), _MOST):
        if len({f.ends for f in chosen}) > 1:
            continue  # One input is over and the other goes on: true in the end, but not what to count on.
        parts: dict[str, Class] = {}
        for name, how in (part for f in chosen for part in f.parts):
            parts[name] = how if name not in parts or how != "up to" else parts[name]
        found.append(Form((), True) if any(f.open for f in chosen) else Form(tuple(parts.items())))
    return found


def _useful(meeting: Meeting, operator: Join | MultiJoin, below: Sequence[Forms], k: int) -> list[Form]:
    side = meeting.sides[k]
    attributes = [*side.keys, *([side.time] if side.time is not None else [])]
    return _described(below[k], attributes, domains(operator.inputs[k]))


def _translated(meeting: Meeting, form: Form, of: int, to: int) -> Form | None:
    """Rows of one side that a form of another settles."""
    mine, other = meeting.sides[of], meeting.sides[to]
    low, high = meeting.reach[to, of]
    names = dict(zip(mine.keys, other.keys, strict=True))
    if mine.time is not None and other.time is not None and mine.time not in names:
        how = form.attributes.get(mine.time)
        if (how == "up to" and high is not None) or (how == "value" and low is not None and low == high):
            names[mine.time] = other.time
    return form.on(names)


def _settling(meeting: Meeting, operator: Join | MultiJoin, below: Sequence[Forms], k: int) -> list[list[Form]]:
    """For each other side, its forms that settle rows of side k."""
    return [
        [f for f in _useful(meeting, operator, below, h) if _translated(meeting, f, h, k) is not None]
        for h in range(len(below))
        if h != k
    ]


def _settled(meeting: Meeting, operator: Join | MultiJoin, below: Sequence[Forms], k: int) -> Forms:
    others = [h for h in range(len(below)) if h != k]
    by_other = zip(others, _settling(meeting, operator, below, k), strict=True)
    moved = [[t for f in forms if (t := _translated(meeting, f, h, k)) is not None] for h, forms in by_other]
    return _least(_met(moved))


def _behind_join(operator: Join | MultiJoin, below: Sequence[Forms]) -> Forms:
    meeting = meeting_of(operator)
    found: list[Form] = []
    for k, side in enumerate(meeting.sides):
        settled = _settled(meeting, operator, below, k)
        out = _met([below[k], settled])
        for f in below[k]:
            # The state is asked for what its side alone has promised: it goes out once what matches is settled.
            alone = side.guarded and set(f.attributes) <= set(side.keys)
            timed = set(f.attributes) == {side.time}
            if f.parts and f.releases and not alone and not timed and any(s.releases for s in settled):
                out.append(f)
        found += [g for f in out if (g := f.on(side.lifted)) is not None]
    return _least(found)


def _join_lines(operator: Join | MultiJoin, below: Sequence[Forms], inputs: Sequence[str]) -> tuple[str, ...]:
    meeting = meeting_of(operator)
    names = ["left", "right"] if isinstance(operator, Join) else list(inputs)
    lines = []
    for k, name in enumerate(names):
        what = f"{name} rows" if isinstance(operator, Join) else f"rows of {name}"
        others = [h for h in range(len(names)) if h != k]
        settling = _settling(meeting, operator, below, k)
        lacking = [(h, f) for h, f in zip(others, settling, strict=True) if not any(g.releases for g in f)]
        if lacking:
            h, forms = lacking[0]
            side = meeting.sides[h]
            bounded = side.time is not None and meeting.reach[k, h][1] is not None
            needed = [*side.keys, *([side.time] if bounded and side.time else [])]
            ends = [f for f in forms if f.ends] if all(any(g.ends for g in s) for s in settling) else []
            lines.append(_said(what, ends, needed, f"{names[h]} "))
        else:
            pairs = zip(others, settling, strict=True)
            on = [_said("", [g for g in f if g.releases], (), f"{names[h]} ").removeprefix(": on ") for h, f in pairs]
            lines.append(f"{what}: on {' and '.join(on)}")
    return tuple(lines)


def _frontiers(operator: RowsJoin, below: Sequence[Forms]) -> list[list[Form]]:
    wanted = [{operator.times[k]: "up to"} for k in (0, 1)]
    return [[f for f in below[k] if f.open or f.ends or f.attributes == wanted[k]] for k in (0, 1)]


def _behind_rows_join(operator: RowsJoin, below: Sequence[Forms]) -> Forms:
    both = _frontiers(operator, below)
    found = []
    if all(any(f.ends for f in side) for side in both):
        found.append(Form())
    names = [next((c.name for c in operator.columns if (k, operator.times[k]) in c.origins), None) for k in (0, 1)]
    if operator.how == "inner" and None not in names and all(any(f.releases for f in side) for side in both):
        found.append(Form(tuple((n, "up to") for n in dict.fromkeys(names) if n is not None)))
    return tuple(found)


def _rows_join_lines(operator: RowsJoin, below: Sequence[Forms]) -> tuple[str, ...]:
    both = _frontiers(operator, below)
    for k, name in enumerate(("left", "right")):
        if not any(f.releases for f in both[k]):
            ends = both[k] if all(any(f.ends for f in side) for side in both) else []
            return (_said("rows", ends, [operator.times[k]], f"{name} "),)
    on = " and ".join(
        f"{name} `{next(f for f in side if f.releases)}`" for name, side in zip(("left", "right"), both, strict=True)
    )
    return (f"rows: on {on}",)
