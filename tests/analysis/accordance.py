"""Accordances: one contract for each operator of a plan, so that on every edge what arrives is what is wanted.

Every operator brings an *offering*, the contracts it could run under. A choice of one contract each is *consistent* if,
on every edge, the scheme the operator before it delivers is the scheme the one behind it asks for, and the feedback
goes together too (⪯). A plan may run if there is a consistent accordance.

Offerings are tables, and consistency is an equijoin. A *semijoin* strikes from one operator's offering what finds no
partner across an edge. On a tree, one pass with the stream and one against it leave exactly the contracts that occur in
some accordance: 2n − 2 semijoins, each linear in the size of the offerings, thanks to an index by scheme. Where streams
part and meet again that is not enough: then the contract of an operator on the cycle is fixed, each in turn, until the
operators that still have a choice form trees. Cycles that share no more than one operator do not multiply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from accepting import ANY_FEEDBACK, NO_FEEDBACK, Feedback, accommodates
from contracts import Contract
from disaccord import Edge, Node, Port, Refusal


@dataclass(frozen=True)
class Accordance:
    """A consistent accordance: the witness prefers, in the direction of the stream, what offerings name first.

    `reduced` are the offerings after all semijoins. On a tree these are the contracts that occur in some accordance;
    elsewhere all of these are among them.
    """

    witness: Mapping[Node, Contract]
    reduced: Mapping[Node, tuple[Contract, ...]]
    semijoins: int = 0


def fits(source: Contract, target: Contract, edge: Edge) -> bool:
    """Whether two contracts agree on an edge between their operators."""
    return source.outputs[edge.output] == target.inputs[edge.input] and accommodates(
        source.feedback_in[edge.output], target.feedback_out[edge.input]
    )


def accord(offerings: Mapping[Node, Sequence[Contract]], edges: Iterable[Edge]) -> Accordance | Refusal:
    """A consistent accordance of a plan, or why there is none. Contracts that are not well-formed are not considered.

    >>> up, each = "{[[a:+, b:-]]}", "{[[a:#, b:-]]}"
    >>> passes = [Contract.parse(f"{s} -> {s}") for s in (each, up)]
    >>> found = accord({"c": passes, "a": passes, "b": passes[1:]}, [Edge("c", "a"), Edge("a", "b")])
    >>> print(found.witness["c"], len(found.reduced["a"]))
    {[[a:+, b:-]]} -> {[[a:+, b:-]]} 1
    >>> print(accord({"c": passes[:1], "b": passes[1:]}, [Edge("c", "b")]))
    from c arrives {[[a:#, b:-]]}, but b needs {[[a:+, b:-]]}
    """
    network = _Network(offerings, tuple(edges))
    domains = [list(range(len(offered))) for offered in network.offered]
    for node, domain in zip(network.nodes, domains, strict=True):
        if not domain:
            return Refusal(node)
    if (stuck := network.reduce(domains, network.passes())) is not None:
        return stuck
    reduced = network.read(domains)
    found = network.search(domains, range(len(domains)))
    if found is None:
        assert network.furthest is not None
        return network.furthest[1]
    network.settle(found)
    witness = {node: offered[0] for node, offered in network.read(found).items()}
    return Accordance(witness, reduced, network.semijoins)


#: What contracts say about the ports of a link, as numbers: the schemes, and the feedback.
_Key = tuple[tuple[int, ...], tuple[int, ...]]
_ANY, _NONE = 0, 1
_Domains = list[list[int]]
_Given = tuple[tuple[Node, Contract], ...]


@dataclass(frozen=True)
class _Link:
    """All edges from one operator to another, with the keys of the contracts of both."""

    source: int
    target: int
    edges: tuple[Edge, ...]
    source_keys: tuple[_Key, ...]
    target_keys: tuple[_Key, ...]


class _Network:
    """A plan in numbers: operators in the direction of the stream, contracts by their place in an offering."""

    def __init__(self, offerings: Mapping[Node, Sequence[Contract]], edges: tuple[Edge, ...]) -> None:
        self.nodes = _in_stream_order(offerings, edges)
        self.offered = [tuple(c for c in offerings[node] if c.well_formed) for node in self.nodes]
        self.semijoins = 0
        #: The refusal that came furthest with the stream, and how far that was.
        self.furthest: tuple[int, Refusal] | None = None
        self._numbers: dict[Feedback, int] = {ANY_FEEDBACK: _ANY, NO_FEEDBACK: _NONE}
        place = {node: i for i, node in enumerate(self.nodes)}
        between: dict[tuple[int, int], list[Edge]] = {}
        for edge in edges:
            between.setdefault((place[edge.source], place[edge.target]), []).append(edge)
        self.links = [
            self._link(source, target, tuple(found))
            for (source, target), found in sorted(between.items(), key=lambda item: (item[0][1], item[1][0].input))
        ]
        self.touching: list[list[int]] = [[] for _ in self.nodes]
        for number, link in enumerate(self.links):
            self.touching[link.source].append(number)
            self.touching[link.target].append(number)

    def _link(self, source: int, target: int, edges: tuple[Edge, ...]) -> _Link:
        def number(said: Feedback) -> int:
            return self._numbers.setdefault(said, len(self._numbers))

        try:
            from_source = tuple(
                (
                    tuple(number(c.outputs[e.output]) for e in edges),
                    tuple(number(c.feedback_in[e.output]) for e in edges),
                )
                for c in self.offered[source]
            )
            to_target = tuple(
                (tuple(number(c.inputs[e.input]) for e in edges), tuple(number(c.feedback_out[e.input]) for e in edges))
                for c in self.offered[target]
            )
        except IndexError:
            raise ValueError(f"a contract has no port for {' or '.join(map(str, edges))}") from None
        return _Link(source, target, edges, from_source, to_target)

    def read(self, domains: _Domains) -> dict[Node, tuple[Contract, ...]]:
        rows = zip(self.nodes, self.offered, domains, strict=True)
        return {node: tuple(offered[c] for c in domain) for node, offered, domain in rows}

    def passes(self) -> list[tuple[int, int]]:
        """Every link once with the stream, once against it. On a tree of streams that meet this reduces fully."""
        forward = [(number, link.target) for number, link in enumerate(self.links)]
        back = sorted(enumerate(self.links), key=lambda item: item[1].source, reverse=True)
        return [*forward, *((number, link.source) for number, link in back)]

    def reduce(
        self, domains: _Domains, agenda: Iterable[tuple[int, int]], within: Collection[int] | None = None
    ) -> Refusal | None:
        """Semijoins until nothing more can be struck; the refusal if an operator is left without a contract.

        `within` keeps to some operators: enough where only these are asked about.
        """
        pending = dict.fromkeys(agenda)
        while pending:
            number, node = next(iter(pending))
            del pending[number, node]
            if within is not None and node not in within:
                continue
            kept = self._semijoin(domains, self.links[number], node)
            if len(kept) == len(domains[node]):
                continue
            if not kept:
                return self._refusal(domains, self.links[number], node)
            domains[node] = kept
            # What already waits keeps its place, so that the two passes over a tree are not repeated.
            pending.update(dict.fromkeys(self._around(node, but=number)))
        return None

    def _around(self, node: int, but: int | None = None) -> Iterator[tuple[int, int]]:
        for number in self.touching[node]:
            if number != but:
                link = self.links[number]
                yield number, link.target if link.source == node else link.source

    def _semijoin(self, domains: _Domains, link: _Link, node: int) -> list[int]:
        """The contracts of one end of a link that find a partner at the other end."""
        self.semijoins += 1
        behind = node == link.target
        mine, theirs = (link.target_keys, link.source_keys) if behind else (link.source_keys, link.target_keys)
        partners: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for c in domains[link.source if behind else link.target]:
            schemes, feedback = theirs[c]
            partners.setdefault(schemes, set()).add(feedback)
        return [c for c in domains[node] if _matched(mine[c][1], partners.get(mine[c][0]), behind)]

    def _refusal(self, domains: _Domains, link: _Link, node: int) -> Refusal:
        sources, targets = ([self.offered[end][c] for c in domains[end]] for end in (link.source, link.target))
        # Several edges between the same two operators may fail together only; then the last one is named.
        broken = (e for e in link.edges if not any(fits(s, t, e) for s in sources for t in targets))
        edge = next(broken, link.edges[-1])
        arrives = dict.fromkeys(Port(c.outputs[edge.output], c.feedback_in[edge.output]) for c in sources)
        wanted = dict.fromkeys(Port(c.inputs[edge.input], c.feedback_out[edge.input]) for c in targets)
        return Refusal(self.nodes[node], edge, tuple(arrives), tuple(wanted))

    def search(self, domains: _Domains, scope: Collection[int], given: _Given = ()) -> _Domains | None:
        """Fix contracts until those operators in scope that have a choice form trees. None if no way of it works.

        Knots hang together like a tree, by single operators. From the leaves on, each strikes from the operator it
        hangs by what it cannot go along with. Then, from the root on, any way to untie one of them will do.
        """
        knots = self._knots(domains, scope)
        domains, before = [*domains], self.furthest
        for knot, joint, last in knots:
            if last:
                continue  # Nothing hangs on what the others may do.
            kept = [c for c in domains[joint] if self._fixed(domains, joint, c, knot, given) is not None]
            if not kept:
                return None
            domains[joint], self.furthest = kept, before
            if (stuck := self.reduce(domains, self._around(joint), scope)) is not None:
                self._note(stuck, given)
                return None
        for knot, _, _ in reversed(knots):
            untied = self._untied(domains, knot, given)
            if untied is None:
                return None
            domains, self.furthest = untied, before  # What failed on the way was not the reason.
            stuck = self.reduce(domains, [visit for node in knot for visit in self._around(node)], scope)
            assert stuck is None
        return domains

    def _untied(self, domains: _Domains, knot: Mapping[int, int], given: _Given) -> _Domains | None:
        open_ = [node for node in knot if len(domains[node]) > 1]
        if len(open_) < 3:
            return domains  # No cycle is left.
        cut = min(open_, key=lambda node: log(len(domains[node])) / (knot[node] - 1))
        ways = (self._fixed(domains, cut, c, knot, given) for c in domains[cut])
        return next((way for way in ways if way is not None), None)

    def _fixed(self, domains: _Domains, node: int, c: int, knot: Mapping[int, int], given: _Given) -> _Domains | None:
        """The knot with one operator under a given contract, untied; None if it does not go."""
        trial = [*domains]
        trial[node] = [c]
        given = (*given, (self.nodes[node], self.offered[node][c]))
        if (stuck := self.reduce(trial, self._around(node), knot)) is not None:
            self._note(stuck, given)
            return None
        return self.search(trial, knot, given)

    def _note(self, stuck: Refusal, given: _Given) -> None:
        assert stuck.edge is not None
        far = self.nodes.index(stuck.edge.target)
        if self.furthest is None or far > self.furthest[0]:
            self.furthest = far, replace(stuck, given=given)

    def _knots(self, domains: _Domains, scope: Iterable[int]) -> list[tuple[dict[int, int], int, bool]]:
        """The biconnected parts among operators that have a choice, leaves first.

        For each: its operators with their degrees, the operator by which it hangs on the next, whether it is a root.
        """
        choice = {node for node in scope if len(domains[node]) > 1}
        beside = {node: [other for _, other in self._around(node) if other in choice] for node in choice}
        knots = []
        for found, joint, last in blocks(beside):
            if len(found) > 2:
                knots.append(({node: len(found & set(beside[node])) for node in found}, joint, last))
        return knots

    def settle(self, domains: _Domains) -> None:
        """Choose one contract for each operator. On trees no choice has to be taken back."""
        for node in range(len(domains)):
            if len(domains[node]) > 1:
                domains[node] = domains[node][:1]
                stuck = self.reduce(domains, self._around(node))
                assert stuck is None


def _matched(feedback: tuple[int, ...], partners: set[tuple[int, ...]] | None, behind: bool) -> bool:
    """Whether one of the partners, which agree on the schemes, goes together with some feedback (⪯)."""
    if not partners:
        return False
    if feedback in partners:
        return True
    if len(feedback) == 1:  # The usual case, without a look at each partner.
        wild, free = (_NONE, _ANY) if behind else (_ANY, _NONE)
        return feedback[0] == wild or (free,) in partners
    pairs = (zip(p, feedback, strict=True) if behind else zip(feedback, p, strict=True) for p in partners)
    return any(all(came in (_ANY, went) or went == _NONE for came, went in pair) for pair in pairs)


def blocks(beside: Mapping[int, Sequence[int]]) -> list[tuple[set[int], int, bool]]:
    """The biconnected components of an undirected graph, each before the one it hangs on.

    With each comes the node by which it hangs, and whether it is the root, the last one of its connected part.

    >>> [(sorted(block), joint) for block, joint, _ in blocks({1: [2], 2: [1, 3, 4], 3: [2, 4], 4: [2, 3]})]
    [([2, 3, 4], 2), ([1, 2], 1)]
    """
    found: list[tuple[set[int], int, bool]] = []
    depth: dict[int, int] = {}
    low: dict[int, int] = {}
    for root in sorted(beside):
        if root in depth:
            continue
        depth[root] = low[root] = 0
        path, open_ = [(root, iter(beside[root]))], [root]
        while path:
            node, others = path[-1]
            for other in others:
                if other not in depth:
                    depth[other] = low[other] = len(path)
                    path.append((other, iter(beside[other])))
                    open_.append(other)
                    break
                low[node] = min(low[node], depth[other])
            else:
                path.pop()
                if not path:
                    break
                above = path[-1][0]
                low[above] = min(low[above], low[node])
                if low[node] >= depth[above]:
                    at = open_.index(node)
                    found.append(({above, *open_[at:]}, above, False))
                    del open_[at:]
        if found and found[-1][1] == root:
            found[-1] = (*found[-1][:2], True)
    return found


def _in_stream_order(offerings: Mapping[Node, Sequence[Contract]], edges: tuple[Edge, ...]) -> list[Node]:
    if unknown := [n for e in edges for n in (e.source, e.target) if n not in offerings]:
        raise ValueError(f"an edge leads to {unknown[0]}, which offers nothing")
    if twice := [e for e, n in Counter((e.target, e.input) for e in edges).items() if n > 1]:
        raise ValueError(f"two edges lead to input {twice[0][1]} of {twice[0][0]}")
    missing = Counter(e.target for e in edges)
    behind: dict[Node, list[Node]] = {}
    for edge in edges:
        behind.setdefault(edge.source, []).append(edge.target)
    order = [n for n in offerings if not missing[n]]
    for node in order:  # Grows while it is read.
        for target in behind.get(node, ()):
            missing[target] -= 1
            if not missing[target]:
                order.append(target)
    if len(order) < len(offerings):
        raise ValueError(f"the plan has a cycle through {next(n for n in offerings if missing[n])}")
    return order
