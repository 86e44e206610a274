"""Benchmarks of fake engines through real sockets: known speeds are recovered, and what gives no rate gets none."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redline.bench.quick import QuickRegime
from redline.bench.regime import CANONICAL, HONEST_GREEDY, Regime
from redline.catalog.types import Catalog
from redline.errors import InconclusiveError, RefusedError, UsageError
from redline.fake.spawn import fake_engine
from redline.ops import ab
from redline.ops.ab import AbPlan, abba, require_comparable
from redline.ops.bench import BenchJob, bench_regime, over_boots, require_fresh_prompts, used_prompts
from redline.ops.events import Measured, PrefillMeasured, SampleDone
from redline.probe.target import Target
from redline.record.reading import read_events
from redline.record.run import create_run
from redline.settings import load_settings
from redline.workload.prompts import SHORT_CLASSES, PromptClass

pytestmark = pytest.mark.alone

_SMALL = replace(
    HONEST_GREEDY,
    classes=(PromptClass.PROSE, PromptClass.CODE),
    max_tokens={PromptClass.PROSE: 64, PromptClass.CODE: 64},
    width=0.3,
    prefill_runs=2,
)
_LOOKUP = {"resolved": {"drafter": {"value": "lookup-map-k"}}}


def _benched(tmp_path: Path, scenario: str, regime: Regime, *settings: str, **job: Any) -> list[Any]:
    with (
        fake_engine(scenario, tmp_path / "log", settings) as fake,
        create_run(tmp_path / "runs", "bench", url=fake.url) as run,
    ):
        target = Target(url=fake.url, model="redline-fake")
        events = list(bench_regime(BenchJob(target=target, boot_id="b1", **job), run, regime))
    kinds = [event.kind for event in read_events(run.directory)]
    assert kinds[0] == "bench.regime"
    assert kinds.count("bench.sample") == sum(isinstance(event, SampleDone) for event in events)
    return events


def _of(events: list[Any], kind: type) -> Any:
    return next(event for event in events if isinstance(event, kind))


def test_a_known_speed_is_recovered(tmp_path: Path) -> None:
    """Steps of 10 ms and no drafter: 100 tokens a second at most, and prefill at most at its set rate."""
    settings = ("--set", "speed.step_s=0.01", "--set", "speed.spread=0.0", "--set", "speed.prefill_tok_s=20000.0")
    events = _benched(tmp_path, "healthy-text-only", _SMALL, *settings, context_tokens=3000)
    for row in _of(events, Measured).summaries:
        assert row.decode_tok_s.n >= 5
        assert 50 < row.decode_tok_s.mean <= 101
        assert row.joules_a_token is None
    (long,) = _of(events, PrefillMeasured).summaries
    assert (long.target_tokens, long.failed) == (2680, 0)
    assert 5000 < long.prefill_tok_s.mean <= 20_100
    prompts = [(e.sample.prompt_class, e.sample.prompt_index) for e in events if isinstance(e, SampleDone)]
    assert len(prompts) == len(set(prompts))


def test_the_canonical_regime_measures_five_after_three(tmp_path: Path) -> None:
    short = replace(CANONICAL, max_tokens={PromptClass.PROSE: 32, PromptClass.CODE: 32})
    events = _benched(tmp_path, "healthy", short, "--set", "speed.step_s=0.001")
    kinds = [event.sample.prompt_class for event in events if isinstance(event, SampleDone)]
    assert kinds == [PromptClass.PROSE] * 5 + [PromptClass.CODE] * 5


@pytest.mark.parametrize(
    ("scenario", "error"),
    [
        ("missing-usage", None),
        ("zero-tokens", None),
        ("error-in-200", "server:"),
        ("truncated-stream", "truncated:"),
        ("endless-stream", "timeout:"),
    ],
)
def test_what_is_no_measurement_gives_no_number(tmp_path: Path, scenario: str, error: str | None) -> None:
    one = replace(_SMALL, classes=(PromptClass.PROSE,), width=None, runs=1)
    events = _benched(tmp_path, scenario, one, prefill=False, timeout_s=1.0)
    sample = _of(events, SampleDone).sample
    assert sample.decode_tok_s is None
    assert (sample.error is None) if error is None else sample.error.startswith(error)
    assert _of(events, Measured).summaries[0].decode_tok_s is None


def test_lookup_drafting_refuses_what_it_would_remember() -> None:
    job = BenchJob(target=Target(url="http://x", model="m"), boot_id="b", conditions=_LOOKUP)
    with pytest.raises(RefusedError, match="one prompt again and again"):
        require_fresh_prompts(job, CANONICAL)
    require_fresh_prompts(job, HONEST_GREEDY)
    seen = frozenset(("prose", index) for index in range(6))
    with pytest.raises(RefusedError, match="seen nearly all prose prompts"):
        require_fresh_prompts(replace(job, used=seen), HONEST_GREEDY)
    require_fresh_prompts(replace(job, used=seen, conditions={}), HONEST_GREEDY)


def test_prompts_of_earlier_runs_of_the_same_server_are_known(tmp_path: Path) -> None:
    with fake_engine("healthy", tmp_path / "log") as fake:
        target = Target(url=fake.url, model="redline-fake", server_id="s1")
        one = replace(_SMALL, width=None, runs=2)
        with create_run(tmp_path / "runs", "bench", url=fake.url, server_id="s1") as run:
            list(bench_regime(BenchJob(target=target, boot_id="s1", prefill=False), run, one))
            later = replace(one, classes=(PromptClass.CODE,), runs=1)
            list(bench_regime(BenchJob(target=target, boot_id="s3", prefill=False), run, later))
    expected = {(kind.value, prompt.index) for kind in one.classes for prompt in one.prompts(kind)[:2]}
    assert used_prompts(tmp_path / "runs", "s1") == expected
    assert used_prompts(tmp_path / "runs", "s2") == frozenset()
    # A later boot of the same run is a server of its own.
    assert used_prompts(tmp_path / "runs", "s3") == {("code", one.prompts(PromptClass.CODE)[0].index)}


def test_boots_are_counted_and_not_runs(tmp_path: Path) -> None:
    one = replace(_SMALL, classes=(PromptClass.PROSE,), width=None, runs=2)
    events = _benched(tmp_path, "healthy", one, prefill=False)
    samples = [event.sample for event in events if isinstance(event, SampleDone)]
    second = [replace(sample, boot_id="b2") for sample in samples]
    (alone,), (both,) = over_boots(samples, one), over_boots([*samples, *second], one)
    assert (alone.decode_tok_s.boots, alone.decode_tok_s.mean.low) == (1, None)
    assert (both.decode_tok_s.boots, both.decode_tok_s.runs) == (2, 4)


def test_arms_take_turns_so_that_drift_hits_both() -> None:
    assert [abba(boots) for boots in (1, 2, 3)] == ["AB", "ABBA", "ABBAAB"]
    for boots in (2, 4, 6):
        places = {arm: [at for at, name in enumerate(abba(boots)) if name == arm] for arm in "AB"}
        assert sum(places["A"]) == sum(places["B"])


def test_confounded_arms_are_refused_by_name(catalog: Catalog, tmp_path: Path) -> None:
    plan = AbPlan(a="llamacpp/smollm2-135m-cpu-fast", b="llamacpp/smollm2-135m-cpu-superfast")
    plain = load_settings(environ={"HOME": str(tmp_path)}, working_dir=tmp_path)
    found = require_comparable(catalog, plain, plan)
    assert {"drafter", "spec_n"} <= {item.name for item in found}
    with pytest.raises(UsageError, match="same tier"):
        require_comparable(catalog, plain, replace(plan, b=plan.a))


def test_a_difference_that_is_no_tier_is_named(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = AbPlan(a="llamacpp/smollm2-135m-cpu-fast", b="llamacpp/smollm2-135m-cpu-superfast")
    contexts = itertools.cycle([8192, 4096])
    resolved = ab._conditions

    def conditions(*arguments: Any) -> dict[str, Any]:
        return {**resolved(*arguments), "max_model_len": next(contexts)}

    monkeypatch.setattr(ab, "_conditions", conditions)
    plain = load_settings(environ={"HOME": str(tmp_path)}, working_dir=tmp_path)
    with pytest.raises(RefusedError, match="max_model_len: 8192 against 4096"):
        require_comparable(catalog, plain, plan)
    require_comparable(catalog, plain, replace(plan, allowed=frozenset({"max_model_len"})))


def test_nothing_is_measured_across_a_restart(tmp_path: Path) -> None:
    """The scenario dies after three answers and is back a moment later, on the same port."""
    settings = ("--set", "life.dies_after_requests=3", "--set", "boot.line_s=0.0001")
    one = replace(_SMALL, classes=(PromptClass.PROSE,), width=None, runs=10)
    with (
        fake_engine("restarted-mid-run", tmp_path / "log", settings) as fake,
        create_run(tmp_path / "runs", "bench", url=fake.url) as run,
    ):
        job = BenchJob(target=Target(url=fake.url, model="redline-fake"), boot_id="b1", prefill=False, timeout_s=5.0)
        with pytest.raises(InconclusiveError, match="ended, or was started anew, while it was measured"):
            list(bench_regime(job, run, one))
    events = list(read_events(run.directory))
    good = [event.payload for event in events if event.kind == "bench.sample" and not event.payload["error"]]
    assert len(good) == 2  # the first of its three answers is the warm-up
    assert [event.kind for event in events].count("bench.restarted") == 1
    assert any(event.kind == "bench.summary" for event in events)


def test_a_wall_clock_that_is_set_back_changes_no_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(0, -3600)
    monkeypatch.setattr("time.time", lambda: 1.8e9 + next(hours))
    one = replace(_SMALL, classes=(PromptClass.PROSE,), width=None, runs=2)
    settings = ("--set", "speed.step_s=0.005", "--set", "speed.spread=0.0")
    events = _benched(tmp_path, "healthy-text-only", one, *settings, prefill=False)
    for event in events:
        if isinstance(event, SampleDone):
            assert event.sample.decode_tok_s is not None
            assert 20 < event.sample.decode_tok_s < 300


def test_another_models_name_gives_no_number(tmp_path: Path) -> None:
    one = replace(_SMALL, classes=(PromptClass.PROSE,), width=None, runs=1)
    with fake_engine("healthy", tmp_path / "log") as fake, create_run(tmp_path / "runs", "bench", url=fake.url) as run:
        job = BenchJob(target=Target(url=fake.url, model="gpt-9"), boot_id="b1", prefill=False)
        events = list(bench_regime(job, run, one))
    sample = _of(events, SampleDone).sample
    assert sample.decode_tok_s is None
    assert sample.error is not None
    assert sample.error.startswith("status: ")
    assert "gpt-9" in sample.error


def test_a_quick_look_asks_for_few_enough_tokens() -> None:
    """45 seconds at the rate that the slower classes of the embedded tier have, first tokens aside."""
    regime = QuickRegime(classes=SHORT_CLASSES)
    assert len(regime.classes) * regime.per_class * regime.max_tokens / 45 < 60
