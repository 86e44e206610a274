"""CPU milliseconds of the commands that must feel instant, warm, as the operating system counts them.

python benchmarks/light_commands.py [--runs 15]
"""

import argparse
import os
import statistics
import sys

COMMANDS = (
    ("--help",),
    ("tiers",),
    ("tiers", "--all"),
    ("show", "llamacpp/smollm2-135m-cpu-fast", "--explain"),
    ("ps",),
)


def cpu_ms(words: tuple[str, ...]) -> float:
    """Run the command once and return user plus system milliseconds."""
    null = os.open(os.devnull, os.O_WRONLY)
    argv = [sys.executable, "-m", "redline", *words]
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    os.close(null)
    _, _, usage = os.wait4(pid, 0)
    return (usage.ru_utime + usage.ru_stime) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    print(f"{'command':<60}{'median ms':>10}{'min':>7}{'max':>7}   n={runs}")
    for words in COMMANDS:
        cpu_ms(words)
        taken = [cpu_ms(words) for _ in range(runs)]
        print(f"redline {' '.join(words):<52}{statistics.median(taken):>10.0f}{min(taken):>7.0f}{max(taken):>7.0f}")


if __name__ == "__main__":
    main()
