package render

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// AppendJSON appends a row as one JSON object in wire shape, without a line break
// in it or behind it:
//
//	{ the producer's members …, "$redaction": {…}, "$ledgerlake": {…} }
//
// $redaction is the row's sentinel, where something was erased; it stands, too,
// where a slot was that is known to have had content. $ledgerlake says where the
// row stands in the archive. A member of the producer's whose name begins with
// "$" gets one more in front; not so with o.Bare, without $ledgerlake: then a row
// that is whole is exactly what its producer sent.
//
// Characters that break lines or move cursors (U+007F to U+009F, U+2028, U+2029)
// are escaped, but in rows of more than 8 MiB; all else in a string is as the
// producer wrote it. The error
// matches [audit.ErrRestore], and [chain.ErrResidual]; dst is then as it was.
func AppendJSON(dst []byte, r *export.Row, o Options) ([]byte, error) {
	p := audit.Restorer{Reserve: !o.Bare}
	if r.Redaction.Valid {
		p.Marks = marks(&r.Row)
	}
	from := len(dst)
	out, err := p.Append(dst, &r.Record)
	if err != nil {
		return dst, rowError(r, err)
	}
	if r.Redaction.Valid {
		out = appendMember(out, "$redaction")
		out = append(append(out, r.Redaction.S...), '}')
	}
	if !o.Bare {
		out = appendMember(out, "$ledgerlake")
		if out, err = appendEnvelope(out, r, o.ArchiveID); err != nil {
			return dst, rowError(r, err)
		}
		out = append(out, '}')
	}
	return calm(out, from), nil
}

func rowError(r *export.Row, err error) error {
	return fmt.Errorf("%.80q in %.80q/%d, seq %d: %w", r.TenantID.S, r.Topic.S, r.Partition.N, r.Seq.N, err)
}

// marks are the sentinel, for each slot that was erased and had content.
func marks(r *chain.Row) *[audit.NumSlots][]byte {
	residual, err := chain.ParseResidual(r.Residual.S)
	if !r.Residual.Valid || err != nil {
		return nil
	}
	m := new([audit.NumSlots][]byte)
	for s := range m {
		if residual.Commits[s].Valid {
			m[s] = []byte(r.Redaction.S)
		}
	}
	return m
}

// appendMember opens a further member of the object that ends dst: its value and
// the brace follow.
func appendMember(dst []byte, name string) []byte {
	dst = dst[:len(dst)-1]
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(append(dst, '"'), name...), '"', ':')
}

// appendEnvelope appends the value of $ledgerlake.
func appendEnvelope(dst []byte, r *export.Row, archiveID string) ([]byte, error) {
	e, err := audit.RestoreEnvelope(&r.Record)
	if err != nil {
		return dst, err
	}
	o := object{append(dst, '{')}
	if archiveID != "" {
		o.text("archiveId", audit.Str(archiveID))
	}
	o.text("tenant", r.TenantID)
	o.text("topic", r.Topic)
	o.text("topicId", r.TopicID)
	o.number("partition", r.Partition)
	o.number("epoch", r.Epoch)
	o.number("seq", r.Seq)
	o.text("kind", r.Kind)
	if r.Scheme != "" && r.Scheme != chain.SchemeV1 {
		o.text("scheme", audit.Str(r.Scheme))
	}
	o.number("offset", r.KafkaOffset)
	o.time("kafkaTimestamp", r.KafkaTimestamp)
	o.time("archivedAt", r.ArchivedAt)
	o.hash("prevHash", &r.PrevHash)
	o.hash("rowHash", &r.RowHash)
	if r.UserCommit.Valid {
		o.hash("userCommit", &r.UserCommit.Hash)
	}
	o.hash("payloadCommit", &r.PayloadCommit)
	o.bool("verified", r.Checked)
	o.number("repeatOf", r.RepeatOf)
	o.text("redactionPolicy", r.RedactionPolicy)
	o.texts("gated", r.Gated)
	o.envelope(r, &e)
	return append(o.b, '}'), nil
}

// envelope appends what surrounded the value, where it says something.
func (o *object) envelope(r *export.Row, e *audit.Envelope) {
	if e.Key == nil || string(e.Key) != r.TenantID.S {
		o.name("key")
		o.b = appendBytes(o.b, e.Key)
	}
	if len(e.Headers) > 0 {
		o.name("headers")
		o.b = append(o.b, '[')
		for i, h := range e.Headers {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.b = append(appendBytes(append(o.b, '['), []byte(h.Name)), ',')
			o.b = append(appendBytes(o.b, h.Value), ']')
		}
		o.b = append(o.b, ']')
	}
	o.number("schemaId", e.SchemaID)
}

// An object is the text of one JSON object that is being written.
type object struct{ b []byte }

func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) text(name string, t audit.Text) {
	if t.Valid {
		o.name(name)
		o.b = audit.AppendString(o.b, t.S)
	}
}

func (o *object) texts(name string, all []string) {
	if len(all) == 0 {
		return
	}
	o.name(name)
	o.b = appendTexts(o.b, all)
}

func appendTexts(dst []byte, all []string) []byte {
	dst = append(dst, '[')
	for i, s := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = audit.AppendString(dst, s)
	}
	return append(dst, ']')
}

func (o *object) number(name string, n audit.Int) {
	if n.Valid {
		o.name(name)
		o.b = strconv.AppendInt(o.b, n.N, 10)
	}
}

func (o *object) time(name string, n audit.Int) {
	if n.Valid {
		o.name(name)
		o.b = append(audit.AppendTime(append(o.b, '"'), n.N), '"')
	}
}

func (o *object) hash(name string, h *chain.Hash) {
	o.name(name)
	o.b = append(hex.AppendEncode(append(o.b, '"'), h[:]), '"')
}

func (o *object) bool(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

// appendBytes appends bytes from outside, or null.
func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	return audit.AppendRaw(dst, b)
}

// maxCalm is the longest text in which characters are escaped that need not be: a
// record may consist of them.
const maxCalm = 8 << 20

// calm escapes, in the JSON text that b has from a byte on, the characters that
// break lines or move cursors for readers that are no JSON parsers. They can only
// stand in strings.
func calm(b []byte, from int) []byte {
	text := b[from:]
	at := restless(text)
	if at < 0 || len(text) > maxCalm {
		return b
	}
	rest := bytes.Clone(text[at:])
	b = b[:from+at]
	for len(rest) > 0 {
		r, n := utf8.DecodeRune(rest)
		if isRestless(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = append(b, rest[:n]...)
		}
		rest = rest[n:]
	}
	return b
}

func isRestless(r rune) bool { return 0x7f <= r && r <= 0x9f || r == '\u2028' || r == '\u2029' }

// restless returns the index of the first character that [calm] escapes, -1 if
// there is none. 7F is DEL, C2 80 to C2 9F are U+0080 to U+009F.
func restless(text []byte) int {
	for i := range text {
		switch c := text[i]; {
		case c < 0x7f:
		case c == 0x7f:
			return i
		case c == 0xC2 && i+1 < len(text) && text[i+1] <= 0x9f:
			return i
		case c == 0xE2 && i+2 < len(text) && text[i+1] == 0x80 && text[i+2]|1 == 0xA9:
			return i
		}
	}
	return -1
}

// NewJSONL returns a writer of [AppendJSON], one line a row.
func NewJSONL(w io.Writer, o Options) Writer {
	return &jsonl{w: bufio.NewWriterSize(w, 64<<10), o: o}
}

type jsonl struct {
	w   *bufio.Writer
	o   Options
	buf []byte
}

func (j *jsonl) Write(r *export.Row) error {
	var err error
	if j.buf, err = AppendJSON(j.buf[:0], r, j.o); err != nil {
		return err
	}
	j.buf = append(j.buf, '\n')
	_, err = j.w.Write(j.buf)
	return err
}

// Flush hands on what was written.
func (j *jsonl) Flush() error { return j.w.Flush() }

func (j *jsonl) Close() error { return j.w.Flush() }
