"""Finds the runs of two arms and compares them."""

from redline.bench.compare import Comparison, compare
from redline.bench.quick import BenchSample
from redline.errors import UsageError
from redline.ops.report import load_runs, make_redactor
from redline.record.reading import RunRecord
from redline.settings import Settings


def compare_runs(settings: Settings, a: str, b: str, *, margin: float) -> Comparison:
    """Compare two arms, each one or more runs separated by commas, or a slug for all runs of a tier.

    Raises:
        UsageError: no such run, or a run in both arms.
        MissingError: none of an arm's runs can be read.
    """
    redactor = make_redactor(redact=True)
    arms = [
        _measured(load_runs(settings, [name for name in text.split(",") if name], redactor).records) for text in (a, b)
    ]
    shared = {record.directory for record in arms[0]} & {record.directory for record in arms[1]}
    if shared:
        names = ", ".join(sorted(folder.name for folder in shared))
        raise UsageError(f"Run {names} is in both arms.", next_step="Name different runs for A and B.")
    return compare(arms[0], arms[1], names=(_name(a, arms[0]), _name(b, arms[1])), margin=margin)


def _measured(records: tuple[RunRecord, ...]) -> tuple[RunRecord, ...]:
    """Return the runs that measured something; all of them where none did, so that the gap is told."""
    return tuple(record for record in records if record.payloads(BenchSample)) or records


def _name(text: str, records: tuple[RunRecord, ...]) -> str:
    """Return what an arm is called: its tier, with the runs where they were named one by one."""
    slugs = list(dict.fromkeys(record.manifest.slug or record.manifest.url or record.run_id for record in records))
    tier = ", ".join(slugs)
    return tier if text in slugs else f"{tier} ({', '.join(record.run_id for record in records)})"
