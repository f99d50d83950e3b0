#!/usr/bin/env bash
# Submit the array and the job that joins it: MODEL=./checkpoint BASELINE=prod bash slurm-submit.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${MODEL:?the model to ask}" "${BASELINE:?the baseline to compare with}"
# A folder of its own for each run: shards of two runs are not joined.
RUNS=${RUNS:-$PWD/kbrel-runs/$(date +%Y%m%d-%H%M%S)}
export MODEL BASELINE RUNS
mkdir -p "$RUNS"
array=$(sbatch --parsable --export=ALL "$here/slurm-array.sh")
# afterany: also where a task failed, for the message names the shard that is missing.
sbatch --parsable --export=ALL --dependency="afterany:${array%%;*}" "$here/slurm-merge.sh"
echo "reports: $RUNS/report"
