package event

// Severity returns how much a person should care about an event, as OCSF's
// severity_id: 1 informational, 2 low, 3 medium, 4 high.
func (ev *Event) Severity() int {
	var v view
	v.set(&EncoderOptions{}, ev)
	return int(v.severity)
}
