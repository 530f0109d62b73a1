#!/bin/sh
# Installs both programs, their man pages and completions: install.sh FOLDER PREFIX
# FOLDER has the programs; they go to $DESTDIR$PREFIX. The script lists the files that it writes.
set -eu

cd "$(dirname "$0")/.."

[ $# -eq 2 ] || {
    echo "usage: install.sh FOLDER-OF-PROGRAMS PREFIX" >&2
    exit 2
}
programs=$1
# Not every shell expands ~ in PREFIX=~/.local.
# shellcheck disable=SC2088
case $2 in
    '~/'*) prefix=$HOME/${2#'~/'} ;;
    *) prefix=$2 ;;
esac
root=${DESTDIR:-}$prefix
# Programs for another machine do not run here; $SPEAKER is one that does, and prints the pages.
speaker=${SPEAKER:-$programs/quarrier}

for program in quarrier quarrier-sql; do
    [ -x "$programs/$program" ] || {
        echo "install: $programs/$program is not there; run: make all" >&2
        exit 1
    }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$speaker" help-man "$work/man"
for shell in bash zsh fish; do
    "$speaker" completions "$shell" >"$work/$shell"
done

# put MODE FILE PLACE
put() {
    install -D -m "$1" "$2" "$root/$3" || {
        echo "install: cannot write $root/$3; try another PREFIX, such as ~/.local, or sudo" >&2
        exit 1
    }
    echo "$root/$3"
}

put 755 "$programs/quarrier" bin/quarrier
put 755 "$programs/quarrier-sql" bin/quarrier-sql
# Only 'make cluster' builds it.
[ ! -x "$programs/quarrier-cluster" ] || put 755 "$programs/quarrier-cluster" bin/quarrier-cluster
for page in "$work"/man/*.1; do
    put 644 "$page" "share/man/man1/$(basename "$page")"
done
put 644 "$work/bash" share/bash-completion/completions/quarrier
put 644 "$work/zsh" share/zsh/site-functions/_quarrier
put 644 "$work/fish" share/fish/vendor_completions.d/quarrier.fish
