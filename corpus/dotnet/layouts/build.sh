#!/bin/sh
# Compile types.cs for all runtimes: build.sh FOLDER-OF-.NET-CORE-2.1
set -eu
cd "$(dirname "$0")"
references=
for file in "$1"/System*.dll "$1"/netstandard.dll; do
    references="$references -r:$file"
done
# shellcheck disable=SC2086
mcs -nologo -nowarn:67 -langversion:latest -unsafe -nostdlib -target:library -out:bin/types.dll $references types.cs
