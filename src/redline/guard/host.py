"""Guards about the host: driver, WSL2."""

from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Override, Severity
from redline.guard.parallel import EXPANDABLE
from redline.guard.registry import guard


@guard("driver-old")
def _driver_old(context: GuardContext) -> Finding | None:
    version, driver = context.version, context.rig.driver_version
    if version is None or version.driver_min is None or driver is None:
        return None
    branch = driver.partition(".")[0]
    if not branch.isdigit() or int(branch) >= version.driver_min:
        return None
    return Finding(
        rule_id="driver-old",
        severity=Severity.REFUSE,
        message=f"NVIDIA driver {driver} is older than {context.engine_label} needs: CUDA {version.cuda} begins with "
        f"driver branch {version.driver_min}.",
        remedy=f"Install an NVIDIA driver of branch {version.driver_min} or later.",
        source=f"{version.source}; CUDA {version.cuda} release notes, minimum driver",
        versions=context.engine_label,
        override=Override.IGNORE_HARDWARE,
    )


@guard("wsl-allocator")
def _wsl_allocator(context: GuardContext) -> Finding | None:
    allocator = context.tier.cuda_allocator
    if not context.rig.wsl or allocator.origin.startswith("rule:") or EXPANDABLE not in (allocator.value or ""):
        return None
    return Finding(
        rule_id="wsl-allocator",
        severity=Severity.REFUSE,
        message=f"PYTORCH_CUDA_ALLOC_CONF={allocator.value} ({allocator.origin}) fails under WSL2: device not ready "
        "while weights are repacked.",
        remedy="Leave it out; redline renders expandable_segments:False under WSL2.",
        source="club-3090#60, #84, #1044",
        override=Override.IGNORE_HARDWARE,
    )


@guard("fp4-without-hardware")
def _fp4_without_hardware(context: GuardContext) -> Finding | None:
    if context.artifact.quant != "nvfp4" or context.tier.key.engine != "vllm":
        return None
    old = sorted({gpu.compute for gpu in context.used_gpus if gpu.compute and float(gpu.compute) < 10})
    if not old:
        return None
    return Finding(
        rule_id="fp4-without-hardware",
        severity=Severity.WARN,
        message=f"Compute {', '.join(old)} has no four-bit floats: vLLM runs these weights as Marlin W4A16, and says "
        "so only in its log.",
        remedy="Expect int4 speed, or take a tier of the speed series.",
        source=context.artifact.note or context.artifact.source,
        versions=context.engine_label,
    )
