package httpsink

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// ElasticOptions say which cluster takes events, and in which indexes.
type ElasticOptions struct {
	HTTP // URL is the cluster's; _bulk is appended to its path
	// Index is the index or data stream of an event: see [ParseIndex].
	Index string
	// APIKey is base64, as Elasticsearch shows it; or User and Password; or none.
	APIKey         string
	User, Password string
	Limits         sink.Limits // zero members are the usual ones
}

// An Elastic delivers to the _bulk interface of Elasticsearch or OpenSearch.
//
// Each event is created as the document whose _id is the event's: the row_hash of
// a record. A document that is there already (409) is a delivery. What has no
// @timestamp gets the event's time as one. Each event has a verdict of its own,
// and a whole answer has one for each: less says nothing about any.
//
// Source: Elasticsearch API reference, "Bulk index or delete documents".
type Elastic struct {
	c     *client
	o     ElasticOptions
	index *Index
	url   string
}

// NewElastic returns an Elastic.
func NewElastic(o ElasticOptions) (*Elastic, error) {
	index, err := ParseIndex(o.Index)
	if err != nil {
		return nil, err
	}
	c, err := newClient(o.HTTP, o.APIKey, o.Password)
	if err != nil {
		return nil, err
	}
	e := &Elastic{c: c, o: o, index: index}
	switch {
	case o.APIKey != "" && o.User+o.Password != "":
		return nil, errors.New("user: there is an API key too, want one of them")
	case (o.User == "") != (o.Password == ""):
		return nil, errors.New("user: want user and password, or none of them")
	case o.APIKey != "":
		err = c.bearing("api-key", "Authorization", "ApiKey "+o.APIKey)
	case o.User != "":
		login := base64.StdEncoding.EncodeToString([]byte(o.User + ":" + o.Password))
		c.hide(login)
		err = c.bearing("api-key", "Authorization", "Basic "+login)
	}
	// Statuses and types of errors alone: their texts quote the documents.
	e.url = c.at("_bulk", url.Values{"filter_path": {"items.*.status,items.*.error.type,items.*.error.caused_by.type"}})
	e.o.Limits = limits(o.Limits, sink.Limits{Events: 1000, BatchBytes: 5 << 20, EventBytes: 4 << 20})
	return e, err
}

// Limits implements [sink.Sink].
func (e *Elastic) Limits() sink.Limits { return e.o.Limits }

// Close implements [sink.Sink].
func (e *Elastic) Close(context.Context) error {
	e.c.close()
	return nil
}

// perItem is how much of an answer an event may have.
const perItem = 512

// Deliver implements [sink.Sink].
func (e *Elastic) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	a, err := e.c.post(ctx, request{
		url: e.url, contentType: "application/x-ndjson", body: e.body(batch), most: maxAnswer + perItem*int64(len(batch)),
	})
	if err != nil {
		return e.c.failed(ctx, len(batch), err)
	}
	if a.status != http.StatusOK {
		r := e.c.judged(batch, a, "")
		if r.Done() {
			r = e.c.unclear(batch, a, "that is no answer of _bulk")
		}
		return r
	}
	return e.items(batch, a)
}

// body returns the lines of a request.
func (e *Elastic) body(batch []sink.Message) []byte {
	b := make([]byte, 0, room(batch)+256*len(batch))
	for _, m := range batch {
		b = append(b, `{"create":{"_index":`...)
		b = appendText(b, e.index.Of(m.Event))
		b = append(b, `,"_id":"`+m.Event.ID+`"}}`+"\n"...)
		if !bytes.HasPrefix(m.Body, []byte(`{"@timestamp":`)) && isObject(m.Body) {
			b = m.Event.Time.UTC().AppendFormat(append(b, `{"@timestamp":"`...), "2006-01-02T15:04:05.000000Z")
			b = append(append(b, `",`...), m.Body[1:]...)
		} else {
			b = append(b, m.Body...)
		}
		b = append(b, '\n')
	}
	return b
}

// A bulkItem is what the answer says of one event.
type bulkItem struct {
	Status int `json:"status"`
	Error  struct {
		Type     string                `json:"type"`
		CausedBy struct{ Type string } `json:"caused_by"`
	} `json:"error"`
}

// items returns the verdicts of an answer.
func (e *Elastic) items(batch []sink.Message, a *answer) sink.Result {
	var says struct {
		Items []map[string]bulkItem `json:"items"`
	}
	switch err := json.Unmarshal(a.body, &says); {
	case !a.whole:
		return e.c.unclear(batch, a, "the answer is too long")
	case err != nil:
		return e.c.unclear(batch, a, "that is no answer of _bulk")
	case len(says.Items) != len(batch):
		return e.c.unclear(batch, a, fmt.Sprintf("it speaks of %d events, and %d were sent", len(says.Items), len(batch)))
	}
	r := sink.Result{Verdicts: make([]sink.Verdict, len(batch))}
	for i, item := range says.Items {
		one, ok := item["create"]
		if !ok {
			r.Verdicts[i].Reason = "the answer does not say that it was created"
			continue
		}
		r.Verdicts[i] = e.verdict(&one)
	}
	return r
}

func (e *Elastic) verdict(item *bulkItem) sink.Verdict {
	if item.Status == http.StatusConflict { // the document is there
		return sink.Verdict{Outcome: sink.Delivered}
	}
	if item.Status < 200 {
		return sink.Verdict{Outcome: sink.Retry, Reason: "the answer has no status of it"}
	}
	outcome, _ := sink.Classify(item.Status, nil, e.c.o.Now())
	if outcome == sink.Delivered {
		return sink.Verdict{Outcome: sink.Delivered}
	}
	text := fmt.Sprintf("%d %s", item.Status, http.StatusText(item.Status))
	for _, s := range []string{item.Error.Type, item.Error.CausedBy.Type} {
		if isType(s) {
			text += ": " + s
		}
	}
	return sink.Verdict{Outcome: outcome, Reason: e.c.clean(text)}
}

// isType reports whether a text looks like the type of an error, and like nothing
// that was sent.
func isType(s string) bool {
	return s != "" && len(s) <= 80 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}
