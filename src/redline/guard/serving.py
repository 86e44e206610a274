"""Guards about serving at all: status, context, memory, GPUs, port, address."""

from typing import Final

from redline.catalog.fields import STATUSES_SERVED_FREELY
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Override, Severity
from redline.guard.registry import guard
from redline.plan.types import Verdict

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@guard("tier-status")
def _tier_status(context: GuardContext) -> Finding | None:
    status, note = context.tier.status.value, context.tier.status_note.value
    if status in STATUSES_SERVED_FREELY:
        return None
    return Finding(
        rule_id="tier-status",
        severity=Severity.REFUSE,
        message=f"{context.tier.slug} is {status}{f': {note}' if note else ''}.",
        remedy="Choose a tier of status production or caveats, or accept that this one is not proven.",
        source=context.tier.status.origin,
        override=Override.ALLOW_EXPERIMENTAL,
    )


@guard("context-max")
def _context_max(context: GuardContext) -> Finding | None:
    model, asked = context.model, context.tier.max_model_len
    if asked.value <= model.context_max:
        return None
    return Finding(
        rule_id="context-max",
        severity=Severity.REFUSE,
        message=f"A context of {asked.value} ({asked.origin}) is more than {model.title} was trained for, "
        f"{model.context_max}. It would load, and answer nonsense beyond that.",
        remedy=f"Use MAX_MODEL_LEN={model.context_max} or less.",
        source=model.source,
    )


@guard("memory-fit")
def _memory_fit(context: GuardContext) -> Finding | None:
    fit = context.fit
    if fit.verdict is Verdict.FIT:
        return None
    first = f" {fit.suggestions[0].change} would give {fit.suggestions[0].cost}." if fit.suggestions else ""
    words = {
        Verdict.NO: "does not fit",
        Verdict.TIGHT: "fits with little to spare",
        Verdict.UNKNOWN: "cannot be planned",
    }[fit.verdict]
    return Finding(
        rule_id="memory-fit",
        severity=Severity.REFUSE if fit.verdict is Verdict.NO else Severity.WARN,
        message=f"{context.tier.slug} {words} here: {'; '.join(fit.reasons)}.",
        remedy=f"Free memory, or use a smaller context.{first}",
        source="redline plan",
        override=Override.IGNORE_VRAM if fit.verdict is Verdict.NO else None,
    )


@guard("gpu-count")
def _gpu_count(context: GuardContext) -> Finding | None:
    need = context.tier.gpus or context.catalog.topologies[context.tier.key.topology].gpus
    have = len(context.used_gpus) if context.tier.gpu_ids.value else len(context.rig.gpus)
    if have >= need:
        return None
    named = f" (of GPUS={context.tier.gpu_ids.value})" if context.tier.gpu_ids.value else ""
    return Finding(
        rule_id="gpu-count",
        severity=Severity.REFUSE,
        message=f"{context.tier.slug} needs {need} GPU{'s' if need > 1 else ''} and this machine shows {have}{named}.",
        remedy="Choose a tier that fits (`redline tiers`), or run this on the machine with the GPUs.",
        source="nvidia-smi",
        override=Override.IGNORE_HARDWARE,
    )


@guard("gpu-mixed")
def _gpu_mixed(context: GuardContext) -> Finding | None:
    kinds = {gpu.compute for gpu in context.used_gpus}
    if len(kinds) < 2:
        return None
    names = ", ".join(f"{gpu.index}: {gpu.name} ({gpu.compute or 'unknown'})" for gpu in context.used_gpus)
    return Finding(
        rule_id="gpu-mixed",
        severity=Severity.REFUSE,
        message=f"{context.tier.slug} would run over GPUs of different kinds: {names}. Kernels and graphs differ "
        "between them, and the slowest sets the pace.",
        remedy="Name GPUs of one kind: GPUS=0,1, or choose a tier of fewer GPUs.",
        source="club-3090#762",
        override=Override.IGNORE_HARDWARE,
    )


@guard("port-taken")
def _port_taken(context: GuardContext) -> Finding | None:
    if context.port_holder is None:
        return None
    port = context.tier.port.value
    return Finding(
        rule_id="port-taken",
        severity=Severity.REFUSE,
        message=f"Port {port} is held by {context.port_holder}.",
        remedy="Stop that program, or give another port: --port N (or PORT=N).",
        source="the sockets of this machine",
    )


@guard("open-address")
def _open_address(context: GuardContext) -> Finding | None:
    host = context.tier.bind_host
    if host.value in LOOPBACK or context.api_key_given:
        return None
    return Finding(
        rule_id="open-address",
        severity=Severity.REFUSE,
        message=f"BIND_HOST={host.value} ({host.origin}) would let anyone who reaches this machine use the server.",
        remedy="Set REDLINE_API_KEY in the environment or the config file, or stay on 127.0.0.1.",
        source="llama.cpp warns of the same at start: no API key is set",
    )


@guard("key-file-open")
def _key_file_open(context: GuardContext) -> Finding | None:
    if context.key_file_open is None or context.tier.bind_host.value in LOOPBACK:
        return None
    return Finding(
        rule_id="key-file-open",
        severity=Severity.REFUSE,
        message=f"The API key stands in {context.key_file_open}, which other users of this machine can read.",
        remedy=f"chmod 600 {context.key_file_open}, or give the key in the environment.",
        source="redline keeps secrets in files of mode 0600 and in the environment only",
    )


@guard("secret-in-arguments")
def _secret_in_arguments(context: GuardContext) -> Finding | None:
    named = [word for word in context.extra_args if word.partition("=")[0] in ("--api-key", "--hf-token", "-hft")]
    if not named:
        return None
    return Finding(
        rule_id="secret-in-arguments",
        severity=Severity.REFUSE,
        message=f"ENGINE_ARGS holds {named[0].partition('=')[0]}: arguments of a process can be read by every user of "
        "this machine, and are written into records.",
        remedy="Set REDLINE_API_KEY or HF_TOKEN in the environment; redline hands them over there.",
        source="proc(5), /proc/PID/cmdline",
    )
