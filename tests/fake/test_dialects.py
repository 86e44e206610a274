"""Both dialects on the wire, in the shapes of the engines they speak as."""

import concurrent.futures
import json
from typing import Any

import pytest

from redline.fake import tokens


def _vllm(talk: Any) -> bool:
    return "vllm:num_requests_running" in talk.get("/metrics")[1]


def test_health_and_models(healthy: Any) -> None:
    status, body = healthy.get("/health")
    assert status == 200
    assert body == ("" if _vllm(healthy) else {"status": "ok"})
    card = healthy.get("/v1/models")[1]["data"][0]
    assert card["id"] == "redline-fake"
    assert (card["max_model_len"] if _vllm(healthy) else card["meta"]["n_ctx"]) == 32768


def test_own_paths(healthy: Any) -> None:
    if _vllm(healthy):
        assert "max_seq_len=32768" in healthy.get("/server_info")[1]["vllm_config"]
        assert healthy.get("/version")[1] == {"version": "0.33.0"}
        assert healthy.get("/props")[0] == 404
    else:
        props = healthy.get("/props")[1]
        assert props["default_generation_settings"]["n_ctx"] == 32768
        assert "enable_thinking" in props["chat_template"]
        assert len(healthy.get("/slots")[1]) == props["total_slots"] == 4
        assert healthy.get("/server_info")[0] == 404


def test_tokenize_counts_as_usage_does(healthy: Any) -> None:
    text = "The harbour clerk remembers a blue ledger."
    if _vllm(healthy):
        _, body = healthy.post("/tokenize", {"prompt": text, "return_token_strs": True})
        assert (body["count"], body["token_strs"]) == (tokens.count(text), tokens.pieces(text))
        messages = {"messages": [{"role": "user", "content": text}]}
        counted = healthy.post("/tokenize", messages)[1]["count"]
        assert counted == healthy.chat(text)["usage"]["prompt_tokens"]
        assert healthy.post("/detokenize", {"tokens": body["tokens"]})[1] == {"prompt": text}
    else:
        _, body = healthy.post("/tokenize", {"content": text, "with_pieces": True})
        assert [token["piece"] for token in body["tokens"]] == tokens.pieces(text)
        ids = healthy.post("/tokenize", {"content": text})[1]["tokens"]
        assert healthy.post("/detokenize", {"tokens": ids})[1] == {"content": text}


def test_a_whole_answer_and_a_stream_say_the_same(healthy: Any) -> None:
    whole = healthy.chat("What is the capital of France?")
    streamed = healthy.stream("What is the capital of France?")
    assert streamed.text == whole["choices"][0]["message"]["content"] == "The capital of France is Paris."
    assert streamed.usage is not None
    assert streamed.usage["completion_tokens"] == whole["usage"]["completion_tokens"] == tokens.count(streamed.text)
    assert (streamed.finish, streamed.done) == ("stop", True)


def test_chunks_carry_steps_in_vllm_and_tokens_in_llamacpp(healthy: Any) -> None:
    streamed = healthy.stream("Tell me a story.", max_tokens=120)
    contents = streamed.deltas("content")
    assert streamed.usage is not None
    assert (streamed.usage["completion_tokens"], streamed.finish) == (120, "length")
    assert (len(contents) < 80) if _vllm(healthy) else (len(contents) == 120)


def test_reasoning_has_the_field_of_its_engine(healthy: Any) -> None:
    thinking = {"chat_template_kwargs": {"enable_thinking": True}}
    field = "reasoning" if _vllm(healthy) else "reasoning_content"
    assert len(healthy.chat("What is 17 + 25?", **thinking)["choices"][0]["message"][field]) > 50
    streamed = healthy.stream("What is 17 + 25?", **thinking)
    assert len("".join(streamed.deltas(field))) > 50
    assert "42" in streamed.text


def test_tool_calls_whole_and_streamed(healthy: Any) -> None:
    tool = {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}},
    }
    question = "What is the weather in Paris? Use the tool."
    whole = healthy.chat(question, tools=[tool])["choices"][0]
    call = whole["message"]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("get_weather", {"city": "Paris"})
    assert whole["finish_reason"] == "tool_calls"
    streamed = healthy.stream(question, tools=[tool])
    parts = [part["function"] for delta in streamed.deltas("tool_calls") for part in delta]
    assert parts[0]["name"] == "get_weather"
    assert json.loads("".join(part.get("arguments", "") for part in parts)) == {"city": "Paris"}
    assert streamed.finish == "tool_calls"


def test_plain_completions(healthy: Any) -> None:
    _, body = healthy.post("/v1/completions", {"prompt": "Once", "max_tokens": 7})
    assert body["object"] == "text_completion"
    assert tokens.count(body["choices"][0]["text"]) == body["usage"]["completion_tokens"] == 7
    streamed = healthy.stream("", path="/v1/completions", prompt="Once", max_tokens=7)
    text = "".join(choice["text"] for event in streamed.events for choice in event["choices"])
    assert text == body["choices"][0]["text"]


def test_anthropic_messages(healthy: Any) -> None:
    body = {"model": "redline-fake", "max_tokens": 50, "messages": [{"role": "user", "content": "What is 17 + 25?"}]}
    _, whole = healthy.post("/v1/messages", body)
    assert whole["content"] == [{"type": "text", "text": "17 + 25 = 42"}]
    assert (whole["stop_reason"], whole["usage"]["output_tokens"]) == ("end_turn", 5)
    streamed = healthy.stream("", path="/v1/messages", **body)
    kinds = [event["type"] for event in streamed.events]
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    text = "".join(event["delta"]["text"] for event in streamed.events if event["type"] == "content_block_delta")
    assert text == "17 + 25 = 42"


def test_spec_metrics_of_the_request(healthy: Any) -> None:
    body = healthy.chat("Tell me a story.", max_tokens=100)
    if _vllm(healthy):
        found = body["metrics"]["speculative_decoding"]
        histogram = found["acceptance_histogram"]
        assert sum(histogram) == found["num_spec_steps"]
        assert sum(at * n for at, n in enumerate(histogram)) == found["num_accepted_draft_tokens"]
        assert (len(histogram), found["num_spec_tokens"]) == (4, 3)
    else:
        timings = body["timings"]
        assert 0 < timings["draft_n_accepted"] < timings["draft_n"]
        assert timings["predicted_n"] == 100


def test_counters_move_with_what_was_done(healthy: Any) -> None:
    before = healthy.counters()
    body = healthy.chat("Tell me another story.", max_tokens=64)
    after = healthy.counters()
    delta = {name: after[name] - before.get(name, 0.0) for name in after}
    prefix, usage = ("vllm:", body["usage"]) if _vllm(healthy) else ("llamacpp:", body["usage"])
    generated = "vllm:generation_tokens_total" if _vllm(healthy) else "llamacpp:tokens_predicted_total"
    assert delta[generated] == usage["completion_tokens"] == 64
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    if _vllm(healthy):
        assert delta["vllm:prompt_tokens_total"] == usage["prompt_tokens"]
        assert (delta["vllm:prefix_cache_queries_total"], delta["vllm:prefix_cache_hits_total"]) == (
            usage["prompt_tokens"],
            cached,
        )
    else:
        assert delta["llamacpp:prompt_tokens_total"] == usage["prompt_tokens"] - cached
    accepted = delta[f"{prefix}spec_decode_num_accepted_tokens_total"]
    assert delta[f"{prefix}spec_decode_num_accepted_tokens_per_pos_total"] == accepted > 0
    # Every step but the first yields one token and the accepted ones.
    assert delta[f"{prefix}spec_decode_num_drafts_total"] + accepted + 1 == 64


def test_a_prompt_seen_before_is_cached_in_whole_blocks(healthy: Any) -> None:
    long = "A prompt that no other test sends: " + "gulls over the pier, " * 40
    first = healthy.chat(long, max_tokens=2)["usage"]
    second = healthy.chat(long, max_tokens=2)["usage"]
    salted = healthy.chat(f"Salt {long}", max_tokens=2)["usage"]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in (first, second, salted)]
    assert cached[0] == cached[2] == 0
    assert cached[1] % 16 == 0
    assert second["prompt_tokens"] - 17 <= cached[1] < second["prompt_tokens"]


def test_errors_in_the_engines_words(healthy: Any) -> None:
    status, body = healthy.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 40000}]})
    assert status == 400
    words = "maximum context length is 32768" if _vllm(healthy) else "exceeds the available context size (32768 tokens)"
    assert words in body["error"]["message"]
    status, body = healthy.post("/v1/chat/completions", {"messages": [], "model": "redline-fake"})
    assert (status, body["error"]["code"]) == (400, 400)
    named = {"model": "other", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    assert healthy.post("/v1/chat/completions", named)[0] == (404 if _vllm(healthy) else 200)
    assert healthy.get("/nowhere")[0] == 404
    assert healthy.request("PUT", "/v1/models")[0] == 405


def test_more_requests_than_slots_wait(healthy: Any) -> None:
    def ask(number: int) -> int:
        return int(healthy.chat(f"Story {number}", max_tokens=600)["usage"]["completion_tokens"])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask, number) for number in range(8)]
        names = ("num_requests_running", "num_requests_waiting")
        if not _vllm(healthy):
            names = ("requests_processing", "requests_deferred")
        seen: set[tuple[float, float]] = set()
        while not all(answer.done() for answer in answers):
            found = healthy.counters()
            running, waiting = (next(v for k, v in found.items() if k.endswith(name)) for name in names)
            seen.add((running, waiting))
        assert [answer.result() for answer in answers] == [600] * 8
    assert max(running for running, _ in seen) == 4
    assert max(waiting for _, waiting in seen) > 0


@pytest.mark.parametrize("broken", [b"{bad", b"[]", b'{"messages": 3}', b"\xff\xfe"])
def test_bodies_that_cannot_be_read(healthy: Any, broken: bytes) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", healthy.fake.port, timeout=5)
    connection.request("POST", "/v1/chat/completions", broken)
    assert connection.getresponse().status == 400
    connection.close()
