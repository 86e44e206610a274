"""Builds the static site: the matrix page and one report a tier, from the catalogue and the recorded runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redline import __version__
from redline.catalog.explain import counts, evidence_of
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog, Evidence
from redline.errors import RefusedError
from redline.ops.report import load_runs, make_redactor
from redline.ops.tiers import Speed, speed_of
from redline.record.files import explain_os_error, write_atomic
from redline.record.index import RunIndex
from redline.record.run import now_utc
from redline.report.build import build_report
from redline.report.html import render_html
from redline.report.model import ReportModel
from redline.report.site import Site, SiteNumber, SiteReport, SiteTier, page_name, render_site
from redline.report.words import rate, short_tokens
from redline.settings import Layers, Settings

_MARK = "index.html"


@dataclass(frozen=True, slots=True)
class PageWritten:
    """A page of the site is on disk."""

    path: str
    size_bytes: int


def build_site(catalog: Catalog, settings: Settings, folder: Path) -> Iterator[PageWritten]:
    """Yield each page as it is written: a report a tier or endpoint that was measured here, then the matrix page.

    Raises:
        RefusedError: the folder holds other things than an earlier site.
        AccessError, DiskSpaceError: a page cannot be written.
    """
    _prepare(folder)
    reports: dict[str, ReportModel] = {}
    for slug in _measured(settings):
        model = _report(settings, slug)
        reports[slug] = model
        yield _write(folder / "reports" / page_name(slug), render_html(model))
    tiers = tuple(_tier(catalog, slug, reports.get(slug)) for slug in catalog.tiers)
    others = tuple(
        SiteReport(title=slug, href=f"reports/{page_name(slug)}", words=model.answers.proved.words)
        for slug, model in reports.items()
        if slug not in catalog.tiers
    )
    site = Site(made_at=now_utc(), redline_version=__version__, tiers=tiers, reports=others)
    yield _write(folder / _MARK, render_site(site))


def _prepare(folder: Path) -> None:
    """Make the folder; one that is in use for something else is left alone."""
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).is_file():
        raise RefusedError(
            f"{folder} holds other files, and no earlier site.", next_step="Choose an empty folder: --out FOLDER."
        )
    try:
        (folder / "reports").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, folder) from None


def _measured(settings: Settings) -> list[str]:
    """Return the tiers and addresses that readable runs are about, the latest first."""
    with RunIndex(settings.runs_dir) as index:
        rows = index.rows()
    names = [row.slug or row.url for row in rows if row.problem is None and row.outcome != "running"]
    return list(dict.fromkeys(name for name in names if name and " against " not in name))


def _report(settings: Settings, slug: str) -> ReportModel:
    redactor = make_redactor(redact=True)
    names = [slug]
    if "/" not in slug or "://" in slug:
        with RunIndex(settings.runs_dir) as index:
            names = [row.folder for row in index.rows() if row.problem is None and row.slug is None and row.url == slug]
    chosen = load_runs(settings, names, redactor)
    return build_report(chosen.records, made_at=now_utc(), redacted=True, problems=chosen.problems)


def _write(path: Path, text: str) -> PageWritten:
    write_atomic(path, text, mode=0o644)
    return PageWritten(str(path), len(text.encode()))


def _tier(catalog: Catalog, slug: str, report: ReportModel | None) -> SiteTier:
    tier = resolve(catalog, slug, Layers())
    own = report.subjects[0] if report is not None and report.subjects else None
    rates = (
        [f"{row.prompt_class} {rate(row.decode_tok_s.mean)}" for row in own.headline if row.decode_tok_s] if own else []
    )
    return SiteTier(
        slug=slug,
        name=tier.key.name,
        pair=_pair(speed_of(catalog, slug)),
        model=catalog.models[tier.key.model].title,
        engine=tier.key.engine,
        topology=tier.key.topology,
        series=tier.key.series,
        depth=tier.key.depth.value,
        weights=catalog.artifacts[tier.artifact.value].quant,
        drafter=catalog.drafters[tier.drafter.value].kind.value,
        context=short_tokens(tier.max_model_len.value),
        status=tier.status.value,
        status_note=tier.status_note.value or "",
        numbers=tuple(_numbers(catalog, slug)),
        own=f"{', '.join(rates)} tok/s" if rates else "report" if own else "",
        report=f"reports/{page_name(slug)}" if report is not None else None,
    )


def _pair(speed: Speed | None) -> str:
    """Return the published rates of prose and code, marked by whether they count; empty where there are none."""
    if speed is None:
        return ""
    both = " / ".join("—" if value is None else rate(value) for value in (speed.narrative_tok_s, speed.code_tok_s))
    return f"{'●' if speed.counts else '○'} {both}"


def _numbers(catalog: Catalog, slug: str) -> Iterator[SiteNumber]:
    """Yield the published decode rates, those that were made together in one."""
    groups: dict[tuple[object, ...], list[Evidence]] = {}
    for row in evidence_of(catalog, slug):
        if row.metric in ("decode_narrative", "decode_code", "context"):
            key = (row.rig, row.engine_version, row.kind, row.date, row.source, row.patches, row.setup)
            groups.setdefault(key, []).append(row)
    for found in sorted(groups.values(), key=lambda rows: not counts(catalog, rows[0])):
        yield SiteNumber(
            words=", ".join(_words(row) for row in found),
            made_on=_made_on(found[0]),
            source=found[0].source,
            counts=counts(catalog, found[0]),
        )


def _words(row: Evidence) -> str:
    if row.metric == "context":
        return f"context {short_tokens(round(row.value))}"
    return f"{'prose' if row.metric == 'decode_narrative' else 'code'} {rate(row.value)} tok/s"


def _made_on(row: Evidence) -> str:
    patches = " patched" if row.patches else ""
    setup = f", {row.setup}" if row.setup else ""
    return f"{row.kind.value} on {row.rig}, {row.engine} {row.engine_version}{patches}{setup}"
