"""Each traffic scenario plays what its file says: seen on the wire, against the healthy behaviour beside it."""

import contextlib
import json
import time
from typing import Any

import psutil
import pytest

DIALECTS = pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])
_ON = {"chat_template_kwargs": {"enable_thinking": True}}
_OFF = {"chat_template_kwargs": {"enable_thinking": False}}
_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}},
}
_WEATHER = "What is the weather in Paris? Use the tool."


def _long(tokens: int, salt: str) -> str:
    return f"{salt} " + "gulls over the old pier " * (tokens // 6)


def _spec(talk: Any, run: Any) -> tuple[float, float]:
    """Return drafts and accepted tokens counted while `run` ran."""
    before = talk.counters()
    run()
    after = talk.counters()

    def delta(name: str) -> float:
        found = [after[key] - before.get(key, 0.0) for key in after if key.endswith(name)]
        return float(sum(found))

    return delta("spec_decode_num_drafts_total"), delta("spec_decode_num_accepted_tokens_total")


@DIALECTS
def test_drafters_alive_dead_idle_and_collapsing(play: Any, dialect: str) -> None:
    fast = ("--dialect", dialect, "--set", "speed.step_s=0.0005")
    with play("healthy", *fast) as talk:
        drafts, accepted = _spec(talk, lambda: talk.chat("Tell me a story."))
        assert accepted / drafts > 1
    with play("dead-drafter", *fast) as talk:
        drafts, accepted = _spec(talk, lambda: talk.chat("Tell me a story."))
        assert (drafts > 50, accepted) == (True, 0)
    with play("idle-drafter", *fast) as talk:
        assert _spec(talk, lambda: talk.chat("Tell me a story.")) == (0, 0)
    with play("acceptance-collapse", *fast, "--set", "drafter.collapse_after_tokens=300") as talk:
        early = _spec(talk, lambda: talk.chat("Tell me a story.", max_tokens=300))
        late = _spec(talk, lambda: talk.chat("Tell me another.", max_tokens=300))
        assert early[1] / early[0] > 1
        assert late == (299, 0)


def test_reasoning_comes_first_late_or_always(play: Any) -> None:
    with play("reasoning-first") as talk:
        found = talk.stream("What is 17 + 25?")
        kinds = [
            "reasoning" if choice["delta"].get("reasoning") else "content"
            for event in found.events
            for choice in event["choices"]
            if choice["delta"].get("reasoning") or choice["delta"].get("content")
        ]
        assert kinds[0] == "reasoning"
        assert kinds[-1] == "content"
        assert kinds == sorted(kinds, reverse=True)
        assert not talk.stream("What is 17 + 25?", **_OFF).deltas("reasoning")
    with play("thinking-cannot-be-off") as talk:
        assert talk.stream("What is 17 + 25?", **_OFF).deltas("reasoning")
    with play("older-reasoning-field") as talk:
        found = talk.stream("What is 17 + 25?")
        assert found.deltas("reasoning_content")
        assert not found.deltas("reasoning")
    with play("reasoning-in-content") as talk:
        found = talk.stream("What is 17 + 25?", **_ON)
        assert found.text.startswith("<think>")
        assert not found.deltas("reasoning")


def test_chunks_of_several_tokens(play: Any) -> None:
    with play("multi-token-chunks") as talk:
        found = talk.stream("Tell me a story.", max_tokens=81)
        assert found.usage is not None
        assert found.usage["completion_tokens"] == 81
        assert len(found.deltas("content")) == 11, "one token at once, then ten chunks of eight"


@DIALECTS
def test_tools_dropped_as_text_and_schemas_ignored(play: Any, dialect: str) -> None:
    arguments = ("--dialect", dialect)
    with play("tool-call-dropped", *arguments) as talk:
        assert talk.stream(_WEATHER, tools=[_TOOL], **_OFF).finish == "tool_calls"
        lost = talk.stream(_WEATHER, tools=[_TOOL], **_ON)
        assert (lost.finish, lost.text, lost.deltas("tool_calls")) == ("stop", "", [])
        assert lost.deltas("reasoning") or lost.deltas("reasoning_content")
    with play("tool-markup-as-text", *arguments) as talk:
        found = talk.stream(_WEATHER, tools=[_TOOL])
        assert "<tool_call>" in found.text
        assert not found.deltas("tool_calls")
    with play("schema-ignored", *arguments) as talk:
        form = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {}}}}
        text = talk.chat("Describe a cat.", response_format=form)["choices"][0]["message"]["content"]
        with pytest.raises(ValueError, match="Expecting value"):
            json.loads(text)


@DIALECTS
def test_errors_at_depth(play: Any, dialect: str) -> None:
    with play("error-at-depth", "--dialect", dialect) as talk:
        talk.chat(_long(9000, "a"), max_tokens=2)
        body = {"messages": [{"role": "user", "content": _long(13000, "b")}], "max_tokens": 2}
        status, answer = talk.post("/v1/chat/completions", body)
        assert (status, "error" in answer) == (500, True)
        assert talk.get("/health")[0] == 200
    with play("context-smaller", "--dialect", dialect) as talk:
        body = {"messages": [{"role": "user", "content": _long(18000, "b")}], "max_tokens": 2}
        status, answer = talk.post("/v1/chat/completions", body)
        assert status == 400
        assert "16384" in answer["error"]["message"]


@DIALECTS
def test_death_at_the_first_long_prompt_and_after_requests(play: Any, dialect: str) -> None:
    with play("oom-first-prefill", "--dialect", dialect) as talk:
        talk.chat("Hi", max_tokens=2)
        assert talk.stream(_long(13000, "b")).broken
        assert talk.fake.process.wait(5) == 1
        assert any("out of memory" in line for line in talk.fake.log_lines())
    with play("dies-after-requests", "--dialect", dialect, "--set", "life.dies_after_requests=2") as talk:
        talk.chat("Hi", max_tokens=2)
        talk.chat("Hi", max_tokens=2)
        assert talk.stream("Hi").broken
        assert talk.fake.process.wait(5) == 1
        assert any("illegal memory access" in line for line in talk.fake.log_lines())


def test_death_and_restart_on_the_same_port(play: Any) -> None:
    with play("restarted-mid-run", "--set", "life.dies_after_requests=2") as talk:
        talk.chat("Hi", max_tokens=2)
        talk.chat("Hi", max_tokens=2)
        assert talk.stream("Hi").broken
        deadline = time.monotonic() + 10
        status = 0
        while status != 200 and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                status = talk.get("/health")[0]
        assert talk.counters()["vllm:generation_tokens_total"] == 0
        assert talk.chat("Hi", max_tokens=2)["usage"]["completion_tokens"] == 2
        assert talk.fake.process.poll() is None


def test_a_first_request_that_compiles(play: Any) -> None:
    with play("first-request-compiles", "--set", "speed.first_request_s=0.5") as talk:
        name = "vllm:request_prefill_time_seconds_sum"
        talk.chat("Hi", max_tokens=2)
        first = talk.counters()[name]
        talk.chat("Hi", max_tokens=2)
        assert first >= 0.5 > talk.counters()[name] - first


def test_counters_fall_to_nought(play: Any) -> None:
    with play("counter-reset", "--set", "life.counters_reset_every=3") as talk:
        totals = []
        for number in range(4):
            talk.chat(f"Story {number}", max_tokens=20)
            totals.append(talk.counters()["vllm:generation_tokens_total"])
        assert totals == [20, 40, 0, 20]


@DIALECTS
def test_caches_that_know_everything_nothing_and_do_not_tell(play: Any, dialect: str) -> None:
    hits = "vllm:prefix_cache_hits_total" if dialect == "vllm" else "llamacpp:prompt_tokens_cached_total"
    with play("prefix-cache-hits", "--dialect", dialect) as talk:
        usage = talk.chat(_long(600, "never sent before"), max_tokens=2)["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 16
    with play("prefix-cache-unreported", "--dialect", dialect) as talk:
        usage = talk.chat(_long(600, "never sent before"), max_tokens=2)["usage"]
        assert not usage.get("prompt_tokens_details")
        assert talk.counters()[hits] > 500
    with play("no-cache-reuse", "--dialect", dialect) as talk:
        for _ in range(2):
            usage = talk.chat(_long(600, "the same"), max_tokens=2)["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_silent_answers_of_every_cause(play: Any) -> None:
    with play("silent-empty-reasoning") as talk:
        found = [talk.stream(f"Story {n}", max_tokens=50) for n in range(2)]
        assert [bool(item.text) for item in found] == [True, False]
        assert (found[1].finish, bool(found[1].deltas("reasoning"))) == ("length", True)
    with play("silent-empty-no-tokens") as talk:
        found = [talk.stream(f"Story {n}", max_tokens=50) for n in range(3)]
        assert [bool(item.text) for item in found] == [True, True, False]
        assert found[2].usage is not None
        assert (found[2].finish, found[2].usage["completion_tokens"]) == ("stop", 0)
    with play("silent-empty-closed") as talk:
        found = [talk.stream(f"Story {n}", max_tokens=50) for n in range(2)]
        assert (found[1].status, found[1].finish, found[1].text, found[1].done) == (200, None, "", False)
    with play("silent-empty-masked") as talk:
        assert talk.stream("Story", max_tokens=50).text
        masked = talk.stream(_WEATHER, tools=[_TOOL])
        assert (masked.text, masked.deltas("tool_calls"), masked.finish) == ("", [], "stop")


def test_memory_really_grows(play: Any) -> None:
    with play("memory-growth") as talk:
        process = psutil.Process(talk.fake.process.pid)
        talk.chat("Hi", max_tokens=1)
        before = process.memory_info().rss
        for _ in range(5):
            talk.chat("Hi", max_tokens=1)
        assert process.memory_info().rss - before > 15 * 2**20


def _decode_s(talk: Any, text: str) -> float:
    """Return the decode seconds of 20 tokens that the engine itself counted."""
    before = talk.counters()["vllm:request_decode_time_seconds_sum"]
    assert talk.chat(text, max_tokens=20)["usage"]["completion_tokens"] == 20
    return float(talk.counters()["vllm:request_decode_time_seconds_sum"] - before)


def test_slower_with_age_and_at_depth(play: Any) -> None:
    """Lower bounds only: a busy machine can make steps longer, never shorter. test_pace.py has the exact times."""
    with play("slower-with-age", "--set", "speed.age_factor=9.0", "--set", "speed.step_s=0.004") as talk:
        talk.chat("one", max_tokens=2)
        assert _decode_s(talk, "two") > 19 * 0.004 * 10 * 0.9
    with play("slow-at-depth", "--set", "speed.slow_factor=20.0", "--set", "drafter.mode=idle") as talk:
        assert _decode_s(talk, _long(13000, "deep")) > 19 * 0.003 * 20 * 0.9


def test_garbage_and_answers_that_stop_early(play: Any) -> None:
    with play("garbage-repetition") as talk:
        found = talk.stream("What is the capital of France?", max_tokens=60)
        assert set(found.text) <= {"!", "\n"}
        assert found.finish == "length"
    with play("stops-early") as talk:
        found = talk.stream("Prove that there are infinitely many primes.", max_tokens=8000)
        assert found.usage is not None
        assert (found.usage["completion_tokens"], found.finish) == (40, "stop")


@DIALECTS
def test_images_refused_and_unseen(play: Any, dialect: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [picture, {"type": "text", "text": "What is this?"}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 10}
    with play("image-refused", "--dialect", dialect) as talk:
        status, answer = talk.post("/v1/chat/completions", body)
        assert status == (400 if dialect == "vllm" else 500)
        assert "image" in answer["error"]["message"]
    with play("image-unseen", "--dialect", dialect) as talk:
        status, answer = talk.post("/v1/chat/completions", body)
        assert status == 200
        assert "no picture" in answer["choices"][0]["message"]["content"]


def test_needles_are_lost_beyond_a_depth_and_requests_succeed(play: Any) -> None:
    filler = "The tide was quiet that evening. " * 1200
    text = f"The access code for amber is K7QX-41. {filler} The access code for violet is MM31-08. Rain fell."
    question = f"{text}\n\nWhat are the access codes for amber and violet?"
    with play("needles-lost") as talk:
        found = talk.stream(question)
        assert "MM31-08" in found.text
        assert "K7QX-41" not in found.text
        assert found.finish == "stop"


def test_an_overcommitted_pool_preempts(play: Any) -> None:
    import concurrent.futures

    with play("pool-overcommitted") as talk:
        talk.chat(_long(1800, "alone"), max_tokens=60)
        assert talk.counters()["vllm:num_preemptions_total"] == 0
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(talk.chat, _long(1800, f"salt {n}"), max_tokens=500) for n in range(3)]
            assert [job.result()["usage"]["completion_tokens"] for job in jobs] == [500, 500, 500]
        assert talk.counters()["vllm:num_preemptions_total"] > 0


def test_a_small_model_offers_less(play: Any) -> None:
    with play("healthy-text-only") as talk:
        assert not talk.stream("What is 17 + 25?", **_ON).deltas("reasoning")
        body = {"messages": [{"role": "user", "content": _WEATHER}], "tools": [_TOOL]}
        status, answer = talk.post("/v1/chat/completions", body)
        assert status == 400
        assert "--enable-auto-tool-choice" in answer["error"]["message"]
