"""What people do with the tools of the page."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np

from tests.support import report_rows as rows
from tests.support.browser import Browser
from uldp_transforms.jobs import uldp

VALUES = ("ant", "bee", "=cat()", "dog", "a value with a rather long name, longer than most names of values")


def survey(folder: Path) -> Path:
    """Six days of five values, of which ``dog`` may be nobody and ``bee`` changed; the page of them."""
    of = rows.survey(folder, VALUES, 6)
    days = []
    for at in range(6):
        shares = np.array([0.3 - at / 50, 0.3 + at / 50, 0.21, 0.001, 0.189])
        days.append(rows.estimate(of, at, [rows.entry(value, share) for value, share in zip(VALUES, shares.tolist())]))
    rows.write(folder, "estimates.jsonl", days)
    moved = "Shares moved, in percentage points: 'bee' +10.00 (+8.00 to +12.00)."
    rows.write(folder, "health.jsonl", [rows.finding(of, 2, moved)])
    page = folder / "page.html"
    assert uldp.main(["report", str(folder), "--output", str(page)]) == 0
    return page


def names(window: Browser, of: str) -> list[str]:
    """The values in the rows of a table that can be seen."""
    found: list[str] = window.run(
        f"return [...document.querySelectorAll('{of} tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.cells[0].textContent)"
    )
    return found


def choose(window: Browser, selector: str, value: str) -> None:
    window.run(
        f"const it = document.querySelector(`{selector}`); it.value = `{value}`;"
        "it.dispatchEvent(new Event('input', {bubbles: true}))"
    )


def saved(window: Browser, button: str) -> str:
    """What a button of a menu saves; the menu is opened first."""
    window.run(f"document.querySelector(`{button}`).closest('.take').open = true")
    window.run(
        "window.saved = null; const make = URL.createObjectURL.bind(URL);"
        "URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text }); return make(blob) }"
    )
    window.click(button)
    return str(window.wait_for("return window.saved"))


def picture(window: Browser, of: str, size: str, form: str) -> bytes:
    """What a button of a menu draws of a table or chart."""
    window.run(
        "window.drawn = null; const make = URL.createObjectURL.bind(URL);"
        "URL.createObjectURL = blob => { const reader = new FileReader();"
        "reader.onload = () => { window.drawn = [blob.type, reader.result] };"
        "reader.readAsDataURL(blob); return make(blob) };"
    )
    window.run(f"document.querySelector(`[data-picture='{of}'] [data-size={size}][data-form={form}]`).click()")
    kind = {"svg": "image/svg+xml", "png": "image/png"}[form]
    found: str = window.wait_for(f"return window.drawn?.[0] === '{kind}' && window.drawn[1]")
    return base64.b64decode(found.partition(",")[2])
