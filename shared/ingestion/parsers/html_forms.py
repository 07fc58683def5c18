"""Fields of HTML forms as `label: value`."""

from typing import Any

from shared.ingestion.parsers.html_text import line_of, replace, text_of
from shared.text.normalize import one_line

_TITLES = {"h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"}
_NO_VALUE = {"hidden", "submit", "button", "reset", "image", "file", "password"}


def write_fields(root: Any) -> None:
    labels = {label.get("for"): label for label in root.iter("label")}
    for suggestions in list(root.iter("datalist")):
        replace(suggestions, "")
    for control in list(root.iter("input", "select", "textarea", "button")):
        if control.tag == "button" and any(each.tag in _TITLES for each in control.iterancestors()):
            # The title of a text that a reader opens.
            control.tag = "span"
        else:
            _write_field(control, labels)


def _write_field(control: Any, labels: dict[str | None, Any]) -> None:
    """`label: value` instead of a field of a form and its label. A field without a value leaves its label."""
    value, kind = "", (control.get("type") or "text").lower()
    if control.tag == "textarea":
        value = text_of(control)
    elif control.tag == "select":
        options = list(control.iter("option"))
        chosen = [option for option in options if option.get("selected") is not None]
        if control.get("multiple") is None:
            # Browsers show the last selected option, or else the first one.
            chosen = chosen[-1:] or options[:1]
        value = "; ".join(map(line_of, chosen))
    elif control.tag == "input" and kind in ("checkbox", "radio"):
        value = "no" if control.get("checked") is None else "yes"
    elif control.tag == "input" and kind not in _NO_VALUE:
        value = control.get("value") or ""
    around = next(control.iterancestors("label"), None)
    label = labels.get(control.get("id")) if around is None and control.get("id") else around
    has_others = around is not None and sum(1 for _ in around.iter("input", "select", "textarea")) > 1
    replace(control, one_line(value) if has_others else "")
    if not value.strip() or has_others:
        return
    name = control.get("aria-label") or "" if label is None else line_of(label)
    name = one_line(name).rstrip(": ")
    if label is not None:
        replace(label, "")
    field = control if around is None else around
    field.tag, field.text = "div", f"{name}: {one_line(value)}" if name else one_line(value)
