"""What a notebook shows, as a page that JupyterLab might have laid out."""

from __future__ import annotations

from collections.abc import Mapping

from support.notebook.kernel import Bundle


def as_page(shown: Mapping[str, Bundle]) -> str:
    """Return a page with each bundle as JupyterLab lays it out, day and night by the reader's preference.

    JupyterLab styles what lies in tables: right-aligned cells, striped rows, letters of its own. A bundle must look
    as it should in spite of it.
    """
    cells = "".join(
        f"<h3>{name}</h3><div class='jp-RenderedHTMLCommon'>{_html(each)}</div>" for name, each in shown.items()
    )
    return (
        f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'>{_VIEW}<style>{_LAB}</style><body>{cells}</body></html>"
    )


def _html(bundle: Bundle) -> str:
    if "image/png" in bundle:
        return f'<img alt="plot" src="data:image/png;base64,{bundle["image/png"]}">'
    return str(bundle["text/html"])


_VIEW = "<meta name='viewport' content='width=device-width, initial-scale=1'><title>notebook</title>"
_LAB = """
body { margin: 0; padding: 8px; background: #ffffff; color: rgba(0, 0, 0, 0.87); font: 14px/1.4 system-ui, sans-serif }
h3 { font-size: 12px; margin: 16px 0 4px }
.jp-RenderedHTMLCommon { padding-right: 20px; overflow-wrap: anywhere }
.jp-RenderedHTMLCommon img { max-width: 100%; height: auto }
.jp-RenderedHTMLCommon table { border-collapse: collapse; border: none; font-size: 12px; table-layout: fixed;
  margin: 0 auto 1em }
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th, .jp-RenderedHTMLCommon tr { vertical-align: middle;
  padding: 0.5em; line-height: normal; white-space: normal; max-width: none; border: none; text-align: right }
.jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: #f5f5f5 }
@media (prefers-color-scheme: dark) { body { background: #111111; color: rgba(255, 255, 255, 0.87) }
  .jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: #212121 } }
"""
