"""What a wrong catalogue file is told, and what a right one of the user's does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redline.catalog import cache
from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.errors import UsageError
from redline.settings import Layers

RULE = (
    "rules:\n  - id: mine\n    when: {{model: qwen3.8-27b}}\n    set: {{{set}}}\n    source: mine\n    reason: mine\n"
)
ROW = (
    "evidence:\n  - {{id: e, slug: vllm/qwen38-27b-dual-fast, metric: {metric}, value: 1, unit: {unit}, "
    "kind: measured, rig: r, engine: vllm, engine_version: 0.33.0, date: '2026-11-29', source: {source}}}\n"
)
HAZARD = (
    "hazards:\n  - {{id: h, title: t, engine: {engine}, versions: {versions}, trigger: t, effect: e, mitigation: m, "
    "source: s}}\n"
)


def problems_of(folder: Path, text: str) -> list[str]:
    """What loading says of one file of the user's, with the folder's name left out."""
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_catalog(folder)
    return [line.replace(f"{folder}/", "") for line in caught.value.details]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param("models: [\n", 2, "did not find expected", id="not YAML"),
        pytest.param("rules:\n  - id: a\n    id: b\n", 3, "'id' is given twice", id="duplicate key"),
        pytest.param("modles: []\n", 1, "modles", id="unknown section"),
        pytest.param("topologies:\n  - {id: x, gpus: 2, title: t, colour: red}\n", 2, "colour", id="unknown key"),
        pytest.param("topologies:\n  - {id: x, gpus: two, title: t}\n", 2, "integer", id="wrong type"),
        pytest.param("topologies:\n  - {id: x}\n", 2, "gpus, title must be given", id="missing keys"),
        pytest.param(RULE.format(set="port: '8101'"), 2, "type int", id="text for a number"),
        pytest.param(RULE.format(set="gpu_memory_utilization: 90"), 2, "between 0.05 and 1", id="percent for a share"),
        pytest.param(RULE.format(set="status: finished"), 2, "one of production", id="unknown word"),
        pytest.param(RULE.format(set="colour: red"), 2, "no field of a tier", id="unknown field"),
        pytest.param(RULE.format(set="port: {by: name, of: {nobody: 1}}"), 2, "no tier has name", id="choice of none"),
        pytest.param(RULE.format(set="port: {ref: context_max}"), 2, "no path of a fact", id="reference to no fact"),
        pytest.param(
            "rules:\n  - {id: m, when: {model: gpt}, set: {port: 1}, source: s, reason: r}\n",
            2,
            "rule m matches no tier",
            id="rule that matches nothing",
        ),
        pytest.param(
            "rules:\n  - {id: m, when: {colour: red}, set: {port: 1}, source: s, reason: r}\n",
            2,
            "asks for 'colour'",
            id="condition on nothing",
        ),
        pytest.param(
            "rules:\n  - {id: m, when: {name: ultrafast}, set: {max_num_seqs: 3}, source: s}\n",
            2,
            "gives no reason",
            id="exception without a reason",
        ),
        pytest.param(HAZARD.format(engine="vllm", versions="''"), 2, "needs the versions", id="hazard, no versions"),
        pytest.param(HAZARD.format(engine="vllm", versions="lately"), 2, "range of versions", id="hazard, no range"),
        pytest.param(HAZARD.format(engine="tgi", versions="all"), 2, "unknown engine 'tgi'", id="hazard, no engine"),
        pytest.param(
            ROW.format(metric="ttft", unit="ms", source="''"), 2, "needs a source", id="evidence without a source"
        ),
        pytest.param(ROW.format(metric="ttft", unit="s", source="s"), 2, "is in ms, not in 's'", id="wrong unit"),
        pytest.param(ROW.format(metric="speed", unit="s", source="s"), 2, "unknown metric", id="unknown metric"),
        pytest.param(
            "aliases:\n  - {id: a, target: b, source: s}\n  - {id: b, target: a, source: s}\n",
            2,
            "in a circle: a -> b -> a",
            id="circular aliases",
        ),
        pytest.param("aliases:\n  - {id: a, target: nowhere, source: s}\n", 2, "which is no tier", id="alias of none"),
        pytest.param(
            "ladders:\n  - {model: gpt, engine: vllm, topologies: [dual], tiers: []}\n",
            2,
            "unknown model 'gpt'",
            id="ladder",
        ),
        pytest.param(
            RULE.format(set="port: {by: slug, of: {vllm/qwen38-27b-dual-max: 8113}}"),
            None,
            "port 8113 is the port of",
            id="port taken twice",
        ),
    ],
)
def test_wrong_input_is_told_with_its_line(own_folder: Path, text: str, line: int | None, words: str) -> None:
    said = problems_of(own_folder, text)
    assert any(words in problem for problem in said), said
    if line is not None:
        assert any(problem.startswith(f"own.yaml:{line}: ") for problem in said), said


def test_all_problems_of_all_files_come_at_once(own_folder: Path) -> None:
    (own_folder / "a.yaml").write_text("topologies:\n  - {id: x, gpus: two, title: t}\nhazards: nothing\n")
    said = problems_of(own_folder, "models: {}\nrules: []\nevidence: []\nladders: 1\n")
    assert [problem.rsplit(":", 2)[0].split(":")[0] for problem in said] == ["a.yaml", "a.yaml", "own.yaml", "own.yaml"]


def test_several_wrong_references_come_at_once(own_folder: Path) -> None:
    said = problems_of(
        own_folder,
        "aliases:\n  - {id: a, target: nowhere, source: s}\n" + HAZARD.format(engine="tgi", versions="lately"),
    )
    assert len(said) == 3


def test_a_wrong_type_in_a_union_is_one_problem(own_folder: Path) -> None:
    said = problems_of(own_folder, RULE.format(set="port: [1, 2]"))
    assert len(said) == 1, said


def test_user_rule_changes_a_packaged_tier(own_folder: Path) -> None:
    (own_folder / "own.yaml").write_text(
        "rules:\n  - {id: mine, when: {name: ultrafast, topology: dual}, set: {max_model_len: 131072}, source: mine, "
        "reason: my desktop needs the memory}\n"
    )
    tier = resolve(load_catalog(own_folder), "vllm/qwen38-27b-dual-ultrafast", Layers())
    assert (tier.max_model_len.value, tier.max_model_len.origin) == (131072, "rule:mine")


def test_user_record_replaces_the_packaged_one_of_its_id(own_folder: Path) -> None:
    (own_folder / "own.yaml").write_text(
        "artifacts:\n"
        "  - {id: qwen3.8-27b-autoround-fast, title: mine, model: qwen3.8-27b, format: safetensors, quant: w4a16, "
        "license: Apache-2.0, origin: {kind: hub, repo: me/target, revision: null}, source: mine}\n"
        "  - {id: qwen3.8-27b-dflash2-b16, title: mine, model: qwen3.8-27b, format: safetensors, quant: w4a16, "
        "license: Apache-2.0, origin: {kind: hub, repo: me/drafter, revision: null}, source: mine}\n"
    )
    catalog = load_catalog(own_folder)
    assert catalog.artifacts["qwen3.8-27b-autoround-fast"].title == "mine"
    assert len(catalog.artifacts) == len(load_catalog().artifacts)


def test_removing_the_file_brings_the_packaged_value_back(own_folder: Path) -> None:
    path = own_folder / "own.yaml"
    path.write_text("aliases:\n  - {id: best, target: smollm2, source: mine}\n")
    assert "best" in load_catalog(own_folder).aliases
    path.unlink()
    assert "best" not in load_catalog(own_folder).aliases


def test_kept_catalogue_is_the_one_that_was_read(own_folder: Path) -> None:
    first = load_catalog(own_folder)
    kept = cache.read_cached(cache.make_key(()))
    assert kept is None, "another key must not find it"
    assert (cache.cache_dir() / "catalog.pickle").stat().st_mode & 0o077 == 0
    from redline.catalog import load

    load._load.cache_clear()
    assert load_catalog(own_folder) == first


@pytest.mark.parametrize("content", [b"", b"not a pickle", b"\x80\x05N."])
def test_a_torn_cache_is_no_error(own_folder: Path, content: bytes) -> None:
    from redline.catalog import load

    first = load_catalog(own_folder)
    (cache.cache_dir() / "catalog.pickle").write_bytes(content)
    load._load.cache_clear()
    assert load_catalog(own_folder) == first


def test_a_kept_catalogue_needs_no_validator(own_folder: Path) -> None:
    load_catalog(own_folder)
    code = (
        "import sys; from pathlib import Path; from redline.catalog.load import load_catalog; "
        f"load_catalog(Path({str(own_folder)!r})); "
        "sys.exit(any(name in sys.modules for name in ('pydantic', 'yaml', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False)
    assert done.returncode == 0
