"""The page's files."""

import re
from pathlib import Path

import pytest

from serving.http.page import FOLDER, load_page
from tests.integration.http.service import Service


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        pytest.param("/", "text/html; charset=utf-8", id="page"),
        pytest.param("/page/modules/main.js", "text/javascript; charset=utf-8", id="module"),
        pytest.param("/page/style/tokens.css", "text/css; charset=utf-8", id="style"),
        pytest.param("/page/icon.svg", "image/svg+xml", id="drawing"),
    ],
)
def test_file_has_its_type_and_is_asked_for_anew(
    service: Service, path: str, media_type: str
) -> None:
    response = service.client.get(path)
    again = service.client.get(path, headers={"If-None-Match": response.headers["etag"]})
    head = service.client.head(path)

    assert response.headers["content-type"] == media_type
    assert response.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == response.headers["etag"]
    assert (head.status_code, head.content) == (200, b"")


def test_file_that_the_page_names_is_asked_for_once(service: Service) -> None:
    address = re.findall(r'src="(/page/\w+/modules/main.js)"', service.client.get("/").text)[0]
    response = service.client.get(address)

    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.content == (FOLDER / "modules" / "main.js").read_bytes()
    assert service.client.get(f"{address}.js").status_code == 404


def test_file_comes_compressed_to_those_who_can_read_it(service: Service) -> None:
    address = "/page/style/tokens.css"
    small = service.client.get(address, headers={"Accept-Encoding": "br, gzip"})
    plain = service.client.get(address, headers={"Accept-Encoding": "identity"})

    assert small.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"])
    assert small.text == plain.text
    assert small.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


def test_all_modules_are_named_at_once_and_are_few_bytes(service: Service) -> None:
    index = service.client.get("/").text
    named = re.findall(r'<link rel="modulepreload" href="/page/\w+/([^"]+)">', index)
    bytes_sent = sum(len(asset.compressed) for asset in load_page().assets.values())

    modules = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("modules/**/*.js")}
    assert sorted(named) == sorted(modules)
    assert bytes_sent < 80_000


def test_version_changes_with_any_file(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<script src="/page/a.js"></script>', "utf-8")
    (tmp_path / "a.js").write_text("1", "utf-8")
    before = load_page(tmp_path)
    (tmp_path / "a.js").write_text("2", "utf-8")
    after = load_page(tmp_path)

    assert before.version != after.version
    named = f'<script src="/page/{after.version}/a.js"></script>'
    assert after.assets["index.html"].body.decode() == named


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/http/app.py",
        "/page/..%2fhttp%2fapp.py",
        "/page//etc/passwd",
        "/page/",
        "/page/style",
        "/page/index.html%00.js",
    ],
)
def test_nothing_else_is_served(service: Service, path: str) -> None:
    assert service.client.get(path).status_code == 404


def test_every_file_that_the_page_names_is_there() -> None:
    index = (FOLDER / "index.html").read_text("utf-8")
    for named in re.findall(r'(?:href|src)="/page/([^"]+)"', index):
        assert (FOLDER / named).is_file()
    for module in FOLDER.rglob("*.js"):
        for named in re.findall(r'from "(\.[^"]+)"', module.read_text("utf-8")):
            assert (module.parent / named).is_file()


def test_page_holds_no_inline_script_or_style() -> None:
    index = (FOLDER / "index.html").read_text("utf-8")

    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", index)
    assert not re.search(r"<script(?![^>]*\ssrc=)", index)


def test_modules_never_parse_text_as_html() -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\("
    for module in FOLDER.rglob("*.js"):
        assert not re.search(sinks, module.read_text("utf-8")), module.name


def test_both_languages_say_the_same_things() -> None:
    english, chinese = (
        dict(re.findall(r"^  (\w+): \"(.*)\",$", words.read_text("utf-8"), re.MULTILINE))
        for words in (FOLDER / "modules" / "words" / f"{name}.js" for name in ("en", "zh"))
    )

    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[key])), (
            key
        )
