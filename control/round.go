package control

import "slices"

// maxRounds bounds how many rounds of one order are told apart by their ids, and
// so what a receipt costs that somebody made up.
const maxRounds = 1000

// order returns the id of the redaction that a round is of.
func (r *Round) order() string { return r.Parts[0].Receipt.RedactionID }

// at returns when its last part was archived, in microseconds.
func (r *Round) at() (at int64) {
	for _, p := range r.Parts {
		at = max(at, p.ArchivedAt)
	}
	return at
}

// rounds sorts the parts of receipts, in the order of their log, into rounds, and
// returns those of which all parts are there, as they became whole. A part that
// was sent again stands in its round once. Parts whose ids are not those of
// [ReceiptID] are put together as they come.
func rounds(all []*Row) (whole []*Round) {
	b := roundBook{highest: map[string]int{}, open: map[roundKey][]map[int64]*Row{}}
	for _, r := range all {
		if done := b.add(r); done != nil {
			whole = append(whole, done)
		}
	}
	return whole
}

type roundKey struct {
	order  string
	number int
	parts  int64
}

type roundBook struct {
	highest map[string]int // the number of rounds of an order that were met
	open    map[roundKey][]map[int64]*Row
}

func (b *roundBook) add(r *Row) *Round {
	k := roundKey{r.Receipt.RedactionID, b.number(r), r.Receipt.Parts}
	part := r.Receipt.Part
	i := slices.IndexFunc(b.open[k], func(s map[int64]*Row) bool { return s[part] == nil })
	if i < 0 {
		if k.number >= 0 && len(b.open[k]) > 0 {
			return nil // sent again
		}
		i = len(b.open[k])
		b.open[k] = append(b.open[k], map[int64]*Row{})
	}
	s := b.open[k][i]
	s[part] = r
	if int64(len(s)) < r.Receipt.Parts {
		return nil
	}
	if k.number < 0 { // one that follows may be another receipt
		b.open[k] = slices.Delete(b.open[k], i, i+1)
	}
	return roundOf(k.number, s)
}

// number returns the number of the round that the id of a part says, -1 where it
// says none.
func (b *roundBook) number(r *Row) int {
	order := r.Receipt.RedactionID
	for n := min(b.highest[order], maxRounds); n >= 0; n-- {
		if id, err := ReceiptID(order, n, r.Receipt.Part); err == nil && id == r.ID {
			b.highest[order] = max(b.highest[order], n+1)
			return n
		}
	}
	return -1
}

func roundOf(number int, parts map[int64]*Row) *Round {
	r := &Round{Number: number, Anchored: true}
	for n := int64(1); n <= int64(len(parts)); n++ {
		r.Parts = append(r.Parts, parts[n])
		r.Anchored = r.Anchored && parts[n].Anchored
	}
	return r
}
