"""Pictures as PNG, drawn from SVG by resvg: no browser, no network."""

from typing import Final

from ragforge.errors import UsageError

_ZOOM: Final = 2
"""Pixels for each unit of a picture: screens of today have two where they had one."""
_LETTER: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">'
    '<text x="4" y="30" font-family="DejaVu Sans, Arial, Helvetica, sans-serif">M</text></svg>'
)


def png_of(svg: str) -> bytes:
    """Return a picture as PNG.

    Args:
        svg: As `picture_svg` draws it, in one theme.

    Raises:
        UsageError: resvg is not installed, or no font is there to write with.
    """
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise UsageError(
            "a .png needs the package resvg-py: pip install 'ragforge[png]'; a .svg needs nothing"
        ) from error
    if bytes(svg_to_bytes(svg_string=_LETTER)) == bytes(
        svg_to_bytes(svg_string=_LETTER.replace(">M<", "><"))
    ):
        raise UsageError(
            "a .png needs a font, and none was found: install one (Debian: fonts-dejavu-core), or "
            "write a .svg"
        )
    return bytes(svg_to_bytes(svg_string=svg, zoom=_ZOOM))
