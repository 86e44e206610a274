"""What `verify` and `bench` do around their measuring: find the target, open a run, conclude it."""

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from redline.catalog.explain import served_model
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.router import ROUTER
from redline.launch.state import ServerState
from redline.ops.bench import BenchJob, used_prompts
from redline.ops.facts import patience_of, server_facts
from redline.ops.launching import CONDITIONS_FILE
from redline.ops.servers import pick_server, target_of, wait_ready
from redline.ops.verify import Facts
from redline.probe.client import Client
from redline.probe.memory import ServerMemory
from redline.probe.served import Served, ask_served
from redline.probe.target import Secret, Target
from redline.record.files import read_json
from redline.record.manifest import FieldRecord
from redline.record.run import Run, create_run
from redline.rig.detect import detect_rig
from redline.rig.links import rig_record
from redline.settings import Settings


@dataclass(frozen=True, slots=True)
class Subject:
    """A server to be proved or measured, with what is known about it."""

    target: Target
    facts: Facts
    conditions: Mapping[str, Any]
    pid: int | None = None


def find_subject(catalog: Catalog, settings: Settings, name: str | None, url: str | None, model: str | None) -> Subject:
    """Return the server of redline that a user means, or the endpoint of `--url`.

    Raises:
        NoServerError, InconclusiveError: no such server, or several.
        EndpointError: the URL does not answer like an OpenAI-compatible server.
    """
    if url is not None:
        return _endpoint(catalog, settings, url.rstrip("/").removesuffix("/v1"), model)
    folder, record = pick_server(settings, name)
    if record.state is not ServerState.READY:
        for _ in wait_ready(folder):
            pass
    conditions = read_json(folder / CONDITIONS_FILE) or {"slug": record.slug, "engine": record.engine}
    key = catalog.tiers.get(record.slug)
    resolved = conditions.get("resolved") or {}
    depth = int((resolved.get("spec_n") or {"value": 0})["value"])
    drafter = str((resolved.get("drafter") or {"value": ""})["value"])
    known = served_model(catalog, resolve(catalog, key.slug, settings.layers)) if key else None
    return Subject(
        target=target_of(record, settings),
        # A router has no counters of its own; drafting is proved on each copy.
        facts=server_facts(
            settings, record, folder, known, drafter=drafter, depth=0 if record.engine == ROUTER else depth
        ),
        conditions=conditions,
        pid=record.engine_process.pid if record.engine_process else None,
    )


def served_by(subject: Subject) -> Served:
    """Return what the subject's server says of itself.

    Raises:
        EndpointError: it does not answer, or not as an OpenAI-compatible server.
    """

    async def ask() -> Served:
        async with Client(subject.target) as client:
            return await ask_served(client)

    return asyncio.run(ask())


def bench_job(
    settings: Settings, subject: Subject, *, prefill: bool = True, timeout_s: float = 600.0, settle_s: float = 0.0
) -> BenchJob:
    """Return what is to be measured of a subject, without the prompts that a lookup drafter has seen.

    Raises:
        EndpointError: the server does not answer.
    """
    server_id = subject.target.server_id
    lookup = "lookup" in str(((subject.conditions.get("resolved") or {}).get("drafter") or {}).get("value"))
    return BenchJob(
        target=subject.target,
        boot_id=server_id or "unmanaged",
        context_tokens=served_by(subject).context_tokens,
        used=used_prompts(settings.runs_dir, server_id) if lookup else frozenset(),
        thinking_switch=subject.facts.model is None or subject.facts.model.capabilities.thinking.offered,
        prefill=prefill,
        timeout_s=timeout_s,
        settle_s=settle_s,
        conditions=subject.conditions,
    )


def new_seed() -> int:
    """Return a seed for content that no earlier run had: what a server has seen once, its caches know."""
    return secrets.randbelow(2**31)


def _endpoint(catalog: Catalog, settings: Settings, url: str, model: str | None) -> Subject:
    key = settings.secret("REDLINE_API_KEY")
    secret = Secret(key) if key else None

    async def first_model() -> str:
        async with Client(Target(url=url, model="", api_key=secret)) as client:
            ids = await client.model_ids()
            return ids[0] if ids else ""

    target = Target(url=url, model=model or asyncio.run(first_model()), api_key=secret)
    known = next((item for item in catalog.models.values() if target.model in (item.id, *item.aliases)), None)
    facts = Facts(model=known, swapped_bytes=ServerMemory(url).swapped, patience=patience_of(settings))
    return Subject(target=target, facts=facts, conditions={})


@contextmanager
def recorded(settings: Settings, subject: Subject, command: str, seeds: dict[str, int]) -> Iterator[Run]:
    """Open a run for a subject; it ends with its last event whatever ends the block."""
    conditions = dict(subject.conditions)
    if not conditions:
        rig = detect_rig()
        conditions = {"rig": rig_record(rig), "driver_version": rig.driver_version}
    resolved = {name: FieldRecord(**field) for name, field in conditions.pop("resolved", {}).items()}
    run = create_run(
        settings.runs_dir,
        command,
        url=subject.target.url,
        server_id=subject.target.server_id,
        seeds=seeds,
        resolved=resolved,
        **conditions,
    )
    with run:
        yield run
