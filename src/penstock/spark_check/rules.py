"""When Spark lets go of state: its own rules, over a small tree that any streaming plan can be read into.

Spark knows one kind of punctuation, the watermark: a column that is `+` ("up to"). An operator lets go of state only
where that column is in the right place: among the grouping keys, among the deduplication keys, among the join keys, or
in a time range of the join condition that Spark can solve. These rules follow what Spark does, not what could be done,
so that the verdict is about the query as it will run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from penstock.contract.report import Finding, Fix, Output, Report
from penstock.spark_check.join import join_name, judge_join
from penstock.spark_check.plan import (
    Column,
    Custom,
    Deduplicate,
    Expression,
    SparkAggregate,
    SparkJoin,
    SparkLimit,
    SparkNode,
    SparkSource,
    SparkUnion,
    Watermark,
    scheme_of,
    stream_of,
    time_of,
    walk,
)

Mode = Literal["append", "update", "complete"]
_WINDOW = "struct<start:"


@dataclass(frozen=True)
class SparkReport(Report):
    """A report whose text can be read on a terminal."""

    def __str__(self) -> str:
        head = "bounded: state stays bounded and every result appears"
        if (first := self.culprit) is not None:
            head = f"unsafe: {first.operator}: {_verdict(first)}"
        elif any(f.state == "as the data says" for f in self.findings):
            head = "depends on your code: nothing else in this query keeps state for ever"
        lines = [head]
        for found in self.findings:
            lines += ["", f"{found.operator}" + (f"  ({found.detail})" if found.detail else "")]
            lines += [f"  state: {_STATES.get(found.state, found.state)}; output: {found.output}"]
            for label, texts in (("why", found.why), ("add", found.needs), ("assumes", found.assumes)):
                lines += [f"  {label}: {text}" for text in texts]
        return "\n".join(lines)


_STATES = {"as the data says": "depends on your code"}


def _verdict(found: Finding) -> str:
    return "state grows for ever" if found.state == "unbounded" else "no results"


def analyse(plan: SparkNode, mode: Mode = "append", refused: str | None = None) -> SparkReport:
    """The verdict on every operator that keeps state, sources first. `refused` is Spark's reason not to start it.

    >>> ts, k = Column(1, "ts", "timestamp", delay=600_000), Column(2, "k", "int")
    >>> clicks = Watermark((ts, k), (SparkSource((ts, k), name="clicks"),), column=ts, delay="10 minutes")
    >>> print(analyse(Deduplicate((ts, k), (clicks,), keys=(k,))))
    unsafe: dropDuplicates(["k"]): state grows for ever
    <BLANKLINE>
    dropDuplicates(["k"])  (on clicks)
      state: unbounded; output: at once
      why: no key has a watermark: every new value of k is remembered for ever; the watermark on ts is not used
      add: .dropDuplicatesWithinWatermark(["k"]), or .dropDuplicates(["k", "ts"]) if duplicates have the same ts
    """
    findings: list[Finding] = []
    fixes: list[Fix] = []
    edges: dict[str, str] = {}
    clocks = list(dict.fromkeys(stream_of(n) for n in walk(plan) if isinstance(n, Watermark)))
    for node in walk(plan):
        found, more = _judge(node, mode)
        found = _crowded(node, found)
        if found is not None:
            if found.state == "bounded" and len(clocks) > 1:
                all_of = ", ".join(clocks)
                slowest = f"time goes on in all of {all_of}: Spark's watermark is that of the slowest"
                found = replace(found, assumes=(*found.assumes, slowest))
            findings.append(found)
        fixes += more
        if found is not None:
            times = sum(e == found.operator or e.startswith(f"{found.operator} (") for e in edges)
            edges[f"{found.operator} ({times + 1})" if times else found.operator] = scheme_of(node).words
        elif isinstance(node, SparkSource | Watermark):
            edges[stream_of(node)] = scheme_of(node).words
    if refused is not None:
        why = f"Spark refuses to run this query: {refused}"
        findings.append(Finding("the query", f'outputMode("{mode}")', "none", "held back", (why,)))
    return SparkReport(tuple(findings), edges, tuple(dict.fromkeys(fixes)))


def _judge(node: SparkNode, mode: Mode) -> tuple[Finding | None, list[Fix]]:
    if not node.streaming:
        return None, []
    match node:
        case SparkAggregate():
            return _aggregate(node, mode)
        case Deduplicate():
            return _deduplicate(node)
        case SparkJoin() if all(i.streaming for i in node.inputs):
            return judge_join(node)
        case SparkJoin():
            return Finding(join_name(node), "with a table", "none", "at once", ("a table needs no state",)), []
        case Custom():
            return _custom(node), []
        case SparkUnion():
            return _union(node)
        case Watermark():
            return _redefined(node), []
        case SparkLimit():
            why = ("Spark only counts the rows",)
            return Finding(f"limit({node.rows})", f"on {stream_of(node)}", "constant", "at once", why), []
    return None, []


def _aggregate(node: SparkAggregate, mode: Mode) -> tuple[Finding, list[Fix]]:
    names = ", ".join(map(str, node.keys))
    operator = f"SELECT DISTINCT {names}" if node.distinct else f"groupBy({names})"
    detail = f"on {stream_of(node)}, outputMode({mode})"
    finite = "one group in all"
    if node.keys:
        finite = f"{names} can only be true, false or null"
    if all(isinstance(k, Column) and k.type == "boolean" for k in node.keys):
        # No row is ever final, so that in append mode none would appear.
        output: Output = "held back" if mode == "append" else "at once"
        if node.hoards is None:
            return Finding(operator, detail, "constant", output, (finite,)), []
        why = f"{finite}, but {node.hoards} keeps every value of a group, and no group ever goes"
        needs = f"a window of a watermarked time among the keys, or an aggregate in place of {node.hoards}"
        return Finding(operator, detail, "unbounded", output, (why,), (needs,)), []
    marked = [k for k in node.keys if isinstance(k, Column) and k.delay is not None]
    if marked and mode != "complete":
        why = f"a group goes when the watermark on {marked[0]} has passed it"
        return Finding(operator, detail, "bounded", "complete" if mode == "append" else "at once", (why,)), []
    few = f"state grows unless {names} has only so many values in all"
    if mode == "complete":
        why = "complete mode delivers every group in every batch, so it keeps them all, watermark or not"
        needs = 'outputMode("update") or outputMode("append")' + (
            "" if marked else ", with a window of a watermarked time among the keys"
        )
        return Finding(operator, detail, "unbounded", "at once", (why, few), (needs,)), []
    lost, needs, fixes = _group_advice(node, operator)
    why = f"no key has a watermark, so no group ever goes{lost}"
    output = "held back" if mode == "append" else "at once"
    return Finding(operator, detail, "unbounded", output, (why, few), (needs,)), fixes


def _group_advice(node: SparkAggregate, operator: str) -> tuple[str, str, list[Fix]]:
    """What became of the watermark, what to add, and where."""
    time = time_of(node)
    window = time.name if _windowed(time.name, node) else f'window("{time.name}", "1 hour")'
    if time.reach == "none":
        fix = Fix(stream_of(node), f'.withWatermark("{time.name}", "10 minutes")', (operator,))
        has_window = any(isinstance(k, Column) and k.type.startswith(_WINDOW) for k in node.keys)
        return (
            "",
            f"{fix.declaration} on {fix.stream}" + ("" if has_window else f", and {window} among the keys"),
            [fix],
        )
    if time.reach == "here":
        derived = ", ".join(str(k) for k in node.keys if not isinstance(k, Column) or k.derived)
        lost = f"; the watermark on {time.name} is not used" + (f", {derived} does not keep it" if derived else "")
        return lost, f"{window} among the keys", []
    lost = f"; the watermark on {time.name} does not get here"
    if _united(node):
        return lost, ".withWatermark on every input of the union", []
    return lost, f"select {time.name} along to here, and {window} among the keys", []


def _windowed(name: str, node: SparkNode) -> bool:
    columns = node.seen[0] if node.seen else node.inputs[0].columns
    return any(c.name == name and c.type.startswith(_WINDOW) for c in columns)


def _united(node: SparkNode) -> bool:
    return any(isinstance(n, SparkUnion) for n in walk(node))


def _deduplicate(node: Deduplicate) -> tuple[Finding, list[Fix]]:
    listed = "[" + ", ".join(f'"{k}"' for k in node.keys) + "]"
    call = "dropDuplicatesWithinWatermark" if node.within_watermark else "dropDuplicates"
    operator, detail = f"{call}({listed})", f"on {stream_of(node)}"
    marked = [c for c in (node.inputs[0].columns if node.within_watermark else node.keys) if c.delay is not None]
    time = time_of(node)
    if marked:
        why = f"a key goes when the watermark has passed its {marked[0]}"
        if node.within_watermark:
            why = f"a key goes when the watermark on {marked[0]} has passed its first row by the delay"
        never = () if node.within_watermark else (f"{marked[0]} is never null",)
        return Finding(operator, detail, "bounded", "at once", (why,), (), never), []
    names = ", ".join(map(str, node.keys))
    why = f"no key has a watermark: every new value of {names} is remembered for ever"
    within = f".dropDuplicatesWithinWatermark({listed})"
    if time.reach == "here":
        keyed = ", ".join(f'"{k}"' for k in (*node.keys, time.name))
        why += f"; the watermark on {time.name} is not used"
        needs = f"{within}, or .dropDuplicates([{keyed}]) if duplicates have the same {time.name}"
        return Finding(operator, detail, "unbounded", "at once", (why,), (needs,)), []
    if time.reach == "lost":
        why += f"; the watermark on {time.name} does not get here"
        needs = ".withWatermark on every input of the union" if _united(node) else f"select {time.name} along to here"
        return Finding(operator, detail, "unbounded", "at once", (why,), (f"{needs}, and {within}",)), []
    fix = f'.withWatermark("{time.name}", "10 minutes")'
    needs = fix if node.within_watermark or time.name in [k.name for k in node.keys] else f"{fix}{within}"
    output: Output = "held back" if node.within_watermark else "at once"
    return Finding(operator, detail, "unbounded", output, (why,), (needs,)), [Fix(stream_of(node), fix, (operator,))]


def _crowded(node: SparkNode, found: Finding | None) -> Finding | None:
    """Spark stops a query in which an operator with state gets two columns with watermarks from one input."""
    inputs: list[Iterable[Expression]] = []
    if isinstance(node, SparkAggregate):
        inputs = [node.keys]  # The rest of the input does not get past the partial aggregates.
    elif isinstance(node, Deduplicate) or (isinstance(node, SparkJoin) and all(i.streaming for i in node.inputs)):
        inputs = [i.columns for i in node.inputs]
    for columns in inputs:
        names = {c.id: c.name for c in columns if isinstance(c, Column) and c.delay is not None}
        if found is not None and len(names) > 1:
            first, *others = names.values()
            why = (
                f"Spark refuses to run this query: {', '.join(names.values())} have a watermark, and only one may here"
            )
            needs = (
                f"before it .drop({', '.join(repr(o) for o in others)}), or cast what must stay, to keep only {first}"
            )
            found = replace(found, output="held back", why=(*found.why, why), needs=(*found.needs, needs))
    return found


def _redefined(node: Watermark) -> Finding | None:
    earlier = [n for i in node.inputs for n in walk(i) if isinstance(n, Watermark)]
    if not earlier:
        return None
    why = f"Spark refuses to run this query: {stream_of(node)} has a watermark already, on {earlier[0].column}"
    operator = f'withWatermark("{node.column}", "{node.delay}")'
    return Finding(operator, f"on {stream_of(node)}", "none", "held back", (why,), (f"leave out {operator}",))


def _custom(node: Custom) -> Finding:
    keys = ", ".join(map(str, node.keys))
    operator, detail = f"groupBy({keys}).{node.call}", f"on {stream_of(node)}, {node.setting}"
    if node.timed:
        why = "depends on your code: the state of a key goes when your timeout, timer or TTL removes it"
        return Finding(operator, detail, "as the data says", "at once", (why,), (), ("every key is removed in time",))
    why = "depends on your code, which runs for a key only when a row of that key comes: a key that falls silent stays"
    needs = 'a TTL on every state variable (timeMode="processingTime") or a timer that clears it'
    if not node.call.startswith("transformWithState"):
        needs = (
            "GroupStateTimeout.EventTimeTimeout (or ProcessingTimeTimeout), and state.remove() when it has timed out"
        )
    return Finding(operator, detail, "unbounded", "at once", (why,), (needs,))


def _union(node: SparkUnion) -> tuple[Finding | None, list[Fix]]:
    bare = [i for i, n in enumerate(node.inputs) if time_of(node, i).missing]
    if not bare or len(bare) == len(node.inputs):
        return None, []
    named = " and ".join(stream_of(node.inputs[b]) for b in bare)
    why = f"{named} has no watermark of its own; Spark takes the first input's columns, with or without watermark"
    fixes = [
        Fix(stream_of(node.inputs[b]), f'.withWatermark("{time_of(node, b).name}", "10 minutes")', ("union",))
        for b in bare
    ]
    needs = tuple(f"{f.declaration} on {f.stream}, or one watermark after the union" for f in fixes)
    late = (f"rows of {named} do not come later than the watermark of the other inputs: Spark may drop them",)
    return Finding("union", stream_of(node), "none", "at once", (why,), needs, late), fixes
