"""The suites' make-up, and what they may spend."""

from redline.checks.rehearsal import fake_model
from redline.checks.suites import Suite, all_checks, estimate, suite_checks
from redline.fake.scenario import load_scenario


def test_full_spends_at_most_what_is_promised() -> None:
    model = fake_model(load_scenario("healthy"))
    most = estimate(suite_checks(Suite.FULL), model)
    assert 0 < most.output_tokens <= 3000
    assert 0 < most.prompt_tokens <= 8000


def test_what_is_not_offered_costs_nothing() -> None:
    able, plain = (fake_model(load_scenario(name)) for name in ("healthy", "healthy-text-only"))
    checks = suite_checks(Suite.FULL)
    assert estimate(checks, plain).output_tokens < estimate(checks, able).output_tokens
    assert estimate(checks, None) == estimate(checks, able)


def test_every_suite_asks_first_which_server_this_is() -> None:
    for suite in Suite:
        first, *rest = suite_checks(suite)
        assert first.id == "reach.models"
        assert first.essential
        assert not any(check.essential for check in rest)


def test_ids_are_distinct_and_each_check_names_its_fault() -> None:
    for suite in Suite:
        ids = [check.id for check in suite_checks(suite)]
        assert len(ids) == len(set(ids))
    assert all(check.failure_class and check.title for check in all_checks().values())
