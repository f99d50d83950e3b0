#!/usr/bin/env bash
#SBATCH --job-name=kbrel
#SBATCH --array=1-4
#SBATCH --gres=gpu:1
#SBATCH --time=02:00:00
# Two minutes before the time is over, so that the report is still written.
#SBATCH --signal=B:TERM@120
#SBATCH --output=%x-%A-%a.log
# One share of the facts for each task of the array; slurm-submit.sh submits it, and the job that joins the shards.
#
# MODEL  the model to ask
# RUNS   folder on a shared disk for the reports of this run
# CACHE  folder of the cache of answers on a disk of the node, or off: a cache on a network disk is refused
set -euo pipefail

# exec: the signal goes to pytest itself then.
exec python -m pytest suites --kb-model="$MODEL" --kb-shard=auto \
  --kb-output-path="$RUNS/shard-$SLURM_ARRAY_TASK_ID" --kb-use-cache="${CACHE:-${TMPDIR:-/tmp}/kbrel-cache-$UID}"
