#!/usr/bin/env bash
# Print for GITHUB_STEP_SUMMARY that there is no report in the folder KBREL_OUTPUT. One is added by the run that wrote it.
set -euo pipefail

output=${KBREL_OUTPUT:-kbrel-report}
if [[ ! -f "$output/summary.md" ]]; then
  echo "## Knowledge gates: no report"
  echo
  echo "The run ended before it wrote a report. Its log may say why."
fi
