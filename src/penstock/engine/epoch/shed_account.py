"""What is told of shedding: where it stands after an epoch, and what became of the windows that passed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.kernels.ticks import from_tick
from penstock.shedding.outlook import numbers
from penstock.shedding.shed_state import WindowTally

if TYPE_CHECKING:
    from penstock.engine.epoch.begun import Begun
    from penstock.engine.epoch.shedding import Shedder


def told(shedder: Shedder, begun: Begun) -> dict[str, Any]:
    """For people and machines: where shedding stood in an epoch."""
    if not shedder.active or not begun.shed_state:
        return {}
    # As it stands in the record: to build it anew after every epoch would take longer than what is told of it.
    state, road = begun.shed_state, begun.shed_state["road"]
    outputs = {}
    for output in shedder.outputs:
        tally = state["tallies"].get(output.name) or vars(WindowTally())
        outputs[output.name] = {
            "share": state["delivered"].get(output.name, 1.0),
            "windows": tally["windows"],
            "dropped": tally["dropped"],
            "longest_gap": tally["gap"],
        }
    told: dict[str, Any] = {"at": state["policy"], "outputs": outputs}
    if road:
        told |= {name: road[name] for name in ("load", "capacity", "cursor", "rows")}
        told["utility"] = 1 - road["lost"] / road["full"] if road["full"] else 1.0
        told["why"] = road["pressure"]["why"]
    return told


def account_of(shedder: Shedder, begun: Begun) -> list[dict[str, Any]]:
    """What became of the windows of each output that have passed in an epoch."""
    lines = []
    for output in shedder.outputs:
        done, window = begun.settled.get(output.name), output.window
        if done is None or window is None:
            continue
        tally = begun.shed_state["tallies"][output.name]
        if not tally["dropped"]:
            continue  # Nothing was ever given up, so there is nothing to tell. The first line tells of all before.
        windows = tally["windows"] if tally["dropped"] == done.lost else done.windows
        t = shedder.plan[output.exit.root].operator.schema.type_of(output.label)
        delivered = 100 * (1 - done.lost / windows)
        lines.append(
            {
                "epoch": begun.plan.epoch,
                "sink": output.name,
                "windows": windows,
                "dropped": done.lost,
                "delivered": delivered,
                "longest_gap": tally["gap"],
                "utility": shedder.terms[output.name].graph.at(delivered),
                "dropped_windows": [str(from_tick(window.start(n), t)) for n in numbers(done.dropped)],
            }
        )
    return lines
