package audit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
)

// ErrRestore is matched by every error of [Restore]: a slot is not what a
// decoder writes.
var ErrRestore = errors.New("no record comes back from the row")

// Restore appends the wire value of a row again, as one line of JSON: the
// inverse of [Decoder.Decode]. It is [Restorer.Append] of the zero Restorer.
func Restore(dst []byte, r *Record) ([]byte, error) { return new(Restorer).Append(dst, r) }

// A Restorer makes the value that a producer sent again from the columns and
// slots of a row. The zero Restorer is ready, and marks nothing.
type Restorer struct {
	// Marks are JSON texts that stand where slots were: at the path of a slot
	// that is null, where the slot has a path of its own. nil leaves it out.
	Marks *[NumSlots][]byte
	// Reserve keeps the names that begin with one "$" for the caller's own
	// members: a member of the producer's, at the top level, whose name begins
	// with "$" gets one more in front.
	Reserve bool
}

// Append appends the wire value of r: members in the order of the tables of the
// wire, then what they do not list, as it is stored. Numbers and strings have
// the bytes that the producer wrote; blanks between them, and members that were
// null, are gone. What the shape of a kind is, docs/wire-columns.md says. Of the
// others
//
//	rejected            {"kind", "tenantId", what columns could be filled, the members of context, "raw"}
//	gap, chain-reset    {"kind", "tenantId", the members of context}
//	control             the value as it came
//
// raw is a string, or {"base64": …} where it is not UTF-8 or escapes would more than
// double it. Prompts stand in
// their places again where the row has them; what is kept of others is
// {"promptBytes": n}. The place of a prompt may itself be gone: those stand by
// their paths in a last member "$prompts".
//
// It returns an error matching [ErrRestore], and dst as it was, if a slot is not
// the text that a decoder would let pass.
func (p *Restorer) Append(dst []byte, r *Record) ([]byte, error) {
	x := restorers.Get().(*restorer)
	defer x.release()
	x.Restorer, x.r, x.s = *p, r, shapeOf(r.Kind.S)
	x.root = x.branch(typeObject)
	if err := x.restore(); err != nil {
		return dst, fmt.Errorf("%w: %w", ErrRestore, err)
	}
	return x.write(dst, &x.nodes[x.root]), nil
}

// A restorer is what restoring one row needs besides the row.
type restorer struct {
	Restorer
	r       *Record
	s       *shape
	nodes   []node
	root    int
	buf     []byte  // texts made here; what was taken from it stays good
	ext     scanner // of ext
	rest    scanner // of context, of prompts, and to check other slots
	alias   []aliasNote
	strange []byte // prompts without a place: the members of an object
}

// An aliasNote says by which paths a column came: a member of $alias.
type aliasNote struct {
	column string
	value  []byte // a string, or an array of strings
}

// A node is one value of the tree that is being put together: a text, or an
// object or array that was opened. Indexes are those of restorer.nodes; 0 is
// none, for the root is nobody's child.
type node struct {
	name   string // without escapes; of a member
	text   []byte // of one that is not opened
	typ    valueType
	opened bool
	first  int
	last   int
	next   int
	found  int // the child that was found last: the next one asked for is often near
}

var restorers = sync.Pool{New: func() any { return new(restorer) }}

func (x *restorer) release() {
	x.r, x.s, x.Marks = nil, nil, nil
	clear(x.nodes)
	clear(x.alias)
	x.nodes, x.alias, x.buf, x.strange = x.nodes[:0], x.alias[:0], nil, x.strange[:0]
	if cap(x.nodes) > bigBuffer {
		x.nodes = nil
	}
	if cap(x.strange) > bigBuffer {
		x.strange = nil
	}
	x.ext.release()
	x.rest.release()
	restorers.Put(x)
}

func (x *restorer) restore() error {
	switch {
	case x.r.Kind.S == KindRejected, IsMadeKind(x.r.Kind.S):
		return x.restoreMade()
	case x.s.whole && x.r.Slots[SlotContext] != nil:
		return x.putContext()
	}
	if err := x.readExt(); err != nil {
		return err
	}
	for i := range x.s.columns {
		if err := x.putColumn(&x.s.columns[i]); err != nil {
			return err
		}
	}
	for i := range x.s.slots {
		if err := x.putSlot(&x.s.slots[i]); err != nil {
			return err
		}
	}
	if err := x.putContext(); err != nil {
		return err
	}
	x.putExt()
	return x.putPrompts()
}

// check scans a slot, and requires that it is of a type.
func check(s *scanner, slot Slot, text []byte, want valueType) error {
	if len(text) > math.MaxInt32 {
		return fmt.Errorf("%s: too large", slot)
	}
	s.unbounded = true // what a record has in one slot may have more members than a record
	if reject := s.scan(text, 0); reject != nil {
		return fmt.Errorf("%s: %w", slot, reject)
	}
	if s.root != want {
		return fmt.Errorf("%s: neither object nor array, whichever it should be", slot)
	}
	return nil
}

// readExt reads ext, and from it $alias.
func (x *restorer) readExt() error {
	x.ext.reset(nil, 0)
	text := x.r.Slots[SlotExt]
	if text == nil {
		return nil
	}
	if err := check(&x.ext, SlotExt, text, typeObject); err != nil {
		return err
	}
	m := x.ext.find("$alias")
	if m == nil || m.typ != typeObject {
		return nil
	}
	object := x.ext.raw(m)
	for name, value := range membersOf(object) {
		x.alias = append(x.alias, aliasNote{unescaped(object[name.from:name.to]), object[value.from:value.to]})
	}
	return nil
}

// putColumn puts back the members that a column came by.
func (x *restorer) putColumn(c *columnPlan) error {
	if c.as == asFirstCall || c.as == asCallSum {
		return nil
	}
	alias := x.aliasOf(c.column)
	text := x.columnText(c)
	if text == nil {
		return nil
	}
	switch {
	case alias == nil:
		x.putPath(c.paths[0], text)
	case alias[0] == '"':
		x.putPath(unescaped(alias[1:len(alias)-1]), text)
	case alias[0] == '[':
		for _, at := range elementsOf(alias) {
			if path := alias[at.from:at.to]; path[0] == '"' {
				x.putPath(unescaped(path[1:len(path)-1]), text)
			}
		}
	default:
		return fmt.Errorf("%s: $alias is not what a decoder writes", SlotExt)
	}
	return nil
}

func (x *restorer) aliasOf(column string) []byte {
	for i := range x.alias {
		if x.alias[i].column == column {
			return x.alias[i].value
		}
	}
	return nil
}

// putPath puts a value to a path of one or two names, of the table of the
// shape, unless the member there is part of one that is kept whole.
func (x *restorer) putPath(path string, text []byte) {
	if x.s.inside(path) {
		return
	}
	name, sub, nested := strings.Cut(path, ".")
	at := x.root
	if nested {
		at = x.objectIn(at, name)
		name = sub
	}
	x.set(at, name, text)
}

// columnText returns what the members said that a column came by: what the column
// has, or else what ext has under the first path; nil if neither. Where both have
// something, ext says it in full, and is put there afterwards.
func (x *restorer) columnText(c *columnPlan) []byte {
	if c.has(x.r) {
		from := len(x.buf)
		x.buf = c.appendTo(x.buf, x.r)
		return x.buf[from:len(x.buf):len(x.buf)]
	}
	m := x.ext.find(c.paths[0])
	if m == nil {
		return nil
	}
	text := x.ext.raw(m)
	m.typ = typeTaken
	return text
}

// typeTaken marks a member of ext that has its place already.
const typeTaken valueType = 255

func (x *restorer) putSlot(s *slotSource) error {
	text := x.r.Slots[s.slot]
	if text == nil {
		if x.Marks != nil && x.Marks[s.slot] != nil {
			x.putPath(s.path, x.Marks[s.slot])
		}
		return nil
	}
	want := typeObject
	if s.slot == SlotPluginPayloads {
		want = typeArray
	}
	if err := check(&x.rest, s.slot, text, want); err != nil {
		return err
	}
	x.putPath(s.path, text)
	return nil
}

// putContext puts back the members of context, those of groups to what columns
// put there.
func (x *restorer) putContext() error {
	text := x.r.Slots[SlotContext]
	if text == nil {
		return nil
	}
	if err := check(&x.rest, SlotContext, text, typeObject); err != nil {
		return err
	}
	for i := range x.rest.top {
		m := &x.rest.top[i]
		name, value := x.rest.ownName(m), x.rest.raw(m)
		p := x.s.members[name]
		if p == nil || !p.group || m.typ != typeObject {
			x.add(x.root, name, value)
			continue
		}
		at := x.objectIn(x.root, name)
		for sub, v := range membersOf(value) {
			x.add(at, unescaped(value[sub.from:sub.to]), value[v.from:v.to])
		}
	}
	return nil
}

// putExt puts back what ext holds.
func (x *restorer) putExt() {
	for i := range x.ext.top {
		m := &x.ext.top[i]
		path := x.ext.ownName(m)
		if m.typ == typeTaken || strings.HasPrefix(path, "$") {
			continue
		}
		name, sub, nested := strings.Cut(path, ".")
		name = unescapePathName(name)
		switch p := x.s.members[name]; {
		case nested:
			x.set(x.objectIn(x.root, name), unescapePathName(sub), x.ext.raw(m))
		case p == nil:
			x.add(x.root, name, x.ext.raw(m))
		default:
			x.set(x.root, name, x.ext.raw(m))
		}
	}
}

// putPrompts puts prompts into their places. Those whose place is gone are
// gathered in $prompts.
func (x *restorer) putPrompts() error {
	text := x.r.Slots[SlotPrompts]
	if text == nil {
		return nil
	}
	if err := check(&x.rest, SlotPrompts, text, typeObject); err != nil {
		return err
	}
	for i := range x.rest.top {
		m := &x.rest.top[i]
		path, value := x.rest.ownName(m), x.rest.raw(m)
		if at := x.placeOf(path); at != 0 {
			x.nodes[at].text, x.nodes[at].opened = value, false
			continue
		}
		if len(x.strange) > 0 {
			x.strange = append(x.strange, ',')
		}
		x.strange = AppendString(x.strange, path)
		x.strange = appendCompact(append(x.strange, ':'), value)
	}
	return nil
}

// placeOf returns the node of a path of any length, 0 if there is none. Where
// only the last of at most two names is missing, it is made.
func (x *restorer) placeOf(path string) int {
	at := x.root
	for depth := 1; ; depth++ {
		name, rest, more := strings.Cut(path, ".")
		name = unescapePathName(name)
		next := x.child(at, name)
		if next == 0 {
			return x.newPlace(at, name, depth, more)
		}
		if !more {
			return next
		}
		at, path = next, rest
	}
}

func (x *restorer) newPlace(at int, name string, depth int, more bool) int {
	n := &x.nodes[at]
	if more || !n.opened || n.typ != typeObject || depth > 2 {
		return 0
	}
	return x.add(at, name, nil)
}

// restoreMade makes the value of a row that no producer sent as it is.
func (x *restorer) restoreMade() error {
	x.addColumn("kind", x.r.Kind)
	x.addColumn("tenantId", x.r.TenantID)
	if x.r.Kind.S == KindRejected {
		for _, c := range callShape.columns {
			if rejectColumns[c.column] && c.has(x.r) {
				from := len(x.buf)
				x.buf = c.appendTo(x.buf, x.r)
				_, name, nested := strings.Cut(c.paths[0], ".")
				if !nested {
					name = c.paths[0]
				}
				x.add(x.root, name, x.buf[from:len(x.buf):len(x.buf)])
			}
		}
	}
	if err := x.putContext(); err != nil {
		return err
	}
	if raw := x.r.Slots[SlotRaw]; raw != nil {
		from := len(x.buf)
		x.buf = AppendRaw(x.buf, raw)
		x.add(x.root, SlotRaw.String(), x.buf[from:])
	}
	return nil
}

// rejectColumns are the columns that a rejected row may have besides its tenant.
var rejectColumns = map[string]bool{
	"record_id": true, "session_id": true, "turn_id": true, "stage_id": true, "seq_within_turn": true, "created_at": true, "user_id": true,
}

func (x *restorer) addColumn(name string, t Text) {
	from := len(x.buf)
	x.buf = AppendString(x.buf, t.S)
	x.add(x.root, name, x.buf[from:len(x.buf):len(x.buf)])
}
