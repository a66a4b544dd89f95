package icon_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/internal/icon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func picture(t testing.TB, width, height int) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, width, height))
	img.Set(0, 0, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// ico makes a Windows icon of frames.
func ico(frames ...string) string {
	out := binary.LittleEndian.AppendUint16([]byte{0, 0, 1, 0}, uint16(len(frames)))
	offset := 6 + 16*len(frames)
	for _, f := range frames {
		out = append(out, 32, 32, 0, 0, 1, 0, 32, 0)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(f)))
		out = binary.LittleEndian.AppendUint32(out, uint32(offset))
		offset += len(f)
	}
	return string(out) + strings.Join(frames, "")
}

const svg = `<?xml version="1.0"?><!-- a --><svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>`

// The type of an icon is that of its bytes, and what is none, or does more than to be looked at, is refused.
func TestInspect(t *testing.T) {
	t.Parallel()
	bitmap := strings.Repeat("b", 40)
	for name, c := range map[string]struct {
		data, want string
		width      int
	}{
		"png": {picture(t, 32, 32), "image/png", 32}, "too small": {picture(t, 1, 1), "", 0}, "svg": {svg, "image/svg+xml", 0}, "ico of bitmaps": {ico(bitmap), "image/x-icon", 32},
		"ico with a png": {ico(bitmap, picture(t, 48, 48), picture(t, 16, 16)), "image/png", 48}, "ico cut off": {ico(bitmap)[:30], "", 0}, "empty ico": {ico() + "xxxxxxxxxxxxxx", "", 0},
		"page": {"<!doctype html><svg></svg><title>x</title>", "", 0}, "svg in a page": {"<html><body><svg></svg>", "", 0}, "nothing": {"", "", 0}, "broken png": {picture(t, 32, 32)[:20], "", 0},
		"svg with a script": {strings.Replace(svg, "<path", "<script>x()</script><path", 1), "", 0}, "svg with a handler": {strings.Replace(svg, "<path", "<path\nonclick='x()'", 1), "", 0},
		"svg with a link": {strings.Replace(svg, "<path", "<a href='javascript:x()'/><path", 1), "", 0}, "svg with entities": {strings.Replace(svg, "<svg", "<!DOCTYPE svg [<!ENTITY a 'b'>]><svg", 1), "", 0},
		"gif": {"GIF89a\x20\x00\x20\x00\x00\x00\x00,\x00\x00\x00\x00", "image/gif", 32}, "webp": {"RIFF\x00\x00\x00\x00WEBPVP8 xxxx", "image/webp", 0},
	} {
		got, ok := icon.Inspect([]byte(c.data))
		if ok != (c.want != "") || ok && (got.Type != c.want || got.Width != c.width) {
			t.Errorf("%s: %s of %d, %v; want %q of %d", name, got.Type, got.Width, ok, c.want, c.width)
		}
	}
}

// Icons are looked for where the feed says, then where the page, then where the manifest says, then at the root of the site; each
// address goes through the guard.
func TestFind(t *testing.T) {
	t.Parallel()
	good, banner, dataIcon := picture(t, 32, 32), picture(t, 400, 60), "data:image/svg+xml;base64,"+base64.StdEncoding.EncodeToString([]byte(svg))
	for name, c := range map[string]struct {
		pages  map[string]string
		icon   string // of the feed
		site   string
		want   string // path of the icon, or ""
		rank   int
		asked  string // a path that has to be asked for
		absent string // one that must not be
	}{
		"feed":                    {map[string]string{"/i.png": good, "/": `<link rel=icon href=/p.png>`, "/p.png": good}, "/i.png", "/", "/i.png", icon.RankFeed, "", "/"},
		"banner of the feed":      {map[string]string{"/i.png": banner, "/": `<link rel=icon href=/p.png>`, "/p.png": good}, "/i.png", "/", "/p.png", icon.RankPage, "", ""},
		"page in a folder":        {map[string]string{"/blog/": `<link rel="SHORTCUT ICON" href="f.ico">`, "/blog/f.ico": good, "/favicon.ico": good}, "", "/blog/", "/blog/f.ico", icon.RankPage, "", "/favicon.ico"},
		"base of the page":        {map[string]string{"/": `<base href="/x/"><link rel=icon href=f>`, "/x/f": good}, "", "/", "/x/f", icon.RankPage, "", ""},
		"the sharper one":         {map[string]string{"/": `<link rel=icon sizes=16x16 href=/s><link rel=icon sizes=64x64 href=/l>`, "/s": good, "/l": good}, "", "/", "/l", icon.RankPage, "", ""},
		"data on the page":        {map[string]string{"/": `<link rel=icon href="` + dataIcon + `">`}, "", "/", dataIcon, icon.RankPage, "", "/favicon.ico"},
		"manifest":                {map[string]string{"/": `<link rel=manifest href=/m/a.json>`, "/m/a.json": `{"icons":[{"src":"i.png","sizes":"96x96"}]}`, "/m/i.png": good}, "", "/", "/m/i.png", icon.RankManifest, "", ""},
		"browserconfig":           {map[string]string{"/": `<meta name=msapplication-config content=/b.xml>`, "/b.xml": `<browserconfig><tile><square150x150logo src="/t.png"/></tile>`, "/t.png": good}, "", "/", "/t.png", icon.RankManifest, "", ""},
		"root":                    {map[string]string{"/favicon.ico": ico(good)}, "", "/blog/", "/favicon.ico", icon.RankRoot, "/blog/", ""},
		"root of the feed's host": {map[string]string{"/favicon.ico": good}, "", "", "/favicon.ico", icon.RankRoot, "/", ""},
		"an error page as icon":   {map[string]string{"/": `<link rel=icon href=/p>`, "/p": "<!doctype html><title>Not found</title>", "/favicon.ico": good}, "", "/", "/favicon.ico", icon.RankRoot, "", ""},
		"into a private network":  {map[string]string{"/": `<link rel=icon href="http://127.0.0.2:1/i"><link rel=manifest href="http://169.254.169.254/m">`}, "http://[::1]:1/i", "/", "", 0, "/favicon.ico", ""},
		"nothing":                 {map[string]string{}, "", "/", "", 0, "/favicon.ico", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			asked := make(map[string]bool)
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked[r.URL.Path] = true
				mu.Unlock()
				body, ok := c.pages[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "unknown")
				_, _ = w.Write([]byte(body))
			}))
			defer site.Close()
			client, err := fetch.New(fetch.Config{AllowNetworks: []string{"127.0.0.1/32"}})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			full := func(path string) string {
				if strings.HasPrefix(path, "/") {
					return site.URL + path
				}
				return path
			}
			got := icon.Find(t.Context(), client, &feed.Feed{URL: site.URL + "/feed", IconURL: full(c.icon), SiteURL: full(c.site)})
			if got.URL != full(c.want) || got.Rank != c.rank || (len(got.Data) > 0) != (c.want != "") {
				t.Errorf("found %s of rank %d with %d bytes, want %s of rank %d", got.URL, got.Rank, len(got.Data), full(c.want), c.rank)
			}
			mu.Lock()
			defer mu.Unlock()
			if c.asked != "" && !asked[c.asked] || asked[c.absent] {
				t.Errorf("asked for %v", asked)
			}
		})
	}
}

// No bytes make it stumble, and what it takes for a picture has a type.
func FuzzInspect(f *testing.F) {
	for _, seed := range []string{svg, ico("x"), picture(f, 32, 32), "BM", "RIFF....WEBP", "....ftypavif"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, ok := icon.Inspect(data); ok && (got.Type == "" || len(got.Data) == 0) {
			t.Errorf("%q is %+v", data, got)
		}
	})
}
