"""The frame of every page: title, navigation, colour scheme, notifications."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nicegui import ui

from parnassus.lab.tags import link, svg_element, tag, text_element

PAGES = {"Subjects": "/", "Runs": "/runs", "Probes": "/probes", "Claims": "/claims", "Errata": "/errata"}
MOUNTAIN = (
    '<svg viewBox="0 0 32 32" fill="none" stroke-linejoin="round" stroke-width="2">'
    '<path d="M2 27 12 9l5 8 4-6 9 16z" style="stroke:var(--accent)"/>'
    '<path d="M12 9V3l5 2-5 2" style="stroke:#d55e00"/></svg>'
)
SCHEME = """
<meta name="description" content="Deep learning from one neuron to AlphaZero, with interactive probes.">
<script>
  window.parnassus = {
    schemes: ["auto", "light", "dark"],
    scheme() { try { return localStorage.getItem("scheme") || "auto"; } catch { return "auto"; } },
    apply() {
      const scheme = this.scheme();
      Quasar.Dark.set(scheme === "auto" ? "auto" : scheme === "dark");
      document.querySelectorAll("[data-scheme]").forEach((button) => { button.textContent = "Colours: " + scheme; });
    },
    next() {
      const after = this.schemes[(this.schemes.indexOf(this.scheme()) + 1) % 3];
      try { localStorage.setItem("scheme", after); } catch { /* not stored in a private window */ }
      this.apply();
    },
    copy(id) {
      const text = document.getElementById(id).textContent;
      const done = () => { document.getElementById("status").textContent = "Copied."; };
      navigator.clipboard ? navigator.clipboard.writeText(text).then(done, () => {}) : done();
    },
  };
  window.addEventListener("load", () => setTimeout(() => window.parnassus.apply(), 0));
</script>
"""


def add_shared_head() -> None:
    """Add the style sheet and the script to all pages; called once, before the first page."""
    sheet = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    ui.add_head_html(f"<style>{sheet}</style>{SCHEME}", shared=True)


@contextmanager
def frame(title: str, section: str = "") -> Iterator[ui.element]:
    """A page with this title; `section` is its entry in the navigation."""
    ui.page_title(f"{title} · Parnassus" if title != "Parnassus" else "Parnassus")
    ui.colors(primary="#0072b2", negative="#a83f05", info="#3c4550")
    link("Skip to the content", "#main", "skip")
    with tag("header", classes="bar"), tag("div"):
        with tag("a", classes="brand", href="/", aria_label="Parnassus, home"):
            svg_element(MOUNTAIN)
            tag("span", "Parnassus")
        with tag("nav", aria_label="Pages"):
            for name, address in PAGES.items():
                entry = link(name, address)
                if name == section:
                    entry.props["aria-current"] = "page"
        button = tag(
            "button", "Colours: auto", "plain-button", type="button", data_scheme="", aria_label="Colour scheme"
        )
        button.on("click", js_handler="() => window.parnassus.next()")
    tag("div", "", "sr", role="status", aria_live="polite", id="status")
    with tag("main", classes="lab", id="main", tabindex="-1") as main:
        yield main


def notify(sentence: str, *, is_error: bool = False) -> None:
    """Show a short message at the edge of the page; errors stay until they are closed."""
    ui.notify(
        sentence,
        type="negative" if is_error else "info",
        timeout=0 if is_error else 4000,
        close_button="Close" if is_error else False,
        position="bottom",
        multi_line=True,
    )


def error_box(message: str, advice: str = "") -> None:
    """Show an error message with advice on how to resolve it."""
    with tag("div", classes="error-box", role="alert"):
        tag("strong", message)
        if advice:
            tag("div", advice)


def copyable_text(text: str, name: str, label: str) -> ui.label:
    """Add a text with a button that copies it; returns the element of the text."""
    with tag("div", classes="row between"):
        tag("span", label, "kicker")
        button = tag("button", "Copy", "plain-button", type="button", aria_label=f"Copy: {label}")
        button.on("click", js_handler=f"() => window.parnassus.copy('{name}')")
    element = text_element("pre", text, "command")
    element.props["id"] = name
    return element
