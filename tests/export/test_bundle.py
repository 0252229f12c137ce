import re

from uniphase.export.bundle import bundle, read_asset


def test_a_bundle_has_every_module_once_and_behind_what_it_imports():
    text = bundle("main")
    names = re.findall(r"^const module_(\w+) = ", text, re.MULTILINE)
    assert len(set(names)) == len(names) > 10
    assert names[-1] == "main"
    for position, name in enumerate(names):
        for imported in re.findall(r'from "\./(\w+)\.js"', read_asset(f"{name}.js")):
            assert names.index(imported) < position


def test_nothing_is_left_of_imports_and_exports():
    for entry in ("main", "worker"):
        assert not re.search(r"^\s*(import|export)\b", bundle(entry), re.MULTILINE)


def test_what_is_imported_is_exported():
    for entry in ("main", "worker"):
        text = bundle(entry)
        exported = {
            name: set(names.split(", "))
            for name, names in re.findall(r"const module_(\w+) = .*?\nreturn \{ (.*?) \};\n\}\)", text, re.DOTALL)
        }
        for names, module in re.findall(r"^const \{ (.+) \} = module_(\w+);", text, re.MULTILINE):
            assert set(names.split(", ")) <= exported[module]


def test_bundles_can_stand_in_a_page():
    """They neither end a script nor begin a comment, and make no code of text."""
    for entry in ("main", "worker"):
        assert not re.search(r"</script|<!--|\beval\(|new Function|innerHTML", bundle(entry), re.IGNORECASE)


def test_every_import_is_used_and_no_line_is_long():
    for name in re.findall(r"^const module_(\w+) = ", bundle("main") + "\n" + bundle("worker"), re.MULTILINE):
        text = read_asset(f"{name}.js")
        for names in re.findall(r"^import \{ (.+) \} from", text, re.MULTILINE):
            for imported in names.split(", "):
                assert len(re.findall(rf"\b{imported}\b", text)) > 1, (name, imported)
        assert max(map(len, text.splitlines())) <= 120
