#!/usr/bin/env bash
# Checks the CUDA backend on a machine with a GPU; called by ./dev gpu-test, which says where the programs are (GPU_PROGRAMS).
# Ends with a table; exit code 1 where anything failed. Logs go to LOCKSTEP_GPU_LOGS (build/gpu-test).
#
#   gpu-test.sh [ops] [train] [kernels] [workers] [failures] [sanitize]     all of them unless some are named
set -u
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
programs=${GPU_PROGRAMS:?run it through ./dev gpu-test}
logs=${LOCKSTEP_GPU_LOGS:-build/gpu-test}
mkdir -p "$logs"
groups=(shapes rows losses tables optimizers rounded images attention pointwise products)
wanted=" ${*:-ops train kernels workers failures sanitize} "
failed=0
table=()

# step NAME SECONDS COMMAND...: runs it with its output in a log, and adds a line to the table.
step() {
  local name=$1 seconds=$2 begin=$SECONDS code=0
  shift 2
  timeout "$seconds" "$@" >"$logs/$name.txt" 2>&1 || code=$?
  ((code == 0)) || failed=1
  table+=("$(printf '%-22s exit %3d %5d s  %s' "$name" "$code" $((SECONDS - begin)) \
    "$(grep -cE '^(FAIL|BITS|CRASH|FAILED)|ERROR SUMMARY: [1-9]' "$logs/$name.txt") failures")")
  printf '%s\n' "${table[-1]}"
}

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader
"$programs/lockstep" env
[[ $wanted != *" ops "* ]] || step ops 200 "$programs/cuda_check" ops tests/ops/cases 10
[[ $wanted != *" train "* ]] || step train 150 "$programs/cuda_check" train
if [[ $wanted == *" kernels "* ]]; then
  # A process each: an error of the device ends one group only.
  for group in "${groups[@]}"; do step "kernels-$group" 60 "$programs/kernel_check" "$group"; done
fi
[[ $wanted != *" workers "* ]] || step workers 280 tests/device/gpu-workers.sh "$programs/lockstep" "$logs"
[[ $wanted != *" failures "* ]] || step failures 200 tests/device/gpu-failures.sh "$programs"
if [[ $wanted == *" sanitize "* ]]; then
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  # The libraries' kernels are not ours to check, and racecheck takes minutes over one of cuBLAS's.
  for tool in memcheck racecheck initcheck; do
    for group in "${groups[@]:0:9}"; do
      LOCKSTEP_KERNELS_ONLY=1 step "$tool-$group" 90 "$sanitizer" --tool "$tool" --print-limit 20 --error-exitcode 1 \
        "$programs/kernel_check" "$group"
    done
  done
fi

echo
printf '%s\n' "${table[@]}"
grep -hE '^(FAIL|BITS|CRASH|FAILED|REFUSED)' "$logs"/*.txt | cut -c1-200 | head -60
exit $failed
