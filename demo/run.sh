#!/bin/sh
# The demo: makes a disk image from files of this machine, searches it, recovers the files deleted on it, and
# writes reports. FRESH=1 makes the image again. All output is in demo/out.
set -eu

cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin:/usr/sbin:/sbin"

quarrier=${CARGO_TARGET_DIR:-target}/quick/quarrier
image=demo/out/disk.img
report=demo/out/report.html
stats=demo/out/stats.json
carved=demo/out/carved

exec 3>&1

# Prints a command in the form in which it could be typed, then runs it.
show() {
    {
        printf '\n$'
        for word in "$@"; do
            case $word in
                *[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;;
                *) printf ' %s' "$word" ;;
            esac
        done
        printf '\n'
    } >&3
    "$@"
}

# For each offset on standard input, asks the file system whether its block is in use.
tell_deleted() {
    while read -r offset; do
        block=$((offset / 4096))
        printf 'offset %s: ' "$offset"
        debugfs -R "testb $block" "$image" 2>/dev/null |
            sed 's/not in use/not in use: the file was deleted, its bytes are found/'
    done
}

# Prints the number or string of KEY in the JSON object on standard input.
value_of() {
    sed -n 's/.*"'"$1"'" *: *"\{0,1\}\([^",{}]*[^",{} ]\).*/\1/p'
}

# The statistics without nested objects, and the object "ceiling".
outer() { tr '\n' ' ' <"$stats" | sed 's/: *{[^{}]*}/: 0/g; s/: *{[^{}]*}/: 0/g'; }
ceiling() { tr '\n' ' ' <"$stats" | sed -n 's/.*"ceiling" *: *{\([^{}]*\)}.*/\1/p'; }

summarise() {
    awk -v bytes="$(outer | value_of bytes)" -v seconds="$(outer | value_of seconds)" -v share="$(ceiling | value_of share)" \
        -v ceiling="$(ceiling | value_of of)" -v limit="$(outer | value_of limited_by)" '
        BEGIN {
            printf "searched %d bytes in %.3f s", bytes, seconds
            if (seconds > 0) printf ", %.2f GB/s", bytes / seconds / 1e9
            if (share + 0 > 0) printf ", %.0f %% of the ceiling (%s)", share * 100, ceiling
            if (limit != "") printf ", limited by: %s", limit
            print ""
        }'
}

# For each line "hash  name" on standard input, reports whether a carved file has that hash.
tell_recovered() {
    recovered=0
    deleted=0
    while read -r hash name; do
        deleted=$((deleted + 1))
        path=$(sed -n 's/.*"sha256":"'"$hash"'".*"path":"\([^"]*\)".*/\1/p' "$carved/report.jsonl" | head -n 1)
        if [ -n "$path" ] && [ "$(sha256sum <"$carved/$path")" = "$hash  -" ]; then
            recovered=$((recovered + 1))
            echo "  recovered  $name as $path, bit for bit"
        elif [ "${name##*.}" = txt ]; then
            echo "  not carved $name: plain text has no signature; search finds it"
        else
            echo "  not found  $name"
        fi
    done
    echo "recovered $recovered of $deleted deleted files"
}

show cargo build --quiet --profile quick --locked -p quarrier-cli

if [ -f "$image" ] && [ -f "$image.deleted" ] && [ "${FRESH:-0}" != 1 ]; then
    printf '\n%s is there already (FRESH=1 makes it again)\n' "$image"
else
    show demo/make_image.sh "$image"
fi

printf '\nWhat lies on it, deleted or not:\n'
show "$quarrier" search -f demo/patterns.txt -c "$image"

printf '\nThe planted words. swordfish was in a file that is deleted; marmalade-protocol crosses\na block border; quicksilver is written in UTF-16:\n'
show "$quarrier" search --utf16 --context 32 -e swordfish -e marmalade-protocol -e quicksilver "$image"

if command -v debugfs >/dev/null 2>&1 && debugfs -R stats "$image" 2>/dev/null | grep -q quarrier-demo; then
    printf '\nDoes a file still own the block with swordfish?\n'
    show "$quarrier" search --format csv swordfish "$image" >demo/out/swordfish.csv
    awk -F, '$2 ~ /^[0-9]+$/ { print $2 }' demo/out/swordfish.csv | tell_deleted
fi

printf '\nThe first search again, with a report and statistics:\n'
show "$quarrier" search -f demo/patterns.txt -c --report "$report" --stats "$stats" "$image" >demo/out/counts.txt
printf '\n'
summarise
echo "report: $report (open it in a browser)   statistics: $stats   counts: demo/out/counts.txt"

printf '\nAll files on it, deleted ones too, from its file system:\n'
rm -rf "$carved"
show "$quarrier" carve "$image" -o "$carved" --report demo/out/carved.html
printf '\nThe hashes of what was deleted, beside those of what came back:\n'
tell_recovered <"$image.deleted"
echo "files: $carved   report: demo/out/carved.html (open it in a browser)"
