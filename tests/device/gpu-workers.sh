#!/usr/bin/env bash
# gpu-workers.sh LOCKSTEP LOGS: jobs on one GPU by workers that share it, in every layout of the model and its state, through
# memory of the devices and of the host, with and without recomputation, killed and resumed: one weights_sha256 for each
# job. Then what a step takes by one, two and four workers, by either way. Some 5 minutes.
set -u
lockstep=$(realpath "$1")
logs=$(realpath "${2:-.}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

cat >small.yaml <<'YAML'
name: workers
device: cuda
model: {family: gpt, layers: 4, dim: 256, heads: 4, vocab: 512, seq: 256}
data: {train: {format: synthetic, samples: 2000}, hold_out: 0.02, seed: 3}
train:
  steps: 12
  global_batch: 16
  microbatch: 2
  precision: bf16
  optimizer: {name: adamw}
  lr: {base: 1e-3}
  ema: 0.9
  eval: {every: 6}
strategy: {leaves: 4}
checkpoint: {every: 4, keep: 2}
YAML
sed 's/^strategy:.*/strategy: {leaves: 4, tensor_leaves: 2}/' small.yaml >tensor.yaml
# The width of LLaMA-2-7B.
cat >wide.yaml <<'YAML'
name: wide
device: cuda
model: {family: llama, layers: 2, dim: 4096, heads: 32, hidden: 11008, vocab: 32000, seq: 512}
data: {train: {format: synthetic}, seed: 3}
train:
  steps: 3
  global_batch: 4
  microbatch: 1
  precision: bf16
  optimizer: {name: adamw}
  lr: {base: 1e-4}
YAML
cat >gpt2.yaml <<'YAML'
name: gpt2
device: cuda
model: {family: gpt, layers: 12, dim: 768, heads: 12, vocab: 50257, seq: 1024}
data: {train: {format: synthetic}, seed: 3}
train:
  steps: 12
  global_batch: 64
  microbatch: 8
  precision: bf16
  optimizer: {name: adamw}
  lr: {base: 1e-4}
YAML

# of RUN KEY: from its summary.
of() {
  python3 - "$1" "$2" <<'PY'
import json, sys
value = json.load(open(f"runs/{sys.argv[1]}/summary.json"))
for key in sys.argv[2].split("."):
    value = value.get(key) if isinstance(value, dict) else None
print(value)
PY
}

# train JOB NAME SETTING...: one run; its hash, evaluation and way are left in NAME.hash, its files are not.
train() {
  local job=$1 name=$2 code=0 settings=() one
  shift 2
  for one in "$@"; do settings+=(--set "$one"); done
  timeout 100 "$lockstep" train "$job.yaml" --set output="runs/$name" "${settings[@]}" >"$name.log" 2>&1 || code=$?
  cp "$name.log" "$logs/workers-$name.log"
  echo "exit $code" >"$name.hash"
  ((code == 0)) || return
  echo "$(of "$name" weights_sha256) $(of "$name" final_eval.loss)" >"$name.hash"
  of "$name" device_route >"$name.route"
  cp "runs/$name/summary.json" "$name.summary"
  rm -rf "runs/$name"
}

# Up to three of them at a time.
names=()
start() {
  while (($(jobs -rp | wc -l) >= 3)); do wait -n; done
  names+=("$2")
  train "$@" &
}

# judge FIRST: all that were started since the last time did as the first of them.
judge() {
  local name expected
  wait
  expected=$(cat "$1.hash")
  for name in "${names[@]}"; do
    if [[ $(cat "$name.hash") == "$expected" && $expected != exit* ]]; then
      echo "OK $name: $(cut -c1-16 "$name.hash") $(cat "$name.route" 2>/dev/null)"
    else
      echo "FAIL $name: $(cat "$name.hash"), expected $expected"
      tail -3 "$name.log"
      failed=1
    fi
  done
  names=()
}

# killed NAME SETTING...: a run of the small job that ends with its first checkpoint.
killed() {
  local name=$1 settings=() one i pid
  shift
  for one in "$@"; do settings+=(--set "$one"); done
  setsid "$lockstep" train small.yaml --set output="runs/$name" "${settings[@]}" >"$name-killed.log" 2>&1 &
  pid=$!
  for ((i = 0; i < 600; ++i)); do
    [[ -d runs/$name/checkpoint-4 ]] && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  kill -9 -- "-$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
}

two=strategy.workers=2 four=strategy.workers=4 stages=strategy.pipeline=2 host=strategy.transport=shm
start small one
start small two $two
start small four $four
start small block train.recompute=block
start small three strategy.workers=3
start small two-host $two $host
start small four-host $four $host
for stage in 1 2 3; do
  start small zero$stage $two strategy.zero=$stage
  start small zero$stage-four $four strategy.zero=$stage
  start small zero$stage-host $two strategy.zero=$stage $host
done
start small zero3-block $two strategy.zero=3 train.recompute=block
start small stages $two $stages
start small stages-zero-bubble $two $stages strategy.schedule=zero-bubble
start small stages-interleaved $two $stages strategy.schedule=interleaved
start small stages-data $four $stages train.recompute=block
start small stages-zero2 $four $stages strategy.zero=2
start small stages-zero3 $four $stages strategy.zero=3
# Killed as one layout, resumed as another.
wait
killed resumed &
killed resumed-zero $two strategy.zero=2 &
killed resumed-stages $two $stages &
wait
start small resumed
start small resumed-zero $two $stages
start small resumed-stages $four strategy.zero=3
judge one
start tensor leaves
start tensor tensor $two strategy.tensor=2
start tensor tensor-host $two strategy.tensor=2 $host
start tensor tensor-data $four strategy.tensor=2
start tensor tensor-zero $four strategy.tensor=2 strategy.zero=1
start tensor tensor-stages $four strategy.tensor=2 $stages
start tensor tensor-stages-zero3 strategy.workers=8 strategy.tensor=2 $stages strategy.zero=3
judge leaves
start wide wide
start wide wide-two $two
for stage in 1 2 3; do start wide wide-zero$stage $two strategy.zero=$stage; done
start wide wide-stages $two $stages
judge wide

# One after the other, with nothing beside them. timed JOB RUN...: each a name and settings.
sed '/^train:/i strategy: {tensor_leaves: 2}' gpt2.yaml >gpt2-leaves.yaml
timed() {
  local job=$1 run name settings
  shift
  for run; do
    IFS=, read -ra settings <<<"${run#*:}"
    name=$job-${run%%:*}
    names+=("$name")
    train "$job" "$name" "${settings[@]}"
    [[ -f $name.summary ]] || continue
    python3 - "$name" <<'PY'
import json, sys
run = json.load(open(sys.argv[1] + ".summary"))
print("%-24s %10.1f %10.0f %7.1f%%  %s" % (sys.argv[1], run["step_time_ms"]["p50"], run["tokens_per_second"],
      100 * run["breakdown"]["exposed_comm"], run.get("device_route") or "-"))
PY
  done
  judge "$job-one"
}
printf '%-24s %10s %10s %8s  %s\n' 'GPT-2 124M, 64 x 1024' 'ms a step' 'tokens/s' 'exposed' through
timed gpt2 one: two:$two two-host:$two,$host four:$four four-host:$four,$host zero2:$two,strategy.zero=2 \
  zero2-host:$two,strategy.zero=2,$host stages:$two,$stages stages4:$four,strategy.pipeline=4
timed gpt2-leaves one: tensor:$two,strategy.tensor=2
exit $failed
