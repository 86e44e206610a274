"""The block drafter that comes with redline, on the real engine and the real model."""

from collections.abc import Callable

import httpx2
import pytest
from tests.conftest import Home

from redline.engine.counters import acceptance, counters_delta
from redline.engine.llamacpp import LlamaCpp

pytestmark = pytest.mark.real
Port = Callable[[], int]
ULTRA = "llamacpp/smollm2-135m-cpu-ultrafast"
QUESTION = {
    "messages": [{"role": "user", "content": "Write a Python function that adds two numbers."}],
    "temperature": 0,
    "max_tokens": 64,
}


def ask(port: int) -> str:
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return str(httpx2.post(url, json=QUESTION, timeout=100).json()["choices"][0]["message"]["content"])


def test_ultra_drafts_and_answers_as_without_drafting(real_home: Home, free_port: Port) -> None:
    port = free_port()
    done = real_home.run("up", ULTRA, "--port", str(port), "--no-measure")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DFlash2 drafter" in done.stdout
    parse = LlamaCpp().parse_counters
    before = parse(httpx2.get(f"http://127.0.0.1:{port}/metrics").text)
    drafted = ask(port)
    found = acceptance(counters_delta(before, parse(httpx2.get(f"http://127.0.0.1:{port}/metrics").text)))
    assert found is not None
    assert found.drafts > 0
    assert 1 + found.accepted_tokens / found.drafts > 1.5
    assert real_home.run("down", "--all").returncode == 0

    plain = real_home.run("up", ULTRA, "--port", str(port), "--no-measure", "--set", "SPEC_N=0")
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert ask(port) == drafted


def test_a_depth_that_is_not_the_blocks_is_refused(real_home: Home) -> None:
    done = real_home.run("up", ULTRA, "--set", "SPEC_N=7")
    assert done.returncode == 5
    assert "drafter-depth" in done.stdout + done.stderr
