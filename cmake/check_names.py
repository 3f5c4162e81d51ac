"""Checks that every type of src/ has a name of its own.

Two types of the same qualified name in two files of one program break C++'s one-definition rule: the linker keeps one of
their inline functions for both, silently. A compiler sees one file at a time and cannot tell. Types in unnamed
namespaces of a .cc file are its own and may share a name; in a header they are copied into every file that includes it,
so they count.

    check_names.py [FOLDER]     prints every such name with its places; exit code 1 if there are any
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

# Comments and literals, whose braces and words are none. A raw string ends with the delimiter that it begins with.
NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'""", re.S)
# What stands before the brace of a definition; not a variable's, a function's or a specialisation's.
TYPE = re.compile(r'(?<!\w)(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\s*\([^)]*\)\s*)?'
                  r'([A-Za-z_]\w*(?:::\w+)*)(?:\s+final)?\s*(?::(?!:)|$)')
NAMESPACE = re.compile(r'^(?:inline\s+)?namespace\b\s*([\w:]*)\s*$')


def without_literals(text):
    blank = lambda match: re.sub(r'[^\n]', ' ', match.group(0))
    text = NOT_CODE.sub(blank, text)
    # Lines of the preprocessor, with those that they are continued on.
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, text, flags=re.M)


def types_of(path):
    """(qualified name, line) of every type that the file defines at namespace scope."""
    text = without_literals(path.read_text())
    scopes = []  # of every open brace: the namespace's name, or None for any other block
    begin = 0    # of the statement at hand
    for brace in re.finditer(r'[{};]', text):
        statement = text[begin:brace.start()].rstrip()
        start, begin = begin, brace.end()
        if brace.group() == '}':
            if scopes:
                scopes.pop()
        elif brace.group() == '{':
            namespace = NAMESPACE.match(statement.lstrip())
            if namespace:
                scopes.append(namespace.group(1))  # empty: unnamed
                continue
            found = TYPE.search(statement)
            own = path.suffix == '.cc' and '' in scopes
            if found and None not in scopes and not own:
                yield ('::'.join([scope or '(unnamed)' for scope in scopes] + [found.group(1)]),
                       text.count('\n', 0, start + found.start()) + 1)
            scopes.append(None)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / 'src')
    places = defaultdict(list)
    for path in sorted(folder.rglob('*')):
        if path.suffix in ('.h', '.cc', '.cu', '.cuh'):
            for name, line in types_of(path):
                places[name].append(f'{path.relative_to(folder.parent)}:{line}')
    shared = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in sorted(shared.items()):
        print(f'{name} is defined {len(where)} times, at {", ".join(where)}; give each a name of its own')
    print(f'names: {len(places)} types, {len(shared)} defined more than once')
    return 1 if shared or not places else 0


if __name__ == '__main__':
    sys.exit(main())
