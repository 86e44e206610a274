"""Writes docs/confusion.md: every scenario of the fake engine against the whole suites, through real processes.

`python benchmarks/confusion.py --write docs/confusion.md` plays each scenario that is within verify's reach against the
full suite, and against the stress suite where its fault lies there; some minutes. Ends with 1 when a fault was missed
or a healthy scenario was failed.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from redline.checks.check import CheckResult, CheckStatus
from redline.checks.rehearsal import Part, load_parts, rehearse
from redline.checks.suites import Suite, all_checks, suite_checks
from redline.fake.scenario import load_scenario

HEAD = """# What verify catches

Every scenario of the fake engine, played in a real process against whole suites of `redline verify`, by
`python benchmarks/confusion.py --write docs/confusion.md`. A fault is caught when the check that is about it fails;
what else fails with it is listed too. A healthy scenario must fail nothing.
"""
# A process can neither throttle a card nor have itself swapped out.
NOT_PLAYED = "none can play it: tests/checks/test_telemetry.py gives the driver's and the kernel's words"
# A hang is as long as a time limit; the limits are shortened for the scenarios that hang.
SUITES_OF_STRESS = {check.id for check in suite_checks(Suite.STRESS)} - {"reach.models", "thinking.switch"}


def suites_of(part: Part) -> list[Suite]:
    """Return the suites to play: stress where the fault or the scenario's part lies there."""
    deep = SUITES_OF_STRESS & {*part.caught_by, *part.checks} or "stress" in part.suites
    full = not deep or "full" in part.suites
    return [*([Suite.FULL] if full else []), *([Suite.STRESS] if deep else [])]


def play(part: Part) -> list[tuple[Suite, list[CheckResult]]]:
    """Return the results of each suite, each against a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            (
                suite,
                rehearse(
                    part.scenario,
                    suite_checks(suite),
                    Path(folder),
                    settings=part.settings,
                    patience=part.patience,
                    reference=part.reference,
                ),
            )
            for suite in suites_of(part)
        ]


def row_of(part: Part, played: Sequence[tuple[Suite, list[CheckResult]]]) -> tuple[str, bool]:
    """Return a table row and whether it is as it should be."""
    failed = [row for _, results in played for row in results if row.status is CheckStatus.FAIL]
    names = list(dict.fromkeys(row.check_id for row in failed))
    classes = list(dict.fromkeys(row.failure_class for row in failed))
    if "engine.alive" in part.caught_by:  # whichever check the fault fell on
        right = "engine.alive" in names
    else:
        right = set(part.caught_by) <= set(names) if part.caught_by else not names
    fault = load_scenario(part.scenario).fault
    suites = ", ".join(suite.value for suite, _ in played)
    verdict = ("caught" if part.caught_by else "passed") if right else "WRONG"
    caught = ", ".join(f"`{name}`" for name in names) or "-"
    return f"| {part.scenario} | {fault} | {suites} | {verdict} | {caught} | {'; '.join(classes) or '-'} |", right


def by_class() -> str:
    """Return the failure classes, each with the checks that are about it and the scenarios that fail them."""
    caught: dict[str, list[str]] = {}
    for part in load_parts():
        for name in part.caught_by:
            caught.setdefault(name, []).append(part.scenario)
    rows = [
        f"| {check.failure_class} | `{name}` | {', '.join(caught.get(name, ())) or NOT_PLAYED} |"
        for name, check in sorted(all_checks().items(), key=lambda pair: (pair[1].failure_class, pair[0]))
    ]
    head = "## By failure class\n\n| failure class | check | scenarios that fail it |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def main() -> int:
    """Play, print, and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("scenarios", nargs="*", help="only these")
    options = parser.parse_args()
    faults: list[str] = []
    healthy: list[str] = []
    wrong = 0
    for part in load_parts():
        if part.beyond or (options.scenarios and part.scenario not in options.scenarios):
            continue
        row, right = row_of(part, play(part))
        (faults if part.caught_by else healthy).append(row)
        wrong += not right
        print(row, flush=True)
    head = "| scenario | fault | suite | verdict | checks that failed | failure classes |\n|---|---|---|---|---|---|\n"
    beyond = [f"| {part.scenario} | {part.beyond} |" for part in load_parts() if part.beyond]
    text = f"{HEAD}\n## Faults\n\n{head}" + "\n".join(faults) + f"\n\n## Healthy\n\n{head}" + "\n".join(healthy)
    text += "\n\n## Beyond verify\n\n| scenario | what catches it, and where that is seen |\n|---|---|\n"
    text += "\n".join(beyond) + f"\n\n{by_class()}"
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    print(f"{len(faults)} faults, {len(healthy)} healthy, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
