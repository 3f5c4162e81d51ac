#!/usr/bin/env bash
# gpu-workers.sh LOCKSTEP LOGS: one job on a GPU by 1, 2 and 4 workers that share it, with and without recomputation, killed
# and resumed: one weights_sha256.
set -u
lockstep=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

cat >job.yaml <<'YAML'
name: workers
device: cuda
model: {family: gpt, layers: 4, dim: 256, heads: 4, vocab: 512, seq: 256}
data: {train: {format: synthetic}, seed: 3}
train:
  steps: 12
  global_batch: 16
  microbatch: 2
  precision: bf16
  optimizer: {name: adamw}
  lr: {base: 1e-3}
checkpoint: {every: 4, keep: 2}
output: runs/one
YAML

hash_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/summary.json"))["weights_sha256"])' "$1"; }
train() {
  local name=$1
  shift
  "$lockstep" train job.yaml --set output="runs/$name" "$@" >"$name.log" 2>&1 || {
    echo "FAIL $name: exit code $?"
    tail -5 "$name.log"
    failed=1
    return 1
  }
  local hash
  hash=$(hash_of "runs/$name")
  [[ -n ${first:-} ]] || first=$hash
  if [[ $hash == "$first" ]]; then echo "OK $name: $hash"; else
    echo "FAIL $name: $hash, expected $first"
    failed=1
  fi
}

train one
train two --set strategy.workers=2
train four --set strategy.workers=4
train block --set train.recompute=block
# Killed once its first checkpoint is there, then started again.
"$lockstep" train job.yaml --set output=runs/killed --set train.steps=12 >killed.log 2>&1 &
pid=$!
for ((i = 0; i < 600; ++i)); do
  [[ -d runs/killed/checkpoint-4 ]] && break
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.05
done
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
train killed
exit $failed
