"""What an operator costs the rest of the code: how many files outside its room name it, and how long modules are.

    python -m benchmarks.rooms

The builder and the public names of `penstock` are left out: there every operator has its place by design.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "penstock"
LONGEST = 400


def modules() -> Iterator[Path]:
    """Every module of the package, below its folder."""
    return (f.relative_to(PACKAGE) for f in sorted(PACKAGE.rglob("*.py")))


def tree_of(module: Path) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"))


def operators() -> dict[str, str]:
    """The name of each operator class, and the room that it is in."""
    classes = {}
    for module in modules():
        if module.parts[0] == "operators" and module.name == "operator.py":
            for node in tree_of(module).body:
                if isinstance(node, ast.ClassDef):
                    classes[node.name] = (module.parts[1], {ast.unparse(b).split(".")[-1] for b in node.bases})
    known = {"Operator"}
    while more := {name for name, (_, bases) in classes.items() if bases & known} - known:
        known |= more  # an operator may be a special one of another, such as CountAggregate
    return {name: room for name, (room, _) in classes.items() if name in known}


def namers() -> dict[str, list[str]]:
    """For each operator class the modules outside its room that import it."""
    rooms = operators()
    found: dict[str, list[str]] = {name: [] for name in rooms}
    for module in modules():
        if module.parts[0] == "builder" or module == Path("__init__.py"):
            continue
        named = set()
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                room = node.module.removeprefix("penstock.operators.").split(".")[0]
                named |= {a.name for a in node.names if rooms.get(a.name) == room}
        for name in named:
            if module.parts[:2] != ("operators", rooms[name]):
                found[name].append(str(module))
    return found


def lengths() -> dict[str, int]:
    """The lines of each module."""
    return {str(m): len((PACKAGE / m).read_text(encoding="utf-8").splitlines()) for m in modules()}


def main() -> None:
    print(f"{'operator':<20} {'room':<20} named in")
    rooms = operators()
    for name, files in sorted(namers().items(), key=lambda pair: (-len(pair[1]), pair[0])):
        print(f"{name:<20} {rooms[name]:<20} {len(files):>3}  {', '.join(files)}")
    lines = lengths()
    long = {m: n for m, n in lines.items() if n > LONGEST}
    print(f"\nmodules above {LONGEST} lines: {', '.join(f'{m} ({n})' for m, n in long.items()) or 'none'}")
    print(f"lines: {sum(lines.values()):,} in {len(lines):,} modules")


if __name__ == "__main__":
    main()
