"""Fifty whole reports of records full of secrets: none of them comes out of any renderer, and the words around do."""

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.report.records import sample

from redline.checks.check import CheckResult, CheckStatus
from redline.checks.stages import Stage, StageEnded, StagesPlan, StageState
from redline.launch.outcome import ServerFailed
from redline.record.codec import jsonable
from redline.record.identity import make_identity
from redline.record.reading import load_run
from redline.record.redact import Redactor
from redline.record.run import create_run
from redline.report.build import build_report
from redline.report.html import render_html
from redline.report.markdown import render_markdown
from redline.report.row import benchmark_rows
from redline.report.submission import make_submission
from redline.workload.prompts import PromptClass

SECRETS = {
    "hf_abcDEF12345678901234567890": "HF_TOKEN=hf_abcDEF12345678901234567890",
    "sk-proj-a1b2c3d4e5f6": "key sk-proj-a1b2c3d4e5f6 refused",
    "hunter2x": "password=hunter2x",
    "/home/marta": "cannot open /home/marta/models/x.gguf",
    "marta": "started for marta today",
    "attic-rig": "attic-rig is overheating",
    "10.11.12.13": "no route to 10.11.12.13:8000",
    "2001:db8:1::7": "bound to [2001:db8:1::7]:80",
    "8f1c2d3e-0000-1111-2222-333344445555": "GPU-8f1c2d3e-0000-1111-2222-333344445555 fell off the bus",
    "1324921034211": "Serial Number : 1324921034211",
    "aa:bb:cc:dd:ee:0f": "ether aa:bb:cc:dd:ee:0f",
    "ana@example.org": "write to ana@example.org",
}
IDENTITY = make_identity(["marta", "b"], ["attic-rig", "gpu"], ["/home/marta"])
ORDINARY = "gpu 0 of b = 3 keeps its bridge"

texts = st.lists(st.sampled_from(list(SECRETS.values())), min_size=1, max_size=4).map(
    lambda found: "; ".join([ORDINARY, *found])
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts, min_size=9, max_size=9))
def test_no_secret_survives_a_whole_report(tmp_path: Path, words: list[str]) -> None:
    with create_run(
        tmp_path,
        "up",
        url="http://10.11.12.13:8000",
        slug=words[0],
        engine=words[1],
        engine_version="1.0",
        argv=("serve", words[2], "--api-key", "hunter2x"),
        rig={"cpus": 2, "cpu_model": words[3]},
        labels=(words[4],),
        artifacts={words[5]: "0" * 64},
    ) as run:
        run.append(
            CheckResult(
                check_id="chat.basic",
                title=words[6],
                status=CheckStatus.FAIL,
                message=words[7],
                failure_class=words[8],
                evidence=words[0],
                metrics={words[1]: 1.0},
            )
        )
        run.append(
            ServerFailed(
                server_id="x",
                reason=words[2],
                cause=words[3],
                evidence=words[6],
                remedies=(words[4],),
                log_tail=tuple(words),
            )
        )
        run.append(StagesPlan(stages=(Stage.SMOKE, Stage.QUICK), process=words[7]))
        run.append(StageEnded(stage=Stage.SMOKE, state=StageState.BROKEN, reason=words[8], run_id=words[0]))
        run.append(sample(PromptClass.PROSE, 0, None, error=words[1]))
        run.finish("failed", 6, words[5])
    record = load_run(run.directory, Redactor(IDENTITY))
    model = build_report([record], made_at="2026-11-29T20:00:00+00:00", redacted=True)
    shown = "\n".join(
        [
            render_html(model),
            render_markdown(model),
            benchmark_rows(model),
            json.dumps(jsonable(model), ensure_ascii=False),
            json.dumps(jsonable(make_submission([record], made_at="", note="")), ensure_ascii=False),
        ]
    )
    plain = shown.replace("\\", "")  # Markdown's escapes do not hide a secret
    assert [secret for secret in SECRETS if secret in plain] == []
    assert plain.count(ORDINARY) > 20
