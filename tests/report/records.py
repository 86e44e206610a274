"""Records made by hand, with fixed ids and times, so that what is rendered from them can be compared by the letter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redline.bench.quick import BenchSample
from redline.checks.check import CheckResult, CheckStatus, SkipReason
from redline.checks.soak import Outcome, SoakTurn
from redline.launch.outcome import ServerFailed, ServerMemory, ServerStarted, StageTime
from redline.record.manifest import FieldRecord, RunManifest
from redline.record.reading import Event, RunRecord
from redline.record.run import RunFinished
from redline.workload.prompts import PromptClass

SLUG = "llamacpp/smollm2-135m-cpu-superfast"
RIG = {
    "cpu_model": "Intel(R) Xeon(R) Processor",
    "cpus": 2,
    "memory_gib": 24,
    "gpus": None,
    "wsl": 0,
    "digest": "abc123abc123",
}


def check(
    check_id: str, status: CheckStatus = CheckStatus.PASS, message: str = "as it should be", **extra: Any
) -> CheckResult:
    """Return a verdict."""
    title = extra.pop("title", check_id.partition(".")[2].replace("_", " "))
    return CheckResult(check_id=check_id, title=title, status=status, message=message, failure_class="x", **extra)


def skip(check_id: str, reason: SkipReason = SkipReason.NOT_OFFERED) -> CheckResult:
    """Return a check that was not asked."""
    return check(check_id, CheckStatus.SKIP, "not offered by this model", skip_reason=reason)


def sample(kind: PromptClass, index: int, rate: float | None, **extra: Any) -> BenchSample:
    """Return a measured request; a rate of None is one that failed."""
    values: dict[str, Any] = {
        "regime": "quick-1",
        "completion_tokens": 128,
        "prompt_tokens": 40 + index,
        "prefill_tok_s": 300.0 + index,
        "ttft_s": 0.2 + index / 100,
        "drafts": None,
        "draft_tokens": None,
        "accepted_tokens": None,
        "error": None if rate else "timeout: no answer",
    }
    return BenchSample(prompt_class=kind, prompt_index=index, decode_tok_s=rate, **(values | extra))


def drafted(kind: PromptClass, index: int, rate: float, accepted: int = 12) -> BenchSample:
    """Return a request with four drafts of three tokens."""
    by_position = (min(4, accepted), max(0, min(4, accepted - 4)), max(0, accepted - 8))
    return sample(
        kind, index, rate, drafts=4, draft_tokens=12, accepted_tokens=accepted, accepted_by_position=by_position
    )


def soak_turn(number: int, **extra: Any) -> SoakTurn:
    """Return a turn of a soak, five a session."""
    values: dict[str, Any] = {
        "shape": "short answer",
        "outcome": Outcome.ANSWERED,
        "constrained": False,
        "thinking": False,
        "finish_reason": "stop",
        "prompt_tokens": 100 + number,
        "cached_tokens": None,
        "completion_tokens": 50,
        "decode_tok_s": 80.0,
        "ttft_s": 0.2,
        "wall_s": 1.0,
        "drafts": None,
        "draft_tokens": None,
        "accepted_tokens": None,
        "resident_bytes": None,
        "gpu_bytes": None,
        "process": None,
        "counters_fell": False,
        "invented_calls": 0,
        "repaired_calls": 0,
        "error": None,
    }
    return SoakTurn(session=number // 5, turn=number % 5, **(values | extra))


def make_record(
    payloads: Sequence[object] = (), *, run_id: str = "2026-11-29-a1b", finished: bool = True, **fields: Any
) -> RunRecord:
    """Return a record of payloads, a second apart; `fields` are those of the manifest."""
    conditions: dict[str, Any] = {
        "command": "bench",
        "started_at": "2026-11-29T19:52:00+00:00",
        "url": "http://127.0.0.1:8120",
        "slug": SLUG,
        "server_id": "20261129-195200-0001",
        "engine": "llamacpp",
        "engine_version": "xllamacpp-2026.10.11549",
        "rig": RIG,
        "argv": ("/srv/venv/bin/python", "-m", "redline.engine.worker", "--ctx", "8192"),
        "resolved": {
            "drafter": FieldRecord("lookup-map-k", "rule:smollm2-drafter-super"),
            "spec_n": FieldRecord(7, "rule:lookup-depth"),
            "kv_cache_dtype": FieldRecord("f16", "rule:kv-cpu"),
            "max_model_len": FieldRecord(8192, "rule:context-full"),
        },
        "seeds": {"prompts": 1},
    }
    manifest = RunManifest(
        schema_version=1, run_id=run_id, redline_version="0.1.0", definitions_version=1, **(conditions | fields)
    )
    end = RunFinished("complete", 0, "done")
    values = [*payloads, end] if finished else list(payloads)
    events = tuple(
        Event(number, f"2026-11-29T19:52:{number % 60:02}+00:00", number * 10**9, value)
        for number, value in enumerate(values)
    )
    return RunRecord(Path(run_id), manifest, events, end if finished else None, writing=False, problems=())


def on_boots(number: int, kind: PromptClass = PromptClass.PROSE, step: float = 1.0, **fields: Any) -> list[RunRecord]:
    """Return one record a boot with four requests each; a boot is faster than the one before by `step`."""
    return [
        make_record(
            [sample(kind, index, 80.0 + boot * step + index) for index in range(4)],
            run_id=f"2026-11-29-b{boot}",
            server_id=f"boot-{boot}",
            **fields,
        )
        for boot in range(number)
    ]


def full_record() -> RunRecord:
    """Return a record with something for every section of a report."""
    stages = (
        StageTime(stage="starting", begin_s=0.0, end_s=0.2),
        StageTime(stage="loading", begin_s=0.2, end_s=1.1),
        StageTime(stage="warming", begin_s=1.1, end_s=1.6),
    )
    server = "20261129-195200-0001"
    payloads = [
        ServerStarted(server_id=server, ready_s=1.6, memory_bytes=400 * 2**20, stages=stages),
        check("reach.models", message="smollm2-135m is served"),
        check("chat.basic"),
        check("spec.acceptance", CheckStatus.FAIL, "nothing was drafted"),
        skip("tools.call"),
        skip("thinking.split", SkipReason.UNMET),
        *(ServerMemory(server_id=server, phase="verify", resident_bytes=(400 + n) * 2**20) for n in range(3)),
        *(drafted(PromptClass.PROSE, n, 80.0 + n, 12 - n) for n in range(6)),
        *(drafted(PromptClass.CODE, n, 60.0 + n) for n in range(5)),
        sample(PromptClass.CODE, 5, None),
        *(ServerMemory(server_id=server, phase="bench", resident_bytes=(410 + n) * 2**20) for n in range(4)),
        *(
            check(
                f"ladder.{size}_{place}",
                CheckStatus.FAIL if (size, place) == (8192, 50) else CheckStatus.PASS,
                metrics={
                    "context_tokens": size,
                    f"needle_at_{size}_{place}": float((size, place) != (8192, 50)),
                    "ttft_s": size / 1000,
                    "decode_tok_s": 90 - size / 200,
                },
            )
            for size in (1024, 4096, 8192)
            for place in (10, 50, 90)
        ),
    ]
    return make_record(payloads, command="up")


def failed_record() -> RunRecord:
    """Return a record of a boot that failed."""
    failed = ServerFailed(
        server_id="20261129-195200-0002",
        reason="the engine ended with exit status 1",
        cause="The machine had not enough memory for the model's buffers.",
        evidence="E ggml_aligned_malloc: insufficient memory",
        remedies=("Free memory, or use a smaller context: MAX_MODEL_LEN=N.",),
        log_tail=("loading model", "E ggml_aligned_malloc: insufficient memory"),
        stages=(StageTime(stage="loading", begin_s=0.1, end_s=0.9),),
    )
    return make_record([failed], run_id="2026-11-29-bad", command="up", server_id=None)
