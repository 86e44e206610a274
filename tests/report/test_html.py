"""The page: six answers in words, nothing loaded, nothing executed, every text a text, small, with enough contrast."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.records import SLUG, check, failed_record, full_record, make_record, on_boots, sample

from redline.checks.check import CheckStatus
from redline.launch.outcome import ServerFailed
from redline.record.reading import RunRecord
from redline.report.build import build_report, build_rig_report
from redline.report.extract import failed_boot
from redline.report.html import render_html
from redline.report.model import ReportModel
from redline.workload.prompts import PromptClass

MADE_AT = "2026-11-29T20:00:00+00:00"
TEMPLATES = Path(__file__).parents[2] / "src" / "redline" / "report" / "templates"
VOID = {"meta", "br", "line", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """Reads a page strictly: tags must close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.answers: dict[str, str] = {}
        self.words: list[str] = []
        self._answer: str | None = None
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if name := dict(attrs).get("data-answer"):
            self._answer = name
            self.answers[name] = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "section":
            self._answer = None

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)
        if self._answer and self.open[-1] == "p":
            self.answers[self._answer] += data.strip()


def report(*records: RunRecord) -> ReportModel:
    return build_report(records, made_at=MADE_AT, redacted=True)


def rig_report() -> ReportModel:
    (failed,) = failed_record().payloads(ServerFailed)
    return build_rig_report(
        (), "2 CPUs, 24 GiB, no GPU", [failed_boot(failed, SLUG, MADE_AT)], made_at=MADE_AT, redacted=False
    )


MODELS = {
    "full": report(full_record()),
    "failed": report(failed_record()),
    "empty": report(make_record()),
    "endpoint": report(make_record([sample(PromptClass.CHAT, 0, 9.0)], slug=None, engine=None, rig={}, resolved={})),
    "two tiers": report(*on_boots(3), *on_boots(3, slug="llamacpp/smollm2-135m-cpu-fast")),
    "rig": rig_report(),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_the_first_screen_answers_six_questions(name: str) -> None:
    page = Page(render_html(MODELS[name]))
    assert list(page.answers) == ["What ran", "On what", "What was proved", "What was not", "How sure", "What next"]
    assert all(len(words) > 15 for words in page.answers.values())


@pytest.mark.parametrize("name", list(MODELS))
def test_the_page_loads_and_runs_nothing(name: str) -> None:
    text = render_html(MODELS[name])
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    assert all(not name.startswith("on") for _, attrs in page.tags for name in attrs)
    links = [attrs["href"] for tag, attrs in page.tags if "href" in attrs]
    assert all(str(link).startswith("#") for link in links)
    assert "@import" not in text
    assert "url(" not in text
    policies = [
        attrs.get("content") for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_sections_appear_with_their_records_only() -> None:
    full, empty = render_html(MODELS["full"]), render_html(MODELS["empty"])
    for title in ("Speed", "Checks", "Memory over time", "Acceptance by place", "Needles", "at depth", ">Start<"):
        assert title in full
        assert title not in empty


def test_every_cell_of_a_stacking_table_has_its_label() -> None:
    text = render_html(MODELS["full"]) + render_html(MODELS["two tiers"])
    for table in re.findall(r'<table class="stack">.*?</table>', text, re.DOTALL):
        for cell in re.findall(r"<td[^>]*>", table):
            assert "data-label=" in cell or "lead" in cell


@pytest.mark.parametrize(
    ("status", "tone"), [(CheckStatus.PASS, "good"), (CheckStatus.INCONCLUSIVE, "warn"), (CheckStatus.FAIL, "bad")]
)
def test_what_stayed_open_is_not_shown_as_failed(status: CheckStatus, tone: str) -> None:
    record = make_record([check("a.b"), check("a.c", status)], command="verify")
    text = render_html(build_report([record], made_at=MADE_AT, redacted=True))
    assert re.search(r'<li class="(\w+)">\d of 2 checks passed', text)[1] == tone  # type: ignore[index]


HOSTILE = "</style></p><script>alert(1)</script><img src=x onerror=alert(1)>\" onmouseover='x' \x1b[31m\u202e{{7*7}}"


def test_hostile_text_is_a_text_everywhere() -> None:
    record = make_record(
        [
            check("chat.basic", CheckStatus.FAIL, HOSTILE, title=HOSTILE, evidence=HOSTILE),
            ServerFailed(
                server_id="x",
                reason=HOSTILE,
                cause=HOSTILE,
                evidence=HOSTILE,
                remedies=(HOSTILE,),
                log_tail=(HOSTILE, "```", HOSTILE),
            ),
            sample(PromptClass.PROSE, 0, 50.0),
            sample(PromptClass.PROSE, 1, 55.0),
        ],
        slug=HOSTILE,
        engine=HOSTILE,
        engine_version=HOSTILE,
        command=HOSTILE,
        started_at=HOSTILE,
        run_id=HOSTILE,
        labels=(HOSTILE,),
        argv=(HOSTILE,),
        rig={HOSTILE: HOSTILE, "gpus": HOSTILE, "cpu_model": HOSTILE, "cpus": 2},
    )
    text = render_html(report(record))
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert all(not name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert "{{7*7}}" in "".join(page.words)


def test_a_report_of_thousands_of_requests_stays_small() -> None:
    samples = [sample(kind, n, 50.0 + n % 37) for n in range(600) for kind in PromptClass]
    text = render_html(report(make_record([check("chat.basic", message="x" * 2000), *samples])))
    assert len(text.encode()) < 1_500_000


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sheet", ["page.css", "figure.css"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_apart(sheet: str, scheme: str) -> None:
    """WCAG 2.2: 4.5 for text on its ground; figures' colours serve as text too."""
    text = (TEMPLATES / sheet).read_text()
    before, _, after = text.partition("prefers-color-scheme: dark")
    colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", before if scheme == "light" else after))
    grounds = [colours[name] for name in ("paper", "ground", "code", "band") if name in colours]
    for name in ("ink", "muted", "red", "good", "warn", "bad", "s0", "s1", "s2", "s3", "s4", "s5"):
        for ground in grounds if name in colours else ():
            assert _contrast(colours[name], ground) >= 4.5, (name, ground)
