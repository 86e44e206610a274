"""Every way to fail at start, stop and transport, played by the fake engine and driven through the real commands."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.conftest import Home
from tests.ops.tiny import ANYWAY, FAST, VLLM, furnish, llama_server, vllm

from redline.fake.scenario import load_scenario, scenario_names
from redline.launch.state import ServerState, list_servers
from redline.rig.ports import can_bind

pytestmark = pytest.mark.real
Port = Callable[[], int]


@dataclass(frozen=True)
class Outcome:
    """How `up` ends, a part of what it says, and what `diagnose` finds; `dialect` is the engine that plays it."""

    code: int
    says: str
    signature: str | None = None
    dialect: str = "vllm"
    limit_s: int = 30
    patience: float = 1


OUTCOMES = {
    "crash-loop": Outcome(6, "its life 3 times and was never ready (a crash loop)", "driver-too-old", limit_s=300),
    "hang-in-load": Outcome(6, "not ready within 4 s; it got as far as loading", limit_s=4),
    "killed-while-loading": Outcome(6, "exit status 137. Something killed it"),
    "log-huge-lines": Outcome(0, "ready in"),
    "log-invalid-utf8": Outcome(0, "ready in"),
    "oom-graph-capture": Outcome(6, "The cache took what the CUDA graphs needed", "oom-capturing-graphs"),
    "oom-kv-pool": Outcome(6, "GiB of KV cache", "kv-cache-too-small"),
    "oom-weights": Outcome(6, "The GPU is full before the weights are in", "oom-loading-weights"),
    "port-stolen": Outcome(6, "Another program has", "port-taken"),
    "slow-load": Outcome(0, "ready in"),
    "wrong-model-id": Outcome(6, "it serves somebody-elses-model, not tiny"),
    "ignores-sigterm": Outcome(0, "ready in", dialect="llamacpp"),
    "buffering-proxy": Outcome(1, "something buffers"),
    "error-in-200": Outcome(6, "its first request was answered with 200"),
    "hang-in-request": Outcome(6, "its first request failed: timed out", limit_s=4),
    "html-instead-of-json": Outcome(6, "did not start"),
    "missing-usage": Outcome(1, "fail"),
    "truncated-stream": Outcome(1, "fail"),
    "zero-tokens": Outcome(1, "fail"),
    "endless-stream": Outcome(1, "no end after", patience=0.05),
    "hang-mid-stream": Outcome(1, "no end after", patience=0.05),
}


def test_no_scenario_is_forgotten() -> None:
    kinds = {name: load_scenario(name).kind for name in scenario_names()}
    wanted = {name for name, kind in kinds.items() if kind in ("start", "stop", "transport")}
    assert wanted == OUTCOMES.keys()


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_scenario_is_told_for_what_it_is(home: Home, free_port: Port, name: str) -> None:
    wanted = OUTCOMES[name]
    ports = {FAST: free_port(), VLLM: free_port()}
    furnish(home, ports[FAST], free_port(), ports[VLLM])
    if wanted.dialect == "vllm":
        vllm(home, name)
    else:
        llama_server(home, name)
    slug = VLLM if wanted.dialect == "vllm" else FAST
    port = ports[slug]
    limits = {"READY_TIMEOUT": str(wanted.limit_s), "CHECK_PATIENCE": str(wanted.patience)}
    done = home.run("up", slug, *ANYWAY, "--no-measure", **limits)
    assert done.returncode == wanted.code, done.stdout + done.stderr
    assert wanted.says in done.stdout + done.stderr
    rows = home.json("ps")
    found = json.loads(home.run("diagnose", "--json").stdout)
    assert found["signature_id"] == wanted.signature
    [run] = home.json("runs")
    if wanted.code == 6:
        assert rows == []
        [(_, record)] = list_servers(home.settings.servers_dir)
        assert record.state is ServerState.FAILED
        assert record.ended
        assert run["outcome"] == "failed"
        if name != "port-stolen":  # there a stranger has it, and keeps it
            assert can_bind("127.0.0.1", port)
        assert home.run("down").returncode == 7
        return
    assert [row["state"] for row in rows] == ["ready"]
    assert run["outcome"] == "complete"
    [proof] = home.json("down")
    assert proof["port_free"]
    assert can_bind("127.0.0.1", port)
