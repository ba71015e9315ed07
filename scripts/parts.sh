# Parts of a long run, for .ci/run and scripts/ci-full. To be sourced, in the repository's root.
#
#   part NAME COMMAND...   runs it, prints all it says, and notes verdict, wall and processor time
#   finish                 ends the run with what the failed parts said of their failures and a table

results=()
failed=0
failures="$(mktemp)"
times_file="$(mktemp)"

# Sets cpu_s: seconds of processor time of all that this shell has started and waited for.
read_cpu_s() {
  times > "$times_file"  # By the shell itself: a subshell has times of its own.
  cpu_s="$(awk 'NR == 2 {
    for (i = 1; i <= 2; ++i) { split($i, part, /[ms]/); sum += 60 * part[1] + part[2] }
    printf "%d", sum }' "$times_file")"
}

part() {
  local name="$1" started_s=$SECONDS verdict=passed log started_cpu_s
  read_cpu_s
  started_cpu_s=$cpu_s
  shift
  log="$(mktemp)"
  printf '\n######## %s\n' "$name"
  # Not in a pipeline: that would be another shell, which cannot wait for what this one started.
  "$@" > >(tee "$log") 2>&1 || verdict=FAILED
  wait "$!" || true
  if [ "$verdict" = FAILED ]; then
    failed=1
    say_why "$name" "$log" >> "$failures"
  fi
  rm -f "$log"
  read_cpu_s
  results+=("$(printf '%-30s %-7s %5d s %6d CPU s' "$name" "$verdict" \
    $((SECONDS - started_s)) $((cpu_s - started_cpu_s)))")
}

# The names of failed tests and the lines around the first failures, from one part's whole output:
# a reader of this run's end has nothing else of it.
say_why() {
  printf '\n######## why "%s" failed\n' "$1"
  {
    sed -n '/The following tests FAILED/,/^$/p' "$2"
    grep -E '^(FAILED|ERROR) ' "$2" || true
    grep -E -m 12 -A 12 '\*\*\*(Failed|Timeout|Exception|Not Run)|^E  |Failure$|ERROR: |FAILED: |error: ' "$2" || true
    echo "[its last lines]"
    tail -n 12 "$2"
  } | cut -c 1-400 | sed -n '1,120p'
}

finish() {
  read_cpu_s
  cat "$failures"
  rm -f "$failures" "$times_file"
  printf '\n######## summary\n'
  printf '%s\n' "${results[@]}"
  printf '%-30s %-7s %5d s %6d CPU s\n' "all" "$([ "$failed" = 0 ] && echo passed || echo FAILED)" \
    "$SECONDS" "$cpu_s"
  exit "$failed"
}

# --- parts that both have -------------------------------------------------------------------------

# The thread sanitizer of g++ 12 cannot place its shadow where the kernel spreads addresses widely.
without_address_randomisation() {
  if setarch -R true 2> /dev/null; then setarch -R "$@"; else "$@"; fi
}

configure() {
  scripts/setup --no-build && . scripts/env.sh &&
    cmake --preset "$preset" "-DTAILRACE_DEFAULT_PLUGIN_PATH=$plugin_dir" \
      "-DPython3_EXECUTABLE=$PYTHON" > /dev/null
}

# Configure a preset's folder beside the main one; more arguments are settings.
configure_preset() {
  local name="$1"
  shift
  . scripts/env.sh
  cmake --preset "$name" "-DTAILRACE_DEFAULT_PLUGIN_PATH=$plugin_dir" -DTAILRACE_WERROR=ON "$@" \
    > /dev/null
}

# One preset's unit tests; with more arguments, settings, on all rank counts, else those that differ
# in nothing else on 2 ranks only. Under the sanitizers these judge every 29th crash point of a
# commit only (tests/CMakeLists.txt), as reading a file back is work of stock HDF5; ./test judges
# all, on all rank counts.
unit_tests_of() {
  local left_out=()
  [ $# -gt 1 ] || left_out=(-E '(^OfRanks/.*[/_][1347]|[/_][1347]ranks|_on_[134])$')
  configure_preset "$@" && ninja -C "build/$1" tailrace_unit_tests &&
    without_address_randomisation ctest --test-dir "build/$1" --output-on-failure -L unit \
      --no-tests=error -j "$(nproc)" "${left_out[@]}"
}

check_format() {
  git ls-files '*.c' '*.cpp' '*.h' '*.hpp' | xargs clang-format-14 --dry-run -Werror &&
    echo "format: $(git ls-files '*.c' '*.cpp' '*.h' '*.hpp' | wc -l) files are clean"
}

# Programs on the system's HDF5 and on one without symbol versions, which is built if need be, with
# ours preloaded and by the VOL connector. Arguments: pytest's, which of the tests.
programs_on_hdf5() {
  local prefix
  if ! command -v cargo > /dev/null; then
    echo "not run: cargo, which fetches HDF5 1.14, is missing (scripts/build-hdf5)"
    return
  fi
  prefix="$(scripts/build-hdf5 --parallel --jobs "$(nproc)" 1.14 | tail -n 1)" &&
    configure_preset hdf5 "-DTAILRACE_HDF5_PROGRAMS_ROOT=$prefix" &&
    ninja -C build/hdf5 hdf5_programs tailrace_cli &&
    [ -e build/hdf5/lib/libtailrace_hdf5-1.14.so ] &&
    [ -e build/hdf5/lib/hdf5/vol-1.14/libtailrace_vol-1.14.so ] &&
    TAILRACE="$repo/build/hdf5/bin/tailrace" env -u CI -u HDF5_PLUGIN_PATH \
      "$PYTHON" -m pytest tests/python/test_hdf5_programs.py \
      tests/python/test_hdf5_regions.py tests/python/test_hdf5_beside.py \
      tests/python/test_hdf5_plotfiles.py \
      -ra -q -n "$(nproc)" "$@"
}
