#!/usr/bin/env bash
# Run the gates with pytest, and return its exit code, or 5 where it passed without a report.
#
# KBREL_MODEL       the model to ask, or
# KBREL_FROM_RUN    a folder of recorded shards, which are joined and decided without a model
# KBREL_MODEL_ARGS  options of the model, as for --kb-model-args
# KBREL_SUITES      paths of suites, one a line (default: suites)
# KBREL_BASELINE    name or path of the baseline
# KBREL_SHARD       I/N, the share of the facts to ask
# KBREL_ARGS        more arguments of pytest, one a line
# KBREL_OUTPUT      folder of the reports (default: kbrel-report), which also gets junit.xml
set -euo pipefail

if [[ -n "${KBREL_MODEL:-}" && -n "${KBREL_FROM_RUN:-}" || -z "${KBREL_MODEL:-}${KBREL_FROM_RUN:-}" ]]; then
  echo "KBREL_MODEL, KBREL_FROM_RUN: found both or none; allowed: one of the two" >&2
  exit 4
fi
output=${KBREL_OUTPUT:-kbrel-report}
mapfile -t arguments < <(grep -v '^[[:space:]]*$' <<<"${KBREL_SUITES:-suites}")
arguments+=("--kb-output-path=$output" "--junitxml=$output/junit.xml")
if [[ -n "${KBREL_MODEL:-}" ]]; then
  arguments+=("--kb-model=$KBREL_MODEL")
fi
if [[ -n "${KBREL_MODEL_ARGS:-}" ]]; then
  arguments+=("--kb-model-args=$KBREL_MODEL_ARGS")
fi
# A shard decides nothing: the baseline is compared with when all of them are joined.
if [[ -n "${KBREL_SHARD:-}" ]]; then
  arguments+=("--kb-shard=$KBREL_SHARD")
elif [[ -n "${KBREL_BASELINE:-}" ]]; then
  arguments+=("--kb-baseline=$KBREL_BASELINE")
fi
mapfile -t more < <(grep -v '^[[:space:]]*$' <<<"${KBREL_ARGS:-}")
arguments+=(${more[@]+"${more[@]}"})
if [[ -n "${KBREL_FROM_RUN:-}" ]]; then
  arguments+=(--kb-from-run "$KBREL_FROM_RUN")
fi
python -m pytest "${arguments[@]}"
if [[ ! -f "$output/report.json" ]]; then
  echo "$output/report.json: is not there although pytest passed: nothing was measured; allowed: arguments that run a suite" >&2
  exit 5
fi
