package command

import "context"

// KindLeave is the kind of the ExitError with which a command leaves the prompt or the script.
const KindLeave = "leave"

func exitCommand() *Command {
	return &Command{
		Section:  SectionConsole,
		Name:     "exit",
		Summary:  "leave the prompt, as Ctrl-D does; in a script, end it",
		Examples: []Example{{`drover exit`, "do nothing, well"}},
		Offline:  true,
		Run: func(context.Context, *Env, *Args) error {
			return &ExitError{Code: Done, Kind: KindLeave, Told: true}
		},
	}
}
