package httpsink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// DatadogOptions say which site takes logs, and what they are filed under.
type DatadogOptions struct {
	HTTP          // URL; "" is the intake of Site
	Site   string // such as datadoghq.eu
	APIKey string
	// Source, Service and Host are ddsource, service and hostname; "" of the first
	// two is ledgerlake, and of the last none. Tags is ddtags: "name:value", with
	// commas between.
	Source, Service, Host, Tags string
	Limits                      sink.Limits // zero members are the usual ones
}

// A Datadog delivers to Datadog's log intake, v2.
//
// The message of a log is the event's JSON, which Datadog makes attributes of. Its
// time is the event's where that is less than 18 hours ago, which is what the intake
// takes; else the log has the time at which it was sent, and the event's own as
// attribute. A log of more than 1 MB would be cut, with a 202: it goes as its
// pointer.
//
// Source: Datadog API reference, "Send logs".
type Datadog struct {
	c      *client
	o      DatadogOptions
	url    string
	before []byte // members of each log that are always the same
}

// What the intake takes: bytes of a payload and of a log before they are
// compressed, logs of a payload, and how old a log may be. The last is an hour
// less than Datadog's, for it may wait on the way.
const (
	datadogPayload = 5_000_000
	datadogLog     = 1_000_000
	datadogLogs    = 1000
	datadogAge     = 17 * time.Hour
)

var datadogSite = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*\.[a-z]+$`)

// NewDatadog returns a Datadog.
func NewDatadog(o DatadogOptions) (*Datadog, error) {
	switch {
	case o.APIKey == "":
		return nil, errors.New("api-key: none")
	case o.URL != "" && o.Site != "":
		return nil, errors.New("site: there is a url too, want one of them")
	case o.URL == "" && !datadogSite.MatchString(o.Site):
		return nil, errors.New("site: want a site of Datadog, such as datadoghq.eu")
	case o.URL == "":
		o.URL = "https://http-intake.logs." + o.Site
	}
	c, err := newClient(o.HTTP, o.APIKey)
	if err != nil {
		return nil, err
	}
	if err := c.bearing("api-key", "DD-API-KEY", o.APIKey); err != nil {
		return nil, err
	}
	d := &Datadog{c: c, o: o, url: c.pathOr("api/v2/logs")}
	if d.o.Source == "" {
		d.o.Source = "ledgerlake"
	}
	if d.o.Service == "" {
		d.o.Service = "ledgerlake"
	}
	for _, m := range [][2]string{{"ddsource", d.o.Source}, {"service", d.o.Service}, {"hostname", d.o.Host}, {"ddtags", d.o.Tags}} {
		if m[1] != "" {
			d.before = append(appendText(append(appendText(d.before, m[0]), ':'), m[1]), ',')
		}
	}
	// Quotes and backslashes of a body are escaped once more.
	d.o.Limits = limits(o.Limits, sink.Limits{Events: datadogLogs, BatchBytes: datadogPayload * 7 / 10, EventBytes: datadogLog * 8 / 10})
	return d, nil
}

// Limits implements [sink.Sink].
func (d *Datadog) Limits() sink.Limits { return d.o.Limits }

// Close implements [sink.Sink].
func (d *Datadog) Close(context.Context) error {
	d.c.close()
	return nil
}

// Deliver implements [sink.Sink].
func (d *Datadog) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	body, fault := d.body(batch)
	if fault != "" {
		return sink.All(len(batch), sink.Verdict{Outcome: sink.Split, Reason: fault})
	}
	a, err := d.c.post(ctx, request{url: d.url, contentType: "application/json", body: body})
	if err != nil {
		return d.c.failed(ctx, len(batch), err)
	}
	r := d.c.judged(batch, a, "")
	if r.Done() && a.status != http.StatusAccepted {
		return d.c.unclear(batch, a, "Datadog's intake answers 202")
	}
	return r
}

// body returns the payload of a batch, or why it is too large.
func (d *Datadog) body(batch []sink.Message) (body []byte, fault string) {
	b := make([]byte, 0, room(batch)*5/4+256*len(batch))
	now := d.c.o.Now()
	for i := range batch {
		b = append(b, "[,"[min(i, 1)])
		from := len(b)
		b = d.appendLog(b, &batch[i], now)
		if len(b)-from > datadogLog {
			return nil, fmt.Sprintf("a log of %d bytes: Datadog cuts what is over %d", len(b)-from, datadogLog)
		}
	}
	if b = append(b, ']'); len(b) > datadogPayload {
		return nil, fmt.Sprintf("a payload of %d bytes: Datadog takes %d", len(b), datadogPayload)
	}
	return b, ""
}

func (d *Datadog) appendLog(b []byte, m *sink.Message, now time.Time) []byte {
	b = append(append(b, '{'), d.before...)
	if age := now.Sub(m.Event.Time); age < datadogAge && age > -time.Hour {
		b = append(strconv.AppendInt(append(b, `"timestamp":`...), m.Event.Time.UnixMilli(), 10), ',')
	}
	return append(appendText(append(b, `"message":`...), string(m.Body)), '}')
}
