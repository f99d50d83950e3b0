#!/usr/bin/env bash
# Print the summary of the report folder KBREL_OUTPUT, for GITHUB_STEP_SUMMARY.
set -euo pipefail

output=${KBREL_OUTPUT:-kbrel-report}
if [[ -f "$output/summary.md" ]]; then
  cat "$output/summary.md"
else
  echo "## Knowledge gates: no report"
  echo
  echo "The run ended before it wrote a report. Its log may say why."
fi
