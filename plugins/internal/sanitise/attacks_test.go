package sanitise_test

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/attacks.txt
var attackFile string

// handWritten is how many strings the file has, at least; they come first.
const handWritten = 400

var byteEscape = regexp.MustCompile(`\\x([0-9a-f]{2})`)

// attacks lists every attack string: those of the file, and each event handler, spelling of a scheme and place for an address
// combined with the others.
func attacks(t testing.TB) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(attackFile) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		line = byteEscape.ReplaceAllStringFunc(line, func(code string) string {
			n, err := strconv.ParseUint(code[2:], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			return string([]byte{byte(n)})
		})
		out = append(out, strings.ReplaceAll(line, `\\`, `\`))
	}
	for _, event := range strings.Fields(`abort afterprint animationend animationiteration animationstart auxclick beforecopy beforecut beforeinput beforeprint
		beforetoggle beforeunload begin blur cancel canplay canplaythrough change click close contextmenu copy cuechange cut dblclick drag dragend dragenter
		dragleave dragover dragstart drop durationchange emptied end ended error focus focusin focusout formdata fullscreenchange gotpointercapture hashchange
		input invalid keydown keypress keyup load loadeddata loadedmetadata loadstart lostpointercapture message mousedown mouseenter mouseleave mousemove
		mouseout mouseover mouseup mousewheel offline online pagehide pageshow paste pause play playing pointercancel pointerdown pointerenter pointerleave
		pointermove pointerout pointerover pointerrawupdate pointerup popstate progress ratechange repeat reset resize scroll scrollend search seeked seeking
		select selectionchange selectstart show slotchange stalled storage submit suspend timeupdate toggle touchcancel touchend touchmove touchstart
		transitioncancel transitionend transitionrun transitionstart unload volumechange waiting webkitanimationend wheel`) {
		for _, element := range []string{`p`, `img src=x`, `a href=x`, `video controls src=x`, `x-y`} {
			out = append(out, fmt.Sprintf("<%s on%s=hit() tabindex=1>x", element, event))
		}
	}
	schemes := []string{
		"javascript:hit()", "JAVASCRIPT:hit()", "\x01javascript:hit()", "java\tscript:hit()", "java&#10;script:hit()", "javascript&colon;hit()", "&#x20;javascript:hit()",
		"javascript&#x9;:hit()", "vbscript:hit()", "data:text/html,&lt;script&gt;parent.hit()&lt;/script&gt;", "data:image/svg+xml,&lt;svg onload=hit()&gt;",
	}
	for _, place := range []string{
		`<a href="%s">x</a>`, `<img src="%s">`, `<iframe src="%s"></iframe>`, `<embed src="%s">`, `<object data="%s"></object>`, `<form action="%s"><button>x</button></form>`,
		`<form><button formaction="%s">x</button></form>`, `<video src="%s" poster="%[1]s"></video>`, `<audio><source src="%s"></audio>`, `<blockquote cite="%s">x</blockquote>`,
		`<img srcset="%s 1x">`, `<img data-src="%s">`, `<svg><a href="%s"><text>x</text></a></svg>`, `<math><mi xlink:href="%s">x</mi></math>`, `<base href="%s"><a href=x>x</a>`,
		`<meta http-equiv=refresh content="0;url=%s">`, `<link rel=stylesheet href="%s">`, `<area href="%s">`, `<script src="%s"></script>`, `<input type=image src="%s">`,
		`<body background="%s">`, `<p style="background:url(%s)">x</p>`, `<picture><source srcset="%s"><img src=x></picture>`, `<noscript><img src="%s"></noscript>`,
	} {
		for _, scheme := range schemes {
			out = append(out, fmt.Sprintf(place, scheme))
		}
	}
	return out
}
