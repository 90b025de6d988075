package audit

import (
	"iter"
	"math"
	"slices"
	"strings"
)

// A cell is the value of a column.
type cell struct {
	text string
	n    int64
	// partial says that the column does not say all that the member said, so
	// that the member is kept beside it.
	partial bool
}

// An outcome says what came of a conversion.
type outcome int

const (
	converted outcome = iota
	faulty            // noted as a fault
	unfit             // the member stays with the rest
)

// fillColumns gives every column its value, in the order of the shape.
func (w *workspace) fillColumns() {
	w.readUsers()
	for i := range w.shape.columns {
		c := &w.shape.columns[i]
		switch c.as {
		case asTenant:
			w.fillTenant(c)
		case asKind:
			w.fillKind(c)
		case asFirstCall:
			w.fillFirstCall(c)
		case asCallSum:
			w.fillCallSum(c)
		default:
			w.fillColumn(c)
		}
	}
}

// readUsers notes everybody whom the record names as its user.
func (w *workspace) readUsers() {
	for _, path := range userPaths {
		m := w.port(path)
		if m != nil && m.typ == typeString {
			w.users = append(w.users, w.scan.stringOf(m))
		}
	}
}

// port returns what was found at a path that a column comes by, or nil.
func (w *workspace) port(path string) *member {
	name, sub, nested := strings.Cut(path, ".")
	p := w.shape.members[name]
	if nested && p != nil {
		p = p.subs[sub]
	}
	if p == nil || p.port == none {
		return nil
	}
	return w.ports[p.port]
}

// fillColumn fills a column from the first of its members that is there. The
// others that say the same are noted in $alias, those that do not in ext.
func (w *workspace) fillColumn(c *columnPlan) {
	var value cell
	winner, came, seen := none, uint(0), false
	for i, path := range c.paths {
		m := w.ports[c.first+i]
		if m == nil {
			continue
		}
		seen = true
		v, result := w.convert(c.as, m, path)
		switch {
		case result == unfit:
			w.keep("", m, w.scan.nameOf(m))
		case result == faulty:
		case winner == none:
			winner, value, came = i, v, 1<<i
		case v == value:
			came |= 1 << i
		default:
			w.leave(path, m)
		}
	}
	switch {
	case winner != none:
		w.note(c, came)
		w.set(c, value, w.ports[c.first+winner])
	case !seen && c.required:
		w.fail(ReasonMissingField, "%s is missing", c.paths[0])
	}
}

// set gives a column its value, if it may have it. The member goes to ext,
// under the first path, where the column must not or cannot say it.
func (w *workspace) set(c *columnPlan, v cell, m *member) {
	if c.echo && w.unfitForColumn(v.text) {
		w.ext.member(c.paths[0], w.scan.raw(m))
		return
	}
	if v.partial && !w.shape.whole {
		w.ext.member(c.paths[0], w.scan.raw(m))
	}
	if c.text != nil {
		*c.text(w.dst) = Str(v.text)
		return
	}
	*c.int(w.dst) = I64(v.n)
}

// unfitForColumn says whether a text must stay out of a column that cannot be
// erased.
func (w *workspace) unfitForColumn(text string) bool {
	return len(text) > maxColumnBytes || w.namesUser(text)
}

// leave puts a member that disagrees with its column into ext, unless it stays
// inside a slot or a member that is kept.
func (w *workspace) leave(path string, m *member) {
	if !w.shape.inside(path) {
		w.ext.member(path, w.scan.raw(m))
	}
}

// note writes into $alias by which paths a column came: bit i of came stands
// for path i. Exactly the first path is not noted.
func (w *workspace) note(c *columnPlan, came uint) {
	switch came {
	case 1:
	case 1 << 1, 1 << 2:
		w.alias.name(c.column)
		w.alias.b = appendQuoted(w.alias.b, c.paths[came>>1])
	default:
		w.alias.name(c.column)
		w.alias.b = append(w.alias.b, '[')
		for i, path := range c.paths {
			if came&(1<<i) == 0 {
				continue
			}
			if w.alias.b[len(w.alias.b)-1] != '[' {
				w.alias.b = append(w.alias.b, ',')
			}
			w.alias.b = appendQuoted(w.alias.b, path)
		}
		w.alias.b = append(w.alias.b, ']')
	}
}

// convert makes a member, which is not null, the value of a column.
func (w *workspace) convert(as conversion, m *member, path string) (cell, outcome) {
	switch as {
	case asInt32, asInt64, asOrdinal, asMillis:
		return w.convertNumber(as, m, path)
	case asTimeOrMillis:
		if m.typ == typeNumber {
			return w.convertMillis(m, path)
		}
	case asActor, asVerdict:
		return w.convertLoose(as, m)
	}
	if m.typ != typeString {
		w.fail(ReasonWrongType, "%s: not a string", path)
		return cell{}, faulty
	}
	text := w.scan.stringOf(m)
	switch as {
	case asTime, asTimeOrMillis:
		return w.convertTime(text, path)
	case asRecordID:
		return w.convertRecordID(text, path)
	}
	return cell{text: text}, converted
}

// convertLoose makes a member a text, if it fits.
func (w *workspace) convertLoose(as conversion, m *member) (cell, outcome) {
	if m.typ != typeString {
		return cell{}, unfit
	}
	text := w.scan.stringOf(m)
	if as == asActor && !slices.Contains(actorKinds, text) {
		return cell{}, unfit
	}
	return cell{text: text}, converted
}

func (w *workspace) convertNumber(as conversion, m *member, path string) (cell, outcome) {
	if m.typ != typeNumber {
		w.fail(ReasonWrongType, "%s: not a number", path)
		return cell{}, faulty
	}
	if as == asMillis {
		return w.convertLatency(m, path)
	}
	n, reason := exactInt(w.scan.raw(m))
	switch {
	case reason == ReasonWrongType:
		w.fail(reason, "%s: not an integral number", path)
		return cell{}, faulty
	case reason != "", as == asInt32 && n != int64(int32(n)), as == asOrdinal && n < 0:
		w.fail(ReasonOutOfRange, "%s: out of range", path)
		return cell{}, faulty
	}
	return cell{n: n}, converted
}

// convertLatency makes milliseconds microseconds, rounded toward zero.
func (w *workspace) convertLatency(m *member, path string) (cell, outcome) {
	d := parseDecimal(w.scan.raw(m))
	n, exact, fits := d.scaled(3)
	if !fits {
		w.fail(ReasonOutOfRange, "%s: out of range", path)
		return cell{}, faulty
	}
	return cell{n: n, partial: !exact}, converted
}

// convertMillis makes a number of milliseconds an instant.
func (w *workspace) convertMillis(m *member, path string) (cell, outcome) {
	millis, reason := exactInt(w.scan.raw(m))
	if reason == ReasonWrongType {
		w.fail(reason, "%s: not an integral number of milliseconds", path)
		return cell{}, faulty
	}
	if reason != "" || isFar(millis) {
		w.fail(ReasonOutOfRange, "%s: outside the years 0001 to 9999", path)
		return cell{}, faulty
	}
	return cell{n: millis * 1000, partial: true}, converted
}

func (w *workspace) convertTime(text, path string) (cell, outcome) {
	micros, plain, reason := ParseTime(text)
	switch reason {
	case "":
		return cell{n: micros, partial: !plain}, converted
	case ReasonOutOfRange:
		w.fail(reason, "%s: outside the years 0001 to 9999", path)
	default:
		w.fail(reason, "%s: not a time with an offset, as RFC 3339 writes it", path)
	}
	return cell{}, faulty
}

func (w *workspace) convertRecordID(text, path string) (cell, outcome) {
	id, err := ParseRecordID(text)
	if err != nil {
		w.fail(ReasonBadRecordID, "%s: %v", path, err)
		return cell{}, faulty
	}
	return cell{text: id, partial: id != text}, converted
}

// fillTenant finds whose the record is. All that name a tenant must name the
// same one, and only a record of which that holds is anybody's. c is nil where
// the value could not be read.
func (w *workspace) fillTenant(c *columnPlan) {
	t := tenantClaims{w: w}
	if value, found, unanimous := w.header(HeaderTenant); found {
		t.claim("header "+HeaderTenant, share(value))
		t.disagree = !unanimous
	}
	came := uint(0)
	for i := range t.paths(c) {
		m := w.ports[c.first+i]
		switch {
		case m == nil:
		case m.typ != typeString:
			w.fail(ReasonWrongType, "%s: not a string", c.paths[i])
			t.bad = true
		default:
			t.claim(c.paths[i], w.scan.stringOf(m))
			came |= 1 << i
		}
	}
	if c != nil && !t.found && w.d.KeyIsTenant && w.m.Key != nil {
		t.claim("key", share(w.m.Key))
	}
	t.judge(c, came)
}

// tenantClaims is what a message says of its tenant.
type tenantClaims struct {
	w                    *workspace
	id                   string
	found, bad, disagree bool
}

func (t *tenantClaims) paths(c *columnPlan) []string {
	if c == nil {
		return nil
	}
	return c.paths
}

// claim notes that place names a tenant.
func (t *tenantClaims) claim(place, id string) {
	if err := t.w.d.checkTenant(id); err != nil {
		t.w.fail(ReasonBadTenantID, "%s: %v", place, err)
		t.bad = true
	}
	t.disagree = t.disagree || t.found && id != t.id
	t.id, t.found = id, true
}

func (t *tenantClaims) judge(c *columnPlan, came uint) {
	switch {
	case t.bad:
		return
	case t.disagree:
		t.w.fail(ReasonTenantMismatch, "header and members name different tenants")
		return
	case !t.found:
		t.w.fail(ReasonMissingField, "no tenant: neither in tenantId nor in principal.tenantId nor in the header %s", HeaderTenant)
		return
	}
	t.w.dst.TenantID = Str(t.id)
	switch {
	case c == nil:
	case !t.w.shape.whole:
		t.w.note(c, came)
	case came == 0:
		t.w.fail(ReasonMissingField, "%s is missing", c.paths[0])
	}
}

// fillKind notes how the kind of an entry was spelled.
func (w *workspace) fillKind(c *columnPlan) {
	m := w.ports[c.first]
	if m == nil {
		w.note(c, 0)
		return
	}
	spelling, kind := "", ""
	if m.typ == typeString {
		spelling = w.scan.stringOf(m)
		kind, _ = ParseKind(spelling)
	}
	came := uint(0)
	if kind == w.kind {
		came = 1
	}
	w.note(c, came)
	if spelling != w.kind {
		w.ext.member(c.paths[0], w.scan.raw(m))
	}
}

// fillFirstCall fills a column from the first of a decision's calls. The
// member stays where it is as well.
func (w *workspace) fillFirstCall(c *columnPlan) {
	name := c.paths[0][len("calls.0."):]
	for _, call := range w.callElements(c.paths[0]) {
		value, found := memberOf(call, name)
		switch {
		case !found:
		case value[0] != '"':
			w.fail(ReasonWrongType, "%s: not a string", c.paths[0])
		default:
			if text := unescaped(value[1 : len(value)-1]); !w.unfitForColumn(text) {
				*c.text(w.dst) = Str(text)
			}
		}
		return
	}
}

// fillCallSum fills a column with the sum over a decision's calls, if all of
// them say a number.
func (w *workspace) fillCallSum(c *columnPlan) {
	if w.calls == nil || w.calls.typ != typeArray {
		return
	}
	name := c.paths[0][len("calls[]."):]
	sum, complete := int64(0), true
	for _, call := range w.callElements(c.paths[0]) {
		value, found := memberOf(call, name)
		if !found {
			complete = false
			continue
		}
		n, ok := w.callNumber(value, c.paths[0])
		if !ok {
			return
		}
		if sum > 0 && n > math.MaxInt64-sum || sum < 0 && n < math.MinInt64-sum {
			w.fail(ReasonOutOfRange, "%s: the sum is out of range", c.paths[0])
			return
		}
		sum += n
	}
	if complete {
		*c.int(w.dst) = I64(sum)
	}
}

// callNumber reads a number of one of a decision's calls.
func (w *workspace) callNumber(value []byte, path string) (int64, bool) {
	if value[0] != '-' && !isDigit(value[0]) {
		w.fail(ReasonWrongType, "%s: not a number", path)
		return 0, false
	}
	n, reason := exactInt(value)
	switch reason {
	case ReasonWrongType:
		w.fail(reason, "%s: not an integral number", path)
	case ReasonOutOfRange:
		w.fail(reason, "%s: out of range", path)
	}
	return n, reason == ""
}

// callElements yields the elements of a decision's calls, which must be
// objects.
func (w *workspace) callElements(path string) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		if w.calls == nil || w.calls.typ != typeArray {
			return
		}
		calls := w.scan.raw(w.calls)
		for i, at := range elementsOf(calls) {
			call := calls[at.from:at.to]
			if call[0] != '{' {
				w.fail(ReasonWrongType, "%s: an element of calls is not an object", path)
				return
			}
			if !yield(i, call) {
				return
			}
		}
	}
}

// memberOf returns the value of a member of an object, unless that is null.
func memberOf(object []byte, name string) (value []byte, found bool) {
	for n, v := range membersOf(object) {
		if unescaped(object[n.from:n.to]) == name {
			value = object[v.from:v.to]
			return value, string(value) != "null"
		}
	}
	return nil, false
}
