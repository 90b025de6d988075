package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/kafkasink"
	"github.com/ledgerlake/ledgerlake/internal/strictyaml"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// DestinationsKey is the member of the file of --config that lists destinations.
const DestinationsKey = "destinations"

// A Destination is one entry of that list.
type Destination struct {
	Name   string
	Type   string
	Format event.Format
	Limits sink.Limits

	Tenants, Kinds, Stages, Status []string // of the filter; empty lets all through

	Block    bool // on-poison: block
	MaxDead  int
	Heads    bool
	Content  bool
	Verify   bool
	FromNow  bool
	Linger   time.Duration
	Stepwise bool // what the type wants

	// Spec is all that was set, without secrets: a name and a value a line, sorted.
	// Of a secret it has the name of its file or variable.
	Spec string
	// ArchiveID and Version, of the product, are for drivers that say them. Who opens
	// a destination sets them.
	ArchiveID, Version string
	// Archive is where the rows come from: no file is put there. Who opens a
	// destination sets it.
	Archive *s3sink.Bucket
	// Brokers returns how brokers of Kafka are reached. Who opens a destination sets
	// it: package kafka imports this one.
	Brokers func(ctx context.Context, brokers []string, k *Kafka) (kafkasink.Connection, error)

	open func(context.Context, *Destination) (sink.Sink, error)
}

// Open returns the destination's driver. Nothing is reached yet.
func (d *Destination) Open(ctx context.Context) (sink.Sink, error) { return d.open(ctx, d) }

// A sinkType is a kind of destination: its settings, and what they open. A new one
// is made for each destination, so that its settings are bound to values of its
// own.
type sinkType struct {
	settings []Setting // their names are those of members; a dot is a level
	// check finds what lies between settings; nil: nothing does. It names a setting.
	check func() (name, fault string)
	// open makes the driver.
	open func(context.Context, *Destination) (sink.Sink, error)

	help     string
	format   event.Format   // where none is set; "" is our JSON
	formats  []event.Format // that make sense; nil: all
	linger   time.Duration  // where none is set
	stepwise bool           // cursors are stored before the next batch
}

// sinkTypes are the types of destinations. A driver is added here, and nowhere
// else.
func sinkTypes() map[string]func() *sinkType {
	types := map[string]func() *sinkType{}
	for _, some := range []map[string]func() *sinkType{fileTypes, httpTypes, lakeTypes, netTypes} {
		maps.Copy(types, some)
	}
	return types
}

// SinkTypes returns the names of the types of destinations.
func SinkTypes() []string { return slices.Sorted(maps.Keys(sinkTypes())) }

// SinkSettings returns the settings of destinations of a type, those that all have
// first.
func SinkSettings(name string) []Section {
	var d Destination
	t := sinkTypes()[name]()
	return []Section{{"Of any destination", d.settings(&sinkType{})}, {"Of type " + name, t.settings}}
}

// SinkHelp says in a line what a type is.
func SinkHelp(name string) string { return sinkTypes()[name]().help }

var destinationName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// settings are those that every destination has.
func (d *Destination) settings(t *sinkType) []Setting {
	formats := make([]string, 0, len(event.Formats))
	for _, f := range event.Formats {
		if t.formats == nil || slices.Contains(t.formats, f) {
			formats = append(formats, string(f))
		}
	}
	var poison, from string
	return []Setting{
		{Name: "format", Default: string(cmp.Or(t.format, event.JSON)), Help: "The form in which events leave (docs/export-mappings.md).", Value: oneOf((*string)(&d.Format), formats...)},
		{Name: "filter.tenants", Help: "Only rows of these tenants.", Value: texts(&d.Tenants, "TENANT", "a tenant id", notEmpty)},
		{Name: "filter.kinds", Help: "Only rows of these kinds.", Value: texts(&d.Kinds, "KIND", "a kind of rows, such as call, decision or rejected", notEmpty)},
		{Name: "filter.stages", Help: "Only rows of these stages (stageId).", Value: texts(&d.Stages, "STAGE", "a stage", notEmpty)},
		{Name: "filter.status", Help: "Only rows of this status (outcome.status).", Value: texts(&d.Status, "STATUS", "a status", notEmpty)},
		{Name: "limits.batch-events", Help: "So many events at most are sent at once.", Value: count(&d.Limits.Events, 1, 1_000_000)},
		{Name: "limits.batch-bytes", Help: "So many bytes at most are sent at once.", Value: size(&d.Limits.BatchBytes, 1<<10, 1<<30)},
		{Name: "limits.event-bytes", Help: "A record that is larger is sent as its pointer: its place and its hashes, without its content.", Value: size(&d.Limits.EventBytes, 1<<10, 1<<30)},
		{
			Name: "on-poison", Default: "dead-letter", Help: "What becomes of an event that the destination will never take. dead-letter: it is recorded below export/ in the bucket, and can be sent again; block: its log waits, and other logs go on.",
			Value: single("dead-letter|block", "one of dead-letter, block", func(s string) error {
				poison = s
				d.Block = s == "block"
				return oneOf(&poison, "dead-letter", "block").set([]string{s})
			}),
		},
		{Name: "max-dead", Default: "1000", Help: "After so many dead letters in a row the destination is suspended: what refuses everything is set up wrongly. 0: never.", Value: count(&d.MaxDead, 0, 1_000_000_000)},
		{Name: "heads", Default: "true", Help: "Send what anchors say of each log, so that the receiver can hold the archive to it.", Value: boolean(&d.Heads)},
		{Name: "content", Default: "true", Help: "Send each record as it was sent by its producer, in the formats that have a place for it. false: only what the format's own fields say of it.", Value: boolean(&d.Content)},
		{Name: "verify", Default: "true", Help: "Check each row by its hash before it leaves. false: send it unchecked, and say so.", Value: boolean(&d.Verify)},
		{
			Name: "from", Default: "beginning", Help: "Where a destination that is new begins: at the beginning of the archive, or with what is archived from now on. ledgerlake-export backfill sends older rows later.",
			Value: single("beginning|now", "one of beginning, now", func(s string) error {
				d.FromNow = s == "now"
				return oneOf(&from, "beginning", "now").set([]string{s})
			}),
		},
		{Name: "linger", Default: FormatDuration(t.linger), Help: "How long rows may wait for others, to be sent with them. Types that write files have 1m where nothing is set.", Value: duration(&d.Linger, 0, time.Hour)},
	}
}

// Destinations reads the destinations that a file lists. environ is where
// variables of secrets are looked up. A file without the list gives none; what is
// wrong is an [Error].
func Destinations(path string, environ []string) ([]Destination, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{Name: FileFlag, Source: path, Fault: err.Error()}
	}
	all, err := parseDestinations(body, environ)
	if err != nil {
		return nil, &Error{Source: "file " + path, Fault: err.Error()}
	}
	return all, nil
}

func parseDestinations(body []byte, environ []string) (all []Destination, err error) {
	top, some, err := strictyaml.Document(body)
	if err != nil || !some {
		return nil, err
	}
	members, err := top.Members()
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name != DestinationsKey {
			continue
		}
		list, err := m.Value.List("destinations")
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			d, err := parseDestination(n, environ)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(all, func(o Destination) bool { return o.Name == d.Name }) {
				return nil, n.Fault("there is another destination %q", d.Name)
			}
			all = append(all, *d)
		}
	}
	return all, nil
}

// A member is a value of a destination, with its name as settings have it.
type member struct {
	name string
	node strictyaml.Node
}

func parseDestination(n strictyaml.Node, environ []string) (*Destination, error) {
	members, err := n.Members()
	if err != nil {
		return nil, err
	}
	d := &Destination{}
	for _, m := range members {
		switch m.Name {
		case "name":
			if d.Name, err = m.Value.Text("a name"); err == nil && !destinationName.MatchString(d.Name) {
				err = m.Value.Fault("want lower-case letters, digits and dashes, 63 at most, beginning with a letter or a digit")
			}
		case "type":
			d.Type, err = m.Value.Text("one of " + strings.Join(SinkTypes(), ", "))
			if err == nil && sinkTypes()[d.Type] == nil {
				err = m.Value.Fault("no type %s: want one of %s", quoteShort(d.Type), strings.Join(SinkTypes(), ", "))
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if d.Name == "" {
		return nil, n.Fault("no name: a destination needs one, which stays: its cursors go by it")
	}
	if d.Type == "" {
		return nil, n.Fault("no type: want one of %s", strings.Join(SinkTypes(), ", "))
	}
	return d, d.read(n, environ)
}

// read fills in all but name and type.
func (d *Destination) read(n strictyaml.Node, environ []string) error {
	t := sinkTypes()[d.Type]()
	settings := slices.Concat(d.settings(t), t.settings)
	given, err := flattenNode(n, "", settings)
	if err != nil {
		return err
	}
	spec := []string{"type: " + d.Type}
	set := map[string]bool{}
	for _, m := range given {
		if m.name == "name" || m.name == "type" {
			continue
		}
		line, name, err := setMember(m, settings, environ)
		if err != nil {
			return err
		}
		if set[name] {
			return m.node.Fault("%s is set twice", name)
		}
		set[name] = true
		spec = append(spec, line)
	}
	for _, s := range settings {
		switch {
		case set[s.Name]:
		case s.Default != "":
			if err := s.Value.set(splitList(s, s.Default)); err != nil {
				return n.Fault("default of %s: %v", s.Name, err)
			}
		case s.Required && s.Value.secret:
			return n.Fault("no %s-file or %s-env: want a file, or an environment variable, with %s", s.Name, s.Name, s.Value.Allowed)
		case s.Required:
			return n.Fault("no %s: want %s", s.Name, s.Value.Allowed)
		}
	}
	if t.check != nil {
		if name, fault := t.check(); fault != "" {
			return n.Fault("%s: %s", name, fault)
		}
	}
	slices.Sort(spec)
	d.Spec, d.Stepwise = strings.Join(spec, "\n"), t.stepwise
	d.open = t.open
	return nil
}

// flattenNode returns the values of a mapping, by names with dots.
func flattenNode(n strictyaml.Node, prefix string, settings []Setting) (all []member, err error) {
	members, err := n.Members()
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		name := prefix + m.Name
		if slices.ContainsFunc(settings, func(s Setting) bool { return strings.HasPrefix(s.Name, name+".") }) {
			below, err := flattenNode(m.Value, name+".", settings)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
			continue
		}
		all = append(all, member{name, m.Value})
	}
	return all, nil
}

// The ends of names that say where a secret is.
const (
	secretFile = "-file"
	secretEnv  = "-env"
)

// setMember sets what a member is about, and returns its line of the spec, and the
// setting's name.
func setMember(m member, settings []Setting, environ []string) (line, name string, err error) {
	find := func(name string) *Setting {
		i := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name })
		if i < 0 {
			return nil
		}
		return &settings[i]
	}
	if s := find(m.name); s != nil {
		if s.Value.secret {
			return "", "", m.node.Fault("a secret does not stand here: use %s%s or %s%s", s.Name, secretFile, s.Name, secretEnv)
		}
		values, err := m.texts(s)
		if err != nil {
			return "", "", err
		}
		if err := s.Value.set(values); err != nil {
			return "", "", m.fault(s, values, err)
		}
		return m.name + ": " + shown(s, values), m.name, nil
	}
	for _, end := range []string{secretFile, secretEnv} {
		name, ok := strings.CutSuffix(m.name, end)
		if s := find(name); ok && s != nil && s.Value.secret {
			from, err := m.secret(s, end, environ)
			return m.name + ": " + from, name, err
		}
	}
	var names []string
	for _, s := range settings {
		if s.Value.secret {
			names = append(names, s.Name+secretFile, s.Name+secretEnv)
		} else {
			names = append(names, s.Name)
		}
	}
	meant := "want one of " + strings.Join(names, ", ")
	if near, ok := nearest(m.name, names); ok {
		meant = "did you mean " + near + "?"
	}
	return "", "", m.node.Fault("no such setting of this type: %s", meant)
}

// shown returns values as they may stand in a spec: of those in which a secret may
// be, as those of addresses, a part of their hash, by which a change shows.
func shown(s *Setting, values []string) string {
	text := strings.Join(values, ", ")
	if s.Value.hidden {
		sum := sha256.Sum256([]byte(text))
		return "(not shown, SHA-256 " + hex.EncodeToString(sum[:8]) + "…)"
	}
	return text
}

// texts returns the value of a setting as it is written.
func (m member) texts(s *Setting) (values []string, err error) {
	if !s.Value.list || !m.node.IsList() {
		one, err := m.node.Text(s.Value.Allowed)
		return []string{one}, err
	}
	list, err := m.node.List(s.Value.Allowed)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		one, err := n.Text(s.Value.Allowed)
		if err != nil {
			return nil, err
		}
		values = append(values, one)
	}
	if values == nil {
		return nil, m.node.Fault("the list is empty: leave it out, or want %s", s.Value.Allowed)
	}
	return values, nil
}

func (m member) fault(s *Setting, values []string, err error) error {
	want := "want " + s.Value.Allowed
	if !errors.Is(err, errNotAllowed) {
		want = err.Error()
	}
	if s.Value.hidden {
		return m.node.Fault("%s", want)
	}
	return m.node.Fault("%s is not allowed: %s", quoteShort(strings.Join(values, ", ")), want)
}

// secret sets a secret from a file or a variable, and returns its name.
func (m member) secret(s *Setting, end string, environ []string) (from string, err error) {
	text := ""
	if end == secretFile {
		if from, err = m.node.Text("the path of a file"); err != nil {
			return "", err
		}
		if text, err = readSecretFile(from); err != nil {
			return "", m.node.Fault("%v", err)
		}
	} else {
		if from, err = m.node.Text("the name of an environment variable"); err != nil {
			return "", err
		}
		if text = lookup(environ, from); text == "" {
			return "", m.node.Fault("the environment variable %s is not set", quoteShort(from))
		}
	}
	if err := s.Value.set([]string{text}); err != nil {
		return "", m.node.Fault("what it holds is no %s: want %s", s.Name, s.Value.Allowed)
	}
	if end == secretFile && s.Value.from != nil {
		s.Value.from(from)
	}
	return from, nil
}

func splitList(s Setting, text string) []string {
	if !s.Value.list {
		return []string{text}
	}
	return strings.Split(text, ",")
}
