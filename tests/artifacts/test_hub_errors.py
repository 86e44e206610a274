"""Every way a hub says no, each explained with what to do next and without the token."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from redline.artifacts.hub_access import HubAccess
from redline.artifacts.progress import FileProgress
from redline.artifacts.store import ensure
from redline.catalog.types import Catalog
from redline.errors import NetworkError, RedlineError
from tests.artifacts.hub_server import SIGNATURE, Hub, Refusal, Repo
from tests.artifacts.hub_tiny import REPO, TOKEN, WEIGHTS, access, with_tiny

REFUSALS: dict[str, tuple[Refusal | Repo, str | None, str, str]] = {
    "gated, no token": (Repo(gated=True, large={"model.safetensors": b"x"}), None, "gated", "hf auth login"),
    "gated, not let in": (Repo(gated=True, large={"model.safetensors": b"x"}), TOKEN, "has not been let in", "Accept"),
    "private, no token": (Repo(private=True), None, "not to be seen without a token", "HF_TOKEN"),
    "absent, with token": (Refusal(404, {"X-Error-Code": "RepoNotFound"}), TOKEN, "does not exist", "check the name"),
    "bad token": (
        Refusal(401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
        TOKEN,
        "does not accept the token from HF_TOKEN",
        "settings/tokens",
    ),
    "forbidden": (
        Refusal(403, {"X-Error-Message": "token lacks a scope"}),
        TOKEN,
        "token lacks a scope",
        "read access",
    ),
    "no such commit": (Refusal(404, {"X-Error-Code": "RevisionNotFound"}), None, "no such revision", "commits/main"),
    "closed": (
        Refusal(403, {"X-Error-Message": "Access to this resource is disabled."}),
        None,
        "closed",
        "another tier",
    ),
    "too many": (Refusal(429, {"RateLimit": '"api";r=0;t=240'}), None, "429", "in 4 min 0 s"),
    "in trouble": (Refusal(500), None, "in trouble", "mirror"),
    "not a hub": (Refusal(200, {"Content-Type": "text/html"}), None, "could not be fetched|names no commit", ""),
}


@pytest.mark.parametrize(("given", "token", "says", "then"), REFUSALS.values(), ids=REFUSALS.keys())
def test_each_refusal_is_explained_with_its_next_step(
    hub: Hub,
    catalog: Catalog,
    store: Path,
    given: Refusal | Repo,
    token: str | None,
    says: str,
    then: str,
) -> None:
    if isinstance(given, Repo):
        hub.repos[REPO] = given
    else:
        hub.refusals.append(replace(given, always=True))
    origin = "HF_TOKEN in the environment"
    with pytest.raises(RedlineError) as caught:
        ensure(with_tiny(catalog), "tiny", store, hub=access(hub, token=token, token_origin=origin if token else None))
    error = caught.value
    assert error.exit_code == 7
    assert re.search(says, error.message), error.message
    assert then in (error.next_step or "")
    assert TOKEN not in f"{error!r} {error.message} {error.next_step} {error.details}"


def test_a_file_refused_halfway_is_explained_too(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.refusals.append(Refusal(403, {"X-Error-Message": "expired"}, path="store:", always=True))
    with pytest.raises(NetworkError, match=r"forbids fetching model\.safetensors") as caught:
        ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert SIGNATURE not in str(caught.value.details) + caught.value.message


def test_a_short_wait_that_the_hub_asks_for_is_waited(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.refusals.append(Refusal(429, {"Retry-After": "0"}, path="store:"))
    steps: list[FileProgress] = []
    folder = ensure(with_tiny(catalog), "tiny", store, steps.append, access(hub))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert any("waiting" in step.step and "429" in step.step for step in steps)


def test_an_unreachable_hub_names_mirror_and_network(catalog: Catalog, store: Path) -> None:
    with pytest.raises(NetworkError, match="cannot be reached") as caught:
        ensure(with_tiny(catalog), "tiny", store, hub=HubAccess(endpoint="http://127.0.0.1:9"))
    assert "HF_ENDPOINT" in (caught.value.next_step or "")
