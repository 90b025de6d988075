package config

import "strings"

// Operators says who may order something, to who checks it.
type Operators struct {
	Principals []string // Kafka's: User:dpo
}

// Section returns its setting.
func (o *Operators) Section() Section {
	return Section{"Who governs", []Setting{{
		Name: "control-principals", Help: "The principals that may write to the control topic: operators and ledgerlake-compact, as Kafka's ACLs call them. Any other one that may is told.",
		Value: texts(&o.Principals, "PRINCIPAL", "a principal, such as User:dpo", isPrincipal),
	}}}
}

func isPrincipal(text string) bool {
	kind, name, ok := strings.Cut(text, ":")
	return ok && kind != "" && name != ""
}
