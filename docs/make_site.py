"""Gather the pages of the site in build/docs and build it in build/site: `make site`, or `make docs` for more.

Every page lives once: in docs/, or where the repository has it anyway (`ELSEWHERE`); the pages of the gallery are made
from examples/ and from docs/gallery, which docs/make_gallery.py fills. Links between files of the repository become
links between pages. zensical.toml has the navigation, and so the order of the gallery.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from uniphase.export.targets import export_network

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "docs"

# Pages and pictures outside of docs/, and where the site has them.
ELSEWHERE = {
    "benchmarks/README.md": "benchmarks.md",
    "results/report.md": "results/report.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def listed() -> list[str]:
    """The pages of the navigation. What it does not list is a draft, and not on the site."""
    return re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))


def place(path: str) -> str | None:
    """Where the site has a file of the repository; `None` if it is not on the site."""
    parts = PurePosixPath(path)
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if parts.parent.as_posix() == "examples":
        return f"gallery/{parts.stem}.md"
    if parts.parent.as_posix() == "results/figures" and parts.suffix == ".png":
        return path
    if parts.parts[0] == "docs" and not parts.name.startswith(("make_", "run_time")):
        target = parts.relative_to("docs").as_posix()
        return target if parts.suffix != ".md" or target in listed() else None
    return None


def relink(text: str, source: str, target: str) -> str:
    """The text of a page with its links as they are on the site; what is not there is named without a link."""

    def link(match: re.Match[str]) -> str:
        image, words, goal, anchor = match.groups()
        path = os.path.normpath(os.path.join(os.path.dirname(source), goal))
        if "://" in goal or path.startswith("..") or not (ROOT / path).exists():
            return match[0]
        there = place(path)
        if there is None:
            return words
        return f"{image}[{words}]({os.path.relpath(there, os.path.dirname(target) or '.')}{anchor or ''})"

    return _LINK.sub(link, text)


def sources() -> Iterator[tuple[str, str]]:
    """The files of the repository that are on the site as they are, and where."""
    folders = ROOT / "docs", ROOT / "results" / "figures"
    paths = [ROOT / path for path in ELSEWHERE] + [path for folder in folders for path in folder.rglob("*")]
    for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
        source = path.relative_to(ROOT).as_posix()
        if (target := place(source)) is not None and path.suffix not in (".txt", ".uniphase"):
            yield source, target


def navigation() -> dict[str, list[str]]:
    """The examples of each part of the gallery, in the order of the site."""
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    (gallery,) = (entry["Gallery"] for entry in config["project"]["nav"] if "Gallery" in entry)
    parts = [part for part in gallery if isinstance(part, dict)]
    return {title: [Path(page).stem for page in pages] for part in parts for title, pages in part.items()}


def read_example(name: str) -> tuple[str, str, str]:
    """The title of an example, what it says about itself, and its code without that."""
    code = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    words = ast.get_docstring(ast.parse(code)) or ""
    first, _, text = words.partition("\n")
    return first.partition("python examples/")[0].strip(": "), text.strip(), code.partition('"""\n')[2].strip()


def example_page(name: str) -> str:
    """The page of an example: what it does, its picture, what it prints, and its code."""
    title, text, code = read_example(name)
    files, parts = ROOT / "docs" / "gallery", [f"# {title}", text, f"![{title}]({name}.webp)"]
    if not (files / f"{name}.txt").exists():
        raise SystemExit(f"docs/gallery has no files of examples/{name}.py; run `python docs/make_gallery.py {name}`")
    if (files / f"{name}.wav").exists():
        parts.append(f'<audio controls src="{name}.wav"></audio>')
    if (files / f"{name}.uniphase").exists():
        parts.append(f'<iframe src="{name}.view.html" title="{title}: the exported page" loading="lazy"></iframe>')
        parts.append(f"The [exported page]({name}.view.html): zoom, pan, and open its details.")
    if printed := (files / f"{name}.txt").read_text(encoding="utf-8").rstrip():
        parts.append(f"```text\n{printed}\n```")
    parts.append(f'```python title="examples/{name}.py"\n{code}\n```')
    return "\n\n".join(part for part in parts if part) + "\n"


def gallery_page() -> str:
    """The pictures of all examples, each with its title."""
    lines = [(ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8").rstrip()]
    for part, names in navigation().items():
        lines += ["", f"## {part}", "", '<div class="gallery" markdown>']
        for name in names:
            title = read_example(name)[0]
            lines += [
                "",
                "<div markdown>",
                "",
                f"[![]({name}.webp)]({name}.md)",
                "",
                f"[{title}]({name}.md)",
                "",
                "</div>",
            ]
        lines += ["", "</div>"]
    return "\n".join(lines) + "\n"


def gather() -> None:
    """Write all pages, with what they show, to build/docs."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for source, target in sources():
        path = PAGES / target
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = (ROOT / source).read_text(encoding="utf-8")
            path.write_text(relink(text, source, target), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, path)
    for name in (name for names in navigation().values() for name in names):
        (PAGES / "gallery" / f"{name}.md").write_text(example_page(name), encoding="utf-8")
    (PAGES / "gallery" / "index.md").write_text(gallery_page(), encoding="utf-8")
    for network in (ROOT / "docs" / "gallery").glob("*.uniphase"):
        export_network(network, PAGES / "gallery" / f"{network.stem}.view.html")


def missing() -> list[str]:
    """What pages show, or the navigation lists, and is not there. Zensical looks at links only."""
    pages = {path.relative_to(PAGES).as_posix(): path.read_text(encoding="utf-8") for path in PAGES.rglob("*.md")}
    show = re.compile(r"""(?:!\[[^\]]*\]\(|\ssrc=")([^)"\s]+)""")
    shown = [
        (page, os.path.normpath(os.path.join(os.path.dirname(page), goal)))
        for page, text in pages.items()
        for goal in show.findall(text)
        if "://" not in goal
    ]
    lost = [f"{page} shows {goal}" for page, goal in shown if not (PAGES / goal).exists()]
    return lost + [f"zensical.toml lists {page}" for page in listed() if page not in pages]


def build() -> None:
    """Build the site; a link, an anchor or a name that leads nowhere is an error."""
    if lost := missing():
        raise SystemExit("\n".join(f"{fault}, which is not there" for fault in lost))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(ROOT / "zensical.toml")]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    gather()
    try:
        build()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
