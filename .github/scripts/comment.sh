#!/usr/bin/env bash
# Print the comment about the report folder KBREL_OUTPUT, also where the run left no report.
#
# KBREL_NAME    tells the comments of several gates on one pull request apart
# KBREL_LINK    page of the job
# KBREL_COMMIT  the commit that was gated
set -euo pipefail

output=${KBREL_OUTPUT:-kbrel-report}
options=("--name=${KBREL_NAME:-}" "--link=${KBREL_LINK:-}" "--commit=${KBREL_COMMIT:-}")
if [[ -f "$output/report.json" ]]; then
  exec kbrel comment "$output" "${options[@]}"
fi
exec kbrel comment --no-report "${options[@]}"
