"""Charsets as servers and programs name them."""

import codecs
import re

from shared.ingestion.parsers.parsed_file import encoding_by_mark, is_text

# Charsets that programs call by the name of a part of them.
SUPERSETS = {
    "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949",
    "big5": "big5hkscs", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
}  # fmt: skip
# Names that Python does not know.
ALIASES = {"x-sjis": "cp932", "x-gbk": "gb18030", "x-euc-jp": "euc_jp", "ks_c_5601": "cp949"}
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{2,40})", re.IGNORECASE)


def encoding_of(charset: str | None) -> str | None:
    """Python's name of the encoding that a charset means; None for an unknown one."""
    name = (charset or "").strip().lower()
    try:
        name = codecs.lookup(ALIASES.get(name, name)).name
        b"".decode(name)
    except (LookupError, ValueError):
        return None
    return SUPERSETS.get(name, name)


def by_content_type(data: bytes, content_type: str | None) -> bytes:
    """The text in UTF-8 with a byte-order mark, if the content type names its charset and it has no mark.
    A wrong charset changes nothing: servers name one for all files."""
    charset = _CHARSET.search(content_type or "")
    encoding = encoding_of(charset[1]) if charset else None
    if encoding is None or encoding_by_mark(data) or (encoding == "cp1252" and is_text(data)):
        return data
    try:
        return codecs.BOM_UTF8 + data.decode(encoding).encode()
    except UnicodeError:
        return data
