"""Looks at pages of attest export --to html in Debian's Chromium, driven over a pipe by the DevTools protocol: no other
module is needed, and one browser is started for all pages.

SPDX-License-Identifier: Apache-2.0

usage: browser.py check PAGE.html:FIGURES...      measures each page at both widths, light and dark, and on paper; FIGURES: how
                                                  many figures it has at least
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
  const say = (text, node) => { if (said.length < 12) said.push(node ? `${text}: "${node.textContent.trim().slice(0, 60)}"` : text); };
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
  if (root.scrollWidth > width || document.body.scrollWidth > width)
    say(`the page is ${Math.max(root.scrollWidth, document.body.scrollWidth)} wide on ${width} pixels`);

  // ---- contrast and size of every text
  const parse = (c) => { const n = c.match(/[\d.]+/g).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const x = light(a), y = light(b); return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  const below = (e) => { for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c[3] === 1 && !(paper && e !== root)) return c; }
    return [255, 255, 255, 1]; };  // on paper backgrounds are left out
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
    if (!(front[3] === 1)) say('a text that shines through', node);
    if (!paper && !(size >= 9)) say(`letters of ${size.toFixed(1)} pixels`, node);
  }
  for (const e of document.querySelectorAll('body *'))
    if (getComputedStyle(e).opacity !== '1') { say('opacity', e); break; }

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


def check(browser, path, figures):
    found = []
    looks = [(width, scheme, "screen") for width in WIDTHS for scheme in ("light", "dark")] + [(PAPER, "dark", "print")]
    browser.look(*WIDTHS[:1], 900)
    url = browser.open(path)
    for width, scheme, media in looks:
        browser.look(width, 900, scheme, media)
        said = browser.evaluate(f"{MEASURE}({width}, {figures}, {str(media == 'print').lower()})")
        found += [f"{width} pixels, {'on paper' if media == 'print' else scheme}: {line}" for line in json.loads(said)]
    found += complaints(browser, url)
    for line in found:
        print(f"{os.path.basename(path)}: {line}")
    return not found


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
        for argument in arguments:
            path, figures = argument.rsplit(":", 1)
            fine &= check(browser, path, int(figures))
    browser.close()
    if what == "check" and fine:
        print(f"{len(arguments)} pages fine")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
