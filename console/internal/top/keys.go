package top

// A key is what a person pressed.
type key int

const (
	keyNone key = iota
	keyQuit
	keyUp
	keyDown
	keySwitch
	keySort
	keyPause
	keyKill
	keyRestart
	keyHelp
	keyYes
	keyEscape // or anything else that answers a question with no
	keySuspend
	keyRedraw
)

// keysOf reads the keys in a chunk of what a terminal sent. Sequences that mean nothing here are skipped whole.
func keysOf(chunk []byte) []key {
	var keys []key
	for i := 0; i < len(chunk); i++ {
		if chunk[i] != 0x1b {
			keys = append(keys, plainKey(chunk[i]))
			continue
		}
		if i+1 == len(chunk) || chunk[i+1] != '[' && chunk[i+1] != 'O' {
			keys = append(keys, keyEscape)
			continue
		}
		i += 2
		for i < len(chunk) && (chunk[i] < 0x40 || chunk[i] > 0x7e) { // parameters
			i++
		}
		if i < len(chunk) {
			keys = append(keys, arrowKey(chunk[i]))
		}
	}
	return keys
}

func arrowKey(last byte) key {
	switch last {
	case 'A':
		return keyUp
	case 'B':
		return keyDown
	case 'C', 'D', 'Z': // left, right, Shift-Tab
		return keySwitch
	default:
		return keyNone
	}
}

func plainKey(c byte) key {
	const ctrlC, ctrlL, ctrlZ = 3, 12, 26
	switch c {
	case 'q', ctrlC:
		return keyQuit
	case 'k':
		return keyUp
	case 'j':
		return keyDown
	case '\t':
		return keySwitch
	case 's':
		return keySort
	case 'p':
		return keyPause
	case 'K':
		return keyKill
	case 'r':
		return keyRestart
	case 'h', '?':
		return keyHelp
	case 'y', 'Y':
		return keyYes
	case ctrlZ:
		return keySuspend
	case ctrlL:
		return keyRedraw
	default:
		return keyEscape
	}
}
