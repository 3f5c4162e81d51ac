#!/usr/bin/env bash
# driver-faults.sh LOCKSTEP FOLDER: what the program says of a driver that is too old (FOLDER has one) or that is no library, and
# with which exit code. Needs no GPU.
set -u
lockstep=$(realpath "$1")
old=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

cat >job.yaml <<'YAML'
name: faults
device: cuda
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 31, seq: 8}
data: {train: {format: synthetic, samples: 64}, seed: 3}
train: {steps: 2, global_batch: 4, microbatch: 4, optimizer: {name: adamw}, lr: {base: 1e-3}}
output: run
YAML

# expect NAME CODE WORDS FOLDER ARGUMENTS...
expect() {
  local name=$1 code=$2 words=$3 folder=$4 got=0
  shift 4
  LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$lockstep" "$@" >out.txt 2>&1 || got=$?
  if ((got == code)) && grep -qF -- "$words" out.txt; then
    echo "OK $name"
  else
    echo "FAIL $name: exit code $got instead of $code, or no '$words' in: $(cat out.txt)"
    failed=1
  fi
  if [[ -e run ]]; then
    echo "FAIL $name: an output folder was made"
    failed=1
  fi
}

mkdir none
: >none/libcuda.so.1
old_words='the NVIDIA driver serves CUDA 11.4, this program needs 13.0: update the driver'
for command in train check; do
  expect "$command, an old driver" 5 "device cuda: $old_words; device: cpu trains on the processor" "$old" "$command" job.yaml
  expect "$command, no driver" 5 'device cuda: no NVIDIA driver on this machine' none "$command" job.yaml
done
expect 'env, an old driver' 0 "cuda: $old_words" "$old" env
expect 'env, an old driver: what auto means' 0 'device: auto means cpu' "$old" env
expect 'check, auto, an old driver' 0 'planned peak' "$old" check job.yaml --set device=auto
exit $failed
