"""Builds a report model from runs: groups them by what they are about, and fills each part from its records."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Final

from redline import __version__
from redline.record.differences import Respect, differences
from redline.record.manifest import RunManifest
from redline.record.reading import RunRecord
from redline.report import behaviour, extract
from redline.report.answers import answer, title_of
from redline.report.grouping import group_by_subject
from redline.report.model import BootFact, Fact, ReportModel, Subject
from redline.report.words import cpu_name, gpu_words, rig_words

# What the measured words mean, for a reader who has never seen them; `probe.definitions` computes them.
DEFINITIONS: Final = {
    "decode": "tokens after the first chunk, divided by the time from the first token to the last; the server counts",
    "first token": "from sending the request to the first chunk that carries any token",
    "prefill": "prompt tokens that were not cached, divided by the time to the first token",
    "tokens a drafted step": "1 + accepted / drafts, from the engine's counters around each request",
    "interval": "95 %, Student's t: over the means of boots from three boots on, over requests below",
}
# Resolved field -> what a reader calls it. Others are in the table of settings.
_FACTS: Final = {
    "artifact": "Weights",
    "drafter": "Drafter",
    "spec_n": "Draft depth",
    "kv_cache_dtype": "KV cache",
    "max_model_len": "Context",
    "max_num_seqs": "Requests at once",
    "enable_thinking": "Thinking",
}
_RIG_LABELS: Final = {"cpu_model": "Processor", "cpus": "CPUs", "memory_gib": "Memory", "gpus": "GPUs", "wsl": "WSL2"}


def build_report(
    records: Sequence[RunRecord],
    *,
    made_at: str,
    redacted: bool,
    problems: Sequence[str] = (),
    program: str = "redline",
) -> ReportModel:
    """Return the report of some runs, in the order they started."""
    ordered = sorted(records, key=lambda record: (record.manifest.started_at, record.run_id))
    subjects = tuple(_subject(group) for group in group_by_subject(ordered))
    rigs = list(dict.fromkeys(subject.rig for subject in subjects))
    stages = extract.stage_rows(ordered)
    return ReportModel(
        title=title_of(subjects),
        made_at=made_at,
        redline_version=__version__,
        redacted=redacted,
        answers=answer(subjects, (), "; ".join(rigs), program, stages),
        environment=_environment([record.manifest for record in ordered]),
        subjects=subjects,
        stages=stages,
        verdicts=extract.arm_verdicts(ordered),
        problems=tuple(problems),
        definitions=DEFINITIONS,
    )


def _without_place(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command whose program is named without its folder, which says where somebody works."""
    return (PurePath(argv[0]).name, *argv[1:]) if argv else ()


def build_rig_report(
    facts: Sequence[Fact],
    rig: str,
    boots: Sequence[BootFact],
    *,
    made_at: str,
    redacted: bool,
    problems: Sequence[str] = (),
    program: str = "redline",
) -> ReportModel:
    """Return the report of a rig and its last boots, newest first: what to share when nothing boots."""
    return ReportModel(
        title="this rig",
        made_at=made_at,
        redline_version=__version__,
        redacted=redacted,
        answers=answer((), boots, rig, program),
        environment=tuple(facts),
        boots=tuple(boots),
        problems=tuple(problems),
    )


def _subject(records: Sequence[RunRecord]) -> Subject:
    manifests = [record.manifest for record in records]
    fullest = max(manifests, key=lambda manifest: len(manifest.resolved))
    newest = manifests[-1]
    return Subject(
        name=newest.slug or newest.url or "unknown",
        slug=newest.slug,
        engine=newest.engine,
        engine_version=newest.engine_version,
        rig=rig_words(newest.rig),
        facts=_facts(fullest),
        settings=tuple(
            Fact(name, f"{'-' if entry.value is None else entry.value}   {entry.origin}")
            for name, entry in fullest.resolved.items()
        ),
        argv=_without_place(fullest.argv or newest.argv),
        labels=tuple(dict.fromkeys(word for manifest in manifests for word in (*manifest.labels, *manifest.overrides))),
        runs=extract.run_facts(records),
        boots=extract.boot_facts(records),
        checks=extract.check_rows(records),
        speeds=extract.class_speeds(records),
        drafting=behaviour.drafting(records),
        context=behaviour.context_points(records),
        needles=behaviour.needle_cells(records),
        prefill=extract.prefill_rows(records),
        streams=extract.stream_levels(records),
        memory=behaviour.memory_points(records),
        endurance=extract.endurance(records),
        mixed=_mixed(manifests),
    )


def _facts(manifest: RunManifest) -> tuple[Fact, ...]:
    facts = []
    for name, label in _FACTS.items():
        entry = manifest.resolved.get(name)
        if entry is None or entry.value is None:
            continue
        value = entry.value
        if name == "max_model_len" and isinstance(value, int):
            shown = f"{value:,} tokens"
        elif isinstance(value, bool):
            shown = "on" if value else "off"
        else:
            shown = str(value)
        facts.append(Fact(label, shown))
    return tuple(facts)


def _mixed(manifests: Sequence[RunManifest]) -> tuple[str, ...]:
    """Return how runs that are shown together differ after all, so that nobody takes them for repeats."""
    words = [
        f"{found.field}: {found.a or '-'} and {found.b or '-'}"
        for before, after in pairwise(manifests)
        for found in differences(before, after)
        if found.respect not in (Respect.COMMAND_LINE, Respect.WORKLOAD)
    ]
    return tuple(dict.fromkeys(words))


def _environment(manifests: Sequence[RunManifest]) -> tuple[Fact, ...]:
    """Return the rig and versions; values that differ between runs stand side by side."""
    values: dict[str, dict[str, None]] = {}
    for manifest in manifests:
        for label, value in rig_facts(manifest):
            values.setdefault(label, {})[value] = None
        values.setdefault("redline", {})[manifest.redline_version] = None
        engine = " ".join(word for word in (manifest.engine, manifest.engine_version) if word)
        values.setdefault("Engine", {})[engine or "not started by redline"] = None
    return tuple(Fact(label, "; ".join(found)) for label, found in values.items())


def rig_facts(manifest: RunManifest) -> list[tuple[str, str]]:
    """Return the rig's facts with labels; facts of a newer redline keep their own names."""
    rig = manifest.rig
    facts = []
    for name, value in rig.items():
        if name in ("digest", "driver_version", "interconnect", "links") or (value is None and name != "gpus"):
            continue
        match name:
            case "gpus":
                shown = gpu_words(value) or "none"
            case "cpu_model":
                shown = cpu_name(value)
            case "memory_gib":
                shown = f"{value} GiB"
            case "wsl":
                shown = "yes" if value else "no"
            case _:
                shown = str(value)
        facts.append((_RIG_LABELS.get(name, name.replace("_", " ")), shown))
    driver = manifest.driver_version or rig.get("driver_version")
    if driver:
        facts.append(("Driver", str(driver)))
    facts.append(("Interconnect", _interconnect(manifest)))
    return facts


def _interconnect(manifest: RunManifest) -> str:
    """Return what is known of the links between GPUs; what was not recorded is said, since it moves every number."""
    gpus = [part for part in str(manifest.rig.get("gpus") or "").split(", ") if part]
    if len(gpus) < 2:
        return "none needed: at most one GPU"
    known = manifest.rig.get("interconnect") or manifest.rig.get("links")
    return str(known) if known else "not recorded"
