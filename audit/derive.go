package audit

import "slices"

// Derive returns the columns that repeat what a decision slot says: null where
// the slot is null, where it is not the text of a JSON object that a scanner
// would let pass, and for each member that is not of its column's type. They
// share memory with the slot. Source: docs/format.md, section 3.4.
func Derive(decision []byte) Derived {
	if len(decision) == 0 || len(decision) > MaxValueBytes {
		return Derived{}
	}
	w := workspaces.Get().(*workspace)
	defer w.release()
	if w.scan.scan(decision, 0) != nil || w.scan.root != typeObject {
		return Derived{}
	}
	from := skipSpace(decision, 0)
	return derive(decision[from:])
}

// derive is Derive for the valid text of an object, or nil.
func derive(decision []byte) Derived {
	var d Derived
	if decision == nil {
		return d
	}
	for n, v := range membersOf(decision) {
		value := decision[v.from:v.to]
		switch unescaped(decision[n.from:n.to]) {
		case "requestedModel":
			d.RequestedModel = textOf(value)
		case "selectedReason":
			d.SelectedReason = textOf(value)
		case "rungOrdinal":
			d.RungOrdinal = intOf(value)
		case "fallbackChain":
			d.FallbackChain = textsOf(value)
		}
	}
	return d
}

// textOf returns the text of a value that is a string, else null.
func textOf(value []byte) Text {
	if value[0] != '"' {
		return Text{}
	}
	return Str(unescaped(value[1 : len(value)-1]))
}

// intOf returns the integer of a value that is one, else null.
func intOf(value []byte) Int {
	if value[0] != '-' && !isDigit(value[0]) {
		return Int{}
	}
	n, reason := exactInt(value)
	if reason != "" {
		return Int{}
	}
	return I64(n)
}

// textsOf returns the texts of a value that is an array of strings, else nil.
func textsOf(value []byte) []string {
	if value[0] != '[' {
		return nil
	}
	texts := []string{}
	for i, at := range elementsOf(value) {
		t := textOf(value[at.from:at.to])
		if !t.Valid {
			return nil
		}
		if i == 0 {
			texts = slices.Grow(texts, 4)
		}
		texts = append(texts, t.S)
	}
	return texts
}
