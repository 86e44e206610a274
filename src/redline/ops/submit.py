"""Puts a submission together for an issue or a pull request; nothing leaves this machine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redline.errors import UsageError
from redline.ops.report import load_runs, make_redactor
from redline.record.codec import jsonable
from redline.record.files import make_dir, write_atomic
from redline.record.reading import RunRecord
from redline.record.redact import preview
from redline.record.run import now_utc
from redline.report.build import build_report
from redline.report.grouping import group_by_subject
from redline.report.markdown import render_markdown
from redline.report.site import page_name
from redline.report.submission import Submission, make_submission
from redline.settings import Settings


@dataclass(frozen=True, slots=True)
class Draft:
    """A submission that is ready to be looked through: its two files, and what redaction took out of them."""

    submission: Submission
    name: str
    as_json: str
    as_markdown: str
    taken_out: str


def draft_submissions(settings: Settings, names: Sequence[str], note: str = "") -> list[Draft]:
    """Return one draft a tier, engine version and rig that the named runs are about.

    Raises:
        UsageError: no such run, or a run that says of no tier.
        MissingError: none of the runs can be read.
    """
    raw = [
        group_by_subject(load_runs(settings, names, make_redactor(redact=redact)).records) for redact in (False, True)
    ]
    drafts = [_draft(before, after, note) for before, after in zip(*raw, strict=True)]
    if not drafts:
        raise UsageError("There is no run to submit.", next_step="`redline runs` lists them.")
    return drafts


def _draft(before: Sequence[RunRecord], after: Sequence[RunRecord], note: str) -> Draft:
    redactor = make_redactor(redact=True)
    made_at = now_utc()
    try:
        submission = make_submission(after, made_at=made_at, note=redactor.text(note))
    except ValueError as error:
        raise UsageError(
            f"This cannot be submitted: {error}.", next_step="Measure a tier that redline started: `redline up SLUG`."
        ) from None
    texts = [
        render_markdown(build_report(records, made_at=made_at, redacted=redacted))
        for records, redacted in ((before, False), (after, True))
    ]
    as_json = json.dumps(jsonable(submission), indent=1, ensure_ascii=False) + "\n"
    stem = f"{page_name(submission.slug).removesuffix('.html')}-{submission.submission_id[:8]}"
    markdown = f"{texts[1]}\n<sub>submission {submission.submission_id}; attach {stem}.json</sub>\n"
    return Draft(submission, stem, as_json, markdown, preview(texts[0], texts[1]))


def write_draft(draft: Draft, folder: Path) -> tuple[Path, Path]:
    """Write a draft's two files and return where they are: data for a machine, Markdown for people.

    Raises:
        AccessError, DiskSpaceError: they cannot be written.
    """
    make_dir(folder)
    data, text = folder / f"{draft.name}.json", folder / f"{draft.name}.md"
    write_atomic(data, draft.as_json, mode=0o644)
    write_atomic(text, draft.as_markdown, mode=0o644)
    return data, text
