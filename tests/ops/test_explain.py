"""Why a server did not start: its log, searched for what is known."""

import time
from pathlib import Path

from redline.errors import EngineStartError
from redline.launch.state import LOG_FILE, SCHEMA, SUPERVISOR_LOG, ServerRecord, ServerState
from redline.ops.servers import explain_failure

LOGS = Path(__file__).parents[1] / "engine" / "logs"


def _record(engine: str) -> ServerRecord:
    return ServerRecord(
        schema_version=SCHEMA,
        server_id="s1",
        slug="llamacpp/x",
        url="http://127.0.0.1:1",
        port=1,
        state=ServerState.FAILED,
        served_model="x",
        engine=engine,
        engine_version="1",
        created_at=time.time(),
        changed_at=time.time(),
        reason="the engine ended with exit status 1",
    )


def test_a_known_fault_is_named_with_its_remedies(tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).write_bytes((LOGS / "gguf-truncated.log").read_bytes())
    error = explain_failure(tmp_path, _record("llamacpp"))
    assert isinstance(error, EngineStartError)
    assert "ended with exit status 1. The file ends before its tensors do" in error.message
    assert error.next_step is not None
    assert error.next_step.startswith("`redline get SLUG`")
    assert "model is corrupted or incomplete" in error.details[0]


def test_every_remedy_is_offered(tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).write_bytes((LOGS / "kv-cache-too-small.log").read_bytes())
    error = explain_failure(tmp_path, _record("vllm"))
    assert error.next_step is not None
    assert error.next_step.startswith("MAX_MODEL_LEN=220832")
    assert error.next_step.count("Or: ") == 3


def test_an_unknown_fault_shows_where_to_look(tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).write_text("fine\nRuntimeError: the moon is full\n")
    error = explain_failure(tmp_path, _record("vllm"))
    assert "not one that redline knows" in error.message
    assert error.details == ("RuntimeError: the moon is full",)
    assert str(tmp_path / LOG_FILE) in (error.next_step or "")


def test_without_a_log_the_supervisors_words_are_shown(tmp_path: Path) -> None:
    (tmp_path / SUPERVISOR_LOG).write_text("no such program\n")
    assert explain_failure(tmp_path, _record("vllm")).details == ("no such program",)
