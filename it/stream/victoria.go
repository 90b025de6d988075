//go:build it

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// A protocol is a way into VictoriaLogs.
type protocol struct {
	name, kind string
	path       string
	account    int
	split      func([]byte) [][]byte
	halfTaken  func(n, all int) (int, string)
	text       func(event []byte) []byte // our JSON in what split returned
	// fields are what LogsQL calls the tenant, the log and seq, and has of a row.
	tenant, log, seq string
	rows             string // a filter of rows
	more             string // fields
	json             func(map[string]string) ([]byte, error)
}

// protocols are the two that the trial uses.
var protocols = []protocol{
	{
		name: "victoria-bulk", kind: "elasticsearch", account: 1,
		path:  "/insert/elasticsearch?_time_field=@timestamp&_stream_fields=tenant&preserve_json_keys=record&_msg_field=recordId",
		split: splitBulk, halfTaken: halfBulk,
		text:   func(event []byte) []byte { _, text, _ := strings.Cut(string(event), "\n"); return []byte(text) },
		tenant: "tenant", log: `topicId, "partition"`, seq: "seq", rows: `event:in(record, pointer)`,
		more: `event, tenant, topicId, "partition", seq, rowHash`,
		json: func(f map[string]string) ([]byte, error) {
			line, err := strconv.Atoi(f["partition"])
			if err != nil {
				return nil, err
			}
			seq, err := strconv.ParseInt(f["seq"], 10, 64)
			return fmt.Appendf(nil, `{"event":%q,"tenant":%q,"topicId":%q,"partition":%d,"seq":%d,"rowHash":%q}`, f["event"], f["tenant"], f["topicId"], line, seq, f["rowHash"]), err
		},
	},
	{
		name: "victoria-hec", kind: "splunk-hec", account: 2,
		path:  "/insert/splunk/services/collector/event?preserve_json_keys=event",
		split: splitHEC, halfTaken: halfHEC,
		text: func(event []byte) []byte {
			var one struct{ Event json.RawMessage }
			_ = json.Unmarshal(event, &one) // what it is not, the record finds
			return one.Event
		},
		tenant: `"fields.ledgerlake_tenant"`, log: `"fields.ledgerlake_log"`, seq: `"fields.ledgerlake_seq"`, rows: `"fields.ledgerlake_event":in(record, pointer)`,
		more: "_msg",
		json: func(f map[string]string) ([]byte, error) { return []byte(f["_msg"]), nil },
	},
}

// read reads all rows that came by the protocol, a tenant at a time.
func (p *protocol) read(ctx context.Context, v *parts.Victoria, tenants []string, each func([]byte, time.Time) error) error {
	for _, tenant := range tenants {
		found, err := v.Query(ctx, p.account, fmt.Sprintf("%s:=%q %s | fields %s", p.tenant, tenant, p.rows, p.more))
		if err != nil {
			return err
		}
		for _, f := range found {
			text, err := p.json(f)
			if err != nil {
				return fmt.Errorf("%w: %v", errWrong, f)
			}
			if err := each(text, time.Time{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// gaps asks how many seqs are missing between the first and the last of each log.
func (p *protocol) gaps(ctx context.Context, v *parts.Victoria) (wrong []string, err error) {
	found, err := v.Query(ctx, p.account, fmt.Sprintf(
		"%s | stats by (%s, %s) min(%[4]s) as first, max(%[4]s) as last, count_uniq(%[4]s) as there | math last - first + 1 - there as missing", p.rows, p.tenant, p.log, p.seq))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		wrong = append(wrong, "nothing is there")
	}
	for _, f := range found {
		if f["missing"] != "0" || f["first"] != "0" {
			wrong = append(wrong, fmt.Sprint(f))
		}
	}
	return wrong, nil
}
