package repl

import (
	"context"
	"slices"
	"strings"

	"github.com/chzyer/readline"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// completer is what the editor asks at a Tab.
type completer struct {
	ctx    func() context.Context
	prompt *prompt
}

var _ readline.AutoCompleter = (*completer)(nil)

// Do returns what can be added before the cursor. Where there are several ways to go on it writes them above the prompt.
func (c *completer) Do(text []rune, cursor int) (additions [][]rune, length int) {
	words, plain := unfinished(text, cursor)
	if !plain {
		return nil, 0
	}
	last := words[len(words)-1]
	offers := c.prompt.session.Complete(c.ctx(), words)
	addition, several := Addition(last, offers)
	if addition != "" {
		return [][]rune{[]rune(addition)}, len([]rune(last))
	}
	if several {
		c.prompt.show(offers, words)
	}
	return nil, 0
}

// Addition is what all offers have in common behind the last word; a finished word gets a space. several is true when more than one
// offer is left.
func Addition(last string, offers []string) (addition string, several bool) {
	offers = slices.DeleteFunc(slices.Clone(offers), func(o string) bool { return !strings.HasPrefix(o, last) })
	if len(offers) == 0 {
		return "", false
	}
	common := offers[0]
	for _, o := range offers[1:] {
		for !strings.HasPrefix(o, common) {
			runes := []rune(common)
			common = string(runes[:len(runes)-1])
		}
	}
	addition = strings.TrimPrefix(common, last)
	if len(offers) == 1 && !strings.ContainsRune(":=.", rune(common[len(common)-1])) {
		addition += " "
	}
	return addition, len(offers) > 1
}

// show writes offers for the last of the words above the prompt, unless it was these that were written there last.
func (p *prompt) show(offers, words []string) {
	_, rows := p.terminal.Size()
	text := strings.Join(Columns(offers, words[len(words)-1], p.width(), max(1, rows/2)), "\n") + "\n"
	shown := strings.Join(words, " ") + "\n" + text
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting && p.offered != shown && p.stands() {
		p.offered = shown
		_, _ = p.editor.Stdout().Write([]byte(text)) // as in begin
	}
}

// Columns lays offers out in as many columns as there is room for, at most so many rows; of offers that begin alike, as settings of a
// queue do, only the rest is shown.
func Columns(offers []string, last string, width, rows int) []string {
	const gap = 2
	shown := make([]string, len(offers))
	head := last[:strings.LastIndexAny(last, ".:=")+1]
	widest := 0
	for i, o := range offers {
		shown[i] = screen.Cut(screen.Clean(strings.TrimPrefix(o, head)), width)
		widest = max(widest, screen.Width(shown[i]))
	}
	across := max(1, (width+gap-1)/(widest+gap))
	if room := across * rows; len(shown) > room {
		shown = append(shown[:max(0, room-1)], "...")
	}
	var lines []string
	for part := range slices.Chunk(shown, across) {
		var b strings.Builder
		for _, s := range part {
			b.WriteString(screen.Pad(s, widest+gap, false))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}
