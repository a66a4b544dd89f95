package charset_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	htmlcharset "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"

	"github.com/drover-jobs/drover/plugins/internal/charset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	russian = "Широкая электрификация южных губерний даст мощный толчок подъёму сельского хозяйства. "
	german  = "Zwölf große Boxkämpfer jagen Viktor quer über den Sylter Deich – „schön“. "
)

func in(t testing.TB, label, text string) string {
	t.Helper()
	enc, _ := htmlcharset.Lookup(label)
	if enc == nil {
		t.Fatalf("no encoding %q", label)
	}
	out, err := encoding.ReplaceUnsupported(enc.NewEncoder()).String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The text comes out right wherever the true encoding is said, and whoever lies about it.
func TestDecode(t *testing.T) {
	t.Parallel()
	const decl = `<?xml version="1.0" encoding="`
	for name, c := range map[string]struct {
		body, contentType string
		want, wantName    string
	}{
		"plain utf-8":                  {german, "", german, "utf-8"},
		"utf-8 bom":                    {"\xef\xbb\xbf" + german, "", german, "utf-8"},
		"utf-8 labelled latin1":        {german, "text/xml; charset=iso-8859-1", german, "utf-8"},
		"utf-8 declared windows-1251":  {decl + `windows-1251"?>` + russian, "", russian, "utf-8"},
		"no label, long ascii head":    {strings.Repeat("a", 5000) + german, "", german, "utf-8"},
		"header":                       {in(t, "windows-1251", russian), "text/xml; charset=windows-1251", russian, "windows-1251"},
		"header doubled":               {in(t, "koi8-r", russian), "text/xml; charset=koi8-r; charset=koi8-r", russian, "koi8-r"},
		"header quoted":                {in(t, "koi8-r", russian), `text/xml;charset="KOI8-R"`, russian, "koi8-r"},
		"declaration":                  {decl + `windows-1251"?>` + in(t, "windows-1251", russian), "text/xml", russian, "windows-1251"},
		"declaration, single quotes":   {`<?xml version='1.0' encoding='iso-8859-1'?>` + in(t, "windows-1252", german), "", german, "windows-1252"},
		"meta":                         {`<meta charset=gb2312>` + in(t, "gbk", "中华人民共和国"), "", "中华人民共和国", "gbk"},
		"utf-8 label on windows-1251":  {decl + `utf-8"?>` + in(t, "windows-1251", strings.Repeat(russian, 5)), "", russian, "windows-1251"},
		"utf-8 label on windows-1252":  {in(t, "windows-1252", german), "text/xml; charset=utf-8", "Zwölf große", "windows-1252"},
		"no label, windows-1251":       {in(t, "windows-1251", strings.Repeat(russian, 5)), "", russian, "windows-1251"},
		"no label, shift_jis":          {in(t, "shift_jis", strings.Repeat("これは日本語の文章です。今日は天気がいい。", 10)), "", "これは日本語", "shift_jis"},
		"unknown label":                {in(t, "windows-1252", german), "text/xml; charset=klingon", "Zwölf große", "windows-1252"},
		"utf-16 bom":                   {"\xff\xfe" + in(t, "utf-16le", german), "", german, "utf-16le"},
		"utf-16 without bom":           {in(t, "utf-16be", decl+`utf-16"?>`+german), "", german, "utf-16be"},
		"iso-2022-jp":                  {in(t, "iso-2022-jp", "日本語"), "text/xml; charset=iso-2022-jp", "日本語", "iso-2022-jp"},
		"one bad byte in utf-8":        {german + "\xff" + german, "text/xml; charset=utf-8", german + "\uFFFD" + german, "utf-8"},
		"says utf-16 in one byte each": {decl + `utf-16"?>` + in(t, "windows-1252", german), "", "Zwölf große", "windows-1252"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := charset.Decode([]byte(c.body), c.contentType)
			if !strings.Contains(string(got.Text), c.want) {
				t.Errorf("got %.120q (%s, %v), want %q in it", got.Text, got.Name, got.Warnings, c.want)
			}
			if got.Name != c.wantName {
				t.Errorf("read as %s, want %s", got.Name, c.wantName)
			}
		})
	}
}

// Any bytes with any label give valid UTF-8 without a byte order mark, and valid UTF-8 is never changed.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(german), "text/xml; charset=utf-8")
	f.Add([]byte(in(f, "windows-1251", russian)), "")
	f.Add([]byte("\xff\xfe<\x00"), "")
	f.Add([]byte(`<?xml version="1.0" encoding="iso-2022-jp"?>`+"\x1b$B\x80"), "charset=")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		got := charset.Decode(body, contentType)
		if !utf8.Valid(got.Text) || got.Name == "" {
			t.Fatalf("%q became %q as %q", body, got.Text, got.Name)
		}
	})
}
