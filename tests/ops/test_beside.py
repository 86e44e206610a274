"""Two servers beside each other: pairs in turn, the ratio that is true, and no verdict from one boot."""

from dataclasses import replace
from pathlib import Path

import pytest

from redline.bench.arms import ClassVerdict
from redline.bench.regime import CANONICAL, HONEST_GREEDY
from redline.catalog.types import Catalog
from redline.errors import UsageError
from redline.fake.spawn import fake_engine
from redline.ops.ab import AbPlan
from redline.ops.beside import are_urls, bench_beside
from redline.ops.events import SampleDone
from redline.record.reading import read_events
from redline.record.run import create_run
from redline.settings import load_settings
from redline.stats.compare import Verdict
from redline.workload.prompts import PromptClass

_ONE = replace(
    HONEST_GREEDY, classes=(PromptClass.CHAT,), max_tokens={PromptClass.CHAT: 48}, width=None, runs=4, prefill_tokens=()
)


@pytest.mark.alone
def test_a_known_ratio_is_found_pair_by_pair_and_one_boot_decides_nothing(catalog: Catalog, tmp_path: Path) -> None:
    settings = load_settings(environ={"HOME": str(tmp_path)}, working_dir=tmp_path)
    slow = ("--set", "speed.step_s=0.008", "--set", "speed.spread=0.0")
    fast = ("--set", "speed.step_s=0.004", "--set", "speed.spread=0.0")
    with (
        fake_engine("healthy-text-only", tmp_path / "a", slow) as a,
        fake_engine("healthy-text-only", tmp_path / "b", fast) as b,
        create_run(tmp_path / "runs", "bench --ab --beside", url=None) as run,
    ):
        plan = AbPlan(a=a.url, b=f"{b.url}/v1", boots=1, beside=True)
        events = list(bench_beside(catalog, settings, run, _ONE, plan))
    prompts = [event.sample.prompt_index for event in events if isinstance(event, SampleDone)]
    assert len(prompts) == 8
    assert prompts[0::2] == prompts[1::2]
    boots = [event.sample.boot_id for event in events if isinstance(event, SampleDone)]
    order = "".join(str(name)[-1] for name in boots)
    assert order == "ABBAABBA"
    (verdict,) = [event for event in events if isinstance(event, ClassVerdict)]
    assert verdict.comparison.verdict is Verdict.UNDETERMINED
    assert verdict.paired is not None
    assert verdict.paired.n == 4
    assert 1.3 < verdict.paired.mean < 2.2
    kinds = [event.kind for event in read_events(run.directory)]
    assert kinds.count("bench.ab.arm") == 2


@pytest.mark.parametrize(
    ("a", "b", "boots", "words"),
    [
        ("http://127.0.0.1:1", "llamacpp/smollm2-135m-cpu-fast", 1, "one is a URL and one is a tier"),
        ("http://127.0.0.1:1", "http://127.0.0.1:2", 2, "cannot be started anew"),
    ],
)
def test_arms_are_of_a_kind(a: str, b: str, boots: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        are_urls(AbPlan(a=a, b=b, boots=boots, beside=True))


def test_a_regime_that_repeats_its_prompt_cannot_be_paired(catalog: Catalog, tmp_path: Path) -> None:
    settings = load_settings(environ={"HOME": str(tmp_path)}, working_dir=tmp_path)
    plan = AbPlan(a="http://127.0.0.1:1", b="http://127.0.0.1:2", boots=1, beside=True)
    with create_run(tmp_path / "runs", "bench", url=None) as run, pytest.raises(UsageError, match="again and again"):
        list(bench_beside(catalog, settings, run, CANONICAL, plan))
