package sanitise_test

import (
	"bytes"
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/sanitise"
)

// pokes is a page's own script, the only one that may run: it counts the calls of hit, and does to everything below #content
// what a reader might: it points at it, clicks it, puts the cursor into it, sends its forms. Links to the web are not followed.
const pokes = `<script>
var hits = 0
function hit() { hits++; new Image().src = '/hit' }
window.alert = hit
addEventListener('load', function () {
	var all = document.querySelectorAll('#content *')
	all.forEach(function (e) {
		if (e.tagName === 'FORM') { try { e.submit() } catch (_) {} }
		if (/^https?:$/.test(e.protocol)) return
		if (e.focus && e.tabIndex >= 0) e.focus()
		'mouseover mouseenter mousemove mousedown mouseup focus pointerover pointerdown keydown input change toggle wheel'.split(' ').forEach(
			function (name) { e.dispatchEvent(new Event(name, {bubbles: true})) })
		if (e.click) e.click()
		else e.dispatchEvent(new MouseEvent('click', {bubbles: true}))
	})
	setTimeout(function () { document.title = 'hits=' + hits + ' pieces=' + document.querySelectorAll('#content > .piece').length }, 1500)
})
</script>`

var report = regexp.MustCompile(`<title>hits=(\d+) pieces=(\d+)</title>`)

// show opens a page that shows the pieces of HTML in a browser, and returns how often something ran, as the page and as the server
// saw it. The browser reaches nothing but that server.
func show(t *testing.T, browser string, pieces []string) (hits, beacons int) {
	t.Helper()
	var page strings.Builder
	page.WriteString("<!doctype html><meta charset=utf-8><title>none</title>" + pokes + "<body><div id=content>")
	for _, piece := range pieces {
		page.WriteString("\n<div class=piece>" + piece + "</div>")
	}
	page.WriteString("</div>")
	var seen atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(page.String()))
		case "/hit":
			seen.Add(1)
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=4000", "--dump-dom", site.URL+"/page")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var errors bytes.Buffer
	cmd.Stderr = &errors
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, errors.String())
	}
	m := report.FindSubmatch(dom)
	if m == nil {
		t.Fatalf("the page did not come to its end: %.2000s\n%.2000s", dom, errors.String())
	}
	hits, _ = strconv.Atoi(string(m[1]))
	if count, _ := strconv.Atoi(string(m[2])); count != len(pieces) {
		t.Errorf("the page has %d pieces, want %d: one of them broke out of its place", count, len(pieces))
	}
	return hits, int(seen.Load())
}

// No script runs in a browser that shows the outcome of every attack string; some of them shown as they come, scripts do run. What is
// proved for HTML holds for what a store keeps, which is its outcome.
func TestNoScriptRuns(t *testing.T) {
	t.Parallel()
	browser := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("no Chromium: make test installs it")
	}
	all := attacks(t)
	clean := make([]string, len(all))
	for i, attack := range all {
		clean[i] = sanitise.HTML(attack, base(t))
	}
	// As they come they would take the page down or each other out of action, so some of them stand in frames of their own, of which
	// each says once that something ran in it.
	var raw []string
	for i := 0; i < handWritten; i += 8 {
		inside := "<script>function hit(){ if (!window.was) { window.was = 1; parent.hit() } }</script>" + strings.ToValidUTF8(all[i], "\uFFFD")
		raw = append(raw, `<iframe srcdoc="`+html.EscapeString(inside)+`"></iframe>`)
	}
	if hits, beacons := show(t, browser, clean); hits != 0 || beacons != 0 {
		t.Errorf("scripts ran %d times, and the server heard %d calls", hits, beacons)
	}
	hits, beacons := show(t, browser, append(raw, `<img src=x onerror=hit()>`, `<a href="javascript:hit()">x</a>`, `<p onclick=hit()>x</p>`))
	t.Logf("%d of %d raw strings ran", hits-3, len(raw))
	if hits < 13 || beacons == 0 {
		t.Errorf("of %d raw strings only %d run in this browser, and the server heard %d: the test could not fail", len(raw), hits-3, beacons)
	}
}
