package api

import (
	"errors"
	"fmt"
	"os"
)

// Lend opens one more socket for workers, for those of another user: the file belongs to that user, and nobody else may connect
// (mode 0600). It may do what may be done on the plugins' socket. Call it before Run. Only root may give a file away.
func (s *Server) Lend(path string, uid int) error {
	lent, err := listen(path)
	if err != nil {
		return err
	}
	if err := os.Chown(path, uid, -1); err != nil {
		return errors.Join(fmt.Errorf("give the API's socket to user %d: %w", uid, err), lent.close())
	}
	s.lent = append(s.lent, lent)
	return nil
}
