package worker

// ForbidTracing makes the launcher behave as where ptrace(2) is forbidden. To be called before anything is started.
func (l *Launcher) ForbidTracing() { l.untraced = true }
