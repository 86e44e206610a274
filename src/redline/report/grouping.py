"""Which runs are about the same thing: one tier or address, one engine version, one rig.

A run that measured two tiers in turns is about both: it is taken apart by the boots that it names.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from redline.bench.arms import ArmBoot
from redline.record.manifest import RunManifest
from redline.record.reading import Event, RunRecord

_Key = tuple[str, str | None, str | None, str]


def group_by_subject(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Return the runs by what they are about, in order of first appearance.

    A run that does not say which engine it measured joins the runs of its tier and rig, if they all name one.
    """
    groups: dict[_Key, list[RunRecord]] = {}
    for record in (part for whole in records for part in by_arm(whole)):
        groups.setdefault(_key(record.manifest), []).append(record)
    for key in [key for key in groups if key[1] is None]:
        known = [other for other in groups if other[1] is not None and (other[0], other[3]) == (key[0], key[3])]
        if len(known) == 1:
            groups[known[0]] += groups.pop(key)
            groups[known[0]].sort(key=lambda record: (record.manifest.started_at, record.run_id))
    return list(groups.values())


def _key(manifest: RunManifest) -> _Key:
    name = manifest.slug or manifest.url or "unknown"
    return name, manifest.engine, manifest.engine_version, str(manifest.rig.get("digest"))


def by_arm(record: RunRecord) -> Iterator[RunRecord]:
    """Yield a run as it is, or one part an arm where it measured two tiers; each keeps the run's id and end."""
    if not record.payloads(ArmBoot):
        yield record
        return
    boots = {boot.boot_id: boot for boot in record.payloads(ArmBoot)}
    parts: dict[str, list[Event]] = {}
    arm: ArmBoot | None = None
    for event in record.events:
        # Arms that are measured at once name both boots first: what names its boot is told by that.
        arm = boots.get(getattr(event.payload, "boot_id", None) or "", arm)
        if arm is not None:
            parts.setdefault(arm.slug, []).append(event)
    arms = {boot.slug: boot for boot in boots.values()}
    for name, events in parts.items():
        own = replace(
            record.manifest,
            slug=name,
            engine=arms[name].engine or record.manifest.engine,
            engine_version=arms[name].engine_version or record.manifest.engine_version,
        )
        yield replace(record, manifest=own, events=tuple(events))


def of_slug(records: Iterable[RunRecord], slug: str) -> list[RunRecord]:
    """Return the runs, or their parts, that are about one tier."""
    return [part for record in records for part in by_arm(record) if part.manifest.slug == slug]
