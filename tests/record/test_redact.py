"""What the redactor takes out, and above all what it leaves alone."""

import pytest

from redline.record.identity import find_identity, make_identity
from redline.record.redact import NoRedactor, Redactor, preview


@pytest.fixture
def redactor() -> Redactor:
    identity = make_identity(
        users=["b", "noonghunna", "root"],
        hosts=["gpu", "attic-rig.lan", "localhost"],
        homes=["/home/b", "/data/noonghunna"],
    )
    return Redactor(identity)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token hf_abcDEF12345678901234567890", "token hf_<secret>"),
        ("OPENAI_API_KEY=sk-proj-a1b2c3d4e5f6", "OPENAI_API_KEY=<secret>"),
        ("'api_key': ['one', 'two'], 'port': 8000", "'api_key': [<secret>], 'port': 8000"),
        ("vllm serve --api-key letmein --port 8000", "vllm serve --api-key <secret> --port 8000"),
        ('{"password": "correct horse"}', '{"password": "<secret>"}'),
        ("Authorization: Bearer abcdef", "Authorization: Bearer <secret>"),
        ("curl -H 'authorization: Basic dXNlcjpwYXNz'", "curl -H 'authorization: Basic <secret>'"),
        ("https://me:pw@hub.example/x?token=abcdef12&a=1", "https://<login>@hub.example/x?token=<secret>&a=1"),
        ("ghp_abcdefghij0123456789abcdefghij012345", "<secret>"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----", "<private-key>"),
        ("write to ana.b@example.org", "write to <email-1>"),
        ("GPU-8f1c2d3e-0000-1111-2222-333344445555", "<uuid-1>"),
        ("Serial Number                 : 1324921034211", "Serial Number                 : <serial-1>"),
        ("link/ether aa:bb:cc:dd:ee:0f brd", "link/ether <mac-1> brd"),
        ("from 192.168.1.20 to 10.0.0.3 and 192.168.1.20", "from <ip-1> to <ip-2> and <ip-1>"),
        ("listening on [2001:db8::17]:8000", "listening on [<ip-1>]:8000"),
        ("/home/b/models/x.gguf", "~/models/x.gguf"),
        ("--model=/data/noonghunna/x", "--model=~/x"),
        ("/home/alice/x and /Users/zoë/y", "/home/<user>/x and /Users/<user>/y"),
        (r"C:\Users\John Smith\models", r"C:\Users\<user>\models"),
        ("b@gpu:~$ nvidia-smi", "<user>@<host>:~$ nvidia-smi"),
        ("eve@tower:/srv$ ls", "<user>@<host>:/srv$ ls"),
        ("Linux gpu 6.8.0-45-generic x86_64", "Linux <host> 6.8.0-45-generic x86_64"),
        ("drwxr-xr-x 2 b b 4096 Nov 29 models", "drwxr-xr-x 2 <user> <user> 4096 Nov 29 models"),
        ("Nov 29 19:56:01 gpu kernel: NVRM", "Nov 29 19:56:01 <host> kernel: NVRM"),
        ("USER=b LOGNAME=b HOSTNAME=gpu", "USER=<user> LOGNAME=<user> HOSTNAME=<host>"),
        ("started by noonghunna on attic-rig", "started by <user> on <host>"),
        ("noonghunna_run.log", "<user>_run.log"),
        ("gpu.lan and attic-rig.lan", "<host> and <host>"),
    ],
)
def test_marks_are_taken_out(redactor: Redactor, text: str, expected: str) -> None:
    assert redactor.text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "bridge, b = 3, a 7b model, 24 b of it, b16, --b",  # club-3090#1095: user "b" made of bridge a <USER>ridge
        "the capital city; root-capped at 250 W; root",  # club-3090#1339 and #106
        "gpu 0: NVIDIA GeForce RTX 3090, gpu_memory_utilization=0.92, --gpus all, GPU",
        "0000:01:00.0 VGA controller [10de:2204] (rev a1), 00000000:01:00.0, 01:00.0",
        "2026-11-29T19:56:01+00:00 19:56:01.123 12:34",
        "http://127.0.0.1:8120/v1 0.0.0.0 [::1]:80 255.255.255.0 localhost",
        "cudnn 9.10.2.21 nvidia-cudnn-cu12==9.10.2.21 driver 580.95.05 CUDA 13.0 version 1.2.3.4",
        "c10::add std::vector at::native::empty torch::jit",
        "hf_transfer hf_hub_download hf_overrides sk-learn",
        "eos_token: '<|im_end|>' bos_token=<s> max_tokens=512 prompt_tokens: 1234567890123 tokens: a",
        "api_key=None, password: required, HF_TOKEN is not set, secret: never",
        "llamacpp/smollm2-135m-cpu-fast vllm/qwen38-27b-dual-ultrafast Qwen/Qwen3.8-27B-FP8",
        "git@github.com:vllm-project/vllm.git @torch.compile vllm@v0.33.0",
        "3d1e55dd70b43d4811305ea73431140928276c218baca4404be712dbd0ba9183",
        "--spec-key 4 --spec-draft 7 --max-tokens 128 --tokenizer x",
        "serial execution, serial: true, serial number unknown",
    ],
)
def test_ordinary_text_survives(redactor: Redactor, text: str) -> None:
    assert redactor.text(text) == text


def test_the_word_after_a_secret_flag_is_hidden(redactor: Redactor) -> None:
    assert redactor.argv(["serve", "--api-key", "x", "--port", "1"]) == (
        "serve",
        "--api-key",
        "<secret>",
        "--port",
        "1",
    )


def test_numbers_keep_marks_apart_across_texts(redactor: Redactor) -> None:
    first = redactor.text("GPU-11111111-0000-1111-2222-333344445555")
    second = redactor.text("GPU-22222222-0000-1111-2222-333344445555 GPU-11111111-0000-1111-2222-333344445555")
    assert (first, second) == ("<uuid-1>", "<uuid-2> <uuid-1>")


def test_identity_under_sudo_is_the_caller() -> None:
    identity = find_identity({"USER": "root", "HOME": "/root", "SUDO_USER": "marta", "LOGNAME": "root"})
    assert "marta" in identity.users
    assert "root" not in identity.users
    assert Redactor(identity).text("marta ran it") == "<user> ran it"


def test_preview_shows_changed_lines_only(redactor: Redactor) -> None:
    before = "keep this\nsee /home/b/x\nand this"
    assert preview(before, redactor.text(before)).splitlines()[-2:] == ["-see /home/b/x", "+see ~/x"]
    assert preview("same", "same") == ""


def test_without_redaction_everything_stays() -> None:
    text = "hf_abcDEF12345678901234567890 /home/b"
    assert NoRedactor().text(text) == text
