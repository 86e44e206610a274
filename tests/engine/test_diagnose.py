"""Every signature is diagnosed from a log that quotes the engine, and healthy logs show nothing."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from redline.engine.diagnose import Diagnosis, DiagnosisVerdict, diagnose
from redline.engine.log_text import split_lines
from redline.engine.signatures import SignatureKind, signature_book

LOGS = Path(__file__).parent / "logs"
SIGNATURES = {item.id: item for item in signature_book().signatures}
HEALTHY = sorted(path.stem for path in LOGS.glob("healthy-*.log"))


def read_log(name: str) -> list[str]:
    """Return a log without the line that says where it is from."""
    head, *lines = split_lines([(LOGS / f"{name}.log").read_bytes()])
    assert head.startswith("# source: "), f"{name}.log does not say where its words are from"
    return lines


def _diagnose(name: str, engine: str | None = None) -> Diagnosis:
    return diagnose(read_log(name), engine)


def test_every_signature_has_a_log_and_every_log_a_signature() -> None:
    assert {path.stem for path in LOGS.glob("*.log")} - set(HEALTHY) == set(SIGNATURES)


@pytest.mark.parametrize("signature_id", SIGNATURES)
def test_a_signature_is_diagnosed_from_its_log(signature_id: str) -> None:
    signature = SIGNATURES[signature_id]
    found = _diagnose(signature_id)
    assert found.signature_id == signature_id
    assert found.verdict is DiagnosisVerdict.KNOWN
    assert found.evidence is not None
    assert signature.text in found.evidence
    assert found.remedies
    assert found.line_number is not None
    assert signature.text in read_log(signature_id)[found.line_number - 1]


@pytest.mark.parametrize("signature_id", SIGNATURES)
def test_naming_the_engine_changes_nothing(signature_id: str) -> None:
    engine = SIGNATURES[signature_id].engine
    for name in ("vllm", "llamacpp") if engine == "any" else (engine,):
        assert _diagnose(signature_id, name).signature_id == signature_id


@pytest.mark.parametrize("signature_id", SIGNATURES)
def test_no_word_of_a_diagnosis_is_left_open(signature_id: str) -> None:
    found = _diagnose(signature_id)
    for text in (found.cause, *found.remedies):
        assert "{" not in text, text
        assert text[0].isupper() or text[0] in "`-" or text.startswith("llama.cpp"), text
    assert found.cause.endswith((".", "]", "}"))


@pytest.mark.parametrize("path", sorted((LOGS / "captured").glob("*.log")), ids=lambda path: path.stem)
def test_a_fault_that_was_provoked_on_a_gpu_is_known(path: Path) -> None:
    found = diagnose(read_log(f"captured/{path.stem}"))
    assert (found.verdict, found.signature_id) == (DiagnosisVerdict.KNOWN, path.stem)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_show_nothing(name: str) -> None:
    found = _diagnose(name)
    assert found.verdict is DiagnosisVerdict.NOTHING, found
    assert found.signature_id is None


def test_every_signature_says_how_it_is_known() -> None:
    for item in SIGNATURES.values():
        assert item.source.strip()
        assert not item.source.endswith(",")
        if item.kind is SignatureKind.ENGINE_SOURCE and "vllm/" in item.source:
            assert any(part.split(":")[-1].split(",")[0].isdigit() for part in item.source.split(";")), item.source
        if item.kind is SignatureKind.ISSUE:
            assert "#" in item.source, item.source


def test_what_is_unproven_is_listed(snapshot: SnapshotAssertion) -> None:
    assert sorted(item.id for item in SIGNATURES.values() if item.kind is SignatureKind.UNPROVEN) == snapshot


def test_values_are_worked_out() -> None:
    found = _diagnose("kv-cache-too-small")
    assert found.remedies[:2] == (
        "MAX_MODEL_LEN=220832 is the longest context that fits in whole blocks of 1648 tokens.",
        "GPU_MEMORY_UTILIZATION=0.92 (it was 0.9) gives the cache more, if nothing else uses the GPU.",
    )
    assert 220832 % 1648 == 0
    assert _diagnose("gpu-memory-in-use").remedies[1].startswith("GPU_MEMORY_UTILIZATION=0.07 ")


def test_facts_from_a_plan_outweigh_the_log() -> None:
    found = diagnose(read_log("oom-capturing-graphs"), "vllm", {"gmu": 0.8, "batched_tokens": 16384})
    assert found.remedies == (
        "GPU_MEMORY_UTILIZATION=0.78 (it was 0.8) makes the cache smaller.",
        "MAX_NUM_BATCHED_TOKENS=8192 (it was 16384).",
    )


def test_a_remedy_without_its_values_is_said_in_general_words() -> None:
    last_lines = [line for line in read_log("kv-cache-too-small") if "ValueError" in line]
    found = diagnose(last_lines)
    assert found.remedies[0] == "MAX_MODEL_LEN=220832 is the longest context that fits."
    assert found.remedies[1].startswith("A higher GPU_MEMORY_UTILIZATION")


def test_an_unknown_fault_shows_the_last_lines_that_look_like_trouble() -> None:
    lines = [*read_log("healthy-vllm")[:4], "Traceback (most recent call last):", "RuntimeError: the moon is full"]
    found = diagnose(lines)
    assert found.verdict is DiagnosisVerdict.UNKNOWN
    assert found.tail[-1] == "RuntimeError: the moon is full"
    assert found.remedies == ()


def test_an_empty_log_is_unknown() -> None:
    assert diagnose([]).verdict is DiagnosisVerdict.UNKNOWN
    assert diagnose(["", "   "]).tail == ()


def test_the_last_boot_counts() -> None:
    failed, healthy = read_log("oom-first-prefill"), read_log("healthy-vllm")
    assert diagnose([*failed, *healthy]).verdict is DiagnosisVerdict.NOTHING
    assert diagnose([*healthy, *failed]).signature_id == "oom-first-prefill"
    assert diagnose([*healthy, *failed]).boots == 2


def test_a_crash_loop_is_seen_in_the_middle_of_a_boot() -> None:
    failed = read_log("gpu-memory-in-use")
    found = diagnose([*failed, *failed, *failed, *failed[:2]])
    assert (found.signature_id, found.boots) == ("gpu-memory-in-use", 4)
    assert found.cause.startswith("It was started 4 times, to end the same way. ")


def test_a_hang_is_one_only_where_the_log_ends() -> None:
    hanging = read_log("hang-in-nccl")
    assert diagnose([*hanging, *read_log("healthy-vllm")[4:]]).signature_id is None
    assert diagnose([*hanging, *[line for line in read_log("healthy-vllm") if "throughput" in line] * 4]).tail


def test_logs_of_containers_and_terminals_are_read() -> None:
    colour = "\x1b[1;36m(EngineCore pid=304)\x1b[0;0m "
    text = "\n".join(f"vllm-1  | {colour}{line}" for line in read_log("heads-not-divisible"))
    found = diagnose(split_lines([text.encode()]))
    assert found.signature_id == "heads-not-divisible"
    assert "\x1b" not in (found.evidence or "")
