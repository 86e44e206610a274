"""Imports every module that declares a payload, so that a reader knows all kinds; a test finds any that is missing."""

import redline.bench.arms
import redline.bench.concurrency
import redline.bench.prefill
import redline.bench.quick
import redline.bench.regime
import redline.bench.settle
import redline.bench.tune
import redline.checks.check
import redline.checks.ramp
import redline.checks.soak
import redline.checks.soak_verdict
import redline.checks.stages
import redline.launch.outcome
import redline.ops.bench
import redline.ops.resume
import redline.ops.soak
import redline.ops.verify
import redline.probe.exchange
import redline.record.run  # noqa: F401 -- all of these are imported for what they declare
