package chain

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/audit"
)

const ownVectors = "testdata/ledgerlake-v1.json"

const someULID = "01KBCDEFGHJKMNPQRSTVWXYZ01"

var vectorsFile = flag.String("vectors", ownVectors, "vectors of the format to check against; relative to the package or to the repository")

// The vectors were computed by an independent implementation. TestVectors
// requires that this package says the same of every value in the file.
func TestVectors(t *testing.T) {
	v, err := readVectors(vectorsBytes(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range vectorSections {
		t.Run(s.name, func(t *testing.T) {
			if err := s.check(v); err != nil {
				t.Error(err)
			}
		})
	}
}

// A case that is deleted from a list of cases leaves a file that is right, only
// shorter. TestOwnVectorsAreWhole pins the project's copy, byte for byte.
func TestOwnVectorsAreWhole(t *testing.T) {
	data, err := os.ReadFile(ownVectors)
	if err != nil {
		t.Fatal(err)
	}
	const want = "27afd10c3324d6f02e5375856a9bb8b9c068b30e93e2e7a9d02b9a4a59bd768e"
	if got := Hash(sha256.Sum256(data)).String(); got != want {
		t.Errorf("%s has SHA-256 %s, want %s", ownVectors, got, want)
	}
}

func vectorsBytes(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(*vectorsFile)
	if errors.Is(err, os.ErrNotExist) && !filepath.IsAbs(*vectorsFile) {
		data, err = os.ReadFile(filepath.Join("..", *vectorsFile))
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkVectors is TestVectors as a function: nil, or the first value that this
// package does not agree with.
func checkVectors(data []byte) error {
	v, err := readVectors(data)
	if err != nil {
		return err
	}
	for _, s := range vectorSections {
		if err := s.check(v); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

var vectorSections = []struct {
	name  string
	check func(*vectors) error
}{
	{"format", checkFormat},
	{"encode", checkEncode},
	{"escape", checkEscape},
	{"genesis", checkGenesis},
	{"rows", checkRows},
	{"log", checkLog},
	{"trees", checkTrees},
	{"hmac", checkHMAC},
	{"residuals", checkResiduals},
	{"notes", checkNotes},
}

func checkFormat(v *vectors) error {
	if v.Format != SchemeV1 {
		return fmt.Errorf("format %q", v.Format)
	}
	for name, cases := range map[string]int{
		"encode": len(v.Encode), "escape": len(v.Escape), "rows": len(v.Rows), "residuals": len(v.Residuals), "hmac.rows": len(v.HMAC.Rows),
		"trees.sizes": len(v.Trees.Sizes), "trees.inclusion": len(v.Trees.Inclusion), "trees.consistency": len(v.Trees.Consistency),
	} {
		if cases == 0 {
			return fmt.Errorf("%s has no case", name)
		}
	}
	return nil
}

func checkEncode(v *vectors) error {
	for i, c := range v.Encode {
		text, err := encodeCase(c)
		if err != nil {
			return fmt.Errorf("case %d: %w", i, err)
		}
		if want := c["text_hex"]; want == nil || hex.EncodeToString(text) != *want {
			return fmt.Errorf("case %d: encodes as %x", i, text)
		}
	}
	return nil
}

func encodeCase(c map[string]*string) ([]byte, error) {
	value, isText := c["value"]
	n, isInt := c["int"]
	switch {
	case len(c) != 2 || isText == isInt:
		return nil, errors.New("want text_hex and either value or int")
	case isText && value == nil:
		return AppendNull(nil), nil
	case isText:
		return AppendString(nil, *value), nil
	case n == nil:
		return nil, errors.New("int is null")
	}
	parsed, err := parseDecimal(*n)
	return AppendInt(nil, parsed), err
}

// parseDecimal parses what strconv.FormatInt writes, and nothing else.
func parseDecimal(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && strconv.FormatInt(n, 10) != s {
		err = fmt.Errorf("%q is not how %d is written", s, n)
	}
	return n, err
}

func checkEscape(v *vectors) error {
	for i, c := range v.Escape {
		if got := Escape(c.Name); got != c.Key {
			return fmt.Errorf("case %d: %q escapes as %q, want %q", i, c.Name, got, c.Key)
		}
		overlong := strings.Contains(c.Key, "~~")
		if name, ok := Unescape(c.Key); ok == overlong || ok && name != c.Name {
			return fmt.Errorf("case %d: %q unescapes as %q, %v", i, c.Key, name, ok)
		}
	}
	return nil
}

func checkGenesis(v *vectors) error {
	if got := Genesis(SchemeV1, v.Genesis.log()); got != v.Genesis.Hash || v.Genesis.Epoch != 0 {
		return fmt.Errorf("genesis is %s in epoch 0", got)
	}
	r := &v.Reset
	if got := ResetGenesis(SchemeV1, r.log(), r.Epoch, r.PreviousHead, r.PreviousSize, audit.Str(r.Reason)); got != r.Hash {
		return fmt.Errorf("genesis after a reset is %s", got)
	}
	return nil
}

func checkRows(v *vectors) error {
	prev := v.Genesis.Hash
	for i := range v.Rows {
		if err := checkRow(&v.Rows[i], prev); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		prev = v.Rows[i].RowHash
	}
	return nil
}

func checkRow(c *rowVector, prev Hash) error {
	row, err := c.stamped(NewHasher(nil), prev)
	if err != nil {
		return err
	}
	preimage := string(appendRow(nil, row))
	switch {
	case row.PrevHash != c.PrevHash:
		return fmt.Errorf("prev_hash is %s", row.PrevHash)
	case !equalNull(row.UserCommit, c.UserCommit):
		return fmt.Errorf("user_commit is %v", row.UserCommit)
	case row.PayloadCommit != c.PayloadCommit:
		return fmt.Errorf("payload_commit is %s", row.PayloadCommit)
	case preimage != c.Preimage:
		return fmt.Errorf("preimage is %q", preimage)
	case row.RowHash != c.RowHash || Hash(sha256.Sum256([]byte(preimage))) != c.RowHash:
		return fmt.Errorf("row_hash is %s", row.RowHash)
	}
	return errors.Join(checkSlots(c, row), NewHasher(nil).Check(row))
}

// checkSlots recomputes salts and commitments one by one, by the functions that
// an auditor would call.
func checkSlots(c *rowVector, row *Row) error {
	if got := SlotSalt(c.RowSalt, "user_id"); got != c.UserSalt {
		return fmt.Errorf("user_salt is %s", got)
	}
	if row.UserID.Valid && UserCommit(c.UserSalt, row.UserID.S) != row.UserCommit.Hash {
		return errors.New("user_commit does not come from user_salt")
	}
	got, commits := map[string]Hash{}, [audit.NumSlots]NullHash{}
	for s := range audit.NumSlots {
		if row.Slots[s] != nil {
			got[s.String()] = SlotCommit(SlotSalt(c.RowSalt, s.String()), s.String(), row.Slots[s])
			commits[s] = NullHash{Hash: got[s.String()], Valid: true}
		}
	}
	if !maps.Equal(got, c.SlotCommits) {
		return fmt.Errorf("slot_commits are %v", got)
	}
	if got := PayloadCommit(SlotSalt(c.RowSalt, "*"), &commits); got != c.PayloadCommit {
		return fmt.Errorf("payload_commit of slot_commits is %s", got)
	}
	return nil
}

func equalNull(h NullHash, want *Hash) bool {
	if want == nil {
		return !h.Valid
	}
	return h == NullHash{Hash: *want, Valid: true}
}

// stamped returns the row of a vector, stamped by h.
func (c *rowVector) stamped(h *Hasher, prev Hash) (*Row, error) {
	var row Row
	for name, value := range c.Columns {
		if err := setColumn(&row.Record, name, value); err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
	}
	h.Stamp(&row, prev, c.RowSalt)
	return &row, nil
}

func setColumn(r *audit.Record, name, value string) (err error) {
	if s, ok := audit.ParseSlot(name); ok {
		r.Slots[s] = []byte(value)
		if s == audit.SlotRaw {
			r.Slots[s], err = parseHex(value)
		}
		return err
	}
	if name == nameUser {
		r.UserID = audit.Str(value)
		return nil
	}
	i := slices.IndexFunc(audit.Header[:], func(c audit.Column) bool { return c.Name == name })
	if i < 0 {
		return errors.New("unknown")
	}
	if text := audit.Header[i].Text; text != nil {
		*text(r) = audit.Str(value)
		return nil
	}
	n, err := parseDecimal(value)
	*audit.Header[i].Int(r) = audit.I64(n)
	return err
}

// parseHex parses lower-case hex.
func parseHex(s string) ([]byte, error) {
	b, err := hex.DecodeString(s)
	if err == nil && hex.EncodeToString(b) != s {
		err = errors.New("hex in upper case")
	}
	return b, err
}

// checkLog checks head, root and frontier of the log that the rows are.
func checkLog(v *vectors) error {
	tree := v.tree()
	switch {
	case v.Head != v.Rows[len(v.Rows)-1].RowHash:
		return errors.New("head is not the last row's row_hash")
	case tree.Root() != v.Root:
		return fmt.Errorf("root is %s", tree.Root())
	case !slices.Equal(tree.Frontier, v.Frontier):
		return fmt.Errorf("frontier is %v", tree.Frontier)
	}
	return nil
}

func (v *vectors) tree() *Tree {
	var tree Tree
	for i := range v.Rows {
		tree.Append(v.Rows[i].RowHash)
	}
	return &tree
}

const (
	leafInputs  = "row_hash i = SHA256(decimal i), i from 0"
	maxTreeSize = 1 << 16 // so that a damaged size costs no memory
)

func checkTrees(v *vectors) error {
	if v.Trees.LeafInputs != leafInputs {
		return fmt.Errorf("leaf_inputs %q", v.Trees.LeafInputs)
	}
	return errors.Join(checkSizes(&v.Trees), checkInclusions(&v.Trees), checkConsistencies(&v.Trees))
}

func checkSizes(v *treeVectors) error {
	for _, c := range v.Sizes {
		rows, err := numberedRows(c.Size)
		if err != nil {
			return err
		}
		tree := treeOf(rows)
		if c.Frontier == nil || tree.Root() != c.Root || !slices.Equal(tree.Frontier, c.Frontier) {
			return fmt.Errorf("size %d: root %s, frontier %v", c.Size, tree.Root(), tree.Frontier)
		}
	}
	return nil
}

func checkInclusions(v *treeVectors) error {
	for i, c := range v.Inclusion {
		rows, err := numberedRows(c.Size)
		if err != nil {
			return err
		}
		if c.Index < 0 || c.Index >= c.Size {
			return fmt.Errorf("inclusion %d: no such index", i)
		}
		if proof := ProveInclusion(rows, c.Index); c.Proof == nil || !slices.Equal(proof, c.Proof) {
			return fmt.Errorf("inclusion %d: proof is %v", i, proof)
		}
		if err := CheckInclusion(treeOf(rows).Root(), c.Size, c.Index, rows[c.Index], c.Proof); err != nil {
			return fmt.Errorf("inclusion %d: %w", i, err)
		}
	}
	return nil
}

func checkConsistencies(v *treeVectors) error {
	for i, c := range v.Consistency {
		rows, err := numberedRows(c.To)
		if err != nil {
			return err
		}
		if c.From < 0 || c.From > c.To {
			return fmt.Errorf("consistency %d: no such size", i)
		}
		if proof := ProveConsistency(rows, c.From); c.Proof == nil || !slices.Equal(proof, c.Proof) {
			return fmt.Errorf("consistency %d: proof is %v", i, proof)
		}
		older, newer := treeOf(rows[:c.From]).Root(), treeOf(rows).Root()
		if err := CheckConsistency(c.From, c.To, older, newer, c.Proof); err != nil {
			return fmt.Errorf("consistency %d: %w", i, err)
		}
	}
	return nil
}

// numberedRows returns the row hashes of leafInputs.
func numberedRows(size int64) ([]Hash, error) {
	if size < 0 || size > maxTreeSize {
		return nil, fmt.Errorf("size %d", size)
	}
	rows := make([]Hash, size)
	for i := range rows {
		rows[i] = sha256.Sum256(strconv.AppendInt(nil, int64(i), 10))
	}
	return rows, nil
}

func treeOf(rowHashes []Hash) *Tree {
	var tree Tree
	for _, h := range rowHashes {
		tree.Append(h)
	}
	return &tree
}

func checkHMAC(v *vectors) error {
	key, err := parseHex(v.HMAC.Key)
	if err != nil || len(key) == 0 {
		return errors.New("key is not hex")
	}
	h, prev := NewHasher(key), Genesis(SchemeHMACv1, v.Genesis.log())
	if prev != v.HMAC.Genesis {
		return fmt.Errorf("genesis is %s", prev)
	}
	for i, c := range v.HMAC.Rows {
		if c.Row < 0 || c.Row >= len(v.Rows) {
			return fmt.Errorf("case %d: no row %d", i, c.Row)
		}
		row, err := v.Rows[c.Row].stamped(h, prev)
		if err != nil {
			return err
		}
		if c.PrevHash != prev || c.RowHash != row.RowHash || h.Check(row) != nil {
			return fmt.Errorf("case %d: prev_hash %s, row_hash %s", i, prev, row.RowHash)
		}
		prev = row.RowHash
	}
	return nil
}

func checkResiduals(v *vectors) error {
	for i, c := range v.Residuals {
		if err := checkResidual(v, &c); err != nil {
			return fmt.Errorf("case %d: %w", i, err)
		}
	}
	return nil
}

// checkResidual erases the slots, and requires the residual of the vector and
// that the row still checks.
func checkResidual(v *vectors, c *residualVector) error {
	if c.Row < 0 || c.Row >= len(v.Rows) {
		return fmt.Errorf("no row %d", c.Row)
	}
	h := NewHasher(nil)
	row, err := v.Rows[c.Row].stamped(h, v.Rows[c.Row].PrevHash)
	if err != nil {
		return err
	}
	erased, err := parseSlots(c.Erased)
	if err != nil {
		return err
	}
	want, err := ParseResidual(string(c.Residual))
	if err != nil {
		return err
	}
	got, err := h.Residual(row, erased)
	switch {
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("residual is %s", &got)
	case c.PayloadCommit != row.PayloadCommit:
		return fmt.Errorf("payload_commit was %s", row.PayloadCommit)
	}
	eraseSlots(row, got, Sentinel{ID: someULID, Slots: erased})
	if _, payload, err := h.Commits(row); err != nil || payload != c.PayloadCommit {
		return fmt.Errorf("payload_commit recomputes as %s: %v", payload, err)
	}
	return h.Check(row)
}

// eraseSlots does to a row what an erasure of slots does.
func eraseSlots(row *Row, residual Residual, s Sentinel) {
	if row.UserID.Valid && row.RowSalt.Valid {
		row.UserSalt = NullHash{Hash: SlotSalt(row.RowSalt.Hash, nameUser), Valid: true}
	}
	for slot := range audit.NumSlots {
		if s.Slots.Has(slot) {
			row.Slots[slot] = nil
		}
	}
	row.RowSalt = NullHash{}
	row.Residual = audit.Str(residual.String())
	row.Redaction, row.RedactionID = audit.Str(s.String()), audit.Str(s.ID)
}

func parseSlots(names []string) (SlotSet, error) {
	var set SlotSet
	for _, name := range names {
		s, ok := audit.ParseSlot(name)
		if !ok || set.Has(s) {
			return 0, fmt.Errorf("slot %q is unknown or there twice", name)
		}
		set |= SlotSetOf(s)
	}
	return set, nil
}

func checkNotes(v *vectors) error {
	seed, err := parseHex(v.Notes.Seed)
	if err != nil || len(seed) != ed25519.SeedSize {
		return errors.New("seed is not 32 bytes in hex")
	}
	signer, vkey, err := signerOf(v.Notes.Name, seed)
	if err != nil || vkey != v.Notes.VKey {
		return fmt.Errorf("vkey is %s: %v", vkey, err)
	}
	if kind, document, err := ParseNoteText(v.Notes.AnchorText); err != nil || kind != AnchorNote || NoteText(kind, document) != v.Notes.AnchorText {
		return fmt.Errorf("anchor_text is a %q: %v", kind, err)
	}
	checkpoint := CheckpointText(CheckpointOrigin(v.Genesis.log()), int64(len(v.Rows)), v.Root)
	if checkpoint != v.Notes.CheckpointText {
		return fmt.Errorf("checkpoint_text is %q", checkpoint)
	}
	for text, want := range map[string]string{v.Notes.AnchorText: v.Notes.AnchorNote, checkpoint: v.Notes.CheckpointNote} {
		signed, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil || string(signed) != want {
			return fmt.Errorf("note is %q: %v", signed, err)
		}
	}
	return nil
}

// signerOf returns the signer of an Ed25519 seed, and its verifier key.
func signerOf(name string, seed []byte) (note.Signer, string, error) {
	private := ed25519.NewKeyFromSeed(seed)
	vkey, err := note.NewEd25519VerifierKey(name, private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, "", err
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, vkey, err
	}
	skey := base64.StdEncoding.EncodeToString(append([]byte{1}, seed...))
	signer, err := note.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%08x+%s", name, verifier.KeyHash(), skey))
	return signer, vkey, err
}
