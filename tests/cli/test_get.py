"""`redline get` as typed, against a hub of our own: the drafter comes along, a token is never shown, exit codes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.artifacts.hub_server import Hub, Repo, serve_hub
from tests.conftest import Home

from redline.catalog.types import Catalog
from redline.catalog.types import Hub as HubOrigin

SLUG = "vllm/qwen38-27b-dual-ultrafast"
TOKEN = "hf_" + "s3cret" * 6


def repository(catalog: Catalog, artifact_id: str, content: bytes) -> tuple[str, Repo]:
    """Return the repository of an artifact, with a tiny checkpoint at the commit that the catalogue pins."""
    origin = catalog.artifacts[artifact_id].origin
    assert isinstance(origin, HubOrigin)
    made = Repo(small={"config.json": b"{}"}, large={"model.safetensors": content})
    made.commit = origin.revision or made.commit
    return origin.repo, made


@pytest.fixture
def hub(catalog: Catalog) -> Iterator[Hub]:
    with serve_hub() as made:
        made.repos.update(
            [
                repository(catalog, "qwen3.8-27b-autoround-int4", b"weights" * 1000),
                repository(catalog, "qwen3.8-27b-dflash2-w4a16", b"drafter" * 1000),
            ]
        )
        yield made


@pytest.fixture
def hub_home(home: Home, hub: Hub) -> Home:
    """A home whose hub is the one of the test, and whose models folder has the layout of the older guides."""
    own = {name: value for name, value in home.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    return Home(home.path, {**own, "HF_ENDPOINT": hub.url, "MODEL_DIR": str(home.path / "models-cache")})


def test_the_drafter_comes_with_the_weights_into_the_known_folders(hub_home: Home) -> None:
    done = hub_home.run("get", SLUG)
    assert done.returncode == 0, done.stdout + done.stderr
    models = hub_home.path / "models-cache"
    assert (models / "qwen3.8-27b-autoround-int4" / "model.safetensors").read_bytes() == b"weights" * 1000
    assert (models / "qwen3.8-27b-dflash2-w4a16" / "model.safetensors").read_bytes() == b"drafter" * 1000
    assert done.stdout.count(" verified") == 2
    assert "NOT verified" not in done.stdout


@pytest.mark.parametrize("environ", [{"SPEC_N": "0"}, {"WITH_DFLASH_DRAFT": "1"}, {"WITH_DFLASH_DRAFT": "0"}], ids=str)
def test_nothing_a_user_sets_leaves_the_drafter_out(hub_home: Home, environ: dict[str, str]) -> None:
    done = hub_home.run("get", SLUG, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (hub_home.path / "models-cache" / "qwen3.8-27b-dflash2-w4a16" / "model.safetensors").exists()
    assert ("WITH_DFLASH_DRAFT is needless" in done.stdout) == ("WITH_DFLASH_DRAFT" in environ)


def test_verify_only_fetches_nothing_and_tells_good_from_bad(hub_home: Home, hub: Hub) -> None:
    before = hub_home.run("get", SLUG, "--verify-only")
    assert before.returncode == 1
    assert "absent" in before.stdout
    assert hub.requests("store:") == []
    assert hub_home.run("get", SLUG).returncode == 0
    assert hub_home.run("get", SLUG, "--verify-only").returncode == 0
    weights = hub_home.path / "models-cache" / "qwen3.8-27b-autoround-int4" / "model.safetensors"
    weights.write_bytes(b"WEIGHTS" * 1000)
    fetches = len(hub.requests("store:"))
    after = hub_home.run("get", SLUG, "--verify-only", "--json")
    assert after.returncode == 1
    found = json.loads(after.stdout)
    assert found["qwen3.8-27b-autoround-int4"]["files"] == {
        "config.json": "verified",
        "model.safetensors": "wrong hash",
    }
    assert set(found["qwen3.8-27b-dflash2-w4a16"]["files"].values()) == {"verified"}
    assert len(hub.requests("store:")) == fetches


def test_verify_only_cannot_judge_what_nobody_gave_a_hash_for(hub_home: Home) -> None:
    folder = hub_home.path / "models-cache" / "qwen3.8-27b-autoround-int4"
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(b"{}")
    done = hub_home.run("get", "vllm/qwen38-27b-dual-fast", "--verify-only", HF_HUB_OFFLINE="1")
    assert done.returncode == 1  # the weights are absent
    header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    done = hub_home.run("get", "vllm/qwen38-27b-dual-fast", "--verify-only", HF_HUB_OFFLINE="1")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "unhashed" in done.stdout


def gate(hub: Hub) -> None:
    for repo in hub.repos.values():
        repo.gated, repo.let_in = True, (TOKEN,)


def leaves_no_token(home: Home, *texts: str) -> None:
    assert not any(TOKEN in text for text in texts)
    for path in home.path.rglob("*"):
        if path.is_file() and path.name not in ("config.toml", "token"):
            assert TOKEN.encode() not in path.read_bytes(), path


def test_a_gated_repository_is_explained(hub_home: Home, hub: Hub) -> None:
    gate(hub)
    done = hub_home.run("get", SLUG)
    assert done.returncode == 7
    assert "gated" in done.stderr
    assert "HF_TOKEN" in done.stderr


def config_token(home: Home, mode: int) -> None:
    path = home.settings.config_file
    path.parent.mkdir(parents=True)
    path.write_text(f'hf_token = "{TOKEN}"\n')
    path.chmod(mode)


def test_a_token_is_taken_from_the_environment(hub_home: Home, hub: Hub) -> None:
    gate(hub)
    done = hub_home.run("get", SLUG, HF_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    leaves_no_token(hub_home, done.stdout, done.stderr)


def test_a_token_is_taken_from_a_config_file_that_only_its_owner_reads(hub_home: Home, hub: Hub) -> None:
    gate(hub)
    config_token(hub_home, 0o600)
    done = hub_home.run("get", SLUG)
    assert done.returncode == 0, done.stderr
    leaves_no_token(hub_home, done.stdout, done.stderr)


def test_a_config_file_that_others_read_is_refused(hub_home: Home, hub: Hub) -> None:
    config_token(hub_home, 0o644)
    done = hub_home.run("get", SLUG)
    assert done.returncode == 7
    assert "chmod 600" in done.stderr
    assert hub.asked == []
    assert TOKEN not in done.stderr


def test_a_login_of_hf_is_used(hub_home: Home, hub: Hub) -> None:
    gate(hub)
    token_file = Path(hub_home.environ["HOME"]) / ".cache" / "huggingface" / "token"
    token_file.parent.mkdir(parents=True)
    token_file.write_text(TOKEN)
    done = hub_home.run("get", SLUG)
    assert done.returncode == 0, done.stderr
    leaves_no_token(hub_home, done.stdout, done.stderr)


def test_a_mirror_that_is_no_address_is_a_usage_error(hub_home: Home) -> None:
    done = hub_home.run("get", SLUG, HF_ENDPOINT="hf-mirror.example")
    assert done.returncode == 2
    assert "whole address" in done.stderr
