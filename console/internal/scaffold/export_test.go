package scaffold

// Needed are the modules that a new go.mod requires.
func Needed() []string { return needed() }
