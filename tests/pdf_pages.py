"""PDF files for tests, drawn line by line."""

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def write_pdf(path, pages, *, outline=(), password=None, title=None, pictures=()):
    """Write a PDF of the lines of each page; outline entries are (title, page, nested).

    Pages whose numbers are among the pictures, from 0, hold one.
    """
    writer = PdfWriter()
    font = writer._add_object(
        DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
    )
    fonts = DictionaryObject({NameObject("/F1"): font})
    for number, lines in enumerate(pages):
        page = writer.add_blank_page(600, 800)
        resources = DictionaryObject({NameObject("/Font"): fonts})
        if number in pictures:
            resources[NameObject("/XObject")] = DictionaryObject()
        page[NameObject("/Resources")] = resources
        drawn = DecodedStreamObject()
        shown = " ".join(f"({line}) Tj T*" for line in lines)
        drawn.set_data(f"BT /F1 12 Tf 50 750 Td 14 TL {shown} ET".encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(drawn)
    parent = None
    for name, at, nested in outline:
        entry = writer.add_outline_item(
            title=name, page_number=at, parent=parent if nested else None
        )
        parent = parent if nested else entry
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path
