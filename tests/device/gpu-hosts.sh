#!/usr/bin/env bash
# gpu-hosts.sh LOCKSTEP LOGS: jobs on one GPU by workers of hosts that are pretended (a name of its own each, in a namespace
# for it; needs root), so that devices exchange by NCCL, here through sockets: the bits of one worker in every layout, and the
# end of a run one of whose workers is killed. Some 2 minutes.
set -u
lockstep=$(realpath "$1")
logs=$(realpath "${2:-.}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
port=29400

cat >small.yaml <<'YAML'
name: hosts
device: cuda
model: {family: gpt, layers: 4, dim: 256, heads: 4, vocab: 512, seq: 256}
data: {train: {format: synthetic, samples: 2000}, hold_out: 0.02, seed: 3}
train:
  steps: 8
  global_batch: 16
  microbatch: 2
  precision: bf16
  optimizer: {name: adamw}
  lr: {base: 1e-3}
  ema: 0.9
  eval: {every: 4}
strategy: {leaves: 4}
YAML
sed 's/^strategy:.*/strategy: {leaves: 4, tensor_leaves: 2}/' small.yaml >tensor.yaml
sed 's/steps: 8/steps: 4000/; s/^strategy:.*/strategy: {leaves: 4, deadline: 20}/' small.yaml >long.yaml

# of RUN KEY: from its summary.
of() {
  python3 - "$1" "$2" <<'PY' 2>/dev/null
import json, sys
value = json.load(open(f"runs/{sys.argv[1]}/summary.json")).get(sys.argv[2])
print(value["loss"] if isinstance(value, dict) else value)
PY
}

# workers JOB NAME SIZES SETTING...: one process a worker; hosts of so many workers each. Sets pids.
pids=()
workers() {
  local job=$1 name=$2 sizes=$3 rank=0 host=0 local size all=0 settings=() one
  shift 3
  for one in "$@"; do settings+=(--set "$one"); done
  for size in ${sizes//+/ }; do all=$((all + size)); done
  pids=()
  ((++port))
  for size in ${sizes//+/ }; do
    for ((local = 0; local < size; ++local)); do
      # NCCL too takes every process for one on a host of its own: it joins no two that share a GPU.
      RANK=$rank WORLD_SIZE=$all LOCAL_RANK=$local LOCAL_WORLD_SIZE=$size MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        LOCKSTEP_TOKEN=the-token-of-this-test NCCL_HOSTID=worker$rank NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_DEBUG=WARN \
        timeout 90 unshare -u sh -c 'hostname "$0" && exec "$@"' "node$host" "$lockstep" train "$job.yaml" \
        --set output="runs/$name" --set strategy.workers="$all" "${settings[@]}" >"$logs/hosts-$name-$rank.log" 2>&1 &
      pids+=($!)
      ((++rank))
    done
    ((++host))
  done
}

expected=
# like NAME JOB SIZES ROUTE SETTING...: ends with the bits of the last run of one worker.
like() {
  local name=$1 job=$2 sizes=$3 route=$4 begin=$SECONDS
  shift 4
  workers "$job" "$name" "$sizes" "$@"
  wait "${pids[@]}"
  local got="$(of "$name" weights_sha256) $(of "$name" final_eval)" way
  way=$(of "$name" device_route)
  if [[ $got == "$expected" && $way == "$route" ]]; then
    echo "OK $name: $(cut -c1-16 <<<"$got") $way, $((SECONDS - begin)) s"
  else
    echo "FAIL $name: $got by $way; expected $expected by $route"
    tail -n 5 "$logs/hosts-$name-0.log"
    failed=1
  fi
}

alone() {
  timeout 60 "$lockstep" train "$1.yaml" --set output="runs/$1" >"$logs/hosts-$1.log" 2>&1 || failed=1
  expected="$(of "$1" weights_sha256) $(of "$1" final_eval)"
  echo "one worker: $(cut -c1-16 <<<"$expected")"
}

alone small
for zero in 0 1 2 3; do
  like two-zero$zero small 1+1 nccl strategy.zero=$zero
  like four-zero$zero small 2+2 "cuda_ipc and nccl" strategy.zero=$zero
done
like uneven small 1+2 "cuda_ipc and nccl"
like messages small 2 nccl strategy.transport=nccl
like block small 2+2 "cuda_ipc and nccl" strategy.zero=3 train.recompute=block
like group-zero1 small 2+2 "cuda_ipc; between groups cuda_ipc and nccl" strategy.zero=1 strategy.zero_group=2
for zero in 2 3; do
  like group-zero$zero small 2+2 "cuda_ipc; between groups nccl" strategy.zero=$zero strategy.zero_group=2
done
alone tensor
like tensor-data tensor 2+2 "nccl; between tensor ranks cuda_ipc" strategy.tensor=2

# Sums of the library: any order, one result for all.
workers small fast 1+1 strategy.reduce.order=fast
wait "${pids[@]}"
echo "fast: final evaluation $(of fast final_eval), in the order of the tree $(of small final_eval)"
[[ $(of fast device_route) == nccl ]] || { echo "FAIL fast: $(tail -n 3 "$logs/hosts-fast-0.log")"; failed=1; }

# The others end by themselves, and say who is gone.
workers long killed 1+1+1
for ((i = 0; i < 600; ++i)); do
  grep -q '^step' "$logs/hosts-killed-0.log" && break
  sleep 0.1
done
begin=$SECONDS
kill -9 $(cat "/proc/${pids[1]}/task/${pids[1]}/children")  # of timeout
wait "${pids[0]}"
code=$?
wait "${pids[2]}"
if ((code != 0 && code != 124)) && grep -q 'rank 1' "$logs/hosts-killed-0.log" "$logs/hosts-killed-2.log"; then
  echo "OK killed: exit $code after $((SECONDS - begin)) s: $(grep -h 'rank 1' "$logs/hosts-killed-0.log" | tail -n 1)"
else
  echo "FAIL killed: exit $code after $((SECONDS - begin)) s: $(tail -n 3 "$logs/hosts-killed-0.log")"
  failed=1
fi
wait
exit $failed
