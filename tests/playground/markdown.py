"""Markdown and the HTML that the playground makes of it."""

KILN = """# The kiln

- **Firing.** The kiln is *fired* at 1,240 degrees for nine hours.
- See [the manual](https://example.com/kiln) or [this](javascript:globalThis.broken=1).

<img src=x onerror="globalThis.broken=2"><script>globalThis.broken=3</script>

> Wear gloves.

| Glaze | Degrees | Hours | Cooling | Remarks |
|---|---|---|---|---|
| `celadon` | 1,240 | 9 | a whole day, with the door closed | for *porcelain* |
"""
_LINK = 'target="_blank" rel="noopener noreferrer nofollow"'
_TABLE = '<div class="table" role="group" aria-label="Table" tabindex="0"><table>'
MARKDOWN = [
    ("plain, with < and &\nin two lines", "<p>plain, with &lt; and &amp;\nin two lines</p>"),
    ("# One\n### Two #\n# Three", "<h3>One</h3><h4>Two</h4><h3>Three</h3>"),
    ("Title\n===\ntext\n***", "<h3>Title</h3><p>text</p><hr>"),
    ("**bold** *it* __b__ ~~gone~~ ***both***",
     "<p><strong>bold</strong> <em>it</em> <strong>b</strong> <del>gone</del> <em><strong>both</strong></em>"
     "</p>"),
    ("snake_case_name 2 * 3 * 4 \\*no\\* **open", "<p>snake_case_name 2 * 3 * 4 *no* **open</p>"),
    ("*a **b* c**", "<p><em>a **b</em> c**</p>"),
    ("`*code* <b>` and ``a`b``", "<p><code>*code* &lt;b&gt;</code> and <code>a`b</code></p>"),
    ("```js\n<b>*x*\n\n# no\n```\nafter", "<pre><code>&lt;b&gt;*x*\n\n# no</code></pre><p>after</p>"),
    ("- a\n- b\n  - c\n\n  more\n3. three\n4. four",
     "<ul><li>a</li><li>b<ul><li>c</li></ul><p>more</p></li></ul>"
     '<ol start="3"><li>three</li><li>four</li></ol>'),
    ("in the year\n2014. it rained", "<p>in the year\n2014. it rained</p>"),
    ("> quoted **over\n> lines**", "<blockquote><p>quoted <strong>over\nlines</strong></p></blockquote>"),
    ("| a | **b** |\n|---|:-:|\n| 1 | x \\| y |\n| 2 |",
     f"{_TABLE}<thead><tr><th>a</th><th><strong>b</strong></th></tr></thead><tbody><tr><td>1</td><td>x | "
     f"y</td></tr><tr><td>2</td></tr></tbody></table></div>"),
    ("[a *b*](https://x.example/y_(z) 'title') <mailto:a@b.example>",
     f'<p><a href="https://x.example/y_(z)" title="https://x.example/y_(z)" {_LINK}>a <em>b</em></a> '
     f'<a href="mailto:a@b.example" title="mailto:a@b.example" {_LINK}>mailto:a@b.example</a></p>'),
    ("![a picture](https://x.example/track.png)", "<p>a picture</p>"),
    # What may not be opened stays as it was written.
    *((source, f"<p>{source.replace('&', '&amp;')}</p>") for source in ("[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))", "[x](java\tscript:alert(1))", "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)", "[x](file:///etc/passwd)", "[x](blob:https://x.example/1)", "[x](//x.example)",
    "[x](/users.json)", "[x](https://bank.example@evil.example/)", "[x](javascript&colon;alert(1))")),
    ("<a href='javascript:x'>x</a>", "<p>&lt;a href='javascript:x'&gt;x&lt;/a&gt;</p>"),
    ("<b onclick=x>**y**", "<p>&lt;b onclick=x&gt;<strong>y</strong></p>"),
    ("", ""),
]  # fmt: skip
# Texts that a parser may take too long for, each repeated to so many characters. Those of the last list make
# a node of every few characters.
HOSTILE_MARKDOWN = [
    (
        200_000,
        ["*", "_a_b", "`", "[", "[a](", "[a](b", "![", "<https://", "> ", "- ", "|", "|-", "- - ", "#"],
    ),
    (200_000, ["~~~", " ", "\t", "\n", "-     ", ": -|", "((((", "[]", "``` `` "]),
    (20_000, ["**a *b _c ", "`a``b", "\\*", "> *a\n", "- a\n", "1. a\n  - b\n", "a|b\n-|-\n", "a\n=\n"]),
]
