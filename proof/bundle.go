package proof

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// BundleFormat is the name of the format of bundles.
const BundleFormat = "ledgerlake proof v1"

// A Bundle is one row, whole or with parts of it withheld, and the proof that it
// is in its log. It checks without the archive. Source: docs/proofs.md.
type Bundle struct {
	Format        string       `json:"format"`
	ArchiveID     string       `json:"archiveId"`
	Log           BundleLog    `json:"log"`
	Row           BundleRow    `json:"row"`
	Tree          BundleTree   `json:"tree"`
	Path          []chain.Hash `json:"path"`          // RFC 6962, lowest first
	Checkpoint    *string      `json:"checkpoint"`    // a note; or null
	Anchor        *string      `json:"anchor"`        // a note; or null
	Introductions []string     `json:"introductions"` // notes
	TlogProof     *string      `json:"tlogProof"`     // C2SP tlog-proof; null without a checkpoint
}

// A BundleLog names a log of an archive.
type BundleLog struct {
	Tenant    string `json:"tenant"`
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
}

func (l BundleLog) in(archiveID string) chain.Log {
	return chain.Log{ArchiveID: archiveID, Tenant: l.Tenant, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition}
}

// A BundleTree is a log's tree at one moment.
type BundleTree struct {
	Size int64      `json:"size"` // rows
	Root chain.Hash `json:"root"`
}

// A BundleRow is a row as it is shown to others. What is withheld, or was
// erased, is there as its commitment. Of a hard-erased row there is seq and
// rowHash alone; the other members are null or empty.
type BundleRow struct {
	Seq           int64       `json:"seq"`
	Scheme        string      `json:"scheme"`
	Header        *Header     `json:"header"`
	PrevHash      *chain.Hash `json:"prevHash"`
	UserCommit    *chain.Hash `json:"userCommit"` // null where the row has no user
	PayloadCommit *chain.Hash `json:"payloadCommit"`
	RowHash       chain.Hash  `json:"rowHash"`
	User          *BundleUser `json:"user"`     // null where it is withheld or gone
	StarSalt      *chain.Hash `json:"starSalt"` // slot_salt("*"); null where the whole payload was erased
	Slots         BundleSlots `json:"slots"`
}

// A BundleUser is a user id that is shown.
type BundleUser struct {
	ID   string     `json:"id"`
	Salt chain.Hash `json:"salt"` // slot_salt("user_id")
}

// BundleSlots are the slots of a row that were not null when it was stamped:
// content and slot_salt, or slot_commit.
type BundleSlots [audit.NumSlots]*BundleSlot

// A BundleSlot is one slot. Exactly one of Salt and Commit is set.
type BundleSlot struct {
	Salt    *chain.Hash
	Commit  *chain.Hash
	Content []byte // as stored; with Salt
}

// A Header is the header columns of a row.
type Header struct{ audit.Record }

// A Disclosure says what of a row is shown. The zero Disclosure shows all.
type Disclosure struct {
	Withhold     chain.SlotSet
	WithholdUser bool
}

// Disclose returns what of a row is shown to others. It holds no salt of
// anything that is withheld, and never row_salt.
func Disclose(scheme string, row *chain.Row, d Disclosure) (*BundleRow, error) {
	state, err := chain.StateOf(row)
	if err != nil {
		return nil, tampered("seq %d: %v", row.Seq.N, err)
	}
	b := &BundleRow{Seq: row.Seq.N, Scheme: scheme, RowHash: row.RowHash}
	if state == chain.HardErased {
		return b, nil
	}
	b.Header, b.PrevHash, b.PayloadCommit = &Header{row.Record}, &row.PrevHash, &row.PayloadCommit
	if row.UserCommit.Valid {
		b.UserCommit = &row.UserCommit.Hash
	}
	if row.UserID.Valid && !d.WithholdUser {
		salt := row.UserSalt.Hash
		if state == chain.Live {
			salt = chain.SlotSalt(row.RowSalt.Hash, "user_id")
		}
		b.User = &BundleUser{row.UserID.S, salt}
	}
	if state == chain.Erased {
		return b, nil
	}
	return b, b.disclose(row, d.Withhold)
}

// disclose adds the slots. The form of a partly erased row is also that of a row
// of which a part is withheld.
func (b *BundleRow) disclose(row *chain.Row, withhold chain.SlotSet) error {
	r, err := chain.NewHasher(nil).Residual(row, withhold)
	if err != nil {
		return tampered("seq %d: %v", row.Seq.N, err)
	}
	b.StarSalt = &r.Star
	for s := range audit.NumSlots {
		switch {
		case r.Salts[s].Valid:
			b.Slots[s] = &BundleSlot{Salt: &r.Salts[s].Hash, Content: row.Slots[s]}
		case r.Commits[s].Valid:
			b.Slots[s] = &BundleSlot{Commit: &r.Commits[s].Hash}
		}
	}
	return nil
}

// Bundle returns the bundle of a row that was found.
func (f *Found) Bundle(d Disclosure) (*Bundle, error) {
	row, err := Disclose(f.Tree.Scheme, &f.Row, d)
	if err != nil {
		return nil, err
	}
	b := &Bundle{
		Format: BundleFormat, ArchiveID: f.Log.ArchiveID, Log: logOf(f.Log), Row: *row,
		Tree: BundleTree{f.Tree.Size, f.Tree.Root}, Path: append([]chain.Hash{}, f.Tree.Path...),
		Checkpoint: nullString(f.Tree.Signed.Checkpoint), Anchor: nullString(f.Tree.Signed.Anchor),
		Introductions: append([]string{}, f.Tree.Signed.Introductions...),
	}
	b.TlogProof = nullString(b.tlogProof())
	return b, nil
}

func logOf(l chain.Log) BundleLog { return BundleLog{l.Tenant, l.Topic, l.TopicID, l.Partition} }

func nullString(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// tlogProof returns the row's proof as c2sp.org/tlog-proof has it, or "" where
// there is no checkpoint. The record of such a log is the row_hash; it is the
// extra data.
func (b *Bundle) tlogProof() string {
	if b.Checkpoint == nil {
		return ""
	}
	encode := base64.StdEncoding.EncodeToString
	text := fmt.Sprintf("c2sp.org/tlog-proof@v1\nextra %s\nindex %d\n", encode(b.Row.RowHash[:]), b.Row.Seq)
	for i := range b.Path {
		text += encode(b.Path[i][:]) + "\n"
	}
	return text + "\n" + *b.Checkpoint
}

// Encode returns the bundle as JSON.
func (b *Bundle) Encode() ([]byte, error) { return encodeJSON(b, "  ") }

func encodeJSON(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return buf.Bytes(), err
}

// MarshalJSON returns an object of all header columns in hashed order. Times are
// microseconds since 1970-01-01 UTC.
func (h *Header) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i := range audit.Header {
		c := &audit.Header[i]
		var v any
		switch {
		case c.Text != nil && c.Text(&h.Record).Valid:
			v = c.Text(&h.Record).S
		case c.Int != nil && c.Int(&h.Record).Valid:
			v = c.Int(&h.Record).N
		}
		var err error
		if b, err = appendMember(b, c.Name, v); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendMember(b []byte, name string, v any) ([]byte, error) {
	value, err := encodeJSON(v, "")
	if len(b) > 1 {
		b = append(b, ',')
	}
	return append(fmt.Appendf(b, "%q:", name), bytes.TrimSuffix(value, []byte("\n"))...), err
}

// MarshalJSON returns an object of the slots in hashed order.
func (s BundleSlots) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, slot := range s {
		if slot == nil {
			continue
		}
		var err error
		if b, err = appendMember(b, audit.Slot(i).String(), slot); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// MarshalJSON returns {"salt", "text"}, {"salt", "base64"} where the content is
// no text, or {"commit"}.
func (s *BundleSlot) MarshalJSON() ([]byte, error) {
	m := struct {
		Salt   *chain.Hash `json:"salt,omitempty"`
		Text   *string     `json:"text,omitempty"`
		Base64 *string     `json:"base64,omitempty"`
		Commit *chain.Hash `json:"commit,omitempty"`
	}{Salt: s.Salt, Commit: s.Commit}
	if s.Salt != nil {
		text := string(s.Content)
		if utf8.ValidString(text) {
			m.Text = &text
		} else {
			text = base64.StdEncoding.EncodeToString(s.Content)
			m.Base64 = &text
		}
	}
	return encodeJSON(m, "")
}

// MaxBundleBytes is the size of the largest bundle, and of the largest document
// of a pack, that is read.
const MaxBundleBytes = 256 << 20

// ErrBundle: a text is no bundle.
var ErrBundle = errors.New("no proof bundle")

// DecodeBundle parses a bundle, strictly; it proves nothing. Members that it
// does not know are passed over. An error matches [ErrBundle].
func DecodeBundle(text []byte) (*Bundle, error) {
	b := &Bundle{Format: BundleFormat, Path: []chain.Hash{}, Introductions: []string{}}
	err := readDocument(text,
		field{Name: "format", Read: func(d *document) { d.Constant(BundleFormat) }},
		field{Name: "archiveId", Read: func(d *document) { b.ArchiveID = d.ULID() }},
		field{Name: "log", Read: func(d *document) { b.Log = readBundleLog(d) }},
		field{Name: "row", Read: func(d *document) { b.Row = readBundleRow(d) }},
		field{Name: "tree", Read: func(d *document) { b.Tree = readBundleTree(d) }},
		field{Name: "path", Read: func(d *document) { b.Path = append(b.Path, d.Hashes()...) }},
		field{Name: "checkpoint", Read: func(d *document) { b.Checkpoint = readNullString(d) }},
		field{Name: "anchor", Read: func(d *document) { b.Anchor = readNullString(d) }},
		field{Name: "introductions", Read: func(d *document) {
			d.Array(func(d *document) { b.Introductions = append(b.Introductions, d.Str()) })
		}},
		field{Name: "tlogProof", Read: func(d *document) { b.TlogProof = readNullString(d) }})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	return b, nil
}

func readNullString(d *document) *string {
	if t := d.NullStr(); t.Valid {
		return &t.S
	}
	return nil
}

func readBundleLog(d *document) (l BundleLog) {
	d.Object(
		field{Name: "tenant", Read: func(d *document) { l.Tenant = d.Str() }},
		field{Name: "topic", Read: func(d *document) { l.Topic = d.Str() }},
		field{Name: "topicId", Read: func(d *document) { l.TopicID = d.Str() }},
		field{Name: "partition", Read: func(d *document) { l.Partition = d.Int32() }})
	return l
}

func readBundleTree(d *document) (t BundleTree) {
	d.Object(
		field{Name: "size", Read: func(d *document) { t.Size = d.Count() }},
		field{Name: "root", Read: func(d *document) { t.Root = d.Hash() }})
	return t
}

func readBundleRow(d *document) (r BundleRow) {
	d.Object(rowFields(&r)...)
	return r
}

func rowFields(r *BundleRow) []field {
	return []field{
		{Name: "seq", Read: func(d *document) { r.Seq = d.Count() }},
		{Name: "scheme", Read: func(d *document) { r.Scheme = d.Scheme() }},
		{Name: "header", Read: func(d *document) { r.Header = readHeader(d) }},
		{Name: "prevHash", Read: func(d *document) { r.PrevHash = d.NullHash() }},
		{Name: "userCommit", Read: func(d *document) { r.UserCommit = d.NullHash() }},
		{Name: "payloadCommit", Read: func(d *document) { r.PayloadCommit = d.NullHash() }},
		{Name: "rowHash", Read: func(d *document) { r.RowHash = d.Hash() }},
		{Name: "user", Read: func(d *document) { r.User = readBundleUser(d) }},
		{Name: "starSalt", Read: func(d *document) { r.StarSalt = d.NullHash() }},
		{Name: "slots", Read: func(d *document) { readBundleSlots(d, &r.Slots) }},
	}
}

// readHeader reads the header columns, or null.
func readHeader(d *document) *Header {
	if d.Null() {
		return nil
	}
	h := &Header{}
	fields := make([]field, len(audit.Header))
	for i := range audit.Header {
		c := &audit.Header[i]
		fields[i] = field{Name: c.Name, Read: func(d *document) {
			switch {
			case c.Text != nil:
				*c.Text(&h.Record) = d.NullStr()
			case !d.Null():
				*c.Int(&h.Record) = audit.I64(d.Integer())
			}
		}}
	}
	d.Closed(fields...)
	return h
}

func readBundleUser(d *document) *BundleUser {
	if d.Null() {
		return nil
	}
	u := &BundleUser{}
	d.Object(
		field{Name: "id", Read: func(d *document) { u.ID = d.Str() }},
		field{Name: "salt", Read: func(d *document) { u.Salt = d.Hash() }})
	return u
}

// readBundleSlots reads the slots. Another name would look as if it were proved.
func readBundleSlots(d *document, slots *BundleSlots) {
	fields := make([]field, audit.NumSlots)
	for s := range audit.NumSlots {
		fields[s] = field{Name: s.String(), Optional: true, Read: func(d *document) { slots[s] = readBundleSlot(d) }}
	}
	d.Closed(fields...)
}

func readBundleSlot(d *document) *BundleSlot {
	s := &BundleSlot{}
	var text, coded *string
	one := func(into **string) func(*document) {
		return func(d *document) { t := d.Str(); *into = &t }
	}
	d.Object(
		field{Name: "salt", Optional: true, Read: func(d *document) { h := d.Hash(); s.Salt = &h }},
		field{Name: "commit", Optional: true, Read: func(d *document) { h := d.Hash(); s.Commit = &h }},
		field{Name: "text", Optional: true, Read: one(&text)},
		field{Name: "base64", Optional: true, Read: one(&coded)})
	switch {
	case d.Failed():
	case (s.Salt == nil) == (s.Commit == nil), (text == nil && coded == nil) != (s.Salt == nil), text != nil && coded != nil:
		d.Fail("want salt and text, salt and base64, or commit")
	case text != nil:
		s.Content = []byte(*text)
	case coded != nil:
		content, err := base64.StdEncoding.Strict().DecodeString(*coded)
		if err != nil || base64.StdEncoding.EncodeToString(content) != *coded {
			d.Fail("base64 is not written as it must be")
		}
		s.Content = append([]byte{}, content...)
	}
	return s
}
