package repl

import (
	"context"
	"time"
)

const (
	pollEvery = 2 * time.Second
	pollTime  = time.Second            // the longest that a look may take beside the prompt
	lookTime  = 250 * time.Millisecond // and before it: a frozen manager must not keep the prompt away
)

// attend looks at the manager from time to time.
func (p *prompt) attend(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.ask(ctx, pollTime)
		case <-ctx.Done():
			return
		}
	}
}

// look is a quick look before the prompt is shown, so that its mark is right.
func (p *prompt) look(ctx context.Context) { p.ask(ctx, lookTime) }

// ask asks how the manager is doing, and changes the prompt when that has changed.
func (p *prompt) ask(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, err := p.session.Status(ctx)
	p.mu.Lock()
	before := p.state
	p.state = StateOf(before, status, err)
	now := p.state
	if text := now.Prompt(p.style()); p.waiting && text != before.Prompt(p.style()) && p.stands() {
		p.editor.SetPrompt(text)
		p.editor.Refresh()
	}
	p.mu.Unlock()
	if news := News(before, now, p.session.Address()); len(news) > 0 {
		p.above(news...)
	}
}
