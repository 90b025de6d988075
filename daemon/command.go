package daemon

import (
	"fmt"
	"strings"
)

// UnknownCommand says that a program has no command of a name, "" where none was
// given, and which it has: two at least. The error wraps usage.
func UnknownCommand(usage error, name string, commands ...string) error {
	last := len(commands) - 1
	want := "want " + strings.Join(commands[:last], ", ") + " or " + commands[last] + "; --help says more"
	if name == "" {
		return fmt.Errorf("%w: no command: %s", usage, want)
	}
	return fmt.Errorf("%w: no command %q: %s", usage, name, want)
}
