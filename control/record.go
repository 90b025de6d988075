package control

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// SignatureHeader is the header of a control record that holds its signature: a
// note over [chain.ControlText].
const SignatureHeader = "ledgerlake-signature"

// Record returns the record of the control topic that carries a value, as
// [Document.Value] made it, of a kind: its key is the tenant, so that all of a
// tenant's go one way. It is signed where signer is not nil. Topic, partition,
// offset and time are for Kafka to say.
func Record(archiveID, tenant, kind, id string, value []byte, signer note.Signer) (audit.Message, error) {
	m := audit.Message{Key: []byte(tenant), Value: value, Headers: []audit.MessageHeader{
		{Name: audit.HeaderTenant, Value: []byte(tenant)},
		{Name: audit.HeaderKind, Value: []byte(kind)},
	}}
	if signer == nil {
		return m, nil
	}
	body, err := sign.Sign(chain.ControlText(archiveID, tenant, kind, id, value), signer)
	if err != nil {
		return audit.Message{}, fmt.Errorf("sign %s %s: %w", kind, id, err)
	}
	m.Headers = append(m.Headers, audit.MessageHeader{Name: SignatureHeader, Value: body})
	return m, nil
}

// Unsigned says why the signature of a control row does not count: that it is
// not by a key that is good for control records, and over what the row says. It
// stands in ext, which keeps the record's headers, and holds the hash of the
// value, so that it is checked also where the context is gone. "" where it
// counts, and where it may have gone with the rest of the row.
func Unsigned(archiveID string, ring *sign.Ring, row *chain.Row) string {
	ext := row.Slots[audit.SlotExt]
	if ext == nil && !row.RowSalt.Valid {
		return ""
	}
	text, err := signatureIn(ext)
	if err != nil {
		return "the row has no signature"
	}
	n, err := sign.Parse([]byte(text))
	if err != nil {
		return "its signature is no note"
	}
	if !signs(archiveID, n.Text, row) {
		return "its signature is of another record"
	}
	if ring.Check(n, sign.Control, time.UnixMicro(row.ArchivedAt.N)).State != sign.Good {
		return "it is signed by no good control key"
	}
	return ""
}

// signs reports whether a text is the one that a control key signs for the row.
func signs(archiveID, text string, row *chain.Row) bool {
	context := row.Slots[audit.SlotContext]
	want := chain.ControlText(archiveID, row.TenantID.S, row.Kind.S, row.RecordID.S, context)
	if context != nil {
		return text == want
	}
	at := strings.LastIndexByte(strings.TrimSuffix(want, "\n"), '\n') + 1
	return len(text) == len(want) && text[:at] == want[:at] && isHex64(strings.TrimSuffix(text[at:], "\n"))
}

func isHex64(s string) bool {
	_, err := chain.ParseHash(s)
	return err == nil
}

// signatureIn returns the signature among the headers that ext keeps.
func signatureIn(ext []byte) (text string, err error) {
	found := 0
	err = jsondoc.Read(ext, field{Name: "$headers", Read: func(d *document) {
		d.Array(func(d *document) {
			name := ""
			d.Tuple(func(d *document) { name = d.Str() }, func(d *document) {
				if name != SignatureHeader {
					d.Skip()
					return
				}
				text = d.Str()
				found++
			})
		})
	}})
	if err == nil && found != 1 {
		err = errors.New("no signature")
	}
	return text, err
}

// ReceiptID returns the record id of a part (from 1) of a round (from 0) of the
// receipts of an order. It is the same whoever sends it, and whenever, so that a
// part that is sent again is dropped as a repeat, and parts of one round are told
// from those of another.//
//
//	time of the order's id, and the first 80 bits of SHA256("ledgerlake.receipt.v1\n" T(order) T(round) T(part))
func ReceiptID(order string, round int, part int64) (string, error) {
	id, err := ulid.ParseStrict(order)
	if err != nil {
		return "", fmt.Errorf("receipt of %.40q: %w", order, err)
	}
	b := chain.AppendString([]byte("ledgerlake.receipt.v1\n"), strings.ToUpper(order))
	b = chain.AppendInt(chain.AppendInt(b, int64(round)), part)
	sum := sha256.Sum256(b)
	copy(id[6:], sum[:])
	return id.String(), nil
}
