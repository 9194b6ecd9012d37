"""Contracts and their forms: the worked contracts, realizable and not."""

from __future__ import annotations

import pytest
from accepting import ANY_FEEDBACK, NO_FEEDBACK
from contracts import GCF, Blueprint, Contract, Form, Grouping, Joining, Selecting, realizable

from penstock.contract.template import Scheme
from penstock.errors import UserError

SELECT = (GCF[1], Selecting())
STATEFUL_SELECT = (*SELECT, Selecting(remembers=True))
PROJECT = (GCF[2],)
WINDOW = (GCF[5].bind(w="b", v="WID"),)


def join(*on: str) -> tuple[Form, ...]:
    return GCF[3].bind(J=on), GCF[4].bind(J=on), Joining(frozenset(on))


def count(*by: str) -> tuple[Form, ...]:
    single = (GCF[9].bind(g=by),) if len(by) == 1 else ()
    return GCF[6].bind(G=by), GCF[7].bind(G=by), GCF[8].bind(G=by), *single, Grouping(frozenset(by))


A, B = "[[a:+, b:-, c:-]]", "[[a:-, b:#, c:-]]"
TABLE: list[tuple[str, tuple[Form, ...], str, bool]] = [
    ("CT1", SELECT, f"{{{A}}} -> {{{A}}}", True),
    ("CT2", SELECT, f"{{{A}, {B}}} -> {{{A}, {B}}}", True),
    ("CT3", SELECT, f"{{{A}, {B}}} -> {{{A}}}", True),
    ("CT4", STATEFUL_SELECT, f"{{{A}, {B}}} -> {{[[a:+, b:#, c:-]]}}", True),
    ("CT4 without memory", SELECT, f"{{{A}, {B}}} -> {{[[a:+, b:#, c:-]]}}", False),
    ("CT5", join("b"), "{[[a:-, b:+]]}; {[[b:+, c:-]]} -> {[[a:-, b:+, c:-]]}", True),
    ("CT6", STATEFUL_SELECT, f"{{{A}}} -> {{{B}}}", False),
    ("CT7", SELECT, "{[[a:-, b:+]]} -> {[[a:-, b:+]]}", True),
    ("CT8", SELECT, "{[[b:+, c:-]]} -> {[[b:+, c:-]]}", True),
    ("CT9", PROJECT, "{[[a:+, b:-]]} -> {[[a:+]]}", True),
    ("CT10", join("b"), "{[[a:-, b:+]]}; {[[b:+, c:-]]} -> {[[a:-, b:+, c:-]]}", True),
    ("CT11", join("b"), "{[[a:-, b:#]]}; {[[b:#, c:-]]} -> {[[a:-, b:#, c:-]]}", True),
    ("CT12", join("b"), "{[[a:#, b:-]]}; {[[b:-, c:#]]} -> {[[a:#, b:-, c:#]]}", False),
    ("CT13", join("b"), "{[[a:-, b:+]]}; {[[b:+, c:-]]} -> {[[a:-, b:+, c:-]]}", True),
    ("CT14", join("b"), "{[[a:-, b:#]]}; {[[b:#, c:-]]} -> {[[a:-, b:#, c:-]]}", True),
    ("CT15", join("b", "c"), "{[[a:-, b:+, c:-]]}; {[[b:-, c:+, d:-]]} -> {[[a:-, b:+, c:+, d:-]]}", True),
    ("CT16", WINDOW, "{[[a:-, b:+]]} -> {[[WID:+, a:-, b:-]]}", True),
    ("CT17", count("a"), "{[[a:+, b:-]]} -> {[[a:#, COUNT:-]]}", True),
    ("CT18", count("a"), "{[[a:#, b:-]]} -> {[[a:#, COUNT:-]]}", True),
    ("CT19", count("a"), "{[[a:#, b:-]], [[a:+, b:-]]} -> {[[a:#, COUNT:-]]}", True),
    (
        "CT20",
        PROJECT,
        "{[[a:-, b:+, c:-]]} -> {[[a:-, b:+]]} with feedback {[[a:-, b:+]]} -> {[[a:-, b:+, c:-]]}",
        True,
    ),
    ("CT21", SELECT, "{[[a:-, b:+]]} -> {[[a:-, b:+]]} with feedback ⟲ -> ∅", True),
    # What the blueprints leave out and an operator can keep all the same.
    ("mixed classes on J", join("b", "c"), "{[[a:-, b:+, c:#]]}; {[[b:+, c:#]]} -> {[[a:-, b:+, c:#]]}", True),
    ("one class each side", join("b"), "{[[a:-, b:+]]}; {[[b:#, c:-]]} -> {[[a:-, b:#, c:-]]}", True),
    ("part of the key", count("a", "b"), "{[[a:#, b:-, c:-]]} -> {[[a:#, b:-, COUNT:-]]}", True),
    ("part of the key, time", count("w", "b"), "{[[w:+, b:-, c:-]]} -> {[[w:+, b:-, COUNT:-]]}", True),
    ("beside J, once released", join("b"), "{[[a:#, b:-]], [[a:-, b:+]]}; {[[b:+]]} -> {[[a:#, b:-]]}", True),
    ("count up to", count("a"), "{[[a:+, b:-]]} -> {[[a:+, COUNT:-]]}", True),
    # And what none can keep.
    ("join, one side only", join("b"), "{[[a:-, b:+]]}; {[[b:-, c:+]]} -> {[[a:-, b:+, c:-]]}", False),
    ("join, more than J", join("b"), "{[[a:#, b:+]]}; {[[b:+, c:-]]} -> {[[a:-, b:+, c:-]]}", False),
    ("join out of nothing", join("b"), "{[[a:-, b:#]]}; {[[b:#, c:-]]} -> {[[a:-, b:+, c:-]]}", False),
    ("count beyond the key", count("a"), "{[[a:+, b:#]]} -> {[[a:#, COUNT:-]]}", False),
    ("count, values to up to", count("a"), "{[[a:#, b:-]]} -> {[[a:+, COUNT:-]]}", False),
    ("count, its result", count("a"), "{[[a:#, b:-]]} -> {[[a:-, COUNT:#]]}", False),
    ("project a tagged one out", PROJECT, "{[[a:+, b:#]]} -> {[[a:+]]}", False),
    ("window without progress", WINDOW, "{[[a:-, b:#]]} -> {[[WID:#, a:-, b:-]]}", False),
    ("window on another", WINDOW, "{[[a:+, b:-]]} -> {[[WID:+, a:-, b:-]]}", False),
]


@pytest.mark.parametrize(("forms", "text", "expected"), [t[1:] for t in TABLE], ids=[t[0] for t in TABLE])
def test_the_table_of_contracts(forms: tuple[Form, ...], text: str, expected: bool) -> None:
    contract = Contract.parse(text)
    assert realizable(contract, *forms) is expected
    assert str(contract) == text and Contract.parse(str(contract)) == contract


#: Which of the blueprints alone know the contract.
INSTANCES = {"CT1": 1, "CT2": 1, "CT5": 3, "CT7": 1, "CT8": 1, "CT9": 2, "CT10": 3, "CT11": 4, "CT13": 3, "CT14": 4}
INSTANCES |= {"CT16": 5, "CT17": 6, "CT18": 7, "CT19": 8, "CT20": 2, "CT21": 1, "count up to": 9}


@pytest.mark.parametrize(("name", "text"), [(t[0], t[2]) for t in TABLE], ids=[t[0] for t in TABLE])
def test_instances_of_the_blueprints(name: str, text: str) -> None:
    contract = Contract.parse(text)
    among = [n for n, form in GCF.items() if form.admits(contract) and n not in (1, 2)]
    if name in INSTANCES:
        assert GCF[INSTANCES[name]].admits(contract)
        assert among == [n for n in (INSTANCES[name],) if n > 2]
    else:
        assert among in ([], [5]) and not GCF[1].admits(contract)  # CT "window on another" is one of another window.


def test_select_has_nine_templates_over_two_attributes() -> None:
    singles = [f"{{[[a:{x}, b:{y}]]}}" for x in "+#-" for y in "+#-"]
    found = [(i, o) for i in singles for o in singles if GCF[1].admits(Contract.parse(f"{i} -> {o}"))]
    assert len(found) == 9 and all(i == o for i, o in found)


def test_project_may_rearrange_what_it_keeps() -> None:
    assert GCF[2].admits(Contract.parse("{[[a:+, b:-, c:#]]} -> {[[c:#, a:+]]}"))
    assert not GCF[2].admits(Contract.parse("{[[a:+, b:-, c:#]]} -> {[[c:-, a:+]]}"))
    out_b = GCF[2].bind(Y="b")
    assert out_b.admits(Contract.parse("{[[a:+, b:-]]} -> {[[a:+]]}"))
    assert not out_b.admits(Contract.parse("{[[a:-, b:+]]} -> {[[b:+]]}"))
    with pytest.raises(ValueError, match="no attributes J"):
        GCF[2].bind(J="b")


def test_join_attributes_are_pairs_of_names() -> None:
    said = "{[[w:+, s:-, d:-, n:-]]}; {[[w:+, s:-, d:-, m:-]]} -> {[[w:+, s:-, d:-, n:-, m:-]]}"
    assert realizable(Contract.parse(said).renamed(1, {"s": "d", "d": "s"}), *join("w", "s", "d"))
    ended = Contract.parse("{[[w:-, s:#, d:-, n:-]]}; {[[w:-, s:-, d:#, m:-]]} -> {[[w:-, s:#, d:-, n:-, m:-]]}")
    assert realizable(ended.renamed(1, {"s": "d", "d": "s"}), *join("w", "s", "d"))


def test_blocks_are_apart_and_a_small_letter_is_one_attribute() -> None:
    assert not GCF[5].admits(Contract.parse("{[[a:-, b:+]]} -> {[[b:+, a:-]]}"))
    assert not GCF[9].admits(Contract.parse("{[[a:+, b:+, c:-]]} -> {[[a:+, b:+, n:-]]}"))
    assert not GCF[1].admits(Contract.parse("{[[a:+]]}; {[[a:+]]} -> {[[a:+]]}"))
    two = Blueprint("{[[X:+, Y:-]], [[X:-, Y:#]]} -> {[[X:+, Y:#]]}")
    assert two.admits(Contract.parse("{[[a:-, b:#, c:#]], [[a:+, b:-, c:-]]} -> {[[a:+, b:#, c:#]]}"))
    assert not two.admits(Contract.parse("{[[a:-, b:#, c:-]], [[a:+, b:-, c:-]]} -> {[[a:+, b:#, c:-]]}"))


def test_feedback_defaults_to_none_and_must_be_complete() -> None:
    scheme = Scheme.parse("[[a:+]]")
    contract = Contract((scheme, scheme), (scheme,))
    assert (contract.feedback_in, contract.feedback_out) == ((NO_FEEDBACK,), (NO_FEEDBACK,) * 2)
    assert str(Contract((), (scheme,))) == "-> {[[a:+]]}" and Contract.parse("-> {[[a:+]]}").inputs == ()
    with pytest.raises(UserError, match="1 inputs of 2"):
        Contract((scheme, scheme), (scheme,), (), (ANY_FEEDBACK,))
    with pytest.raises(UserError, match="inputs and outputs"):
        Contract.parse("{[[a:+]]}")
