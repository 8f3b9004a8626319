"""Makes the text that train_asynct.py learns: the manuals of Python and PostgreSQL as plain text, from two Debian packages.
SPDX-License-Identifier: Apache-2.0

    python3 docs_corpus.py FOLDER [--packages DIR]       writes FOLDER/docs.xz and FOLDER/licences/

The packages python3.11-doc (PSF licence) and postgresql-doc-15 (PostgreSQL licence) are fetched with `apt-get download` into DIR
(default FOLDER/packages) unless they are there. Nothing of them is installed. Equal packages give equal bytes; the last line
printed is the file's sha256, and docs.xz says which packages it is from.

docs.xz, unpacked: one line of JSON (packages, licences, how many bytes of either part), then the bytes to train on, then the
bytes that are held out. Pages stand in the order of their names, a zero byte behind each; every 20th is held out.
"""
import argparse
import glob
import hashlib
import html.parser
import json
import lzma
import os
import re
import shutil
import subprocess
import sys

PACKAGES = {"python3.11-doc": ("usr/share/doc/python3.11/html", "PSF-2.0"),
            "postgresql-doc-15": ("usr/share/doc/postgresql-doc-15/html", "PostgreSQL")}
HELD_OUT_EVERY = 20
SHORTEST = 200  # bytes: shorter pages are tables of contents
INDEX_PAGES = re.compile(r"(genindex|search|bookindex|contents|py-modindex|modindex|download)")
BLOCKS = {"p", "div", "section", "h1", "h2", "h3", "h4", "h5", "h6", "li", "dt", "dd", "tr", "table", "ul", "ol", "dl", "pre",
          "blockquote", "br", "hr"}
EMPTY = {"br", "hr", "img", "input", "meta", "link", "col", "wbr"}
SKIPPED_CLASSES = {"navheader", "navfooter", "headerlink", "related", "sphinxsidebar", "footer", "mobile-nav", "toc"}


class Page(html.parser.HTMLParser):
    """The text of a page: what stands in <div role="main"> of Python's, and in <body> of PostgreSQL's, without navigation."""

    def __init__(self, whole):
        super().__init__(convert_charrefs=True)
        self.open, self.text = [], []
        self.whole = whole  # a page without role="main"
        self.inside = self.skipped = self.verbatim = 0  # depths at which each began; 0: not

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag in BLOCKS:
            self.text.append("\n")
        if tag in ("td", "th"):
            self.text.append(" ")
        if tag in EMPTY:
            return
        self.open.append(tag)
        depth = len(self.open)
        if not self.inside and (attrs.get("role") == "main" or (self.whole and tag == "body")):
            self.inside = depth
        skip = tag in ("script", "style", "head") or SKIPPED_CLASSES & set((attrs.get("class") or "").split())
        self.skipped = self.skipped or (depth if skip else 0)
        self.verbatim = self.verbatim or (depth if tag == "pre" else 0)

    def handle_endtag(self, tag):
        if tag not in self.open:
            return
        while self.open:
            depth, last = len(self.open), self.open.pop()
            self.inside = 0 if self.inside == depth else self.inside
            self.skipped = 0 if self.skipped == depth else self.skipped
            self.verbatim = 0 if self.verbatim == depth else self.verbatim
            if last == tag:
                break
        if tag in BLOCKS:
            self.text.append("\n")

    def handle_data(self, data):
        if self.inside and not self.skipped:
            self.text.append(data if self.verbatim else re.sub(r"\s+", " ", data))


def plain_text(source):
    """The page's text: lines without trailing blanks, never two empty lines in a row."""
    page = Page('role="main"' not in source)
    page.feed(source)
    lines = "".join(page.text).replace("\0", "").split("\n")
    lines = [line.rstrip() for line in lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def fetch(packages, name):
    """The path of the package's file in the folder, fetched where it is not there."""
    if not glob.glob(os.path.join(packages, name + "_*.deb")):
        subprocess.run(["apt-get", "download", name], cwd=packages, check=True)
    found = sorted(glob.glob(os.path.join(packages, name + "_*.deb")))
    if len(found) != 1:
        sys.exit("docs_corpus.py: found %d files of %s in %s, wanted one" % (len(found), name, packages))
    return found[0]


def unpack(package, folder):
    """A fresh folder with the package's files."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-x", package, folder], check=True)


def pages(root):
    """(name, text) of the pages of a manual in the order of their names."""
    names = []
    for folder, _, files in os.walk(root):
        names += [os.path.relpath(os.path.join(folder, f), root) for f in files if f.endswith(".html")]
    for name in sorted(names):
        if "_static" in name or INDEX_PAGES.match(os.path.basename(name)):
            continue
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as page:
            text = plain_text(page.read()).encode()
        if len(text) >= SHORTEST:
            yield name, text


def read_corpus(path):
    """(facts, bytes to train on, held-out bytes, sha256 of the file) of a docs.xz."""
    with open(path, "rb") as file:
        packed = file.read()
    first, rest = lzma.decompress(packed).split(b"\n", 1)
    facts = json.loads(first)
    if len(rest) != facts["train_bytes"] + facts["held_out_bytes"]:
        sys.exit("%s: %d bytes behind the first line, wanted %d + %d"
                 % (path, len(rest), facts["train_bytes"], facts["held_out_bytes"]))
    return facts, rest[:facts["train_bytes"]], rest[facts["train_bytes"]:], hashlib.sha256(packed).hexdigest()


def pack(train, held_out, sources):
    """The bytes of a docs.xz, and its facts."""
    facts = {"sources": sources, "train_bytes": len(train), "held_out_bytes": len(held_out)}
    whole = json.dumps(facts, sort_keys=True).encode() + b"\n" + train + held_out
    return lzma.compress(whole, format=lzma.FORMAT_XZ, preset=9), facts


def make(folder, packages):
    """Writes docs.xz and the licences."""
    os.makedirs(packages, exist_ok=True)
    os.makedirs(os.path.join(folder, "licences"), exist_ok=True)
    train, held_out, sources, count = [], [], [], 0
    for name, (root, licence) in PACKAGES.items():
        package, unpacked = fetch(packages, name), os.path.join(packages, "unpacked")
        unpack(package, unpacked)
        before, first = sum(map(len, train)) + sum(map(len, held_out)), count
        for _, text in pages(os.path.join(unpacked, root)):
            (held_out if count % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else train).append(text + b"\0")
            count += 1
        shutil.copyfile(os.path.join(unpacked, "usr/share/doc", name, "copyright"),
                        os.path.join(folder, "licences", name + ".copyright"))
        with open(package, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        sources.append({"package": os.path.basename(package), "sha256": digest, "licence": licence, "pages": count - first,
                        "bytes": sum(map(len, train)) + sum(map(len, held_out)) - before})
        shutil.rmtree(unpacked)
    packed, facts = pack(b"".join(train), b"".join(held_out), sources)
    with open(os.path.join(folder, "docs.xz"), "wb") as out:
        out.write(packed)
    print(json.dumps(facts, indent=1))
    print("docs.xz: %d bytes, sha256 %s" % (len(packed), hashlib.sha256(packed).hexdigest()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--packages", help="where the packages are or go (default FOLDER/packages)")
    options = parser.parse_args()
    make(options.folder, options.packages or os.path.join(options.folder, "packages"))


if __name__ == "__main__":
    main()
