package control

import "testing"

// What could not go is known by its key, for the order whose receipt says so, once
// that counts. Words about other things name no object.
func TestWhatAReceiptSaysIsKept(t *testing.T) {
	const key = "log/t/i/00002/00000000000000000003.parquet"
	round := func(anchored bool, texts ...string) *Round {
		return &Round{Anchored: anchored, Parts: []*Row{{Receipt: &Receipt{RedactionID: firstID, OutOfReach: texts}}}}
	}
	for name, c := range map[string]struct {
		round *Round
		kept  bool
	}{
		"named, with the reason": {round(true, "Kafka keeps t for 7 days", key+" is locked in the store"), true},
		"not anchored":           {round(false, key+" is locked in the store"), false},
		"another object":         {round(true, key+"x is locked in the store"), false},
		"in passing":             {round(true, "not "+key+" but others"), false},
		"without a reason":       {round(true, key), false},
		"nothing":                {round(true), false},
	} {
		g := New()
		g.count(&Tenant{}, c.round)
		if g.Kept(firstID, key) != c.kept || g.Kept(otherID, key) {
			t.Errorf("%s: kept %v, want %v; of another order %v", name, g.Kept(firstID, key), c.kept, g.Kept(otherID, key))
		}
	}
	if (*Governance)(nil).Kept(firstID, key) {
		t.Error("nothing keeps something")
	}
}
