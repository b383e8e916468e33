#!/usr/bin/env bash
# killed_conversions.sh PROGRAM [KILLS]: kills a conversion at random moments. What it leaves must be no model, or a
# whole one; run again it must go on, and end with the very bytes of a conversion that nobody disturbed.
set -euo pipefail
program=$1
kills=${2:-50}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=${SEED:-$$}
echo "seed ${SEED:-$$}"

arguments=(convert "$work/source.gguf" "$work/out" --quant q4_k_m --no-golden --threads 1)
convert() { "$program" "${arguments[@]}" >"$work/log" 2>&1; }

"$program" synth llama-15m "$work/source.gguf" --quant f32 --seed 1 >/dev/null 2>&1
started=$(date +%s%N)
convert || { cat "$work/log"; exit 1; }
whole=$((($(date +%s%N) - started) / 1000000))
mv "$work/out" "$work/expected"

killed=0 finished=0 resumed=0
while ((killed < kills)); do
  "$program" "${arguments[@]}" >"$work/log" 2>&1 & # itself, so that the signal hits it and no shell
  pause=$((RANDOM * whole / 32768))
  sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
  kill -KILL $! 2>/dev/null || true
  status=0
  wait $! 2>/dev/null || status=$?
  ((status != 137)) || killed=$((killed + 1)) # else it had ended before the signal came
  for left in "$work/out" "$work/out.partial"; do
    [[ -e $left ]] || continue
    if "$program" inspect "$left" >/dev/null 2>&1; then
      "$program" verify "$left" --no-golden >/dev/null || { echo "$left opens and is damaged"; exit 1; }
      cmp "$left/manifest.json" "$work/expected/manifest.json"
    elif [[ $left == "$work/out" ]]; then
      echo "$left is there and does not open"
      exit 1
    fi
  done
  if [[ -e $work/out ]]; then
    finished=$((finished + 1))
    rm -rf "$work/out"
  elif ((RANDOM % 3 == 0)); then # now and then it may go on to its end
    convert || { cat "$work/log"; exit 1; }
    ! grep -q 'done by an interrupted run' "$work/log" || resumed=$((resumed + 1))
    diff -r "$work/out" "$work/expected"
    rm -rf "$work/out"
  fi
done
echo "$killed killed, $resumed resumed to their end, $finished had ended before"
((resumed > 0)) || { echo "none was resumed; the kills came too early or too late"; exit 1; }
