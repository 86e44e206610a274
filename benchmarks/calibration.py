"""What the verdicts are worth: simulated experiments with a known truth, as tables in docs/statistics.md.

    python benchmarks/calibration.py [--experiments 1000] [--write]

Prints every table; --write puts each between its marks in docs/statistics.md. Seeded: the same number of experiments
gives the same tables. A minute or three of one core. (Not called statistics.py: run as a script, this folder comes
first on the path, and the standard library's `statistics` would be hidden from every benchmark in it.)
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from redline.stats.bootstrap import BootstrapMethod, Statistic, bootstrap
from redline.stats.compare import Verdict, compare_arms
from redline.stats.discrete import alike
from redline.stats.failures import failure_rate, tries_to_bound
from redline.stats.growth import GrowthVerdict, judge_growth
from redline.stats.interval import estimate_mean
from redline.stats.paired import mcnemar
from redline.stats.power import BootSpread, per_arm_needed, power_of
from redline.stats.retention import RetentionVerdict, retention
from redline.stats.simulate import ArmModel, SeriesModel, draw_arm, draw_series
from redline.stats.stopping import StoppingRule

DOCUMENT = Path(__file__).parents[1] / "docs" / "statistics.md"
BOOTS = (3, 5, 10)
RUNS = 6
USUAL = ArmModel()
QUIET = ArmModel(between_cv=0.01, within_cv=0.01)
SEED = 20_261_129

Rows = Iterable[Sequence[object]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, build in TABLES.items():
        table = build(options.experiments)
        print(f"{name}\n\n{table}\n", flush=True)
        if options.write:
            begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
            before, rest = text.split(begin, 1)
            text = f"{before}{begin}{table}\n{end}{rest.split(end, 1)[1]}"
    if options.write:
        DOCUMENT.write_text(text, encoding="utf-8")


def markdown(head: Sequence[str], rows: Rows) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def percent(part: float, digits: int = 1) -> str:
    return f"{100 * part:.{digits}f} %"


def outcomes(model_a: ArmModel, model_b: ArmModel, boots: tuple[int, int], experiments: int) -> dict[Verdict, float]:
    generator = np.random.default_rng(SEED)
    found: Counter[Verdict] = Counter()
    for _ in range(experiments):
        arm_a = draw_arm(model_a, generator, boots=boots[0], runs=RUNS, name="a")
        arm_b = draw_arm(model_b, generator, boots=boots[1], runs=RUNS, name="b")
        found[compare_arms(arm_a, arm_b, higher_is_better=True).verdict] += 1
    return {verdict: found[verdict] / experiments for verdict in Verdict}


def equal_arms(experiments: int) -> str:
    noisy = ArmModel(between_cv=0.05)
    cases = [
        *(("boots 2.8 %, runs 5 %", USUAL, USUAL, (boots, boots)) for boots in BOOTS),
        *(("boots 1 %, runs 1 %", QUIET, QUIET, (boots, boots)) for boots in BOOTS),
        *(
            ("3 in 10 boots 9 % slower", model, model, (boots, boots))
            for model in [ArmModel(slow_share=0.3, slow_by=0.09)]
            for boots in BOOTS
        ),
        ("A boots 1 %, B boots 5 %", QUIET, noisy, (3, 3)),
        ("A boots 1 %, B boots 5 %", QUIET, noisy, (5, 5)),
        ("A boots 1 %, B boots 5 %", QUIET, noisy, (10, 3)),
        ("A boots 5 %, B boots 1 %", noisy, QUIET, (10, 3)),
    ]
    rows = []
    for name, model_a, model_b, boots in cases:
        found = outcomes(model_a, model_b, boots, experiments)
        alarms = found[Verdict.FASTER] + found[Verdict.SLOWER]
        shares = (alarms, found[Verdict.EQUIVALENT], found[Verdict.UNDETERMINED])
        rows.append([name, f"{boots[0]} + {boots[1]}", *(percent(share) for share in shares)])
    return markdown(["spread", "boots", "faster or slower", "equivalent", "undetermined"], rows)


def bootstrapped_arms(experiments: int) -> str:
    """The road not taken: a percentile bootstrap of the difference of log boot means."""
    rows = []
    for boots in (2, 3, 5, 10):
        generator = np.random.default_rng(SEED)
        alarms = 0
        for _ in range(experiments):
            arms = [
                np.array([boot.log_mean for boot in draw_arm(USUAL, generator, boots=boots, runs=RUNS)]) for _ in "ab"
            ]
            drawn = [arm[generator.integers(0, boots, (1000, boots))].mean(axis=1) for arm in arms]
            low, high = np.quantile(drawn[1] - drawn[0], (0.025, 0.975))
            alarms += bool(low > 0 or high < 0)
        rows.append([f"{boots} + {boots}", percent(alarms / experiments)])
    return markdown(["boots", "equal arms called different by a bootstrap of boot means"], rows)


def injected(experiments: int) -> str:
    rows = []
    for name, model in (("boots 2.8 %, runs 5 %", USUAL), ("boots 1 %, runs 1 %", QUIET)):
        spread = BootSpread(model.between_cv, model.within_cv, RUNS).mean_cv
        for ratio in (1.05, 1.10, 0.90):
            second = replace(model, mean=model.mean * ratio)
            right, wrong = (Verdict.FASTER, Verdict.SLOWER) if ratio > 1 else (Verdict.SLOWER, Verdict.FASTER)
            for boots in BOOTS:
                found = outcomes(model, second, (boots, boots), experiments)
                stated = percent(power_of(ratio - 1, spread, boots))
                rows.append(
                    [name, f"{100 * (ratio - 1):+.0f} %", boots, percent(found[right]), stated, percent(found[wrong])]
                )
    return markdown(["spread", "true difference", "boots an arm", "found", "stated power", "found reversed"], rows)


def needed(_: int) -> str:
    differences = (0.03, 0.05, 0.10)
    rows = [
        [percent(cv), *(per_arm_needed(difference, cv) for difference in differences)]
        for cv in (0.01, 0.02, 0.028, 0.05, 0.08, 0.11)
    ]
    return markdown(["spread of one value", *(f"to see {percent(difference, 0)}" for difference in differences)], rows)


def stopping(experiments: int) -> str:
    rows = []
    for width in (0.3, 0.5, 0.7, 1.0, 1.5, 3.0):
        cells = []
        for plain in (True, False):
            generator, rule = np.random.default_rng(SEED), StoppingRule(relative_width=0.02 * width)
            ends = [_end(generator.normal(100, 2, 20).tolist(), rule, plain=plain) for _ in range(experiments)]
            held = sum(low <= 100 <= high for _, low, high in ends) / experiments
            cells += [percent(held), f"{sum(count for count, _, _ in ends) / experiments:.1f}"]
        rows.append([f"{width:g}", *cells])
    return markdown(["asked width / run spread", "plain holds", "plain runs", "redline holds", "redline runs"], rows)


def _end(values: list[float], rule: StoppingRule, *, plain: bool) -> tuple[int, float, float]:
    """How many runs it took, and the interval it ended with; `plain` looks at 95 % intervals without owning up."""
    for count in range(rule.min_runs, rule.max_runs + 1):
        estimate = estimate_mean(values[:count]) if plain else rule.decide(values[:count]).estimate
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        wide = estimate.high - estimate.low > 2 * rule.relative_width * estimate.mean
        if not wide or count == rule.max_runs:
            return count, estimate.low, estimate.high
    raise AssertionError("a rule has a largest number of runs")


def growth(experiments: int) -> str:
    series = {
        "nothing, +-50 MiB": SeriesModel(),
        "nothing, normal 50 MiB": SeriesModel(uniform=False),
        "nothing, normal 50 MiB, half carries over": SeriesModel(uniform=False, carry=0.5),
        "20 MiB a session, +-50 MiB": SeriesModel(slope=20),
        "20 MiB a session, normal 50 MiB": SeriesModel(slope=20, uniform=False),
        "one step of 300 MiB, +-50 MiB": SeriesModel(step=300, step_at=3),
        "that step, then 20 MiB a session": SeriesModel(slope=20, step=300, step_at=3),
    }
    rows = []
    for name, model in series.items():
        for sessions in (10, 12, 15, 20):
            generator = np.random.default_rng(SEED)
            found = Counter(
                judge_growth(draw_series(model, generator, sessions), worth=20, floor=100).verdict
                for _ in range(experiments)
            )
            rows.append([name, sessions, *(percent(found[verdict] / experiments) for verdict in GrowthVerdict)])
    return markdown(["series", "sessions", *(verdict.value for verdict in GrowthVerdict)], rows)


def held_rates(experiments: int) -> str:
    rows = []
    for fall in (0.0, 0.05, 0.10, 0.20):
        for sessions in (9, 15, 30):
            generator = np.random.default_rng(SEED)
            level = 100 * np.linspace(1, 1 - fall, sessions)
            found = Counter(
                retention((level * np.exp(generator.normal(0, 0.03, sessions))).tolist(), floor=0.95).verdict
                for _ in range(experiments)
            )
            shares = (percent(found[verdict] / experiments) for verdict in RetentionVerdict)
            rows.append(
                [
                    percent(fall, 0),
                    sessions,
                    percent(float(level[-(sessions // 3) :].mean() / level[: sessions // 3].mean())),
                    *shares,
                ]
            )
    head = [
        "fall over the soak",
        "sessions",
        "last third over first",
        *(verdict.value for verdict in RetentionVerdict),
    ]
    return markdown(head, rows)


def displayed(experiments: int) -> str:
    rows = []
    for runs in (5, 10, 20):
        for statistic in (Statistic.MEAN, Statistic.MEDIAN):
            truth = math.exp(0.1**2 / 2) if statistic is Statistic.MEAN else 1.0
            cells = []
            for method in BootstrapMethod:
                generator = np.random.default_rng(SEED)
                held = 0
                for _ in range(experiments):
                    found = bootstrap(
                        generator.lognormal(0, 0.1, runs).tolist(), statistic, method=method, resamples=1000
                    )
                    held += found.low is not None and found.high is not None and found.low <= truth <= found.high
                cells.append(percent(held / experiments))
            rows.append([runs, statistic.value, *cells])
    return markdown(["runs", "of the", *(f"{method.value} holds" for method in BootstrapMethod)], rows)


def bounds(_: int) -> str:
    rows = [
        [tries, percent(failure_rate(0, tries).upper, 2), percent(failure_rate(1, tries).upper, 2)]
        for tries in (10, 30, 60, 100, 300, 1000)
    ]
    table = markdown(["tries", "at most, none failed", "at most, one failed"], rows)
    rates = (0.1, 0.05, 0.01, 0.001)
    words = ", ".join(f"{tries_to_bound(rate)} for {percent(rate)}" for rate in rates)
    return f"{table}\n\nTries without a failure that bound the rate: {words}."


def alarms(experiments: int) -> str:
    generator = np.random.default_rng(SEED)
    weights = np.arange(1, 41) ** -1.0
    shares = weights / weights.sum()
    samples = [
        alike(*(dict(enumerate(generator.multinomial(300, shares).tolist())) for _ in "ab")).p_value
        for _ in range(experiments)
    ]
    pairs = []
    for _ in range(experiments):
        both, only_a, only_b, neither = (int(count) for count in generator.multinomial(100, [0.6, 0.1, 0.1, 0.2]))
        pairs.append(mcnemar(both=both, only_a=only_a, only_b=only_b, neither=neither))
    rows = [
        ["chi-square, 2 x 300 draws of 40 outcomes", below(samples, experiments)],
        ["McNemar exact, 100 questions, 20 differ", below([pair.p_value for pair in pairs], experiments)],
        ["its interval leaves out 0", percent(sum(not p.low <= 0 <= p.high for p in pairs) / experiments)],
    ]
    return markdown(["test on equal arms", "called different at 5 %"], rows)


def below(p_values: Sequence[float | None], experiments: int) -> str:
    return percent(sum(1 for value in p_values if value is not None and value < 0.05) / experiments)


TABLES: dict[str, Callable[[int], str]] = {
    "equal-arms": equal_arms,
    "bootstrapped-arms": bootstrapped_arms,
    "injected": injected,
    "needed": needed,
    "stopping": stopping,
    "growth": growth,
    "retention": held_rates,
    "displayed": displayed,
    "bounds": bounds,
    "alarms": alarms,
}

if __name__ == "__main__":
    main()
