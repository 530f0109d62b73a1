#!/bin/sh
# Makes a disk image for the demo: make_image.sh OUT.img
# It is a 256 MiB file system (ext4, or FAT if e2fsprogs is missing), made without root and network from files
# that this machine has anyway. Some are then deleted; their bytes stay. OUT.img.deleted lists the hashes of
# the deleted files.
set -eu
export LC_ALL=C

[ $# -eq 1 ] || { echo "usage: $0 OUT.img" >&2; exit 2; }
image=$1
repository=$(cd "$(dirname "$0")/.." && pwd)
PATH="$PATH:/usr/sbin:/sbin"

image_mib=256
block_bytes=4096
deleted_pictures=5
deleted_documents=4

# For each type: the maximum number of files, their maximum total in MiB, and the extensions.
kinds='
jpg    50  20  jpg jpeg
png    60  16  png
gif    25   6  gif
webp   10   2  webp
pdf    15  12  pdf
ps     10   2  ps
html   40  12  html
txt    40   8  txt
gz     40  16  gz
bz2     8   4  bz2
xz      8   4  xz
zst     8   4  zst
zip    20  20  zip whl
jar    20  16  jar
so     12  28  so
mp3     5   4  mp3
wav     8   4  wav
ogg     5   1  ogg
sqlite  5   1  sqlite db
'

# Only folders of packages and toolchains, never anybody's own pictures and letters.
folders="/usr/share /usr/lib /usr/local
$HOME/.cargo/registry $HOME/.rustup/toolchains $HOME/.pyenv/versions $HOME/.local/lib"

have() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || return 1
    done
}

# Prints "bytes<TAB>path" for each candidate file, sorted by path.
list_candidates() {
    set --
    for ending in $(echo "$kinds" | awk '{ for (i = 4; i <= NF; i++) print $i }'); do
        set -- "$@" -o -name "*.$ending"
    done
    shift
    echo "$folders" | tr ' ' '\n' | while IFS= read -r folder; do
        [ ! -d "$folder" ] || find "$folder" -xdev -type f -readable -size +0 -size -8192k \
            \( "$@" \) ! -path '*[[:cntrl:]]*' -printf '%s\t%p\n' 2>/dev/null || true
    done | sort -t "$(printf '\t')" -k 2
}

# Cuts the sorted candidates of a type into as many runs as files are needed, takes the largest of each run,
# and prints "kind<TAB>path".
choose() {
    echo "$kinds" >"$work/kinds"
    awk -F '\t' '
        function kind_of(path) { sub(/.*\./, "", path); return kinds[path] }
        function take(kind) {
            if (largest[kind] > 0 && largest[kind] <= bytes_left[kind]) {
                bytes_left[kind] -= largest[kind]
                print kind "\t" path[kind]
            }
            largest[kind] = 0
        }
        pass == 1 {
            fields = split($0, field, " ")
            for (i = 4; i <= fields; i++) kinds[field[i]] = field[1]
            if (fields) {
                files_max[field[1]] = field[2]
                bytes_left[field[1]] = field[3] * 1048576
                file_bytes_max[field[1]] = 2 * bytes_left[field[1]] / field[2]
            }
            next
        }
        { kind = kind_of($2) }
        $1 > file_bytes_max[kind] { next }
        pass == 2 { candidates[kind]++; next }
        {
            share = files_max[kind] / candidates[kind]
            run = int(seen[kind]++ * (share < 1 ? share : 1))
            if (run != run_of[kind]) take(kind)
            run_of[kind] = run
            if ($1 > largest[kind]) { largest[kind] = $1; path[kind] = $2 }
        }
        END { for (kind in files_max) take(kind) }
    ' pass=1 "$work/kinds" pass=2 "$work/candidates" pass=3 "$work/candidates" | sort
}

# Copies the chosen files to FOLDER/<kind>/<number>-<name>.
collect() {
    list_candidates >"$work/candidates"
    choose >"$work/chosen"
    number=0
    while IFS="$(printf '\t')" read -r kind path; do
        number=$((number + 1))
        name=$(basename "$path" | tr -c 'A-Za-z0-9._\n-' '_')
        mkdir -p "$1/$kind"
        cp -- "$path" "$1/$kind/$(printf '%03d' "$number")-$name" 2>/dev/null || true
    done <"$work/chosen"
}

# Writes the files with the words that the demo searches for: deleted text, UTF-16, and a word across a block
# boundary.
write_notes() {
    mkdir -p "$1/notes"
    cat >"$1/notes/meeting-notes.txt" <<'NOTES'
Meeting notes, Tuesday, the small room on the third floor

Present: A. Quarry, B. Mason, C. Stone (by telephone).

1. The delivery arrives on Thursday. The gate opens to whoever says swordfish.
2. Mason keeps the list of names; write to b.mason@example.org for a copy.
3. Nobody takes these notes home. Delete them when read.
NOTES
    printf 'The courier is called quicksilver, and this file is UTF-16.\r\n' |
        iconv -f UTF-8 -t UTF-16LE >"$1/notes/courier-utf16.txt"
    {
        head -c $((block_bytes - 9)) /dev/zero | tr '\0' '.'
        printf 'marmalade-protocol begins nine bytes before the end of a block\n'
    } >"$1/notes/block-border.txt"
    for document in "$repository"/*.md "$repository"/docs/*.md; do
        [ ! -f "$document" ] || cp -- "$document" "$1/notes/"
    done
}

# Prints those of the paths on standard input whose content has the type of their folder, because packages
# also contain fragments of documents.
begin_as_named() {
    while IFS= read -r path; do
        case $path in
            pdf/*) begin=%PDF ;;
            zip/*) begin=PK ;;
            *) begin= ;;
        esac
        case $(head -c 4 "$path" | tr -d '\0') in
            "$begin"*) echo "$path" ;;
        esac
    done
}

# Prints N of the files in folders of FOLDER, evenly spread: spread FOLDER N KIND...
spread() (
    cd "$1"
    n=$2
    shift 2
    (find "$@" -type f -size +8 2>/dev/null || true) | sort | begin_as_named |
        awk '{ path[NR] = $0 }
             END { for (i = 0; i < n && i < NR; i++) print path[1 + int(i * NR / n)] }' n="$n"
)

# Prints the files to delete, relative to FOLDER: a few pictures and documents, and the meeting
# notes.
list_deleted() {
    spread "$1" "$deleted_pictures" jpg png gif
    spread "$1" "$deleted_documents" pdf zip
    echo notes/meeting-notes.txt
}

make_ext4() {
    mkfs.ext4 -q -F -b "$block_bytes" -L quarrier-demo -d "$2" "$1" "${image_mib}M" >/dev/null
    sed 's/^/rm /' "$work/deleted" | debugfs -w -f - "$1" >/dev/null 2>&1
}

make_fat() {
    truncate -s "${image_mib}M" "$1"
    mkfs.vfat -F 16 -s $((block_bytes / 512)) -n QUARRIER "$1" >/dev/null
    mcopy -s -Q -i "$1" "$2"/* ::
    while IFS= read -r path; do
        mdel -i "$1" "::$path"
    done <"$work/deleted"
}

if have mkfs.ext4 debugfs; then
    system=ext4
elif have mkfs.vfat mcopy mdel; then
    system=fat
else
    echo "$0: neither mkfs.ext4 and debugfs nor mkfs.vfat and mcopy are installed; install e2fsprogs or mtools and dosfstools" >&2
    exit 1
fi

mkdir -p "$(dirname "$image")"
work=$(mktemp -d "$image.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

mkdir "$work/files"
collect "$work/files"
write_notes "$work/files"
list_deleted "$work/files" >"$work/deleted"
"make_$system" "$work/image" "$work/files"
tr '\n' '\0' <"$work/deleted" | (cd "$work/files" && xargs -0 sha256sum) >"$image.deleted"
mv "$work/image" "$image"

files=$work/files
echo "image     $image: $system, $image_mib MiB in blocks of $block_bytes bytes"
echo "holds     $(find "$files" -type f | wc -l) files, $(du -sm "$files" | cut -f 1) MiB, nearly all from packages of this machine"
echo "types    $(for kind in "$files"/*; do
    printf ' %s %s,' "$(find "$kind" -type f | wc -l)" "$(basename "$kind")"
done | sed 's/,$//')"
echo "planted   swordfish in notes/meeting-notes.txt, quicksilver as UTF-16, marmalade-protocol across a block border"
echo "deleted  $(sed 's/^/ /; s/$/,/' "$work/deleted" | tr -d '\n' | sed 's/,$//')"
