package pipeline

import "github.com/ledgerlake/ledgerlake/audit"

// What one coordinate of a window costs at most, in bytes: the entry, its place
// in the order, and its share of the map just after that has grown.
const windowEntryBytes = 256

// A window remembers the coordinates of the newest rows of a line, so that a
// producer's repeat is known. When it is full, the oldest goes.
type window struct {
	entries map[audit.Fingerprint]entry
	order   []turn // oldest first, from head on
	head    int
}

// A turn is the place of a row in the order of a window.
type turn struct {
	coord audit.Fingerprint
	seq   int64
}

// An entry is what the window knows of one row.
type entry struct {
	seq     int64
	ordinal int64             // of the segment that held the row when it was stamped, or inDataFile
	tenant  string            // whose log it is in
	content audit.Fingerprint // the zero one where it is not known, as after a restart
	foreign bool              // content is of a row that another policy scrubbed: see contentOf
	gone    bool              // the row was erased hard, or cut: nobody but this window knows what it was
}

// Where a row is, if not in the segment of an ordinal: in a data file, or nobody
// knows.
const (
	inDataFile = -1
	nowhere    = -2
)

// erasedContent stands for that of a row that was erased, in part or whole, or cut:
// whatever has its coordinates is a repeat of it.
var erasedContent = audit.Fingerprint{0: 0xff, 1: 'e', 2: 'r', 3: 'a', 4: 's', 5: 'e', 6: 'd', 15: 0xff}

func newWindow() *window { return &window{entries: map[audit.Fingerprint]entry{}} }

func (w *window) lookup(coord audit.Fingerprint) (entry, bool) {
	e, ok := w.entries[coord]
	return e, ok
}

// add remembers a row. A row whose coordinates are known already (one further
// apart than the window was, or a writer with a smaller window) does not
// replace the first, unless that is gone.
func (w *window) add(coord audit.Fingerprint, e entry, limit int) {
	if first, ok := w.entries[coord]; !ok || first.gone {
		w.put(coord, e, limit)
	}
}

// put remembers a row, in the place of any that had its coordinates.
func (w *window) put(coord audit.Fingerprint, e entry, limit int) {
	w.entries[coord] = e
	w.order = append(w.order, turn{coord, e.seq})
	for len(w.entries) > limit {
		if oldest := w.order[w.head]; w.entries[oldest.coord].seq == oldest.seq {
			delete(w.entries, oldest.coord)
		}
		w.head++
	}
	if len(w.order) > 2*len(w.entries)+1024 {
		w.tidy()
	}
}

// tidy drops the turns of rows that the window no longer has.
func (w *window) tidy() {
	left := make([]turn, 0, len(w.entries)+1)
	for _, t := range w.order[w.head:] {
		if e, ok := w.entries[t.coord]; ok && e.seq == t.seq {
			left = append(left, t)
		}
	}
	w.order, w.head = left, 0
}

// forget drops what is known of coordinates.
func (w *window) forget(coord audit.Fingerprint) { delete(w.entries, coord) }

// lose notes that rows of a tenant are gone.
func (w *window) lose(tenant string, gone func(seq int64) bool) {
	for coord, e := range w.entries {
		if e.tenant == tenant && gone(e.seq) {
			e.gone = true
			w.entries[coord] = e
		}
	}
}

// learn notes the content of the row of a seq that was read back.
func (w *window) learn(coord, content audit.Fingerprint, foreign bool, seq int64) {
	if e, ok := w.entries[coord]; ok && e.seq == seq {
		e.content, e.foreign = content, foreign
		w.entries[coord] = e
	}
}
