"""What a reader sees of Markdown, as sites write it, and where that stands in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.file_texts import laid_out
from ragforge.corpus.front_matter import stated_title
from ragforge.corpus.markdown_reading import read_markdown

PARTS = (
    "<T a={[{name: 'x', b: {c: 1}}]} />", "<T\n  title='x'\n/>", "{x.map(() => (", "{`a`}", "==m==",
    "~~d~~", "{~~a~>b~~}", "{{ page.title }}", "{% highlight c %}", "{% endhighlight %}", "2^10^",
    "# Title { #anchor }", "Plain text.", "A [link](https://x.org/a_b) and `code`.", "!!! note",
    '!!! tip "Use it"', "    inside", '=== "Tab"', "/// warning | Hot", "///", ":::info[Up]", ":::",
    "```python hl_lines='1'", "```", "{* ../a.py *}", '--8<-- "a.md"', "<div markdown>", "</div>",
    "<!-- gone", "-->", "**bold** and _it_ *", "- item", "1. item", "| a | b |", "|---|---|", "",
    "", "import X from 'x';", "export const a = {", "}", "<Tabs>", "{/* c */}", "```{note} T",
    ":class: x", "{ref}`a <b>`", "&amp; &nbsp;", "[ref]: https://x.org", "> [!NOTE]", "\\*", "[[",
    "![", "{ #", "---", "title: x", "\t\ttabs", "(target)=", "% comment", "++ctrl+c++", "é 日本",
)  # fmt: skip


def seen(text, **how):
    return read_markdown(text, **how).text.strip()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("## Add types { #add-types }\n\nText.", "## Add types\n\nText."),
        ("## Add types {#add-types}\n\nText.", "## Add types\n\nText."),
        ("A [button](x.md){ .md-button }.", "A button."),
        ("Text.\n{: .note }\n\nMore.", "Text.\n\nMore."),
        ("One.\n\n{* ../../docs_src/a.py hl[3] *}\n\nTwo.", "One.\n\nTwo."),
        ("One.\n\n{!> ../a.py!}\n\nTwo.", "One.\n\nTwo."),
        ('One.\n\n--8<-- "a.md"\n\nTwo.', "One.\n\nTwo."),
        ("One.\n\n--8<--\na.md\nb.md\n--8<--\n\nTwo.", "One.\n\nTwo."),
        ('One.\n\n```py\n--8<-- "a.py"\n```\n\nTwo.', "One.\n\nTwo."),
        ("!!! note\n\n    Inside.\n\nOut.", "Note\n\nInside.\n\nOut."),
        ("!!! note\n    Inside.\n\nOut.", "Note\n\nInside.\n\nOut."),
        ('??? tip "Use it"\n    ```sh\n    ls\n    ```', "Use it\n\n```sh\nls\n```"),
        ("/// warning | Hot\n\nInside.\n\n///", "Hot\n\nInside."),
        ("/// details\n    type: tip\n\nInside.\n///", "Details\n\nInside."),
        ('=== "C"\n\n    One.\n\n=== "D"\n\n    Two.', "C\n\nOne.\n\nD\n\nTwo."),
        ("[![Test](https://x.org/b.svg)](https://x.org)\n\nText.", "Text."),
        (':material-clock:{ .lg } **Fast**', "Fast"),
        ('```{ .py .x title="a.py" hl_lines="1" }\nx = 1\n```', '```py title="a.py"\nx = 1\n```'),
        ("Press ++ctrl+c++.", "Press ctrl+c."),
        (":::note\n\nInside.\n\n:::", "Note\n\nInside."),
        (":::info[Heads up]\nInside.\n:::", "Heads up\n\nInside."),
        ("```{note} Mind\n:class: x\nInside.\n```", "Mind\n\nInside."),
        ("```{toctree}\n:maxdepth: 2\na\nb\n```\n\nText.", "Text."),
        ("```{code-block} python\n:linenos:\nx = 1\n```", "```python\nx = 1\n```"),
        ("See {ref}`the guide <guide>` and {py:class}`~a.b.C`.", "See the guide and `C`."),
        ("(target)=\n# Title\n\n% hidden\n\nUse {py:func}`f`.", "# Title\n\nUse `f`."),
        ("::: httpx.get\n    options:\n      x: 1\n\nText.", "httpx.get\n\nText."),
        ("> [!WARNING]\n> Hot.", "> Warning\n>\n> Hot."),
        ("{% hint style=\"info\" %}\nText.\n{% endhint %}", "Text."),
        ("# A [#my-id]\n\nIn `let x{:jsx}`, `#!py None`.", "# A\n\nIn `let x`, `None`."),
        ("# A [#12]\n\nIn `{:else}`, `{:ok}`, `a{:then}`.",) * 2,
        ('```js filename="a.js" {1,4}\nx\n```', '```js filename="a.js"\nx\n```'),
        (":::{note} {octicon}`bell` Mind {bdg-info}`it`\nSo.\n:::", "Mind it\n\nSo."),
        ("* - ````\n    ```{tip}\n    ```\n    ````", "* - ````\n    ```{tip}\n    ```\n    ````"),
        (
            'A {{< glossary_tooltip term_id="pod" >}} on '
            '{{< glossary_tooltip text="nodes" term_id="node" >}}.',
            "A pod on nodes.",
        ),
        ('{{< figure src="a.svg" title="Figure 1." caption="Two pods." >}}', "Figure 1. Two pods."),
        ("```js [a.config.js]\nx\n```", "```js [a.config.js]\nx\n```"),
        ("```js [1,2]\nx\n```", "```js\nx\n```"),
        ("<<< @/snippets/a.js{2}\n\nText <<< x.", "Text <<< x."),
        ("```{csv-table} T\n:header: a, b\n:widths: 1, 2\n1, 2\n```", "T\n\na, b\n\n1, 2"),
        ("- *.py files\n- src/*\n- a `tick\n- [x](y)", "- *.py files\n- src/*\n- a `tick\n- x"),
        ("> - *.md\n> - *\n>\n> a *b\n> c* d", "> - *.md\n> - *\n>\n> a b\n> c d"),
        ("| *.md | docs/* |\n| src/* | *a* |", "| *.md | docs/* |\n| src/* | a |"),
        ("| a \\| b | \\*c |\n\nA \\| b.", "| a \\| b | *c |\n\nA | b."),
        ("Since *May\n1986. It* is\n- *so*", "Since May\n1986. It is\n- so"),
        ('{% tab title="Linux" %}\n\nText.', "Linux\n\nText."),
        ('{{< tab "Linux" >}}\nText.\n{{< /tab >}}', "Linux\nText."),
        ('{{% details "How?" open %}}\nSo.\n{{% /details %}}', "How?\nSo."),
        (
            '{% swagger method="get" path="/pets" summary="List" %}\n'
            '{% swagger-parameter in="query" name="limit" type="number" %}\nAt most.\n'
            "{% endswagger-parameter %}\n{% endswagger %}",
            "get /pets List\nlimit number\nAt most.",
        ),
        ('{% tab title="Linux" %} Run. {% endtab %}', "Linux Run."),
        ('{% hint style="info" %} Mind. {% endhint %}', "Mind."),
        ('Go to [b]({{ "/x" | url }}), [d]({% link a.md %}#e).', "Go to b, d."),
        ('See [a]({{< relref\n"#b" >}}) and {{< gh\n 12 >}}it.', "See a and it."),
        ('<a href="{{ "/x" | url }}">Text</a>', "Text"),
        ('{{< code file="a.html" lang="html" >}}\n<b>{{ .X }}</b>\n{{< /code >}}',
         "```html\n<b>{{ .X }}</b>\n```"),
        ('{{< code-toggle config="a" />}}\n\n*A*\n\n{{< code >}}\n*b*\n{{</ code >}}',
         "A\n\n```\n*b*\n```"),
        ("```liquid\n{% raw %}\n{{ x }}\n{% endraw %}\n```", "```liquid\n{{ x }}\n```"),
        ("- A\n  ```sh\n  {% raw %}\n  x\n  {% endraw %}\n  ```", "- A\n  ```sh\n  x\n  ```"),
        ("* TOC\n{:toc}\n\n# A\n{: .no_toc }\n\n* TOC", "# A\n\n* TOC"),
        ("So `{% raw %}{{ y }}{% endraw %}`, not `{% raw %}`.", "So `{{ y }}`, not `{% raw %}`."),
        ('{% code title="a.js" %}\n```js\na\n```\n{% endcode %}', "a.js\n```js\na\n```"),
        ('<pre class="language-md"><code><strong>## A\n</strong>{% b %} &lt;\n</code></pre>\n\nB',
         "```md\n## A\n{% b %} <\n```\n\nB"),
        ("<pre>a</pre> b", "```\na\n```\n b"),
        ("- a\n  <pre>\n  ```\n  </pre>", "- a\n  ~~~\n  ```\n  ~~~"),
        ("<table>\n  <tr>\n    <td>\n\n      <p>A <b>c</b></p>\n\n    </td>\n  </tr>\n</table>",
         "A c"),
        ("One\n<div>\n    \n</div>\n\n    code", "One\n\n    code"),
        ("{% highlight ruby %}\n*x* {{ y }}\n{% endhighlight %}", "```ruby\n*x* {{ y }}\n```"),
        ('{% include note.html content="Mind <b>the</b> [gap](x.md), it\'s **wide**." %} Go.',
         "Mind the gap, it's wide. Go."),
        ('<table><thead><tr><th></th><th data-hidden>Cover</th></tr></thead><tbody>'
         '<tr><td><h4>Start</h4></td><td><a href="a.svg">a.svg</a></td></tr>'
         "<tr><td>Sync</td><td>b.svg</td></tr></tbody></table>\n\nText.", "Start Sync \n\nText."),
        ('## {{% heading "next steps" %}}\n\n{{% version-check %}}\n\nText.',
         "## next steps\n\nText."),
        ("{% comment %}\nGone.\n{% endcomment %}\nText.", "Text."),
        ('{{< tab name="Go" >}}\nA {{< term text="Pod" id="p" >}}.', "Go\nA Pod."),
        ("::: tip\nInside.\n:::\n\n::: code-group\nText.\n:::", "Tip\n\nInside.\n\nText."),
        ("::: mkdocs-click\n    :module: a.b\n\nText.", "Text."),
        ('=== ":octicons-file-16: `a.toml`"\n\n    Text.', "`a.toml`\n\nText."),
        ("---\nv: 2\n---\nV {{page.v}}{{ site.x }}, ${{ site.y }}.", "V 2, ${{ site.y }}."),
        ("---\nsubstitutions:\n  n: A b\n---\nUse {{ n }}, {{ m }}.", "Use A b, {{ m }}."),
        ("{++new++} {--old--} {~~a~>b~~} {==c==}{>>why<<}.", "new  b c."),
        ("==mark== ^^new^^ ~~old~~ H~2~O 1^st^ 10^6^.", "mark new old H2O 1st 10^6."),
        ('Press ++"Go: Run"++ or ++cmd+"Ü"++.', "Press Go: Run or cmd+Ü."),
        ("<AppOnly>\n\nSeen.\n\n</AppOnly>\n\n<Check /> It.", "Seen.\n\n It."),
        ("Before <!-- a\nb --> after.\n\n<!-- c\n\nd -->\n\nEnd.", "Before  after.\n\nEnd."),
        ("A [guide][g] and [other].\n\n[g]: https://x.org", "A guide and [other]."),
        ("One<br>two &amp; three\\*.", "One two & three*."),
        ("*[HTML]: Hyper\n\nText.", "Text."),
        ("---\ntitle: x\n---\nText.", "Text."),
        ("See [[page|it]], [[page]].\n\n![[a.png]]\n\n%%no%% End.", "See it, [[page]].\n\n End."),
        ("````{tab-set}\n```{tab-item} Linux\nUse apt.\n```\n````", "Linux\n\nUse apt."),
        (":::{figure} a.png\n:alt: x\nCaption.\n:::\n\nEnd.", "Caption.\n\nEnd."),
        ("```{eval-rst}\nText.\n```\n\nEnd.", "Text.\n\nEnd."),
        ("+++\ntitle = 'x'\n+++\nText.", "Text."),
    ],
)  # fmt: skip
def test_markup_of_sites_is_not_seen(text, read):
    """Nobody asks about an anchor, and an include proves nothing."""
    assert seen(text) == read


def test_what_a_component_is_given_is_seen():
    """References of APIs list their parameters so, and nothing else of them is in the file."""
    text = (
        '<Badge text="New" type="tip" /> in {`2.0`}.\n\n<ParamField path="id" type="string" />\n\n'
        "<Table\n  content={[\n    {\n      name: \"limit\",\n      type: 'number',\n\n"
        '      description:\n        "How many {of} them.",\n      of: [{ a: { b: { c: 1 } } }],\n'
        '    },\n    { name: "skip" },\n  ]}\n/>\n\n{items.map((item) => (\n\n'
        "  <li>{item}</li>\n))}\n"
        "\n<Broken x={\n\nText."
    )

    assert seen(text, is_mdx=True) == (
        "New in 2.0.\n\nid string\n\nlimit number: How many {of} them.\nskip\n\n"
        "<Broken x={\n\nText."
    )


def test_front_matter_behind_empty_lines_is_not_seen():
    """Hugo reads it there, and a quarter of the pages of its own site have it so."""
    assert seen("\n\n---\ntitle: A\n---\n\nText.") == "Text."
    assert stated_title("\n+++\ntitle = 'A'\n+++\nText.") == "A"


@pytest.mark.parametrize(
    "text",
    [
        "\n---\n\nText between rules.\n\n---\n",
        "Call `f({ #x })` with [1] and a[0](x y).",
        "```\n{ #x }\n[a](b) **c** :::note\n!!! note\n```",
        "Text.\n\n    code with { #x } and [a](b)",
        "2 * 3 * 4, *args, **kwargs and snake_case_name.",
        "List<int> and <your-name> stay; a < b > c.",
        "---\n: : {{{ no yaml\n---\n\nText.",
        "!!! 100 percent\n\nText.",
        "Title\n=====\n\n=== ===\n\nText.",
        "<!-- never closed\n\nText.",
        "[^1]: A footnote.",
        "Use {{ variable }} and ${{ site.secret }} here.",
        "If a == b == c, x==y==z, ~10 to ~20, 2^n and C++ or g++ stay.",
        "Use <VERSION> and <Name> of Map<String, Integer>.",
        "Run `[[a|b]]`, [[-f x]] or [[-a|-b]]; 5%% and 6%%, %%s and %%d.",
    ],
)
def test_text_and_code_that_look_like_markup_stay(text):
    """What a reader sees must not get lost."""
    assert read_markdown(text).text == text


def test_components_and_imports_of_mdx_are_not_seen():
    """They are read by a bundler; labels of tabs are shown."""
    text = (
        "import Tabs from '@theme/Tabs';\nimport {\n  A,\n} from 'b';\n\n"
        "export const Foo = ({x}) => (\n  <b>{x}</b>\n);\n\n# Title\n\n"
        '<Tabs values={[{label: \'A\', value: {b: 1}}]}>\n  <TabItem value="m" label="macOS">\n\n'
        "    Use Homebrew.\n\n  </TabItem>\n</Tabs>\n\n{/* no */}\nA <Link to='/x'>link</Link>.\n"
    )

    assert seen(text) == "# Title\n\nA\nmacOS\n\nUse Homebrew.\n\nA link."


def test_labels_of_tabs_and_names_of_files_in_nextra_are_seen():
    """They stand in a list beside the tabs, or in tags with a dot."""
    text = (
        '<Tabs items={[\'npm\', "Deno 2"]} defaultIndex="1">\n'
        '  <Tabs.Tab>Run.</Tabs.Tab>\n  <Tabs.Tab name="bun">Hop.</Tabs.Tab>\n</Tabs>\n\n'
        '<FileTree.Folder name="src">\n  <FileTree.File name="a.ts" />\n</FileTree.Folder>\n'
    )

    assert seen(text, is_mdx=True) == "npm, Deno 2\nRun.\nbun Hop.\n\nsrc\na.ts"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("::tip{to='/x'}\nUse it.\n::\n\nEnd.", "Tip\n\nUse it.\n\nEnd."),
        ('::callout{icon="i" title="Fast"}\nUse it.\n#footer\nSo.\n::', "Fast\n\nUse it.\n\nSo."),
        ("::card\n---\nicon: i\ntitle: One\n---\nUse it.\n::", "One\nUse it."),
        (':read-more{title="Modes" to="/x"}\n\nA 1::2 of std::x.', "Modes\n\nA 1::2 of std::x."),
        (":::card-group\n::card\nUse it.\n::\n:::", "Use it."),
        (
            'Run `f`{lang="ts"}.\n\n::code-group\n```sh [npm]\nx\n```\n::',
            "Run `f`.\n\n```sh [npm]\nx\n```",
        ),
        ("::tip is no box, and\n:read-more no link.", "::tip is no box, and\n:read-more no link."),
    ],
)
def test_components_of_nuxt_are_boxes(text, read):
    """Their signs and values are for the builder; titles are seen."""
    assert seen(text) == read


def test_component_of_a_long_reference_is_read():
    """A page of the AI SDK gives one table 77,000 characters."""
    entry = '    { name: "limit", type: "number", description: "How many of them." },\n'

    read = seen("<Table\n  content={[\n" + entry * 1500 + "  ]}\n/>\n\nEnd.", is_mdx=True)

    assert read == "limit number: How many of them.\n" * 1500 + "\nEnd."


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<table><tr><td>Plan</td><td>Requests</td></tr><tr><td>Free</td></tr></table>\n\nEnd.",
         "Plan Requests Free\n\nEnd."),
        ("<details><summary>Why?</summary>The cache.</details>", "Why? The cache."),
        ("<ul><li>one</li><!-- c --><li><b>two</b></li></ul>", "one two"),
        ("<dl><dt>Term</dt><dd>Def</dd></dl>", "Term Def"),
        ("<p>First para</p><p>Second para</p>", "First para Second para"),
        ("<tr>\n<td>a</td>\n<td>b</td>\n</tr>", "a\nb"),
        ("<p>One</p><br><p>two</p>", "One two"),
        ("H<sub>2</sub>O and <kbd>Ctrl</kbd>+<kbd>C</kbd>", "H2O and Ctrl+C"),
        ('<TabItem label="Linux">Use apt</TabItem><TabItem label="macOS">Use brew</TabItem>',
         "Linux Use apt macOS Use brew"),
        ('<TabItem value="npm" default>Run it</TabItem>', "npm Run it"),
        ('<TabItem value="m" label="macOS">Run it</TabItem>', "macOS Run it"),
        ('<Admonition title="Info">Text</Admonition>', "Info Text"),
        ('<Card title="Keys" href="/x" description="Make one." />', "Keys Make one."),
        ('<Card description="Make one.">Now</Card>', "Make one. Now"),
    ],
)  # fmt: skip
def test_blocks_of_html_part_words(text, read):
    """`PlanRequests` is found by no query, and no quote of it is in the page."""
    assert seen(text, is_mdx=True) == read


def test_a_blank_that_parts_words_stands_at_its_tag():
    """Evidence behind it must lead into the file."""
    read = read_markdown("<p>One</p><p>Two</p>")

    assert [read.offset(place) for place in (0, 3, 4)] == [3, 6, 13]


def test_mdx_that_is_half_code_keeps_its_text():
    """A bracket that nobody closes must not swallow the page."""
    text = (
        "export const a = {\n\n# Title\n\nText <Foo bar={ that is never closed.\n" + "More.\n" * 300
    )

    assert "# Title\n\nText <Foo bar={ that is never closed." in seen(text, is_mdx=True)


@pytest.mark.parametrize("title", ["title: First", 'title: "First"', "title: 'First'"])
def test_title_comes_from_the_front_matter(title):
    """It is not seen in the text, and heads all paths."""
    assert stated_title(f"---\n{title}\n---\nText.") == "First"


@given(st.lists(st.sampled_from(PARTS), max_size=14), st.booleans())
def test_what_is_seen_leads_into_the_file(parts, is_mdx):
    """Offsets are of use where each character has its own, in order."""
    text = "\n".join(parts)
    read = read_markdown(text, is_mdx=is_mdx)
    offsets = [read.offset(place) for place in range(len(read.text))]

    assert offsets == sorted(offsets)
    assert all(offset < len(text) for offset in offsets)
    left_out = sum(length for _, length in read.hidden(0, len(read.text) or 1))
    assert not offsets or offsets[-1] - offsets[0] + 1 == len(read.text) + left_out


def test_chunks_lead_into_the_file(tmp_path):
    """A person who checks a quote opens the file."""
    text = (
        "---\ntitle: T\n---\n# One { #one }\n\nSee [the guide](https://x.org/a) **now**, it is.\n"
    )
    (tmp_path / "a.md").write_text(text)
    [document] = read_documents([tmp_path])

    [chunk] = chunk_document(document)

    assert chunk.text == "# One\n\nSee the guide now, it is."
    assert text[chunk.start : chunk.end].startswith("# One { #one }")
    at = chunk.text.index("guide now")
    assert text[chunk.offset(at) : chunk.end_offset(at + 9)] == "guide](https://x.org/a) **now"
    letters = laid_out(chunk, " ").text
    assert all(a in (" ", b) for a, b in zip(letters, text[chunk.start :], strict=False))


def test_anchors_change_no_chunk(tmp_path):
    """A site that gives its headings anchors says what it said."""
    sections = [f"## Part {n}\n\n{f'Sentence {n} of the part. ' * 12}\n\n" for n in range(12)]
    with_anchors = [part.replace("\n", f" {{ #part-{n} }}\n", 1) for n, part in enumerate(sections)]
    ids = []
    for parts in (sections, with_anchors):
        (tmp_path / "a.md").write_text("".join(parts))
        [document] = read_documents([tmp_path])
        ids.append([chunk.chunk_id for chunk in chunk_document(document)])

    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    "head", ["title: [unclosed", "a: {b: [1, 2]", 'a: ["x]"\nb: 1', "title: x\ntags: [a,\n  b"]
)
def test_front_matter_that_is_no_yaml_is_text(head):
    """It may be what the page says; a value that is cut off is no title."""
    text = f"---\n{head}\n---\n\nText.\n"

    assert read_markdown(text).text == text
    assert stated_title(text) == ""


@pytest.mark.parametrize(
    "head", ['tags: [a, "]", b] # [', "a: {b: [1,\n  2]}\nc: [it's]", "title: x [y\nb: |\n  c: ["]
)
def test_front_matter_of_closed_brackets_is_not_seen(head):
    """Lists and tables stand in the head of most pages."""
    assert read_markdown(f"---\n{head}\n---\n\nText.\n").text == "Text.\n"


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        ("```{list-table} Cap\n:header-rows: 1\n\n* - a\n  - b\n```\n", "Cap\n\n* - a\n  - b\n"),
        (":::{list-table} Cap\n:header-rows: 1\n\n* - a\n:::\n", "Cap\n\n* - a\n"),
        ("```{csv-table}\n:header: a, b\n\n1, 2\n```\n", "a, b\n\n1, 2\n"),
    ],
)
def test_captions_of_tables_in_myst_are_text(typed, seen):
    """A caption is no language of code."""
    assert read_markdown(typed).text.strip() == seen.strip()


def test_code_of_an_expression_in_one_line_is_not_seen():
    """MDX makes elements of it; a text in braces is text."""
    typed = "Before.\n\n{list.map(i => <li>{i.name}</li>)}\n\n{`kept`}\n"

    assert read_markdown(typed, is_mdx=True).text == "Before.\n\nkept\n"


@pytest.mark.parametrize(
    ("before", "now"),
    [("\n", " \t\n"), ("\n\n", "\n\n\n\n"), ("\n\n", "\n \n\t\n"), ("    ", "\t")],
)
def test_blanks_that_no_reader_sees_move_no_cut(tmp_path, before, now):
    """Chunks keep their ids, and so their grades, when an editor lays a file out otherwise."""
    part = "## Part\n\nSome words of it.\n\n::: pkg.name\n    options:\n\n- item\n    - inner\n\n"
    text = "# Title\n\n" + "".join(part.replace("words", f"{n} words") for n in range(40))
    (tmp_path / "a.md").write_text(text, "utf-8")
    chunks = chunk_document(*read_documents([tmp_path]))
    (tmp_path / "a.md").write_text(text.replace(before, now), "utf-8")

    laid_out = chunk_document(*read_documents([tmp_path]))

    assert [chunk.chunk_id for chunk in laid_out] == [chunk.chunk_id for chunk in chunks]


def test_empty_lines_of_code_stay():
    """Code is as it is written."""
    assert read_markdown("a\n\n\n```py\nx\n\n\ny\n```\n").text == "a\n\n```py\nx\n\n\ny\n```\n"
    assert read_markdown("a\n\n\n    x\n\n\n    y\n").text == "a\n\n    x\n\n\n    y\n"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("To 10<sup>6</sup> or 10<SUP>-6</SUP>.", "To 10^6 or 10^-6."),
        ("To 10^-6^, 9 m<sup>2</sup>.", "To 10^-6, 9 m^2."),
        ("To 10<sup>\u20136</sup>.", "To 10^\u20136."),
        ("The 2<sup>nd</sup> fee<sup>[1](#f)</sup>.", "The 2nd fee[1]."),
        ("Up to 100<sup><a href='#n'>1</a></sup> $, **10**<sup>6</sup>.", "Up to 100[1] $, 10^6."),
        ("Up to 100[<sup>1</sup>](#n), [10<sup>6</sup>](#n).", "Up to 100[1], 10^6."),
        ('Up to 100<sup id="a">[1](#n)</sup>.', "Up to 100[1]."),
        (
            'Up to 100<a href="#n"><sup>1</sup></a>, 8[[1]](#n), 9[^1].',
            "Up to 100[1], 8[1], 9[^1].",
        ),
        ("Fees<sup>1</sup>.<sup>2</sup>", "Fees1.2"),
        ("{sup}`a` Up to 10{sup}`6`.", "a Up to 10^6."),
    ],
)
def test_power_is_no_digit_of_its_number(text, read):
    """10 with a raised 6 is not 106; the number of a footnote is no power, and no digit."""
    assert read_markdown(text).text == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (":::{code-block} py\n:linenos:\n:caption: One\nx = 1\n:::", "```py\nOne\nx = 1\n```"),
        ("```{code-block} py\n:caption: One\nx = 1\n```", "```py\nOne\nx = 1\n```"),
        ("Text.\n\n:::{math}\nx = 1\n:::", "Text.\n\n```\nx = 1\n```"),
        ("```{note} T\n---\nclass: tip\nwidths:\n  - 1\n---\nIt.\n```", "T\n\nIt.\n"),
        (":::{figure} a.png\n---\nwidth: 9px\n---\nIts caption.\n:::", "Its caption.\n"),
        ("```{toctree}\n---\nmaxdepth: 2\n---\na\n```\n\nIt.", "It."),
        ("```{code-block} py\n---\ncaption: One\nname: a\n---\nx\n```", "```py\nOne\nx\n```"),
        (
            "- a\n\n  ```{code-block} py\n  ---\n  caption: |\n    One\n  name: a\n  ---\n"
            "  x\n  ```",
            "- a\n\n  ```py\n  One\n  x\n  ```",
        ),
        ("```{note}\n---\n\nNo options.\n\n---\n```", "Note\n\n---\n\nNo options.\n\n---\n"),
        ("```{math} e = 1\n---\nlabel: a\n---\n```", "```\ne = 1\n```"),
        ("```{py:data} T\n:value: 30\n:no-index:\n\nIts use.\n```", "T\n\nvalue: 30\n\nIts use.\n"),
    ],
)
def test_options_that_a_page_shows_are_read(text, read):
    """Captions and values are seen; what else a builder is told, or draws, is not."""
    assert read_markdown(text).text == read
