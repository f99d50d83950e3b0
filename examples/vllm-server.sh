#!/usr/bin/env bash
# Start `vllm serve`, gate the model behind it, and end it: MODEL=org/name BASELINE=prod bash vllm-server.sh
#
# MODEL     hub id or folder of the checkpoint
# BASELINE  name or path of the baseline; without one nothing is compared
# PORT      port of the server on this machine (default: 8000)
# WAIT      seconds until it must be ready (default: 1800)
# VLLM      more options of vllm serve, one a line
#
# Further arguments are pytest's, such as -k "not monitor". The exit code is that of the gate.
set -euo pipefail

port=${PORT:-8000}
mapfile -t options < <(grep -v '^[[:space:]]*$' <<<"${VLLM:-}")
vllm serve "$MODEL" --host 127.0.0.1 --port "$port" --served-model-name gated \
  ${options[@]+"${options[@]}"} >vllm.log 2>&1 &
server=$!
end_server() {
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
}
trap end_server EXIT

deadline=$((SECONDS + ${WAIT:-1800}))
until curl --silent --fail --noproxy '*' --max-time 5 "http://127.0.0.1:$port/health" >/dev/null; do
  if ! kill -0 "$server" 2>/dev/null; then
    echo "vllm serve ended before it was ready; the end of vllm.log:" >&2
    tail -n 20 vllm.log >&2
    exit 3
  fi
  if ((SECONDS >= deadline)); then
    echo "vllm serve was not ready in ${WAIT:-1800} s; the end of vllm.log:" >&2
    tail -n 20 vllm.log >&2
    exit 3
  fi
  sleep 1
done

arguments=(--kb-model=openai/gated "--kb-model-args=base_url=http://127.0.0.1:$port/v1")
if [[ -n "${BASELINE:-}" ]]; then
  arguments+=("--kb-baseline=$BASELINE")
fi
python -m pytest suites "${arguments[@]}" "$@"
