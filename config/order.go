package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
)

// An Order is what somebody orders with a command of ledgerlake-compact: erase,
// cancel, hold, release or offboard.
type Order struct {
	Tenant string

	// What is meant; "" and nil are none.
	Record, Session, Turn, Stage, User string
	Within                             *int64
	Place                              *Place
	All                                bool   // of the tenant
	ID                                 string // of a redaction

	Slots  []string // names, or "*"
	UserID bool
	Hard   bool

	Reason     string
	RequestRef string
	By         string

	DryRun bool
	Force  bool
	Yes    bool
	JSON   bool
	Wait   time.Duration // 0 is not at all
}

// A Place is one offset of a partition.
type Place struct {
	Line   archive.Line
	Offset int64
}

func (o *Order) tenant() Setting {
	return Setting{Name: "tenant", Required: true, Help: "The tenant.", Value: text(&o.Tenant, "TENANT", "the id of a tenant", notEmpty)}
}

func (o *Order) reason() Setting {
	return Setting{
		Name: "reason", Required: true, Help: "Why, in a few words. It stands in the control log, and in receipts, which cannot be erased: it must name no person.",
		Value: text(&o.Reason, "TEXT", "a reason", notEmpty),
	}
}

func (o *Order) common() []Setting {
	return []Setting{
		{Name: "by", Help: "Who orders it, as it is to stand in the control log. Default: the user's name in the environment (USER).", Value: text(&o.By, "NAME", "a name", notEmpty)},
		{Name: "dry-run", Default: "false", Help: "Print what would be ordered, and what it means now. Nothing is written.", Value: boolean(&o.DryRun)},
		{Name: "wait", Default: "0s", Help: "Wait so long until the order stands in the archive; 0s: not at all.", Value: period(&o.Wait, 0)},
		{Name: "json", Default: "false", Help: "Print one JSON object.", Value: boolean(&o.JSON)},
	}
}

func recordID(p *string) Value {
	return parsed(p, "ULID", "a record id (ULID)", func(s string) (string, bool) {
		id, err := audit.ParseRecordID(s)
		return id, err == nil
	})
}

// Erase returns the settings of an order of erasure.
func (o *Order) Erase() Section {
	return Section{"What is ordered", slices.Concat([]Setting{
		o.tenant(),
		{Name: "record-id", Help: "The row of a record id. One of record-id, session, turn, user, offset, or session, turn, stage and seq-within-turn together.", Value: recordID(&o.Record)},
		{Name: "session", Help: "All rows of a session.", Value: text(&o.Session, "ID", "an id", notEmpty)},
		{Name: "turn", Help: "All rows of a turn.", Value: text(&o.Turn, "ID", "an id", notEmpty)},
		{Name: "stage", Help: "With session, turn and seq-within-turn: the row of these coordinates.", Value: text(&o.Stage, "ID", "an id", notEmpty)},
		{Name: "seq-within-turn", Help: "See stage.", Value: parsed(&o.Within, "NUMBER", "a whole number", parseWithin)},
		{Name: "user", Help: "All rows of a user, and rejected rows whose bytes hold the id.", Value: text(&o.User, "ID", "an id", notEmpty)},
		{Name: "offset", Help: "The row of a Kafka offset.", Value: parsed(&o.Place, "TOPIC/TOPIC-ID/PARTITION/OFFSET", "a topic, its id, a partition and an offset, with slashes between them", parsePlace)},
		{
			Name: "slots", Default: "*", Help: "What of the rows goes: names of slots (docs/format.md, section 3.3), or * for all.",
			Value: texts(&o.Slots, "SLOT", "the name of a slot, or *", isSlot),
		},
		{Name: "with-user-id", Default: "false", Help: "user_id goes too. With user it always does.", Value: boolean(&o.UserID)},
		{Name: "hard", Default: "false", Help: "The header goes too (columns 10 to 31: ids, times, model, tokens), in the next pass: it cannot be taken back.", Value: boolean(&o.Hard)},
		o.reason(),
		{Name: "request-ref", Required: true, Help: "The number of the request outside, such as a ticket's. It stands in the receipt and must name no person.", Value: text(&o.RequestRef, "TEXT", "a reference", notEmpty)},
		{Name: "force", Default: "false", Help: "Order it although no row of it is known: rows may come late.", Value: boolean(&o.Force)},
	}, o.common())}
}

// Cancel returns the settings of an order that takes one back.
func (o *Order) Cancel() Section {
	return Section{"What is ordered", slices.Concat([]Setting{
		o.tenant(),
		{Name: "id", Required: true, Help: "The id of the erasure. It may stand without --id.", Value: recordID(&o.ID)},
		o.reason(),
		{Name: "force", Default: "false", Help: "Order it although no such erasure is known.", Value: boolean(&o.Force)},
	}, o.common())}
}

// Hold returns the settings of an order that sets a legal hold, or lifts one.
func (o *Order) Hold() Section {
	return Section{"What is ordered", slices.Concat([]Setting{
		o.tenant(),
		{Name: "all", Default: "false", Help: "All rows of the tenant. One of all, session and user.", Value: boolean(&o.All)},
		{Name: "session", Help: "The rows of a session.", Value: text(&o.Session, "ID", "an id", notEmpty)},
		{Name: "user", Help: "The rows of a user, and rejected rows whose bytes hold the id.", Value: text(&o.User, "ID", "an id", notEmpty)},
		o.reason(),
		{Name: "force", Default: "false", Help: "Order it although such a hold is in force already, or, to lift it, none is known.", Value: boolean(&o.Force)},
	}, o.common())}
}

// Offboard returns the settings of the order that all of a tenant goes.
func (o *Order) Offboard() Section {
	return Section{"What is ordered", slices.Concat([]Setting{
		o.tenant(), o.reason(),
		{Name: "yes", Default: "false", Help: "Do it. Without this, what would go is printed, and nothing is ordered.", Value: boolean(&o.Yes)},
	}, o.common())}
}

func isSlot(s string) bool {
	_, ok := audit.ParseSlot(s)
	return ok || s == "*"
}

func parseWithin(s string) (*int64, bool) {
	n, ok := parseDecimal(s)
	return &n, ok
}

func parsePlace(s string) (*Place, bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 || !isTopic(parts[0]) || parts[1] == "" {
		return nil, false
	}
	partition, ok := parseDecimal(parts[2])
	offset, err := strconv.ParseInt(parts[3], 10, 64)
	return &Place{archive.Line{Topic: parts[0], TopicID: parts[1], Partition: int32(partition)}, offset}, ok && partition <= math.MaxInt32 && err == nil && offset >= 0
}

// CheckErase finds what is wrong with an order of erasure as a whole.
func (o *Order) CheckErase(origins Origins) error {
	coordinates := o.Stage != "" || o.Within != nil
	forms := 0
	for _, is := range []bool{o.Record != "", o.User != "", o.Place != nil, o.Turn != "" || o.Session != "" || coordinates} {
		if is {
			forms++
		}
	}
	return firstBroken(origins, []rule{
		{forms == 0, "record-id", "not set: give one of --record-id, --turn, --session, --user, --offset, or --session, --turn, --stage and --seq-within-turn together"},
		{forms > 1, "record-id", "is one of several targets: want one of --record-id, --turn, --session, --user, --offset, or --session, --turn, --stage and --seq-within-turn together"},
		{coordinates && (o.Stage == "" || o.Within == nil || o.Session == "" || o.Turn == ""), "stage", "goes with session, turn and seq-within-turn: want all four"},
		{!coordinates && o.Turn != "" && o.Session != "", "turn", "goes without session: want one of the two, or all four coordinates"},
		{slices.Contains(o.Slots, "*") && len(o.Slots) > 1, "slots", "has * beside names: want one or the other"},
		{o.Hard && !slices.Equal(o.Slots, []string{"*"}), "hard", "takes all slots: leave out slots"},
	})
}

// CheckHold finds what is wrong with an order of a hold as a whole.
func (o *Order) CheckHold(origins Origins) error {
	scopes := 0
	for _, is := range []bool{o.All, o.Session != "", o.User != ""} {
		if is {
			scopes++
		}
	}
	return firstBroken(origins, []rule{{scopes != 1, "all", "want one of --all, --session and --user"}})
}

func firstBroken(origins Origins, rules []rule) error {
	for _, r := range rules {
		if r.broken {
			return &Error{Name: r.name, Source: origins[r.name], Fault: r.fault}
		}
	}
	return nil
}

// Listing returns the settings of a command that lists orders.
func Listing(tenant *string, open, json *bool) Section {
	return Section{"What is printed", []Setting{
		{Name: "tenant", Help: "Those of one tenant.", Value: text(tenant, "TENANT", "the id of a tenant", notEmpty)},
		{Name: "open", Default: "false", Help: "Those of which something is still to be done.", Value: boolean(open)},
		jsonSetting(json),
	}}
}

// Printing returns the setting of a command that prints for people or programs.
func Printing(json *bool) Section { return Section{"What is printed", []Setting{jsonSetting(json)}} }

func jsonSetting(json *bool) Setting {
	return Setting{Name: "json", Default: "false", Help: "Print one JSON object.", Value: boolean(json)}
}

// Dry returns the settings of a command that can only show what it would do.
func Dry(dry, json *bool) Section {
	return Section{"What is done", []Setting{
		{Name: "dry-run", Default: "false", Help: "Print what would be ordered, and order nothing.", Value: boolean(dry)},
		jsonSetting(json),
	}}
}
