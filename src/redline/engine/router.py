"""The router before several servers of one model: vLLM's own, from PyPI, as a launch plan. Starts nothing.

It forwards each request with its headers, so the key of the servers is asked for by the servers and stands in no
argument of the router. It has no health path of its own: `/health` is 200 while every server behind it is well
(vllm-router 0.1.17, seen with two servers and with one of them killed).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from redline.engine.launch_plan import LaunchPlan, Readiness, StagePattern, StopPolicy

ROUTER: Final = "vllm-router"
ROUTER_VERSION: Final = "0.1.17"
ROUTER_MODULE: Final = "vllm_router"
WORKERS_PATH: Final = "/workers"
REQUEST_TIMEOUT_S: Final = 3600
# With its own threshold of 10 the router sent five tries of a request to a server that had just been killed, all within
# half a second, and answered 500 to two requests begun afterwards; with 2 it lost none (docs/replicas.md).
BREAKER_FAILURES: Final = 2
BREAKER_S: Final = 10


class Policy(StrEnum):
    """How the router picks a server.

    `consistent_hash` keeps a session (header X-Session-ID) on one server, and spreads requests without one by their
    text. `cache_aware` follows prefixes; under skewed load it dropped them (vllm-project/router#216, #238).
    """

    CONSISTENT_HASH = "consistent_hash"
    CACHE_AWARE = "cache_aware"
    ROUND_ROBIN = "round_robin"
    POWER_OF_TWO = "power_of_two"


def router_plan(
    members: Sequence[LaunchPlan],
    *,
    host: str,
    port: int,
    metrics_port: int,
    policy: Policy = Policy.CONSISTENT_HASH,
    program: Sequence[str] = (ROUTER,),
    health_interval_s: int = 10,
    startup_timeout_s: int = 600,
) -> LaunchPlan:
    """Return the router's process before servers that all serve the same model under the same name."""
    first = members[0]
    return LaunchPlan(
        slug=first.slug,
        engine=ROUTER,
        engine_version=ROUTER_VERSION,
        form="native",
        argv=(
            *program,
            "--worker-urls",
            *(member.url for member in members),
            *("--policy", policy.value),
            *("--host", host, "--port", str(port)),
            *("--prometheus-port", str(metrics_port)),
            *("--request-timeout-secs", str(REQUEST_TIMEOUT_S)),
            *("--health-check-interval-secs", str(health_interval_s)),
            *("--cb-failure-threshold", str(BREAKER_FAILURES), "--cb-timeout-duration-secs", str(BREAKER_S)),
            *("--worker-startup-timeout-secs", str(startup_timeout_s)),
            *("--worker-startup-check-interval", "1"),
        ),
        host=host,
        port=port,
        served_model=first.served_model,
        secret_env=("REDLINE_API_KEY",),
        readiness=Readiness(model=first.served_model, timeout_s=startup_timeout_s),
        gpus=(),
        stop=StopPolicy(grace_s=30),  # on SIGTERM it takes no more, and answers what it has taken
        stages=(
            StagePattern(stage="loading", text="Starting router on"),
            StagePattern(stage="warming", text="Router ready"),
        ),
        labels={"role": "router", "members": str(len(members))},
    )
