import pytest

from uniphase.cli.failures import explain, printable


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Grüße, 你好", "Grüße, 你好"),
        ("two\nlines", "two lines"),
        ("\x1b[2J\x07 \x9b1m\r", r"\x1b[2J\x07 \x9b1m\r"),
        ("\u202ereversed", r"\u202ereversed"),
        ("\udcff", r"\udcff"),  # a byte of a name that is not UTF-8
    ],
)
def test_what_a_file_says_does_not_command_the_terminal(text, printed):
    assert printable(text) == printed
    assert explain(ValueError(text)) == printed


def test_lines_may_be_kept():
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_mistakes_of_the_program_are_not_explained():
    assert explain(KeyError("a")) is None
    assert explain(MemoryError()) == "out of memory; pass a smaller --size"
