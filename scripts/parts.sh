# Parts of a long run, for .ci/run and scripts/ci-full. To be sourced, in the repository's root.
#
#   part NAME COMMAND...   runs it, prints all it says, and notes verdict, wall and processor time
#   finish                 ends the run with what the failed parts said of their failures and a table

results=()
failed=0
commit_at_start="$(git rev-parse --short=8 HEAD)"
load_at_start="$(cut -d ' ' -f 1 /proc/loadavg)"
cache_at_start=cold
[ ! -d "${CCACHE_DIR:-${HOME:-/}/.cache/ccache}" ] || cache_at_start=warm
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

# Notes a part that another commit has passed with the same code.
#   not_run NAME BASE
not_run() {
  results+=("$(printf '%-30s %-7s %5d s %6d CPU s' "$1 (at $(cut -c 1-8 "$2"))" passed 0 0)")
}

# Write the table into a file, to be committed with the change: growth of a part is seen there.
# Rows of parts that this run does not have stay, each with its commit.
#   keep_times FILE TITLE
keep_times() {
  local commit="$commit_at_start" rows
  rows="$(printf '%s\n' "${results[@]}" | sed -E \
    "s/^(.*[^ ]) +(passed|FAILED) +([0-9]+) s +([0-9]+) CPU s\$/| \1 | \2 | \3 | \4 | $commit |/")"
  touch "$1"
  rows="$(awk -F ' [|] ' '
    !/^[|] [^|]+ [|] (passed|FAILED) / { next }
    FNR == NR { new[$1] = $0; names[++n] = $1; next }
    $1 != "| all" { print ($1 in new) ? new[$1] : $0; seen[$1] = 1 }
    END { for (i = 1; i <= n; ++i) if (!(names[i] in seen)) print new[names[i]] }' \
    - "$1" <<< "$rows")"
  {
    printf '# %s\n\n' "$2"
    printf 'Last run: %s cores, load at its start %s, compiler cache %s.\n\n' \
      "$(nproc)" "$load_at_start" "$cache_at_start"
    printf '| part | verdict | wall s | CPU s | commit |\n|---|---|---|---|---|\n%s\n' "$rows"
    awk -F ' [|] ' '{ wall += $3; cpu += $4; if ($2 == "FAILED") verdict = "FAILED" }
      END { printf "| all | %s | %d | %d | |\n", verdict ? verdict : "passed", wall, cpu }' \
      <<< "$rows"
  } > "$1.new" && mv "$1.new" "$1"
}

# --- parts that both have -------------------------------------------------------------------------

# The thread sanitizer of g++ 12 cannot place its shadow where the kernel spreads addresses widely.
without_address_randomisation() {
  if setarch -R true 2> /dev/null; then setarch -R "$@"; else "$@"; fi
}

# Prints a C or C++ file from standard input without its comments; fails where g++ does.
without_comments() {
  g++ -x c++ -fpreprocessed -dD -E -P -w -
}

# True if the code below one of the folders differs from the commit that the file `base` names, or
# if that is not known here. Comments of C and C++ do not count.
#   changed_since BASE FOLDER...
changed_since() {
  local base file work
  base="$(cat "$1" 2> /dev/null || true)"
  shift
  git cat-file -e "$base^{commit}" 2> /dev/null || return 0
  work="$(mktemp -d)"
  if has_other_code "$base" "$work" "$@"; then
    rm -rf "$work"
    return 0
  fi
  rm -rf "$work"
  return 1
}

#   has_other_code COMMIT WORK_FOLDER FOLDER...
has_other_code() {
  local base="$1" work="$2" file
  shift 2
  git diff -z --name-only "$base" -- "$@" > "$work/names" || return 0
  while IFS= read -r -d '' file; do
    [[ "$file" == *.[ch]pp || "$file" == *.[ch] ]] && [ -f "$file" ] &&
      git show "$base:$file" 2> /dev/null > "$work/old" &&
      without_comments < "$work/old" > "$work/old.code" 2> /dev/null &&
      without_comments < "$file" > "$work/new.code" 2> /dev/null &&
      diff -q --ignore-blank-lines --ignore-trailing-space "$work/old.code" "$work/new.code" \
        > /dev/null || return 0
  done < "$work/names"
  return 1
}

# Code whose threads the unit tests of the preset `tsan` run.
threaded=(src/{array,chunk,concat,core,exec,output,read,schedule,write} trz/src/trz/base tests/unit tests/support
  scripts/tsan.supp CMakePresets.json)

# Code that the unit tests of the preset `asan`, and the fuzzers, run.
memory=(src trz frontends/c tests/unit tests/support tests/fuzz include scripts/fuzz
  scripts/lsan.supp scripts/lsan-damaged.supp CMakePresets.json)

# Unit tests that run codecs and nothing else, and all that they run: they take a third of a
# sanitizer's time.
codec_tests="chunk_guards|codec_.*|mantissa_rounding|region_guards|stored_codec|trz_.*|write_book"
codec_tests+="|xor_codec|zlib_stream"
mapfile -t codecs < <(ls -d tests/unit/*_test.cpp | grep -E "/($codec_tests)_test\.cpp$")
codecs+=(src/codec trz/src trz/tests/support tests/support CMakePresets.json)

# Set up a tier (--merge, --full) and configure the preset for the tests of programs on HDF5, too:
# the system's, and one without symbol versions, which is built if need be. Ours serves both,
# preloaded and by the VOL connector.
configure_with_hdf5() {
  local prefix fresh=()
  scripts/setup "$1" --no-build && . scripts/env.sh || return
  prefix="$(scripts/build-hdf5 --parallel --quickly --jobs "$(nproc)" 1.14 | tail -n 1)" || return
  if [ -f "$build_dir/.configured-for-program" ]; then  # by ./demo, without the tests
    fresh=(--fresh)
    rm -f "$build_dir/.configured-for-program"
  fi
  cmake "${fresh[@]}" --preset "$preset" "-DTAILRACE_DEFAULT_PLUGIN_PATH=$plugin_dir" \
    "-DPython3_EXECUTABLE=$PYTHON" "-DTAILRACE_HDF5_PROGRAMS_ROOT=$prefix" > /dev/null
}

# Configure a preset's folder beside the main one; more arguments are settings.
configure_preset() {
  local name="$1"
  shift
  . scripts/env.sh
  cmake --preset "$name" "-DTAILRACE_DEFAULT_PLUGIN_PATH=$plugin_dir" -DTAILRACE_WERROR=ON "$@" \
    > /dev/null
}

# Build what the tests need, and check that each HDF5 has its library and its VOL connector.
build_tests() {
  local end
  ninja -C "$build_dir" "$@" && [ -s "$build_dir/hdf5_programs.txt" ] || return
  for end in $(grep -vx system "$build_dir/hdf5_programs.txt"); do
    ls "$build_dir/lib/libtailrace_hdf5$end.so" \
      "$build_dir/lib/hdf5/vol$end/libtailrace_vol$end.so" || return
  done
}

# One preset's unit tests: those of the merge tier, on 2 ranks. `--all`: all of them, on all rank
# counts, undefined behaviour looked for in the engine, too. `--except PATTERN`: without those files.
# The sanitizers judge every 29th crash point of a commit only (tests/CMakeLists.txt), as reading a
# file back is work of stock HDF5.
unit_tests_of() {
  local tier=(TAILRACE_TEST_TIER=merge TAILRACE_TEST_RANKS=2) settings=(-DTAILRACE_TESTS_EXCEPT=)
  case "${2:-}" in
    --all)
      tier=(TAILRACE_TEST_TIER=full)
      settings+=(-DTAILRACE_TESTS_ONLY= -DTAILRACE_UNDEFINED_EVERYWHERE=ON) ;;
    --except) settings=("-DTAILRACE_TESTS_EXCEPT=$3") ;;
  esac
  configure_preset "$1" "${settings[@]}" && ninja -C "build/$1" tailrace_unit_tests &&
    without_address_randomisation env "${tier[@]}" ctest --test-dir "build/$1" \
      --output-on-failure -L unit --no-tests=error -j "$(nproc)"
}

check_format() {
  git ls-files '*.c' '*.cpp' '*.h' '*.hpp' | xargs clang-format-14 --dry-run -Werror &&
    echo "format: $(git ls-files '*.c' '*.cpp' '*.h' '*.hpp' | wc -l) files are clean" &&
    scripts/prose
}
