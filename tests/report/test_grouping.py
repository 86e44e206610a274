"""A run of two arms is taken apart by the boots that it names, whichever way they were measured."""

import pytest
from tests.report.records import make_record, sample

from redline.bench.arms import ArmBoot
from redline.bench.quick import BenchSample
from redline.report.grouping import by_arm
from redline.workload.prompts import PromptClass


def _arm(arm: str) -> ArmBoot:
    return ArmBoot(arm=arm, slug=f"x/{arm}", boot_id=f"boot-{arm}", engine="vllm", engine_version=f"0.{arm}")


def _taken(arm: str, number: int) -> BenchSample:
    return sample(PromptClass.CODE, number, 10.0, boot_id=f"boot-{arm}")


@pytest.mark.parametrize(
    "events",
    [
        (_arm("A"), _taken("A", 1), _taken("A", 2), _arm("B"), _taken("B", 1), _taken("B", 2)),
        (_arm("A"), _arm("B"), _taken("A", 1), _taken("B", 1), _taken("B", 2), _taken("A", 2)),
    ],
    ids=["in turns", "at once"],
)
def test_every_arm_has_its_own_samples(events: tuple[object, ...]) -> None:
    whole = make_record(events, slug="x/A against x/B", engine=None, engine_version=None)
    for part in by_arm(whole):
        arm = (part.manifest.slug or "")[-1]
        assert {row.boot_id for row in part.payloads(BenchSample)} == {f"boot-{arm}"}
        assert len(part.payloads(BenchSample)) == 2
        assert (part.manifest.engine, part.manifest.engine_version) == ("vllm", f"0.{arm}")
    assert len(list(by_arm(whole))) == 2
