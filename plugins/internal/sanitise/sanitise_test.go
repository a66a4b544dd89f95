package sanitise_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/drover-jobs/drover/plugins/internal/sanitise"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func base(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse("https://example.com/blog/post.html")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Each case is a fragment of a kind that feeds hold, and what becomes of it.
func TestHTML(t *testing.T) {
	t.Parallel()
	const rel = ` rel="noopener noreferrer"`
	for name, c := range map[string]struct{ in, want string }{
		"text":                  {"plain text", "plain text"},
		"structure stays":       {`<h2>a</h2><p>b <em>c</em></p><ul><li>d</li></ul><pre><code class="language-go">e</code></pre>`, `<h2>a</h2><p>b <em>c</em></p><ul><li>d</li></ul><pre><code class="language-go">e</code></pre>`},
		"table stays":           {`<table border=1><tr><td colspan="2" onclick=x>a</td></tr></table>`, `<table><tbody><tr><td colspan="2">a</td></tr></tbody></table>`},
		"figure stays":          {`<figure><img src=a.png><figcaption>b</figcaption></figure>`, `<figure><img src="https://example.com/blog/a.png"/><figcaption>b</figcaption></figure>`},
		"details stay":          {`<details open><summary>a</summary>b</details>`, `<details open=""><summary>a</summary>b</details>`},
		"unknown is unwrapped":  {`<x-y><blink>a</blink> <font color=red>b</font></x-y><center>c</center>`, `a b<div>c</div>`},
		"form becomes a block":  {`<form action=x><label>a</label><input name=b><button>c</button></form>`, `<div>a</div>`},
		"script goes":           {`a<script>b</script><style>c</style>d`, `ad`},
		"foreign goes":          {`a<svg><text>b</text></svg><math><mi>c</mi></math>d`, `ad`},
		"handler goes":          {`<p onclick="x" style="color:red" id=a class=b>c</p>`, `<p>c</p>`},
		"comment goes":          {`a<!-- b -->c`, `ac`},
		"link":                  {`<a href="../x?a=1&amp;b=2#c" target=_blank>y</a>`, `<a href="https://example.com/x?a=1&amp;b=2#c"` + rel + `>y</a>`},
		"link to a part":        {`<a href="#fn1">1</a>`, `<a href="https://example.com/blog/post.html#fn1"` + rel + `>1</a>`},
		"link without scheme":   {`<a href="//other.example/x">y</a>`, `<a href="https://other.example/x"` + rel + `>y</a>`},
		"link to mail":          {`<a href="mailto:a@b.example">y</a>`, `<a href="mailto:a@b.example"` + rel + `>y</a>`},
		"link with spaces":      {"<a href=\" http://a.example/b c\n\">y</a>", `<a href="http://a.example/b%20c"` + rel + `>y</a>`},
		"link with bad percent": {`<a href="http://a.example/100%">y</a>`, `<a href="http://a.example/100%25"` + rel + `>y</a>`},
		"link to a script":      {`<a href="javascript&#9;:x">y</a>`, `y`},
		"anchor":                {`<a name=x>y</a>`, `y`},
		"decoded once":          {`<code>&lt;body onload=x&gt;</code> &amp;lt;b&amp;gt;`, `<code>&lt;body onload=x&gt;</code> &amp;lt;b&amp;gt;`},
		"bare signs":            {`a < b && c > d`, `a &lt; b &amp;&amp; c &gt; d`},
		"unclosed":              {`<p>a<b>c<div>d`, `<p>a<b>c</b></p><div><b>d</b></div>`},
		"raster in src":         {`<img src="data:image/png;base64,iVBO Rw0KGgo=">`, `<img src="data:image/png;base64,iVBORw0KGgo="/>`},
		"svg in src":            {`<img src="data:image/svg+xml,x" alt=a>`, ``},
		"image without source":  {`a<img alt=b>c`, `ac`},
		"tracker by size":       {`a<img src=x.gif width=1 height="1">b<img src=y.gif height=0>c<img src=z.gif style="width:1px;height:1px">`, `abc`},
		"tracker by place":      {`a<img src="https://feeds.feedburner.com/~r/x/~4/y">b<img src="https://pixel.wp.com/b.gif?x">c<img src="https://a.example/piwik.php?x">`, `abc`},
		"a line is no tracker":  {`<img src=x.gif width=500 height=1>`, `<img src="https://example.com/blog/x.gif" width="500" height="1"/>`},
		"lazy source":           {`<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" data-src=a.jpg class=lazy>`, `<img src="https://example.com/blog/a.jpg"/>`},
		"lazy set":              {`<img src="/img/placeholder.png" data-srcset="a.jpg 1x, b.jpg 2x">`, `<img srcset="https://example.com/blog/a.jpg 1x, https://example.com/blog/b.jpg 2x"/>`},
		"set only":              {`<img srcset="a.jpg 480w, b,c.jpg 800w" sizes="(max-width: 600px) 480px, 800px">`, `<img srcset="https://example.com/blog/a.jpg 480w, https://example.com/blog/b,c.jpg 800w" sizes="(max-width: 600px) 480px, 800px"/>`},
		"commas in a set":       {`<img src=x srcset="https://c.example/w_400,h_300/a.jpg 400w,https://c.example/w_800,h_600/a.jpg 800w">`, `<img src="https://example.com/blog/x" srcset="https://c.example/w_400,h_300/a.jpg 400w, https://c.example/w_800,h_600/a.jpg 800w"/>`},
		"picture":               {`<picture><source srcset="a.webp" type="image/webp"><source><img src=a.jpg></picture>`, `<picture><source srcset="https://example.com/blog/a.webp" type="image/webp"/><img src="https://example.com/blog/a.jpg"/></picture>`},
		"noscript twin":         {`<img class=lazy src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" data-src=a.jpg><noscript><img src=a.jpg alt=b></noscript>`, `<img src="https://example.com/blog/a.jpg" alt="b"/>`},
		"noscript twin first":   {`<noscript><img src=a.jpg></noscript> <img data-lazy-src=a.jpg>`, `<img src="https://example.com/blog/a.jpg"/>`},
		"twin in a figure":      {`<figure><a href=/x><img data-src=a.jpg></a><noscript><img src=a.jpg></noscript></figure>`, `<figure><a href="https://example.com/x"` + rel + `><img src="https://example.com/blog/a.jpg"/></a></figure>`},
		"noscript alone":        {`<p>a</p><noscript><img src=a.jpg></noscript>`, `<p>a</p><img src="https://example.com/blog/a.jpg"/>`},
		"noscript of another":   {`<img src=b.jpg><noscript><img src=a.jpg></noscript>`, `<img src="https://example.com/blog/b.jpg"/><img src="https://example.com/blog/a.jpg"/>`},
		"known player":          {`<iframe src="//www.youtube.com/embed/x?y=1" width=560 height=315 frameborder=0 allowfullscreen>a<b>c</b></iframe>`, `<iframe src="https://www.youtube.com/embed/x?y=1" width="560" height="315" allowfullscreen="" sandbox="allow-scripts allow-same-origin allow-presentation allow-popups" referrerpolicy="strict-origin-when-cross-origin" loading="lazy"></iframe>`},
		"lazy player":           {`<iframe src="about:blank" data-src="http://player.vimeo.com/video/1"></iframe>`, `<iframe src="https://player.vimeo.com/video/1" sandbox="allow-scripts allow-same-origin allow-presentation allow-popups" referrerpolicy="strict-origin-when-cross-origin" loading="lazy"></iframe>`},
		"unknown frame":         {`a<iframe src="https://ads.example/x"><p>b</p></iframe>c`, `ac`},
		"blocked embed":         {`a<object data=x><p>b</p><embed src=y></object>c`, `ac`},
		"sound":                 {`<audio autoplay src=a.mp3></audio>`, `<audio src="https://example.com/blog/a.mp3" controls="" preload="none"></audio>`},
		"film":                  {`<video poster=p.jpg><source src=a.mp4 type="video/mp4"></video>`, `<video poster="https://example.com/blog/p.jpg" controls="" preload="none"><source src="https://example.com/blog/a.mp4" type="video/mp4"/></video>`},
		"nothing to play":       {`a<video>b</video>c`, `ac`},
		"base of an element":    {`<div xml:base="/a/"><x xml:base="b/"><img src=c.png></x><img src=d.png></div><img src=e.png>`, `<div><img src="https://example.com/a/b/c.png"/><img src="https://example.com/a/d.png"/></div><img src="https://example.com/blog/e.png"/>`},
		"dir and lang":          {`<p dir=rtl lang=he title="&quot;a&quot;">b</p>`, `<p dir="rtl" lang="he" title="&#34;a&#34;">b</p>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sanitise.HTML(c.in, base(t))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			inspect(t, c.in, got)
		})
	}
}

// Without a base, relative addresses have no meaning and go; absolute ones stay.
func TestNoBase(t *testing.T) {
	t.Parallel()
	got := sanitise.HTML(`<a href=x>a</a><img src=y><img src=http://a.example/z>`, nil)
	if want := `a<img src="http://a.example/z"/>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Text has no mark-up, and its references are decoded once.
func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a": "a", " a \n b ": "a b", "<b>a</b>b": "ab", "<p>a</p><p>b</p>": "a b", "a &amp; b": "a & b", "&amp;lt;b&amp;gt;": "&lt;b&gt;",
		"a<script>b</script>c": "ac", "a < b": "a < b", "&lt;script&gt;": "<script>", "a<br>b": "a b", "x\x00y": "xy",
	} {
		if got := sanitise.Text(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := sanitise.FromText(`a <b> & "c"`); got != "a &lt;b&gt; &amp; &#34;c&#34;" {
		t.Errorf("from text: %s", got)
	}
}

// Nothing that is not on the list survives, in any of the attack strings, and what was written is a fixed point.
func TestAttacks(t *testing.T) {
	t.Parallel()
	all := attacks(t)
	if len(all) < 900 {
		t.Fatalf("only %d attack strings", len(all))
	}
	for _, attack := range all {
		inspect(t, attack, sanitise.HTML(attack, base(t)))
	}
}

// The inspection that the other tests rely on sees what is wrong.
func TestInspectionCanFail(t *testing.T) {
	t.Parallel()
	missed := 0
	for _, attack := range attacks(t) {
		if strings.Contains(attack, "<") && len(problems(attack)) == 0 {
			missed++
			t.Logf("not seen: %q", attack)
		}
	}
	if missed > 45 { // a fragment has no body tag, and some strings are harmless as they stand
		t.Errorf("the inspection sees nothing wrong in %d attack strings", missed)
	}
}

// inspect fails when the outcome holds anything that is not allowed, or is no fixed point.
func inspect(t testing.TB, in, out string) {
	t.Helper()
	for _, problem := range problems(out) {
		t.Errorf("%q\ngives %q:\n%s", in, out, problem)
	}
	if again := sanitise.HTML(out, nil); again != out {
		t.Errorf("%q\ngives %q,\nand that %q", in, out, again)
	}
}

// problems judges HTML by rules that are written down here once more, on purpose.
func problems(out string) (found []string) {
	if !utf8.ValidString(out) || strings.ContainsRune(out, 0) {
		found = append(found, "not clean UTF-8")
	}
	for _, scripting := range []bool{false, true} {
		nodes, err := html.ParseFragmentWithOptions(strings.NewReader(out), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}, html.ParseOptionEnableScripting(scripting))
		if err != nil {
			return append(found, err.Error())
		}
		for _, root := range nodes {
			found = append(found, problemsOf(root)...)
			for n := range root.Descendants() {
				found = append(found, problemsOf(n)...)
			}
		}
	}
	return found
}

var goodElements = regexp.MustCompile(`^(?:a|abbr|acronym|address|article|aside|audio|b|bdi|bdo|big|blockquote|br|caption|cite|code|col|colgroup|dd|del|details|dfn|div|dl|dt|em|` +
	`figcaption|figure|footer|h[1-6]|header|hgroup|hr|i|iframe|img|ins|kbd|li|main|mark|ol|p|picture|pre|q|rp|rt|ruby|s|samp|section|small|source|span|strike|` +
	`strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|time|tr|tt|u|ul|var|video|wbr)$`)

var goodAddresses = map[string]*regexp.Regexp{
	"href": regexp.MustCompile(`^(?:https?://[^/]|mailto:|tel:|ftp:|gemini:|magnet:|xmpp:)`), "cite": regexp.MustCompile(`^https?://[^/]`), "poster": regexp.MustCompile(`^https?://[^/]`),
	"src": regexp.MustCompile(`^(?:https?://[^/]|data:image/(?:png|gif|jpe?g|webp|avif|bmp);base64,[A-Za-z0-9+/]+=*$)`), "srcset": regexp.MustCompile(`^https?://[^/]`),
}

const harmless = " alt title width height dir lang rel open controls preload muted loop colspan rowspan align scope span start reversed value type media sizes datetime class allowfullscreen sandbox referrerpolicy loading "

func problemsOf(n *html.Node) (found []string) {
	switch n.Type {
	case html.TextNode:
		return nil
	case html.ElementNode:
	default:
		return []string{"a node that is neither text nor element"}
	}
	if n.Namespace != "" || !goodElements.MatchString(n.Data) {
		found = append(found, "the element "+n.Namespace+" "+n.Data)
	}
	if n.Data == "iframe" && n.FirstChild != nil {
		found = append(found, "a frame with content")
	}
	sandboxed := n.Data != "iframe"
	for _, a := range n.Attr {
		pattern, address := goodAddresses[a.Key]
		switch {
		case a.Namespace != "" || !address && !strings.Contains(harmless, " "+a.Key+" "):
			found = append(found, "the attribute "+a.Key)
		case address && !pattern.MatchString(a.Val):
			found = append(found, "the address "+a.Val)
		case a.Key == "src" && strings.HasPrefix(a.Val, "data:") && n.Data != "img":
			found = append(found, "data outside of an image")
		}
		sandboxed = sandboxed || a.Key == "sandbox" && a.Val != ""
	}
	if !sandboxed {
		found = append(found, "a frame without a sandbox")
	}
	return found
}

// Whatever comes in, nothing outside of the list goes out, and a second time changes nothing.
func FuzzHTML(f *testing.F) {
	for _, attack := range attacks(f) {
		f.Add(attack)
	}
	f.Add(`<p>a<a href="x">b<img src=y data-src=z><noscript><img src=z></noscript><iframe src="//www.youtube.com/embed/x">`)
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 20_000 {
			return
		}
		inspect(t, in, sanitise.HTML(in, base(t)))
		if text := sanitise.Text(in); utf8.ValidString(in) && !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n") {
			t.Errorf("the text of %q is %q", in, text)
		}
	})
}
