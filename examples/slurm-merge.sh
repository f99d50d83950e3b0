#!/usr/bin/env bash
#SBATCH --job-name=kbrel-merge
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.log
# Join the shards in RUNS and compare with BASELINE. The exit code is that of the gate: sacct shows the job as failed.
set -euo pipefail

exec python -m pytest suites --kb-baseline="$BASELINE" --kb-output-path="$RUNS/report" \
  --junitxml="$RUNS/report/junit.xml" --kb-from-run "$RUNS"/shard-*
