#!/usr/bin/env bash
# Bless the recorded shards in KBREL_FROM_RUN as the baseline KBREL_BASELINE, with KBREL_REASON, and copy its files
# to KBREL_BLESSED. Gates may fail: blessing says that this is accepted. A run that is not sound blesses nothing.
set -euo pipefail

if [[ ! "$KBREL_BASELINE" =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]]; then
  echo "KBREL_BASELINE: found '$KBREL_BASELINE'; allowed: the name of a baseline, in letters, digits, '.', '-', '_'" >&2
  exit 4
fi
written=baselines/$KBREL_BASELINE/baseline.json
digest() { if [[ -f "$written" ]]; then sha256sum <"$written"; fi; }
before=$(digest)
mapfile -t suites < <(grep -v '^[[:space:]]*$' <<<"${KBREL_SUITES:-suites}")
status=0
# The gate of these shards has written the summary of the job's page.
GITHUB_STEP_SUMMARY='' python -m pytest ${suites[@]+"${suites[@]}"} --kb-output-path=kbrel-report-bless "--kb-baseline-update=$KBREL_BASELINE" \
  "--kb-baseline-reason=$KBREL_REASON" --kb-from-run "$KBREL_FROM_RUN" || status=$?
if [[ "$(digest)" == "$before" ]]; then
  echo "nothing was blessed: see above" >&2
  exit "$((status ? status : 1))"
fi
# Files of an earlier baseline may lie there for a while.
outcomes=$(grep -o --max-count=1 'outcomes-[0-9a-f]*\.jsonl\.xz' -- "$written")
mkdir -p -- "$KBREL_BLESSED"
cp -- "$written" "baselines/$KBREL_BASELINE/$outcomes" "$KBREL_BLESSED"
