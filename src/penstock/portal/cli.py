"""The command `penstock`."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import penstock
from penstock.checkpoint.names import BESIDE_SINK
from penstock.checkpoint.storage import below
from penstock.engine.admission import admit
from penstock.engine.run import parse_trigger
from penstock.engine.terminal import say, terminal
from penstock.errors import UserError
from penstock.portal.benchmarks import benchmarks_folder
from penstock.portal.calibrate import calibrate
from penstock.portal.complaint import complaining
from penstock.portal.consistency import consistency as turn_dial
from penstock.portal.options import Dial, File, Json, Master, OnError, Quiet, Sheds, at_dial, turned
from penstock.portal.outcome import print_summary, queries_of
from penstock.portal.qos import qos
from penstock.portal.script import check_sources, load
from penstock.portal.shed import shed
from penstock.portal.watch import ForegroundRun, choose_mode, say_json
from penstock.shedding.policy import Shedding

app = typer.Typer(
    name="penstock",
    help="Continuous queries on Apache Spark over streams that say when they are complete.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a defect of ours keeps its plain stack trace, which can be pasted into a report
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"penstock {penstock.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; `penstock_command`, which takes care of Ctrl-C first, calls it."""
    for stream in (sys.stdout, sys.stderr):
        # What the terminal's encoding does not have is written out, instead of ending in an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()


# --- run ------------------------------------------------------------------------------------------------------------


@app.command()
@complaining
def run(
    file: File,
    trigger: Annotated[
        str | None,
        typer.Option(
            help="available_now: read what is there, then stop; once: in one epoch. Else it runs until stopped."
        ),
    ] = None,
    every: Annotated[str | None, typer.Option(help="Time between epochs, such as '500 ms' (the default).")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Folder from which a later run goes on; beside the results, if those are files.")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(min=1, help="The most rows that one epoch reads.")] = None,
    max_bytes: Annotated[int | None, typer.Option(min=1, help="The most bytes that one epoch reads.")] = None,
    buckets: Annotated[int | None, typer.Option(min=1, help="Parts of the state; fixed by the first run.")] = None,
    dead_letters: Annotated[str | None, typer.Option(help="Folder for events that were not let in.")] = None,
    changed_files: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT", help="If a file changed after it was read: fail (the default), or ignore the change."
        ),
    ] = None,
    durability: Annotated[
        str | None,
        typer.Option(metavar="WHAT", help="commit: an epoch survives power loss (the default); process: a kill only."),
    ] = None,
    on_error: OnError = None,
    consistency: Dial = None,
    shedding: Sheds = None,
    allow_unbounded: Annotated[
        str | None, typer.Option(metavar="REASON", help="Run even if state grows for ever; say why that is fine.")
    ] = None,
    master: Master = None,
    packed: Annotated[str | None, typer.Option(help="Archive made by 'penstock pack', for workers.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a query until Ctrl-C, which finishes the epoch under way; with --trigger, until the input has been read."""
    script = load(file)
    given = {
        "trigger": trigger,
        "every": every,
        "checkpoint": checkpoint,
        "max_rows": max_rows,
        "max_bytes": max_bytes,
        "buckets": buckets,
        "dead_letters": dead_letters,
        "changed_files": changed_files,
        "durability": durability,
        "allow_unbounded": allow_unbounded,
        "consistency": consistency,
        "on_error": on_error,
        "shedding": None if shedding is None else Shedding.parse(shedding),
    }
    options = {**script.settings, **{k: v for k, v in given.items() if v is not None}}
    if trigger is not None or every is not None:  # the command line replaces what the file says about epochs, whole
        options = {**options, "trigger": trigger, "every": every}
    chosen = parse_trigger(options.get("trigger"), options.get("every"))
    mode = choose_mode(as_json=as_json, quiet=quiet)
    queries = turned(queries_of(script, as_json, quiet), options.pop("consistency", None))
    homes = [part.sink.home for part in queries.parts if part.sink.home is not None]
    at = options.get("checkpoint") or (below(homes[0], BESIDE_SINK) if len(queries.parts) == 1 and homes else None)
    check_sources(queries, at, bounded=chosen.bounded)
    # Before Spark starts, which takes a while.
    admit(queries.streams, bounded=chosen.bounded, allow_unbounded=options.get("allow_unbounded"))
    watch = ForegroundRun(script.title, mode, terminal())
    wanted = master or options.pop("master", None)
    options.pop("master", None)
    done = watch.run(queries, options, master=wanted, packed=packed)
    summary = watch.summary(done)
    if mode == "json":
        say_json(summary)
    elif mode != "quiet":
        print_summary(summary)


# --- looking at a query ---------------------------------------------------------------------------------------------


@app.command()
@complaining
def explain(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE.py[:NAME]", help="A query file; with --run it may be left out.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="A checkpoint: with the feedback on the edges.")
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Draw a Mermaid flow chart.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="The operators alone, without punctuation.")] = False,
    consistency: Dial = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the plan of a query: its operators, the punctuations that will flow, and what lets the state of each go.

    With --run, what its consumers and operators have told each other, where that stopped and why, and what it saved.
    """
    if run is not None:
        from penstock.portal.explain_run import show

        if mermaid:
            raise UserError("--mermaid and --run exclude each other", hint="leave out one of them")
        show(run, file, plain=plain, as_json=as_json, quiet=quiet)
        return
    if file is None:
        raise UserError("no query file", hint="penstock explain FILE.py, or penstock explain --run RUN")
    from penstock.analysis.explain import coming, leaving

    script = at_dial(load(file), consistency)
    if quiet:
        return
    if as_json:
        say_json(
            {
                "query": script.title,
                "fingerprint": script.query.plan.fingerprint,
                "plan": script.query.plan.describe(),
                "punctuation": coming(script.query.plan),
                "releases": leaving(script.query.plan),
            }
        )
        return
    say(script.query.explain("mermaid" if mermaid else "text", punctuation=not plain))


@app.command()
@complaining
def check(
    file: File,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENT", help="With --spark: what the script is called with.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="A plain PySpark script: its streaming queries are checked, not started.")
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Print only the declarations to add.")] = False,
    bounded: Annotated[
        bool, typer.Option("--bounded", help="Check for runs that end by themselves (once, available_now).")
    ] = False,
    output_mode: Annotated[
        str | None,
        typer.Option(help="With --spark: the output mode of DataFrames that the script does not start itself."),
    ] = None,
    consistency: Dial = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check, operator by operator, that state stays bounded and every result appears; exit with 1 if not."""
    from penstock.portal.check import check_file, check_spark_script, show

    if spark and bounded:
        raise UserError(
            "--bounded and --spark exclude each other",
            hint="leave it out: Spark has no end of a stream that releases state",
        )
    if not spark and (arguments or output_mode is not None):
        what = arguments[0] if arguments else "--output-mode"
        raise UserError(f"'{what}' is for Spark scripts", hint=f"penstock check --spark {file} …")
    mode = "append" if output_mode is None else output_mode
    checked = (
        check_spark_script(file, arguments or (), mode) if spark else [check_file(file, consistency, bounded=bounded)]
    )
    if not quiet:
        show(checked, terminal(), "json" if as_json else "fix" if fix else "report")
    if not all(c.report.safe for c in checked):
        raise typer.Exit(1)


@app.command()
@complaining
def trace(
    file: File,
    rows: Annotated[int, typer.Option(help="Events taken from each source.")] = 20,
    ends: Annotated[
        bool, typer.Option("--ends", help="Treat these events as the whole input, so that everything closes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Show all that an operator holds at each step, not only what changed.")
    ] = False,
    consistency: Dial = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what every operator does with the first few events, step by step."""
    from penstock.portal.trace import show

    show(at_dial(load(file), consistency), rows, ends=ends, full=full, as_json=as_json, quiet=quiet)


@app.command()
@complaining
def state(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint folder, or the folder of a file sink.")],
    query: Annotated[str | None, typer.Option("--query", help="SQL over the state; a table per operator.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the state of a query, running or not, without changing anything."""
    from penstock.portal.show_state import show

    show(checkpoint, query, as_json=as_json, quiet=quiet)


@app.command()
@complaining
def feedback(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The checkpoint folder, or the folder of a file sink.")],
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT",
            help="'not […]': ignored from now on; 'prefer […]': wanted first; 'now […]': wanted at once, complete or "
            "not. Without TEXT: show what is in force.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="OPERATOR", help="The pattern is about what leaves this operator, not about the results."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds to wait for the answer (60), or until it is taken up (10).")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell a run what its consumers ignore, want first, or want now; or show what it has been told."""
    from penstock.portal.feedback import give, show

    if text is not None:
        give(run, text, to=to, timeout=timeout, as_json=as_json, quiet=quiet)
    elif to is not None:
        raise UserError(f"--to {to}: and what?", hint=f"penstock feedback {run} 'not […]' --to {to}")
    else:
        show(run, as_json=as_json, quiet=quiet)


for command in (turn_dial, shed, qos, calibrate):
    app.command()(complaining(command))


# --- the machine, the demo, the benchmark ---------------------------------------------------------------------------


@app.command()
@complaining
def pack(
    target: Annotated[str, typer.Argument(help="The archive to write, such as penstock-env.tar.gz.")],
    also: Annotated[list[str] | None, typer.Option(help="A package or module your functions import.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pack Penstock and what its tasks import into an archive for the workers of a cluster, for run --packed."""
    from penstock.engine.spark.pack import pack as write_archive

    path = write_archive(target, tuple(also or ()))
    if as_json:
        say_json({"archive": str(path), "bytes": path.stat().st_size})
    elif not quiet:
        print(
            f"{path}: {path.stat().st_size / 2**20:.0f} MiB. Use it: penstock run FILE.py --master … --packed {target}"
        )


@app.command()
@complaining
def doctor(
    checkpoint: Annotated[str, typer.Option(help="Folder in which checkpoints are to be kept.")] = ".",
    deep: Annotated[bool, typer.Option("--deep", help="Also start Spark and check a worker.")] = False,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that this machine has what Penstock needs."""
    from penstock.engine.spark.doctor import checks

    found = checks(checkpoint, master=master, deep=deep or master is not None)
    sound = all(check.ok for check in found)
    if as_json:
        say_json({"ok": sound, "checks": [asdict(check) for check in found]})
    elif not quiet:
        print(*found, sep="\n")
    elif not sound:
        print(*(check for check in found if not check.ok), sep="\n", file=sys.stderr)
    if not sound:
        raise typer.Exit(1)


@app.command()
@complaining
def demo(
    folder: Annotated[Path, typer.Option(help="Where input, results, checkpoint and plot are kept.")] = Path(
        "demo-out"
    ),
    master: Master = None,
    native: Annotated[bool, typer.Option(help="Run the same query in Structured Streaming, too.")] = True,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A continuous query over a year of real flights, live, in under a minute."""
    from penstock.portal.demo import show_demo

    agreed = show_demo(folder, master, choose_mode(as_json=as_json, quiet=quiet), native=native)
    if not agreed:
        raise typer.Exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@complaining
def bench(
    context: typer.Context,
    full: Annotated[bool, typer.Option("--full", help="All sizes and repetitions; takes long.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Penstock against Structured Streaming and DuckDB on this machine."""
    root = benchmarks_folder()
    if root is None:
        raise UserError(
            "the benchmarks are not part of the installed package",
            hint="clone the repository, go there, and run: make bench (or penstock bench)",
        )
    command = [sys.executable, "-m", "benchmarks.bench", *([] if full else ["--quick"]), *context.args]
    command += ["--json"] if as_json else []
    out = subprocess.DEVNULL if quiet else None
    raise typer.Exit(subprocess.run(command, cwd=root, check=False, stdout=out).returncode)
