"""Crashes around a feedback: guard and purge happen together, or a group would come out with half of its events.

A crash may move the epoch in which a feedback is taken up. So what is compared is not the output of a run that was not
disturbed, but the promise itself: every result is one that comes without feedback too, unaltered and once, and those
that nobody ignores are all there.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from forked import kill_at_steps
from plug import EveryStepOnce, Hook, Seeded, run_to_the_end
from scenario import IGNORED, TOLD, UNTOLD, orphans, outcome, state_named

from penstock.pattern.feedback import Feedback
from penstock.portal.testing import local_session


def check(name: str, home: Path, spark: Any, hook: Hook | None, source: Path) -> int:
    if not (source / "in").exists():
        UNTOLD[name].prepare(source)
    UNTOLD[name].start(source, source, local_session()).wait()
    crashes = run_to_the_end(lambda: TOLD[name].start(source, home, spark), hook) if hook else 0
    TOLD[name].start(source, home, spark).wait()
    plain, found = Counter(outcome(source).rows), Counter(outcome(home).rows)
    schema = TOLD[name].query(source / "in").schema
    ignored = Feedback.parse(IGNORED[name], schema).pattern
    assert not found - plain, "altered, invented or doubled"
    lost = [row for row in (plain - found) if not ignored.matches_row(dict(zip(schema.names, row, strict=True)))]
    assert not lost
    assert plain - found, "nothing was left out: the feedback came too late to try anything"
    assert orphans(home) == []
    there, named = state_named(home)
    assert there == named
    return crashes


@pytest.mark.parametrize("name", sorted(TOLD))
def test_every_step_around_a_feedback_crashes_once(tmp_path: Path, name: str) -> None:
    hook = EveryStepOnce(tmp_path)
    crashes = check(name, tmp_path, local_session(), hook, tmp_path / "undisturbed")
    assert crashes == len(hook.seen) and any("control/" in point for point in hook.seen)


@pytest.mark.parametrize("seed", range(6))
def test_seeded_crashes_around_a_feedback(tmp_path: Path, seed: int) -> None:
    name = sorted(TOLD)[seed % 3]
    hook = Seeded(tmp_path, seed, crashes=8, within=90)
    assert check(name, tmp_path, local_session(), hook, tmp_path / "undisturbed") > 0


KILLED = {
    # After a version that lives on is written, after the plan that names one, after a merge.
    "told": (("written control/", 1), ("planned", 5), ("merged", 3)),
    # Rows of a join are purged; after the plan with the guards, and before the epoch that purges has happened.
    "told-join": (("planned", 3), ("merged", 2)),
}


@pytest.mark.parametrize("name", KILLED)
def test_killed_driver_with_feedback(tmp_path: Path, name: str) -> None:
    """`kill -9` at several steps, each in a new process that goes on from where the one before was killed."""
    source, home = tmp_path / "undisturbed", tmp_path / "killed"
    UNTOLD[name].prepare(source)
    kill_at_steps(name, source, home, KILLED[name])
    check(name, home, local_session(), None, source)
