"""Contracts of a projection: templates under the names that attributes have behind it."""

from __future__ import annotations

from itertools import product

from penstock.contract.flow import Flow, Tags, Verdict, behind, least
from penstock.operators.project.operator import Project


def judge_project(operator: Project, below: Flow) -> Verdict:
    """In: templates that tag only attributes that are kept, Out: the same under their new names.

    An attribute that is kept twice gives a template for each.
    """
    renames = operator.renames
    promised: list[tuple[Tags, frozenset[str]]] = []
    for tags, assumed in below.described(list(renames)).items():
        parts = sorted(tags)
        promised += [
            (frozenset((new, c) for new, (_, c) in zip(names, parts, strict=True)), assumed)
            for names in product(*(renames[n] for n, _ in parts))
        ]
    origins = {new: below.origins[n] for n, names in renames.items() if n in below.origins for new in names}
    return Verdict("none", "at once", behind(operator, below, least(promised), origins))
