"""Checks that a folder of src/ includes only what its line in CMakeLists.txt needs, directly or through those.

The linker refuses most wrong arrows, but not an include of a header that needs nothing linked. Within a folder that
has an arrows.txt, the same is checked between its subfolders. Prints each wrong include as file:line with the line to
change, and fails if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = re.compile(r"^\s*lockstep_library\(\s*(\w+)\s+(?:[A-Z]+\s+)*?NEEDS\s+([^)]*)\)", re.MULTILINE)
INNER = re.compile(r"^(\w+):([\w ]*)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}


def reached(lines):
    """The folders each folder may include: itself, and all that its needs reach."""

    def reach(name, seen):
        if name in lines and name not in seen:
            seen.add(name)
            for need in lines[name]:
                reach(need, seen)
        return seen

    return {name: reach(name, set()) for name in lines}


def read_needs(text):
    return reached({name: set(needs.split()) for name, needs in LIBRARY.findall(text)})


def wrong_inner_includes(folder):
    """Includes between the subfolders of one that its arrows.txt does not have; tests may include anything."""
    table = folder / "arrows.txt"
    if not table.exists():
        return
    lines = {name: set(needs.split()) for name, needs in INNER.findall(table.read_text())}
    where = table.relative_to(ROOT)
    for name in sorted(set().union(*lines.values()) - set(lines)):
        yield f"{where}: {name} has no line of its own"
    allowed = reached(lines)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        inner = path.relative_to(folder).parts[0]
        if inner == "testing" or path.stem.endswith("_test"):
            continue
        if inner not in allowed:
            yield f"{path.relative_to(ROOT)}: {inner} has no line in {where}"
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            match = INCLUDE.match(line)
            parts = match.group(1).split("/") if match else []
            if len(parts) > 2 and parts[0] == folder.name and parts[1] not in allowed[inner]:
                yield f"{path.relative_to(ROOT)}:{number}: {inner} may not include {parts[1]} by {where}"


def wrong_includes(path, folder, allowed):
    folders = {entry.name for entry in (ROOT / "src").iterdir() if entry.is_dir()}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target, slash, _ = match.group(1).partition("/")
        where = f"{path.relative_to(ROOT)}:{number}"
        if target == "..":
            yield f"{where}: includes {match.group(1)}; name it from src/ instead"
        elif slash and target in folders and target not in allowed:
            reached = ", ".join(sorted(allowed))
            yield f"{where}: {folder} may not include {target}; by CMakeLists.txt it reaches {reached}"


def main():
    needs = read_needs((ROOT / "CMakeLists.txt").read_text())
    wrong, files = [], 0
    for folder in sorted(entry for entry in (ROOT / "src").iterdir() if entry.is_dir()):
        paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
        if paths and folder.name not in needs:
            wrong.append(f"src/{folder.name}: has no lockstep_library line in CMakeLists.txt")
            continue
        files += len(paths)
        for path in paths:
            wrong.extend(wrong_includes(path, folder.name, needs[folder.name]))
        wrong.extend(wrong_inner_includes(folder))
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"arrows: {files} files in {len(needs)} folders, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
