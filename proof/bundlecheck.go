package proof

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// CheckOptions are what somebody knows who checks a proof without the archive.
type CheckOptions struct {
	Keys      *sign.Ring // good for all roles; nil where none is known
	Witnesses []*sign.Witness
	LogKeys   chain.Keys
}

// A Checked is what a proof was found to be worth.
type Checked struct {
	Exit      int      `json:"exit"` // as docs/format.md, section 7, says
	Tier      string   `json:"tier"`
	ArchiveID string   `json:"archiveId"`
	Rows      int64    `json:"rows"`      // that are shown
	Unsigned  bool     `json:"unsigned"`  // a root in it is not signed by a good key
	SignedBy  []string `json:"signedBy"`  // vkeys
	Witnesses []string `json:"witnesses"` // vkeys of those that cosigned
	Proved    []string `json:"proved"`
	NotProved []string `json:"notProved"`
	Fault     string   `json:"fault,omitempty"`

	less, look bool
}

func newChecked(archiveID string) *Checked {
	return &Checked{Tier: TierT0, ArchiveID: archiveID, SignedBy: []string{}, Witnesses: []string{}, Proved: []string{}, NotProved: []string{}}
}

// Failed returns what is to be said of a proof in which there is a fault.
func Failed(archiveID string, err error) *Checked {
	c := newChecked(archiveID)
	c.Exit, c.Tier, c.Fault = 1, TierNone, err.Error()
	return c
}

func (c *Checked) proved(format string, a ...any) { c.Proved = addOnce(c.Proved, format, a...) }

func (c *Checked) not(format string, a ...any) { c.NotProved = addOnce(c.NotProved, format, a...) }

func addOnce(list []string, format string, a ...any) []string {
	text := fmt.Sprintf(format, a...)
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// end sets the exit code.
func (c *Checked) end() *Checked {
	switch {
	case c.less:
		c.Exit = 3
	case c.look:
		c.Exit = 4
	}
	return c
}

// Check checks the bundle by what it holds and the keys that are given. The root
// of the tree counts for as much as the signature over it: none by a given key,
// and no more is proved than that the bundle fits together.
func (b *Bundle) Check(o CheckOptions) *Checked {
	c := newChecked(b.ArchiveID)
	if err := b.check(c, o); err != nil {
		return Failed(b.ArchiveID, err)
	}
	return c.end()
}

func (b *Bundle) check(c *Checked, o CheckOptions) error {
	log := b.Log.in(b.ArchiveID)
	if err := b.Row.check(c, log, o.LogKeys); err != nil {
		return err
	}
	if err := chain.CheckInclusion(b.Tree.Root, b.Tree.Size, b.Row.Seq, b.Row.RowHash, b.Path); err != nil {
		return err
	}
	c.proved("row_hash is that of row %d of the log of tenant %s in %s/%d, whose tree has %d rows and root %s", b.Row.Seq, Printable(b.Log.Tenant), Printable(b.Log.Topic), b.Log.Partition, b.Tree.Size, b.Tree.Root)
	if b.TlogProof != nil && *b.TlogProof != b.tlogProof() || b.TlogProof == nil && b.Checkpoint != nil {
		return fmt.Errorf("tlogProof does not say what the bundle says")
	}
	s := statement{log: log, scheme: b.Row.Scheme, tree: b.Tree, checkpoint: b.Checkpoint, anchor: b.Anchor, introductions: b.Introductions}
	return s.check(c, o)
}

// check recomputes what the row shows.
func (b *BundleRow) check(c *Checked, log chain.Log, keys chain.Keys) error {
	c.Rows++
	if b.Header == nil {
		return b.checkHard(c)
	}
	if b.PrevHash == nil || b.PayloadCommit == nil {
		return fmt.Errorf("row %d: prevHash or payloadCommit is null", b.Seq)
	}
	if err := b.checkPlace(log); err != nil {
		return fmt.Errorf("row %d: %w", b.Seq, err)
	}
	if err := b.checkUser(c); err != nil {
		return fmt.Errorf("row %d: %w", b.Seq, err)
	}
	if err := b.checkSlots(c); err != nil {
		return fmt.Errorf("row %d: %w", b.Seq, err)
	}
	return b.checkHash(c, log, keys)
}

// checkHard checks a row of which a hard erasure, or whoever shows it, left the
// hash alone.
func (b *BundleRow) checkHard(c *Checked) error {
	if b.PrevHash != nil || b.PayloadCommit != nil || b.UserCommit != nil || b.User != nil || b.StarSalt != nil || b.Slots != (BundleSlots{}) {
		return fmt.Errorf("row %d: header is null, and other members are not", b.Seq)
	}
	c.look = true
	c.not("row %d: what it said: it was erased with its header, or all of it is withheld, and its place and row_hash alone are proved", b.Seq)
	return nil
}

// checkPlace holds the header against the log.
func (b *BundleRow) checkPlace(log chain.Log) error {
	h := &b.Header.Record
	for i := range audit.Header {
		if col := &audit.Header[i]; col.Required && (col.Text != nil && !col.Text(h).Valid || col.Int != nil && !col.Int(h).Valid) {
			return fmt.Errorf("%s is null", col.Name)
		}
	}
	switch {
	case h.TenantID.S != log.Tenant || h.Topic.S != log.Topic || h.Partition.N != int64(log.Partition):
		return fmt.Errorf("the header is that of a row of another log")
	case h.Seq.N != b.Seq:
		return fmt.Errorf("the header is that of row %d", h.Seq.N)
	case b.Seq == 0 && *b.PrevHash != chain.Genesis(b.Scheme, log):
		return fmt.Errorf("prevHash of the first row is not the genesis of the log")
	}
	return nil
}

func (b *BundleRow) checkUser(c *Checked) error {
	switch {
	case b.User == nil && b.UserCommit == nil:
		return nil
	case b.User == nil:
		c.not("row %d: user_id, which is withheld or erased", b.Seq)
		return nil
	case b.UserCommit == nil || chain.UserCommit(b.User.Salt, b.User.ID) != *b.UserCommit:
		return fmt.Errorf("userCommit is not the commitment to the user id")
	}
	return nil
}

func (b *BundleRow) checkSlots(c *Checked) error {
	if b.StarSalt == nil {
		if b.Slots != (BundleSlots{}) {
			return fmt.Errorf("starSalt is null, and there are slots")
		}
		c.not("row %d: its slots, which were erased, or are withheld", b.Seq)
		return nil
	}
	var commits [audit.NumSlots]chain.NullHash
	var hidden []string
	for s, slot := range b.Slots {
		switch {
		case slot == nil:
		case slot.Commit != nil:
			commits[s] = chain.NullHash{Hash: *slot.Commit, Valid: true}
			hidden = append(hidden, audit.Slot(s).String())
		default:
			commits[s] = chain.NullHash{Hash: chain.SlotCommit(*slot.Salt, audit.Slot(s).String(), slot.Content), Valid: true}
		}
	}
	if chain.PayloadCommit(*b.StarSalt, &commits) != *b.PayloadCommit {
		return fmt.Errorf("payloadCommit is not the commitment to the slots")
	}
	if len(hidden) > 0 {
		c.not("row %d: slots that are withheld or erased: %s", b.Seq, strings.Join(hidden, ", "))
	}
	return nil
}

// checkHash recomputes row_hash.
func (b *BundleRow) checkHash(c *Checked, log chain.Log, keys chain.Keys) error {
	row := chain.Row{Record: b.Header.Record, PrevHash: *b.PrevHash, PayloadCommit: *b.PayloadCommit}
	if b.UserCommit != nil {
		row.UserCommit = chain.NullHash{Hash: *b.UserCommit, Valid: true}
	}
	var key []byte
	if b.Scheme == chain.SchemeHMACv1 {
		if keys != nil {
			key, _ = keys(log)
		}
		if len(key) == 0 {
			c.less = true
			c.not("row %d: that row_hash is the hash of what is shown; the log is keyed, and its key was not given", b.Seq)
			return nil
		}
	}
	if chain.NewHasher(key).RowHash(&row) != b.RowHash {
		return fmt.Errorf("row %d: rowHash is not the hash of header, prevHash, userCommit and payloadCommit", b.Seq)
	}
	c.proved("row %d: all that is shown of it is what row_hash commits to", b.Seq)
	return nil
}

// A statement is a tree of a log, and notes that state it.
type statement struct {
	log                chain.Log
	scheme             string
	tree               BundleTree
	checkpoint, anchor *string
	introductions      []string
}

// check checks that the notes state the tree, and whose they are.
func (s *statement) check(c *Checked, o CheckOptions) error {
	if s.checkpoint == nil && s.anchor == nil {
		return fmt.Errorf("there is neither a checkpoint nor an anchor: nobody states the root")
	}
	ring := &sign.Ring{}
	if o.Keys != nil {
		ring = o.Keys.Clone()
	}
	if err := introduce(ring, s.introductions, s.log.ArchiveID); err != nil {
		return err
	}
	byAnchor, at, err := s.checkAnchor(c, ring)
	if err != nil {
		return err
	}
	byCheckpoint, err := s.checkCheckpoint(c, ring, o.Witnesses, at)
	if err != nil {
		return err
	}
	for _, vkey := range slices.Concat(byAnchor.By, byCheckpoint.By) {
		if !slices.Contains(c.SignedBy, vkey) {
			c.SignedBy = append(c.SignedBy, vkey)
		}
	}
	return s.rate(c, byAnchor.State, byCheckpoint.State)
}

// rate says what the signatures make of it. Where one of two notes is signed by
// a good key the other has to be, for nobody signs but one of them.
func (s *statement) rate(c *Checked, states ...sign.State) error {
	signed := slices.Contains(states, sign.Good)
	switch both := s.anchor != nil && s.checkpoint != nil; {
	case !signed:
		c.less, c.Unsigned = true, true
		c.not("that anybody vouches for the root: no signature over it is by a key that was given")
		return nil
	case both && slices.Contains(states, sign.Unknown):
		return errStranger
	case both && slices.Contains(states, sign.Unsigned):
		c.less = true
		c.not("the anchor or the checkpoint, of which one is not signed")
	}
	c.proved("size and root are signed by %s", strings.Join(names(c.SignedBy), ", "))
	if s.anchor == nil {
		c.not("when the tree had %d rows, but by the rows' own word: a checkpoint has no time", s.tree.Size)
	}
	switch {
	case len(c.Witnesses) > 0:
		c.Tier = TierT3
	case c.Tier == TierT0:
		c.Tier = TierT1
	}
	return nil
}

func names(vkeys []string) (all []string) {
	for _, v := range vkeys {
		name, _, _ := strings.Cut(v, "+")
		all = append(all, Printable(name))
	}
	return all
}

// checkAnchor says who signed the anchor, and, where the anchor has the
// checkpoint in it, when.
func (s *statement) checkAnchor(c *Checked, ring *sign.Ring) (v sign.Verdict, at time.Time, err error) {
	if s.anchor == nil {
		return v, at, nil
	}
	a, err := decodeAnchorNote([]byte(*s.anchor))
	if err != nil {
		return v, at, fmt.Errorf("anchor: %w", err)
	}
	line := archive.Line{Topic: s.log.Topic, TopicID: s.log.TopicID, Partition: s.log.Partition}
	h := headIn(a.Anchor, s.log.Tenant)
	switch {
	case a.ArchiveID != s.log.ArchiveID || a.Line() != line:
		return v, at, fmt.Errorf("the anchor is of another archive or partition")
	case h == nil || h.Size != s.tree.Size || h.Root != s.tree.Root || h.Scheme != s.scheme:
		return v, at, fmt.Errorf("the anchor does not state this tree of the log")
	}
	v = ring.Check(a.note, sign.Anchor, a.Time.Time)
	if v.State == sign.Bad {
		return v, at, fmt.Errorf("anchor: %w", errForged)
	}
	if len(v.By) > 0 {
		c.proved("anchor %d of %s/%d covered the tree of %d rows at %s, by the clock of whoever signed", a.Number, Printable(a.Topic), a.Partition, h.Size, a.Time.UTC().Format(archive.TimeLayout))
	}
	for _, p := range a.Checkpoints {
		if s.checkpoint != nil && p.Note == *s.checkpoint && v.State == sign.Good {
			at = a.Time.Time
		}
	}
	return v, at, nil
}

// checkCheckpoint says who signed the checkpoint, and notes the witnesses that
// did. at is the time of an anchor that has it, or zero.
func (s *statement) checkCheckpoint(c *Checked, ring *sign.Ring, witnesses []*sign.Witness, at time.Time) (v sign.Verdict, err error) {
	if s.checkpoint == nil {
		return v, nil
	}
	n, err := sign.Parse([]byte(*s.checkpoint))
	if err != nil {
		return v, fmt.Errorf("checkpoint: %w", err)
	}
	if n.Text != chain.CheckpointText(chain.CheckpointOrigin(s.log), s.tree.Size, s.tree.Root) {
		return v, fmt.Errorf("the checkpoint is not that of this tree of the log")
	}
	v = ring.Check(n, sign.Anchor, at)
	if v.State == sign.Bad {
		return v, fmt.Errorf("checkpoint: %w", errForged)
	}
	for _, sig := range n.Signatures {
		for _, w := range witnesses {
			if !w.Signed(sig) {
				continue
			}
			at, err := w.Check(n.Text, sig)
			if err != nil {
				return v, fmt.Errorf("checkpoint: %w", err)
			}
			if !slices.Contains(c.Witnesses, w.VKey()) {
				c.Witnesses = append(c.Witnesses, w.VKey())
			}
			c.proved("witness %s cosigned the checkpoint at %s", Printable(w.Name()), at.Format(time.RFC3339))
		}
	}
	return v, nil
}

// introduce adds the keys that notes introduce: key notes by a good key, and the
// keys of anchors that are signed by one. The order of the notes plays no part.
func introduce(ring *sign.Ring, notes []string, archiveID string) error {
	left := make([]*sign.Note, len(notes))
	for i, text := range notes {
		n, err := sign.Parse([]byte(text))
		if err != nil {
			return fmt.Errorf("introduction %d: %w", i, err)
		}
		left[i] = n
	}
	for again := true; again; {
		again = false
		for i, n := range left {
			if n == nil {
				continue
			}
			used, err := introduction(ring, n, []byte(notes[i]), archiveID)
			if err != nil {
				return fmt.Errorf("introduction %d: %w", i, err)
			}
			if used {
				left[i], again = nil, true
			}
		}
	}
	return nil
}

// introduction takes the keys of one note, and reports whether it was signed by
// a good one.
func introduction(ring *sign.Ring, n *sign.Note, body []byte, archiveID string) (bool, error) {
	kind, _, err := chain.ParseNoteText(n.Text)
	switch {
	case err != nil:
		return false, err
	case kind == chain.KeyNote:
		return keyNoteIntroduces(ring, n, body, archiveID)
	case kind != chain.AnchorNote:
		return false, fmt.Errorf("a %s introduces no key", kind)
	}
	a, err := archive.DecodeAnchor(n.Text)
	if err != nil {
		return false, err
	}
	if a.ArchiveID != archiveID {
		return false, fmt.Errorf("the anchor is of another archive")
	}
	if ring.Check(n, sign.Anchor, a.Time.Time).State != sign.Good {
		return false, nil
	}
	for _, vkey := range a.Keys.Anchor {
		// One that is no key can sign nothing.
		_ = ring.Add(vkey, sign.Anchor, fmt.Sprintf("anchor %d", a.Number))
	}
	return true, nil
}

func keyNoteIntroduces(ring *sign.Ring, n *sign.Note, body []byte, archiveID string) (bool, error) {
	k, err := readKeyNote(n.Text)
	switch {
	case err != nil:
		return false, err
	case k.archiveID != archiveID:
		return false, fmt.Errorf("the key note is of another archive")
	case ring.Check(n, sign.Anchor|sign.Catalog, time.Time{}).State != sign.Good:
		return false, nil
	}
	_, err = ring.AddKeyNote(body, archiveID)
	return err == nil, err
}
