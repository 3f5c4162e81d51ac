#!/usr/bin/env bash
# gpu-failures.sh PROGRAMS: what becomes of a run whose GPU fails in the middle of a step, is full, or lacks a library.
set -u
programs=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

cat >job.yaml <<'YAML'
name: failures
device: cuda
model: {family: gpt, layers: 2, dim: 128, heads: 2, vocab: 512, seq: 128}
data: {train: {format: synthetic}, seed: 3}
train: {steps: 12, global_batch: 8, microbatch: 4, precision: bf16, optimizer: {name: adamw}, lr: {base: 1e-3}}
checkpoint: {every: 4, keep: 2}
output: runs/whole
YAML

say() {
  echo "$1 $2"
  [[ $1 == OK ]] || failed=1
}
hash_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/summary.json"))["weights_sha256"])' "$1"; }
# run NAME CODE WORDS COMMAND...: one with this exit code and these words.
run() {
  local name=$1 code=$2 words=$3 got=0
  shift 3
  "$@" >"$name.txt" 2>&1 || got=$?
  if ((got == code)) && grep -qE -- "$words" "$name.txt"; then
    say OK "$name: $(grep -E -- "$words" "$name.txt" | head -1 | cut -c1-300)"
  else
    say FAIL "$name: exit code $got instead of $code, or no '$words': $(tail -4 "$name.txt")"
  fi
}
train() { "$programs/lockstep" train job.yaml "$@"; }

run whole 0 '^done' train
# In the first step, before and behind the first checkpoint, and near the end.
for product in 5 90 200 300; do
  run "trapped-$product" 0 '^OK failure' "$programs/cuda_check" failure job.yaml "runs/at-$product" "$product"
  run "resumed-$product" 0 '^done' train --set "output=runs/at-$product"
  if [[ $(hash_of "runs/at-$product") == "$(hash_of runs/whole)" ]]; then say OK "the same bits after product $product"; else
    say FAIL "other bits after product $product"
  fi
done

# A library that cannot be loaded: an empty file in front of it.
without() {
  local library=$1
  shift
  mkdir -p "without-$library"
  for name in "$@"; do : >"without-$library/$name"; done
}
without cublasLt libcublasLt.so.13 libcublasLt.so
without nvrtc libnvrtc.so.13 libnvrtc.so
without cudnn libcudnn.so.9 libcudnn.so
for library in cublasLt nvrtc; do
  LD_LIBRARY_PATH=$PWD/without-$library:${LD_LIBRARY_PATH:-} run "no-$library" 5 "training on a GPU needs lib$library" train \
    --set "output=runs/no-$library"
done
LD_LIBRARY_PATH=$PWD/without-cudnn:${LD_LIBRARY_PATH:-} run no-cudnn 0 'by our own kernels' train --set output=runs/no-cudnn

# More than the device has, before any of it is taken.
run too-large 3 'the GPU has free' train --set model.dim=8192 --set model.layers=64 --set model.heads=64 --set output=runs/large
[[ ! -e runs/large ]] || say FAIL 'a run that does not fit has made its folder'
exit $failed
