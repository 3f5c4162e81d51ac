#!/usr/bin/env bash
# Runs fuzzers beside each other, each for the same time, and says of each what came of it.
#
#   run-fuzz.sh SECONDS OUT [TARGET...]      all targets unless some are named
#
# The corpora are those beside this script. OUT gets, for every target, NAME.log, new inputs in NAME/new, and what made it
# fail in NAME/failed; and summary.txt. A target that fails is started again until its time is over, so that one
# defect does not hide the next. Exits with 1 if any failed.
# environment: LOCKSTEP_FUZZERS   the folder that holds the fuzzers, the script's own unless given
#              LOCKSTEP_JOBS      targets at a time, all unless given
set -euo pipefail
readonly HERE=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
readonly FUZZERS=${LOCKSTEP_FUZZERS:-$HERE}
# The sanitizer of this clang cannot place its shadow where a kernel spreads addresses as widely as some newer ones do.
fixed_addresses=(setarch "$(uname -m)" -R)
"${fixed_addresses[@]}" true 2>/dev/null || fixed_addresses=()

# Target, longest input, corpora where they are not called as it is. The longest are as short as still holds a few
# records of each kind: longer ones only make every run slower.
readonly TARGETS='
async_frame 512
async_log 512
block_file 4096
checkpoint 2048
compressed 2048
csv 2048
example 1024
field 64
filter 512
graph_text 4096
hf_files 4096
hf_config 2048
image 4096
jinja 2048
job 4096
jsonl 4096
labels 2048
generation_config 2048
launch_environment 1024
notice 1024
parquet 6144
reduction_frame 4096
row_file 16384
run_files 4096 metrics summary
safetensors 2048
sentencepiece 2048
shard_index 1024
sidecar 1024
store_message 2048
tar 8192
tfrecord 2048
tokenizer_json 4096
tokens 2048
'

# fuzz TARGET SECONDS OUT
fuzz() {
  local target=$1 seconds=$2 out=$3 name longest line restarts=0 status
  local -a corpora options
  line=$(grep -E "^$target " <<<"$TARGETS")
  read -r name longest corpora <<<"$line"
  read -ra corpora <<<"${corpora:-$name}"
  corpora=("${corpora[@]/#/$HERE/corpus/}")
  mkdir -p "$out/$target/new" "$out/$target/failed"
  options=(-max_len="$longest" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -reload=0
           -artifact_prefix="$out/$target/failed/")
  [[ ! -e $HERE/$target.dict ]] || options+=(-dict="$HERE/$target.dict")
  : >"$out/$target.log"
  SECONDS=0
  while ((SECONDS < seconds && restarts < 50)); do
    "${fixed_addresses[@]}" "$FUZZERS/fuzz_$target" "${options[@]}" -max_total_time=$((seconds - SECONDS)) \
      "$out/$target/new" "${corpora[@]}" >>"$out/$target.log" 2>&1 && break
    status=$?
    restarts=$((restarts + 1))
    echo "run-fuzz: ended with status $status" >>"$out/$target.log"
  done
  summarise "$target" "$out" "$restarts"
}

summarise() {
  local target=$1 out=$2 restarts=$3 log=$2/$1.log runs first last added failed
  runs=$(awk '/^stat::number_of_executed_units/ { sum += $2 } END { print sum + 0 }' "$log")
  first=$(sed -nE 's/^#[0-9]+\s+INITED cov: ([0-9]+) .*/\1/p' "$log" | head -n 1)
  last=$(sed -nE 's/^#[0-9]+\s.* cov: ([0-9]+) .*/\1/p' "$log" | tail -n 1)
  added=$(find "$out/$target/new" -type f | wc -l)
  failed=$(find "$out/$target/failed" -type f | wc -l)
  ((failed >= restarts)) || failed=$restarts  # it may end without leaving an input
  printf '%-20s runs %-10s cov %6s -> %-6s new %-6s failed %s\n' "$target" "$runs" "${first:-none}" "${last:-none}" \
    "$added" "$failed" | tee -a "$out/summary.txt"
}

if [[ ${1:-} == --one ]]; then
  fuzz "${@:2}"
  exit
fi
(($# >= 2)) || { sed -n '2,12s/^# \?//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
seconds=$1 out=$(mkdir -p "$2" && readlink -f "$2")
shift 2
if (($# == 0)); then
  mapfile -t < <(awk 'NF { print $1 }' <<<"$TARGETS")
  set -- "${MAPFILE[@]}"
fi
for target; do
  grep -qE "^$target " <<<"$TARGETS" && continue
  echo "run-fuzz: no target $target; there are$(awk 'NF { printf " %s", $1 }' <<<"$TARGETS")" >&2
  exit 2
done
: >"$out/summary.txt"
printf '%s\n' "$@" | xargs -P "${LOCKSTEP_JOBS:-0}" -I '{}' bash "${BASH_SOURCE[0]}" --one '{}' "$seconds" "$out"
if grep -qv ' failed 0$' "$out/summary.txt"; then
  echo "run-fuzz: inputs that fail are in $out/*/failed" >&2
  exit 1
fi
