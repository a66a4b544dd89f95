package session

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/console/internal/screen"
)

// wordsTime bounds how long a person at a shell waits for completion.
const wordsTime = 300 * time.Millisecond

// offer answers a shell's completion script: what the last of the words could become, a line each. It says nothing else, whatever is wrong:
// the person is in the middle of a line. The code is command.Failed when that word could be a file.
func (s *Session) offer(ctx context.Context, words []string) command.Code {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	ctx, cancel := context.WithTimeout(ctx, wordsTime)
	defer cancel()
	offers := s.Complete(ctx, words)
	for _, o := range offers {
		if screen.Clean(o) != o {
			continue // what a terminal should not see is no help
		}
		if _, err := fmt.Fprintln(s.process.Out, o); err != nil {
			return command.Done // nobody reads it
		}
	}
	if _, plain := command.TakeCommon(words); len(offers) == 0 && s.tree.WantsFile(plain) {
		return command.Failed
	}
	return command.Done
}
