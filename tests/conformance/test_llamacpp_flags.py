"""llama-server's argument table: the one that is checked in, and how one is read out of source text."""

import json
import shlex
import subprocess
import sys

import pytest

from conformance.llamacpp_flags import Flag, check_argv, load_table, parse_table

TABLE = load_table()
GOOD = shlex.split(
    "llama-server -m q.gguf --mmproj mm.gguf -c 262144 -b 4096 -ub 512 -ngl 99 -fa on --cache-type-k q4_0 "
    "--cache-type-v q4_0 -np 1 -sm layer -ts 0.55,0.45 --spec-type draft-mtp --spec-draft-n-max 2 --jinja "
    "--alias qwen3.8-27b --reasoning off --reasoning-format deepseek --temp .7 --top-p .80 --top-k 20 --min-p 0 "
    "--presence-penalty 1.5 --repeat-penalty 1.0 --host 127.0.0.1 --port 8090"
)

SOURCE = r"""
static std::initializer_list<enum llama_example> mmproj_examples = { LLAMA_EXAMPLE_MTMD, LLAMA_EXAMPLE_SERVER, };
const std::vector<ggml_type> kv_cache_types = { GGML_TYPE_F16, GGML_TYPE_IQ4_NL, };
add_opt(common_arg({"-c", "--ctx-size"}, "N", string_format("size (default: %d)", 1),
    [](common_params & params, int value) { params.n = value; }).set_env("E"));
add_opt(common_arg({"--jinja"}, {"--no-jinja"}, "a (parenthesis",
    [](common_params & params, bool value) { params.jinja = value; }).set_examples({LLAMA_EXAMPLE_SERVER}));
add_opt(common_arg({"--color"}, "shown, not for us", [](common_params &) {}).set_examples({LLAMA_EXAMPLE_CLI}));
add_opt(common_arg({"--range"}, "A", "B", "help",
    [](common_params & params, const std::string & a, const std::string & b) { /* ) */ }));
add_opt(common_arg({"--mmproj"}, "FILE", "help", [](common_params &, const std::string &) {})
    .set_examples(mmproj_examples));
add_opt(common_arg({"--cache-type-k"}, "TYPE", "help", [](common_params &, const std::string &) {}));
add_opt(common_arg({"--split"}, "{none,layer}", "help", [](common_params &, const std::string &) {}));
add_opt(common_arg({"--old"}, "N", "the argument has been removed. use --new", [](common_params &, int) {}));
add_opt(common_arg({"--preset"}, "help", [](common_params &) {}).set_preset_only());
"""


def test_rendered_llama_server_arguments_are_taken() -> None:
    assert check_argv(TABLE, GOOD) == []


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--nope", "3"], "--nope: unknown to llama.cpp"),
        (["--draft-max", "4"], "--draft-max: the argument has been removed"),
        (["--cache-type-v-draft", "q9"], "'q9' is none of f32, f16"),
        (["--threads", "many"], "'many' is no whole number"),
        (["--override-kv"], "--override-kv: needs 1 value"),
        (["--port", "8091"], "--port: given twice"),
        (["--ctx-size", "4096"], "--ctx-size: given twice"),
    ],
)
def test_what_llama_server_would_not_take_is_named(extra: list[str], sentence: str) -> None:
    (fault,) = check_argv(TABLE, [*GOOD, *extra])
    assert sentence in fault


def test_an_unknown_flag_does_not_hide_what_follows() -> None:
    assert len(check_argv(TABLE, [*GOOD, "--nope", "3", "--nope-too", "-x"])) == 3


def test_underscores_count_as_dashes_and_lists_are_checked_word_by_word() -> None:
    assert check_argv(TABLE, ["llama-server", "--ctx_size", "4096", "--spec-type", "draft-mtp,ngram-mod"]) == []
    assert check_argv(TABLE, ["llama-server", "--spec-type", "draft-mtp,magic"])


def test_the_native_block_drafter_is_in_the_table() -> None:
    assert "draft-dflash" in TABLE.by_name()["--spec-type"].choices
    assert len(TABLE.flags) > 200


def test_a_table_is_read_out_of_source_text() -> None:
    flags = {flag.names[0]: flag for flag in parse_table(SOURCE, '{"draft-mtp", COMMON_SPECULATIVE_TYPE_DRAFT_MTP},')}
    assert flags.keys() == {"-c", "--jinja", "--range", "--mmproj", "--cache-type-k", "--split", "--old"}
    assert flags["-c"] == Flag(("-c", "--ctx-size"), 1, whole_number=True, choices=())
    assert flags["--jinja"] == Flag(("--jinja", "--no-jinja"), 0, whole_number=False, choices=())
    assert flags["--range"].values == 2
    assert flags["--cache-type-k"].choices == ("f16", "iq4_nl")
    assert flags["--split"].choices == ("none", "layer")
    assert flags["--old"].removed == "the argument has been removed. use --new"


def test_the_command_reports_by_slug() -> None:
    rows = [{"slug": "good", "argv": GOOD}, {"slug": "bad", "argv": [*GOOD, "--nope"]}]
    done = subprocess.run(
        [sys.executable, "-m", "conformance.llamacpp_flags", "check"],
        input="\n".join(map(json.dumps, rows)),
        capture_output=True,
        text=True,
        check=False,
    )
    good, bad = done.stdout.splitlines()
    assert good.split() == ["good", "taken"]
    assert "--nope: unknown" in bad
    assert done.returncode == 1
