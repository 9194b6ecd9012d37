"""Does an epoch cost more when many have gone before it? 20,000 epochs, and what each takes and leaves behind.

    python -m benchmarks.long_run [--epochs 20000]

A windowed aggregate over generated events, small epochs, so that the fixed cost is what is measured. Prints the median
epoch of each tenth of the run and writes a plot; the last tenth over the first is the number to look at. Memory,
threads and open files are those of the driver, the JVM and the workers together.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.measure import held

RESULTS = Path(__file__).parent / "results"


def run(epochs: int, rows: int) -> list[dict[str, float]]:
    import penstock as ps

    spark = ps.spark_session("local[2]")
    stream = ps.generate("events", rate=100, rows=epochs * rows, seed=3, disorder="2 s", columns={"key": ("key", 200)})
    query = stream.window("10 s").group_by("key").agg(n="count(*)")
    seen: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "checkpoint"
        last = time.perf_counter()

        def note(progress: ps.Progress) -> None:
            nonlocal last
            now = time.perf_counter()
            record = {"epoch": progress.epoch, "seconds": now - last, "state": progress.state_rows}
            if progress.epoch % 50 == 0:
                record |= {"files": sum(1 for p in checkpoint.rglob("*") if p.is_file()), **held(os.getpid())}
                print(
                    f"  epoch {progress.epoch:5}: {(now - last) * 1e3:6.0f} ms, state {progress.state_rows:,} rows",
                    flush=True,
                )
            seen.append(record)
            last = time.perf_counter()

        query.start(
            ps.parquet(f"{folder}/out"),
            trigger="available_now",
            checkpoint=str(checkpoint),
            max_rows=rows,
            spark=spark,
            listener=note,
        ).wait()
    return seen


def tenths(seen: list[dict[str, float]]) -> list[float]:
    size = len(seen) // 10
    return [statistics.median(r["seconds"] for r in seen[k * size : (k + 1) * size]) for k in range(10)]


def plot(seen: list[dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 5.5), sharex=True, height_ratios=[2, 1])
    at = [r["epoch"] for r in seen]
    above.plot(at, [r["seconds"] * 1e3 for r in seen], ".", markersize=2, color="#9aa5b1", label="one epoch")
    size = len(seen) // 10
    middles = [seen[k * size + size // 2]["epoch"] for k in range(10)]
    above.plot(middles, [t * 1e3 for t in tenths(seen)], "o-", color="#1f6f8b", label="median of each tenth")
    above.set_ylim(0, sorted(r["seconds"] for r in seen)[int(len(seen) * 0.99)] * 1.3e3)
    above.set_ylabel("epoch, ms")
    above.set_title("Cost of an epoch over a long run")
    above.legend()
    below.plot(at, [r["state"] for r in seen], color="#c0504d")
    below.set_ylabel("state, rows")
    below.set_xlabel("epoch")
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=50)
    arguments = parser.parse_args()
    seen = run(arguments.epochs, arguments.rows)
    medians = tenths(seen)
    RESULTS.mkdir(exist_ok=True)
    looks = [r for r in seen if "files" in r]
    after = {what: [r[what] for r in looks] for what in ("files", "memory", "threads", "open files")}
    record = {"epochs": len(seen), "tenths_ms": [m * 1e3 for m in medians], **after}
    (RESULTS / "long_run.json").write_text(json.dumps(record, indent=1) + "\n")
    plot(seen, RESULTS / "long_run.png")
    print("median of each tenth, ms: " + ", ".join(f"{m * 1e3:.0f}" for m in medians))
    print(f"last tenth ÷ second tenth (the first warms up the JVM): {medians[-1] / medians[1]:.2f}")
    for what, counts in after.items():
        scale = 2**20 if what == "memory" else 1
        size = max(1, len(counts) // 10)
        first, last = (statistics.median(part) / scale for part in (counts[size : 2 * size] or counts, counts[-size:]))
        print(f"{what}: {first:.0f} in the second tenth, {last:.0f} in the last")


if __name__ == "__main__":
    main()
