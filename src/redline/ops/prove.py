"""What `verify` and `bench` do around their measuring: find the target, open a run, conclude it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redline.catalog.types import Catalog, Model
from redline.engine.launch_plan import launch_plan_from_dict
from redline.launch.state import PLAN_FILE, ServerState
from redline.ops.servers import pick_server, target_of, wait_ready
from redline.probe.client import Client
from redline.probe.target import Secret, Target
from redline.record.files import read_json
from redline.record.run import Run, create_run
from redline.rig.detect import detect_rig
from redline.settings import Settings


@dataclass(frozen=True, slots=True)
class Subject:
    """A server to be proved or measured, with what is known about it."""

    target: Target
    model: Model | None
    drafting: bool
    argv: tuple[str, ...]
    engine_version: str | None
    labels: tuple[str, ...] = ()


def find_subject(catalog: Catalog, settings: Settings, name: str | None, url: str | None, model: str | None) -> Subject:
    """Return the server of redline that a user means, or the endpoint of `--url`.

    Raises:
        NoServerError, InconclusiveError: no such server, or several.
        EndpointError: the URL does not answer like an OpenAI-compatible server.
    """
    if url is not None:
        return _endpoint(settings, url.rstrip("/").removesuffix("/v1"), model)
    folder, record = pick_server(settings, name)
    if record.state is not ServerState.READY:
        for _ in wait_ready(folder):
            pass
    plan = launch_plan_from_dict(read_json(folder / PLAN_FILE) or {})
    key = catalog.tiers.get(record.slug)
    return Subject(
        target=target_of(record, settings),
        model=catalog.models[key.model] if key else None,
        drafting="--spec-type" in plan.argv or "--speculative-config" in plan.argv,
        argv=plan.argv,
        engine_version=plan.engine_version,
        labels=tuple(f"{name}:{value}" for name, value in plan.labels.items()),
    )


def _endpoint(settings: Settings, url: str, model: str | None) -> Subject:
    key = settings.secret("REDLINE_API_KEY")
    secret = Secret(key) if key else None

    async def first_model() -> str:
        async with Client(Target(url=url, model="", api_key=secret)) as client:
            ids = await client.model_ids()
            return ids[0] if ids else ""

    target = Target(url=url, model=model or asyncio.run(first_model()), api_key=secret)
    return Subject(target=target, model=None, drafting=False, argv=(), engine_version=None)


@contextmanager
def recorded(settings: Settings, subject: Subject, command: str, seeds: dict[str, int]) -> Iterator[Run]:
    """Open a run for a subject; it ends with its last event whatever ends the block."""
    rig = detect_rig()
    run = create_run(
        settings.runs_dir,
        command,
        url=subject.target.url,
        slug=subject.target.slug,
        server_id=subject.target.server_id,
        engine=subject.target.engine,
        engine_version=subject.engine_version,
        driver_version=rig.driver_version,
        argv=subject.argv,
        rig=rig.fingerprint,
        labels=subject.labels,
        seeds=seeds,
    )
    with run:
        yield run
