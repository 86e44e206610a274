"""Every tier of a GPU as text, byte for byte; and that a compose file is one."""

import shlex
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from redline.catalog.load import PACKAGED, read_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.protocol import Form
from redline.engine.registry import get_engine
from redline.errors import UsageError
from redline.launch.render.argv import render_argv
from redline.launch.render.compose import compose_project, render_compose
from redline.launch.render.docker import docker_argv, render_docker
from redline.rig.types import Rig
from redline.settings import Layers

RIG = Rig(cpu_model="cpu", cpus=8, memory_total_bytes=2**36, memory_available_bytes=2**36, kernel="6.8", wsl=False)
SLUGS = sorted(
    slug
    for slug, key in read_catalog(tuple(sorted(PACKAGED.rglob("*.yaml"))), ()).tiers.items()
    if key.topology != "cpu"
)
OPEN = {"BIND_HOST": "0.0.0.0"}
ULTRA = "vllm/qwen38-27b-dual-ultrafast"


def plan(catalog: Catalog, slug: str, form: Form, env: dict[str, str] | None = None) -> LaunchPlan:
    tier = resolve(catalog, slug, Layers(environ=env or {}))
    return get_engine(tier.key.engine).launch_plan(catalog, tier, RIG, Path("/srv/models"), form)


@pytest.mark.parametrize("slug", SLUGS)
def test_argv(catalog: Catalog, slug: str, snapshot: SnapshotAssertion) -> None:
    assert render_argv(plan(catalog, slug, "native")) == snapshot


@pytest.mark.parametrize("slug", SLUGS)
def test_docker(catalog: Catalog, slug: str, snapshot: SnapshotAssertion) -> None:
    assert render_docker(plan(catalog, slug, "docker")) == snapshot


@pytest.mark.parametrize("slug", SLUGS)
def test_compose(catalog: Catalog, slug: str, snapshot: SnapshotAssertion) -> None:
    assert render_compose(plan(catalog, slug, "docker")) == snapshot


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("env", [{}, OPEN], ids=["loopback", "open"])
def test_compose_file_is_one(catalog: Catalog, slug: str, env: dict[str, str]) -> None:
    text = render_compose(plan(catalog, slug, "docker", env))
    project = compose_spec.PyCompose.from_yaml(text)
    project.validate()
    assert project.service_names() == ["server"]


def test_the_judge_of_compose_files_can_refuse() -> None:
    with pytest.raises(ValueError, match="ports"):
        compose_spec.PyCompose.from_yaml("services:\n  server:\n    ports: 7\n")


@pytest.mark.parametrize("slug", SLUGS)
def test_text_is_the_very_command(catalog: Catalog, slug: str) -> None:
    native = plan(catalog, slug, "native")
    words = shlex.split(render_argv(native).replace("\\\n", " "))
    assert words == [*(f"{name}={value}" for name, value in native.env.items()), *native.argv]
    inside = plan(catalog, slug, "docker")
    assert tuple(shlex.split(render_docker(inside).replace("\\\n", " "))) == docker_argv(inside)


@pytest.mark.parametrize("slug", SLUGS)
def test_published_on_loopback_under_a_name_of_its_own(catalog: Catalog, slug: str) -> None:
    made = plan(catalog, slug, "docker")
    project = compose_project(made)
    service = project["services"]["server"]
    assert service["ports"] == [f"127.0.0.1:{made.port}:{made.container.port if made.container else 0}"]
    command: list[str] = service["command"]
    assert command[command.index("--host") + 1] == "0.0.0.0"
    assert str(made.port) in project["name"]
    assert project["name"] == service["container_name"]


def test_project_names_are_unique(catalog: Catalog) -> None:
    assert len({compose_project(plan(catalog, slug, "docker"))["name"] for slug in SLUGS}) == len(SLUGS)


def test_open_address_asks_for_the_key_by_name_only(catalog: Catalog) -> None:
    made = plan(catalog, ULTRA, "docker", {**OPEN, "REDLINE_API_KEY": "topsecret"})
    assert "--env=VLLM_API_KEY" in docker_argv(made)
    text = render_compose(made)
    assert yaml.safe_load(text)["services"]["server"]["environment"]["VLLM_API_KEY"] == (
        "${REDLINE_API_KEY:?set REDLINE_API_KEY}"
    )
    assert "topsecret" not in text + render_docker(made) + render_argv(plan(catalog, ULTRA, "native", OPEN))
    assert "VLLM_API_KEY" not in render_compose(plan(catalog, ULTRA, "docker"))


def test_a_dollar_stays_a_dollar_in_compose(catalog: Catalog) -> None:
    made = plan(catalog, ULTRA, "docker", {"ENGINE_ARGS": "--x '$HOME'"})
    command: list[Any] = compose_project(made)["services"]["server"]["command"]
    assert command[-1] == "$$HOME"


def test_named_gpus_are_handed_over(catalog: Catalog) -> None:
    made = plan(catalog, ULTRA, "docker", {"GPUS": "2,3"})
    assert '--gpus="device=2,3"' in docker_argv(made)
    devices = compose_project(made)["services"]["server"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "device_ids": ["2", "3"], "capabilities": ["gpu"]}]


def test_the_embedded_engine_has_no_container(catalog: Catalog) -> None:
    tier = resolve(catalog, "smollm2", Layers())
    made = get_engine("llamacpp").launch_plan(catalog, tier, RIG, Path("/srv/models"))
    for renderer in (docker_argv, compose_project):
        with pytest.raises(UsageError, match="no container form"):
            renderer(made)
