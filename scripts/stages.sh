# shellcheck shell=bash
# The stages of ./test. A stage is a function stage_NAME, run from the root of the repository in a shell of its own with
# errexit; stages that run tests write a JUnit file, from which the closing counts come. Any other stage counts as one
# test.

# shellcheck disable=SC2034 # used by the scripts that source this
all_stages=(release slow shell format webgpu tsan fuzz asan tidy)
results=build/results
jobs=$(nproc)

contains() {
  local wanted=$1 item
  shift
  for item in "$@"; do [[ $item == "$wanted" ]] && return 0; done
  return 1
}

# build_preset PRESET [TARGET…]: configures and builds; prints the log only on failure.
build_preset() {
  local preset=$1 log=build/$1.log
  shift
  local targets=()
  (($# == 0)) || targets=(--target "$@")
  if ! { cmake --preset "$preset" -DCANDOR_TESTS="$([[ $preset == fuzz ]] && echo OFF || echo ON)" &&
    cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}"; } >"$log" 2>&1; then
    grep -nE 'error|FAILED|Error' -A 6 "$log" | head -n 120 || tail -n 60 "$log"
    echo "The build failed; the whole log is in $log"
    return 1
  fi
}

# test_preset PRESET [CTEST OPTION…]: shows the failures and the summary; the rest is in the log.
test_preset() {
  local preset=$1 log=build/$1.tests.log status=0
  shift
  ctest --preset "$preset" --parallel "$jobs" --no-label-summary --no-tests=error --output-junit "$PWD/$results/$preset.xml" "$@" \
    >"$log" 2>&1 || status=$?
  if ((status)); then
    grep -vE '^ +Start |  Passed  ' "$log" | head -n 400
    echo "The whole log is in $log"
  else
    sed -n '/tests passed/,$p' "$log"
  fi
  return "$status"
}

stage_release() { build_preset release && test_preset release --label-exclude '^slow$'; }
# What takes minutes: whole models in several quantizations, other tokenizers, killed conversions.
stage_slow() {
  build_preset release
  local status=0
  test_preset release --label-regex '^slow$' || status=$?
  mv "$results/release.xml" "$results/slow.xml"
  return "$status"
}
# On a software adapter: the WebGPU library from npm, Mesa from Debian's backports.
stage_webgpu() {
  scripts/install-packages webgpu
  CANDOR_WEBGPU_LIB=$(scripts/get-webgpu)
  XDG_RUNTIME_DIR=$(mktemp -d)
  export CANDOR_WEBGPU_LIB XDG_RUNTIME_DIR CANDOR_REQUIRE_WEBGPU=1
  build_preset release webgpu_test
  local status=0
  test_preset release --tests-regex 'WebGpu|Wgsl' || status=$?
  mv "$results/release.xml" "$results/webgpu.xml"
  return "$status"
}
stage_shell() { scripts/checks/shell; }
stage_format() { scripts/checks/format; }
# Clang with AddressSanitizer and UndefinedBehaviorSanitizer: also the second compiler, with warnings as errors.
stage_asan() { build_preset asan && test_preset asan --label-exclude '^slow$'; }
stage_tidy() { scripts/checks/tidy; }
stage_tsan() { build_preset tsan threaded_tests && test_preset tsan --label-regex '^threads$'; }
stage_fuzz() { build_preset fuzz fuzz_targets && scripts/checks/fuzz; }

# run_stage NAME: runs it, and keeps its counts for summarize.
run_stage() {
  local name=$1 started=$SECONDS status=0
  mkdir -p "$results"
  rm -f "$results/$name".*
  echo "== $name"
  ("stage_$name") || status=$?
  count_stage "$name" "$status" $((SECONDS - started)) >"$results/$name.counts"
}

# count_stage NAME STATUS SECONDS: prints "passed failed skipped seconds".
count_stage() {
  local xml=$results/$1.xml passed=0 failed=0 skipped=0
  if [[ -s $xml ]]; then
    failed=$(suite_attribute failures "$xml")
    skipped=$(($(suite_attribute skipped "$xml") + $(suite_attribute disabled "$xml")))
    passed=$(($(suite_attribute tests "$xml") - failed - skipped))
  elif (($2 == 0)); then
    passed=1
  fi
  # A stage that failed outside its tests is one failure of its own.
  if (($2 != 0 && failed == 0)); then failed=1; fi
  echo "$passed $failed $skipped $3"
}

# suite_attribute NAME FILE: a number of the <testsuite> element, 0 where it is absent.
suite_attribute() {
  local value
  value=$(tr '\n\t' '  ' <"$2" | sed -nE "s/.*<testsuite [^>]*\b$1=\"([0-9]+)\".*/\1/p")
  echo "${value:-0}"
}

# summarize STAGE…: a line for each, and the sum as the last line; fails where anything failed.
summarize() {
  local name passed failed skipped seconds all_passed=0 all_failed=0 all_skipped=0
  echo
  for name in "$@"; do
    # A stage without counts did not run, which is a failure.
    read -r passed failed skipped seconds < <(cat "$results/$name.counts" 2>/dev/null || echo 0 1 0 0)
    printf '%-8s %5d passed %4d failed %4d skipped %6d s\n' "$name" "$passed" "$failed" "$skipped" "$seconds"
    all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed)) all_skipped=$((all_skipped + skipped))
  done
  echo "$all_passed passed, $all_failed failed, $all_skipped skipped"
  ((all_failed == 0))
}
