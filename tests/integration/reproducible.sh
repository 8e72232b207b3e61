#!/usr/bin/env bash
# Builds what is installed twice, in two folders whose names differ in length, at two times, and compares the bytes of all programs,
# libraries and archives. By hand, since it compiles everything twice: tests/integration/reproducible.sh [CMAKE ARGUMENT...]
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
rooms=$(mktemp -d)
trap 'rm -rf "$rooms"' EXIT
targets=(scand scanctl libscand libscand_local scand-demo)
export CMAKE_C_COMPILER_LAUNCHER= # a cache of objects would say nothing of the compiler

build() { # a folder
    mkdir -p "$1"
    git -C "$source" ls-files -z | (cd "$source" && xargs -0 cp --parents --target-directory "$1")
    (cd "$1" && cmake --preset cpu "${@:2}" >/dev/null && cmake --build build/cpu --target "${targets[@]}" >/dev/null)
    if grep -q '^build libscand_local_archive' "$1/build/cpu/build.ninja"; then
        cmake --build "$1/build/cpu" --target libscand_archive libscand_local_archive >/dev/null
    fi
}

products() { # a folder: its programs, libraries and archives
    (cd "$1/build/cpu" && find . -path ./CMakeFiles -prune -o -type f \( -name '*.a' -o -name '*.so*' -o -executable \) -print | sort)
}

one=$rooms/one two=$rooms/another-folder/of-a-longer-name
build "$one" "$@"
build "$two" "$@"
diff <(products "$one") <(products "$two")
wrong=0
while read -r file; do
    if cmp -s "$one/build/cpu/$file" "$two/build/cpu/$file"; then
        echo "same: $file"
    else
        echo "differs: $file"
        wrong=1
    fi
done < <(products "$one")
exit $wrong
