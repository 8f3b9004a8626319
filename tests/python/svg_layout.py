"""Whether a plot can be read: well-formed, grey alone, every text inside the image and none on another.

SPDX-License-Identifier: Apache-2.0
"""
import xml.dom.minidom

LETTER = 5.5  # pixels, on average, of a letter of 11 pixels


def is_grey(colour):
    digits = colour.lstrip("#")
    third = len(digits) // 3
    return colour in ("none", "") or colour[0] == "#" and digits[:third] == digits[third:2 * third] == digits[2 * third:]


def box_of(text):
    size = float(text.getAttribute("font-size") or 11)
    x, y = float(text.getAttribute("x")), float(text.getAttribute("y"))
    n = LETTER * size / 11 * len(text.firstChild.data if text.firstChild else "")
    if text.getAttribute("transform").startswith("rotate(-90"):  # reads upwards from its anchor
        y += {"start": 0, "middle": n / 2, "end": n}[text.getAttribute("text-anchor")]
        return (x - 0.75 * size, y - n, x, y)
    assert not text.getAttribute("transform"), text.toxml()
    x -= {"start": 0, "middle": n / 2, "end": n}[text.getAttribute("text-anchor")]
    return (x, y - 0.75 * size, x + n, y)


def check(path):
    document = xml.dom.minidom.parse(path)
    width, height = (float(document.documentElement.getAttribute(k)) for k in ("width", "height"))
    for element in document.getElementsByTagName("*"):
        for name in ("fill", "stroke"):
            assert is_grey(element.getAttribute(name)), (path, element.toxml()[:80])
    boxes = []
    for text in document.getElementsByTagName("text"):
        box = box_of(text)
        assert box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height, (path, text.toxml(), box, width, height)
        for other, words in boxes:
            apart = box[0] >= other[2] or other[0] >= box[2] or box[1] >= other[3] or other[1] >= box[3]
            assert apart, (path, text.toxml(), words)
        boxes.append((box, text.toxml()))
    return len(boxes)
