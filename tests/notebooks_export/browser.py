"""Looks at pages of attest export --to html in Debian's Chromium, driven over a pipe by the DevTools protocol: no other
module is needed, and one browser is started for all pages.

SPDX-License-Identifier: Apache-2.0

usage: browser.py check FAULTY.html PAGE.html:FIGURES...   first plants each fault of FAULTS into FAULTY.html and wants it seen,
                                                   then measures each page at both widths, light and dark, and on paper;
                                                   FIGURES: how many it has at least
       browser.py picture PAGE.html OUT.png WIDTH HEIGHT [light|dark]
The last line of check is "N pages fine". exit 77: there is no chromium
"""
import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (390, 1400)
PAPER = 703  # A4 between the margins of page.css, in pixels of CSS
TIMEOUT = 300

# What the page is asked. A text's background is the nearest one below it that is painted: for texts of a plot the last
# rectangle before them that holds their middle. invert() is followed, opacity is not and must be 1.
MEASURE = r"""
((width, figures, paper) => {
  const said = [];
  const say = (text, node) => { if (said.length < 40) said.push(node ? `${text}: "${node.textContent.trim().slice(0, 60)}"` : text); };
  for (const d of document.querySelectorAll('details')) d.open = true;
  const root = document.documentElement;
  if (document.compatMode !== 'CSS1Compat') say('quirks mode');
  if (!document.title.trim() || !document.querySelector('h1')?.textContent.trim()) say('no title');

  // ---- nothing sticks out sideways, and what is wider scrolls inside itself
  const scrolls = (e) => { for (; e && e !== document.body; e = e.parentElement) {
      const o = getComputedStyle(e).overflowX;
      if (o === 'auto' || o === 'scroll') return true;
      if (o !== 'visible') return false; }
    return false; };
  const wide = Math.max(root.scrollWidth, document.body.scrollWidth);
  if (wide > width) {
    const out = [...document.querySelectorAll('body *')].find(e => !e.ownerSVGElement && e.getBoundingClientRect().right > width + 0.5 && !scrolls(e.parentElement));
    say(`the page is ${wide} wide on ${width} pixels, ${out ? `first <${out.localName} class="${out.getAttribute('class')}">` : 'by a margin'}`, out);
  }

  // ---- contrast and size of every text
  const parse = (c) => { const n = c.match(/[\d.]+/g).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const x = light(a), y = light(b); return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  const known = new Map(), shines = (c) => c[3] !== 1;
  const below = (e) => {  // asked once of each element: tables are large
    if (!e) return [255, 255, 255, 1];
    if (!known.has(e)) {
      const style = getComputedStyle(e), c = parse(style.backgroundColor);
      if (style.opacity !== '1' || c[3] !== 0 && shines(c)) say('something shines through', e);
      known.set(e, c[3] === 0 || paper && e !== root ? below(e.parentElement) : c);  // paper has no backgrounds
    }
    return known.get(e);
  };
  const inverted = (svg) => { const f = getComputedStyle(svg).filter;
    if (f === 'none') return 0;
    const m = f.match(/^invert\(([\d.]+)\)$/);
    return m ? Number(m[1]) : NaN; };
  const filtered = (c, share) => c.map((v, i) => i < 3 ? v * (1 - share) + (255 - v) * share : v);
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e.checkVisibility()) continue;
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect(), style = getComputedStyle(e);
    if (!(box.width > 0 && box.height > 0)) { say('a text without a box', node); continue; }
    texts++;
    if ((box.right > width + 1 || box.left < -1) && !scrolls(e.closest('svg')?.parentElement ?? e)) say(`a text ends at ${Math.round(box.right)} of ${width}`, node);
    const svg = e.closest('svg');
    let front = parse(svg ? style.fill : style.color), back = below(svg ? svg.parentElement : e), size = parseFloat(style.fontSize);
    if (svg) {
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2, share = inverted(svg);
      front = filtered(front, share);
      for (const r of svg.querySelectorAll('rect')) {
        const b = r.getBoundingClientRect(), fill = getComputedStyle(r).fill;
        if (fill !== 'none' && b.left <= x && x <= b.right && b.top <= y && y <= b.bottom &&
            r.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING) back = filtered(parse(fill), share);
      }
      size *= svg.getBoundingClientRect().width / svg.width.baseVal.value;
    }
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = contrast(front, back);
    if (!(found >= (large ? 3 : 4.5))) say(`contrast ${found.toFixed(2)}, ${front} on ${back}`, node);
    if (shines(front)) say('a text that shines through', node);
    if (!paper && !(size >= 9)) say(`letters of ${size.toFixed(1)} pixels`, node);
  }

  // ---- figures are there
  let drawn = 0;
  for (const f of document.querySelectorAll('figure')) {
    const images = [...f.querySelectorAll('svg')].filter(s => s.getAttribute('role') === 'img');
    for (const s of f.querySelectorAll('svg')) {
      const b = s.getBoundingClientRect();
      if (!(b.width > 20 && b.height > 8 && s.querySelectorAll('path, rect').length > 1)) say('an empty figure', f);
      if (b.right > width + 1 && !scrolls(s.parentElement)) say(`a figure ends at ${Math.round(b.right)} of ${width}`, f);
    }
    drawn += images.length > 0;
  }
  if (!(drawn >= figures)) say(`${drawn} figures, wanted ${figures}`);

  // ---- states: a mark of its own for each class, and another frame where it fails
  const marks = {}, frames = {};
  for (const e of document.querySelectorAll('.s')) {
    const before = getComputedStyle(e, '::before').content, style = getComputedStyle(e), name = e.className;
    marks[name] = before;
    frames[name] = `${style.borderTopStyle} ${style.borderTopWidth} ${style.fontWeight}`;
    if (before === 'none' || before === '""' || !e.textContent.trim()) { say('a state without a mark or a word', e); break; }
  }
  for (const [what, of] of [['mark', marks], ['frame and weight', frames]])
    if (new Set(Object.values(of)).size !== Object.keys(of).length) say(`two classes of states have the same ${what}: ${JSON.stringify(of)}`);

  // ---- links lead somewhere
  for (const a of document.querySelectorAll('a')) {
    const to = a.getAttribute('href');
    if (!to?.startsWith('#') || !document.getElementById(to.slice(1))) say(`a link to ${to}`, a);
  }
  if (texts < 10) say(`only ${texts} texts`);
  return JSON.stringify(said);
})"""

PHONE, DARK, WIDE, PAPERED = (390, "light", "screen"), (390, "dark", "screen"), (1400, "light", "screen"), (PAPER, "dark", "print")
# What is planted into a page, by which look it is seen, and what is said of it.
FAULTS = [
    (".wide { overflow-x: auto;", ".wide {", PHONE, "wide on 390 pixels"),
    (".wide { overflow-x: auto;", "html, body { overflow-x: hidden } .wide {", PHONE, "a text ends at"),
    ("figure { margin", ".panels svg { min-width: 900px } figure { margin", PHONE, "a figure ends at"),
    ("<h1>", "<script>console.log('said')</script><h1>", WIDE, "console: "),
    ("<h1>", "<script>throw 1</script><h1>", WIDE, "console: "),
    ("<h1>", "<img src='no.png' alt=''><h1>", WIDE, "fetches "),
    ("--dim: #565656", "--dim: #808080", WIDE, "contrast 3.9"),
    ("--fine: #6cd2ac", "--fine: #075a43", DARK, "contrast "),
    ("filter: invert(1);", "", DARK, "contrast "),
    ("filter: invert(1);", "filter: invert(0.6);", DARK, "contrast "),
    (".s.none { color: #000;", ".s.none {", PAPERED, "contrast "),
    (".also { display: block;", ".also { display: block; opacity: 0.9;", WIDE, "shines through"),
    ("font-size: 0.87em; color: var(--dim)", "font-size: 0.87em; color: #000000a0", WIDE, "shines through"),
    (".also { display: block; font-size: 0.87em", ".also { display: block; font-size: 0", WIDE, "a text without a box"),
    ("font: 15px/1.45", "font: 10px/1.45", WIDE, "letters of "),
    ("figure { margin", "figure svg { display: none } figure { margin", WIDE, "an empty figure"),
    ("<figure", "<div hidden></div><span", WIDE, "figures, wanted"),
    (".s.doubt::before", ".nothing::before", WIDE, "a state without a mark"),
    ('.s.fine::before { content: "\\2713', '.s.fine::before { content: "\\2717', WIDE, "the same mark"),
    ("border-color: var(--bad); font-weight: bold", "border-color: var(--bad)", WIDE, "the same frame"),
    (".s.bad { border-width: 2px; }", ".s.bad { font-weight: normal; }", PAPERED, "the same frame"),
    ('class="row" id="r', 'class="row" id="x', WIDE, "a link to #r"),
    ("<title>", "<title></title><desc hidden>", WIDE, "no title"),
    ("<!DOCTYPE html>", "", WIDE, "quirks mode"),
]


class Browser:
    """Commands are written to descriptor 3 of the browser and answers and events read from 4, each ended by a zero."""

    def __init__(self):
        program = os.environ.get("AT_CHROMIUM") or shutil.which("chromium")
        if not program or not shutil.which(program):
            print("chromium is not installed: no page is looked at")
            sys.exit(77)
        self.folder = tempfile.TemporaryDirectory()
        read, self.to = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe())  # out of the way of 3 and 4
        self.source, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe())
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-extensions", "--disable-background-networking", "--hide-scrollbars", "--force-color-profile=srgb",
                     "--remote-debugging-pipe", "--user-data-dir=" + self.folder.name, "about:blank"]
        environment = dict(os.environ, HOME=self.folder.name)
        # bash puts the two ends where the browser looks for them
        command = f'exec 3<&{read} 4>&{write} {read}<&- {write}>&-; exec "$0" "$@"'
        self.log = open(os.path.join(self.folder.name, "log"), "wb")
        self.process = subprocess.Popen(["bash", "-c", command, program] + arguments, pass_fds=(read, write), env=environment,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(read)
        os.close(write)
        self.rest, self.last, self.events, self.session = b"", 0, [], None
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.source, 1 << 20)
            if not more:
                with open(self.log.name, errors="replace") as log:
                    sys.exit("the browser has ended:\n" + log.read()[-2000:])
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **parameters):
        self.last += 1
        asked = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.to, json.dumps(asked).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.last:
                if "error" in m:
                    sys.exit(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def open(self, path):
        """Loads a page; what it says to the console and fetches is in self.events."""
        self.events = []
        url = "file://" + os.path.abspath(path)
        answer = self.ask("Page.navigate", url=url)
        if "errorText" in answer:
            sys.exit(f"{path}: {answer['errorText']}")
        while not any(m.get("method") == "Page.loadEventFired" for m in self.events):
            self.events.append(self.message())
        return url

    def look(self, width, height, scheme="light", media="screen"):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"]["value"]

    def close(self):
        self.session = None
        self.ask("Browser.close")
        self.process.wait(TIMEOUT)
        self.log.close()
        self.folder.cleanup()


def complaints(browser, url):
    """What the page said to the console, and what it fetched but itself."""
    for m in browser.events:
        p = m.get("params", {})
        if m.get("method") == "Log.entryAdded":
            yield f"console: {p['entry']['text']}"
        elif m.get("method") == "Runtime.consoleAPICalled":
            yield f"console: {p['args']}"
        elif m.get("method") == "Runtime.exceptionThrown":
            yield f"console: {p['exceptionDetails']['text']}"
        elif m.get("method") == "Network.requestWillBeSent" and p["request"]["url"] != url:
            yield f"fetches {p['request']['url'][:80]}"


def look_at(browser, path, figures, looks):
    """What is wrong with a page."""
    found = []
    browser.look(*looks[0][:1], 900)
    url = browser.open(path)
    for width, scheme, media in looks:
        browser.look(width, 900, scheme, media)
        said = browser.evaluate(f"{MEASURE}({width}, {figures}, {str(media == 'print').lower()})")
        found += [f"{width} pixels, {'on paper' if media == 'print' else scheme}: {line}" for line in json.loads(said)]
    return found + list(complaints(browser, url))


def check(browser, path, figures):
    looks = [(width, scheme, "screen") for width in WIDTHS for scheme in ("light", "dark")] + [PAPERED]
    found = look_at(browser, path, figures, looks)
    for line in found[:12]:
        print(f"{os.path.basename(path)}: {line}")
    return not found


def see_faults(browser, path):
    """Whether each fault is told when it is planted."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    planted = os.path.join(browser.folder.name, "planted.html")
    unseen = 0
    for old, new, look, words in FAULTS:
        assert old in source, f"the page has no {old!r} to plant a fault in"
        with open(planted, "w", encoding="utf-8") as file:
            file.write(source.replace(old, new))
        found = look_at(browser, planted, 1, [look])
        if not any(words in line for line in found):
            print(f"planted {new!r} in place of {old!r}, wanted {words!r}, found {found[:3]}")
            unseen += 1
    return unseen == 0


def picture(browser, path, out, width, height, scheme="light"):
    browser.look(int(width), int(height), scheme)
    browser.open(path)
    shot = browser.ask("Page.captureScreenshot", format="png")
    with open(out, "wb") as file:
        file.write(base64.b64decode(shot["data"]))


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    browser = Browser()
    fine = True
    if what == "picture":
        picture(browser, *arguments)
    else:
        fine = see_faults(browser, arguments.pop(0))
        for argument in arguments:
            path, figures = argument.rsplit(":", 1)
            fine &= check(browser, path, int(figures))
    browser.close()
    if what == "check" and fine:
        print(f"{len(arguments)} pages fine")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
