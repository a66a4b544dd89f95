package sanitise_test

import (
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/internal/sanitise"
)

// How long an entry of ordinary length takes; the migration that sanitises what is stored already depends on it.
func BenchmarkHTML(b *testing.B) {
	entry := strings.Repeat(`<p>A paragraph of <em>some</em> words with a <a href="/link?a=1&amp;b=2">link</a> and an <img src="/i.png" alt="image"> in it.</p>`+"\n", 20)
	address := base(b)
	b.SetBytes(int64(len(entry)))
	b.ReportAllocs()
	for b.Loop() {
		if out := sanitise.HTML(entry, address); len(out) < len(entry) {
			b.Fatal(out)
		}
	}
}
