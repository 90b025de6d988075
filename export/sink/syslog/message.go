package syslog

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// timeLayout is RFC 5424's TIMESTAMP: six digits of a second at most.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// severities are syslog's numbers for OCSF's levels: 6 informational, 5 notice,
// 4 warning, 3 error.
var severities = [...]byte{1: 6, 2: 5, 3: 4, 4: 3}

// message appends the message of an event: with the place of a row in full, or,
// where that makes it too long, with its seq and row hash alone.
func (s *Sink) message(dst []byte, m *sink.Message) []byte {
	whole := s.appendMessage(dst, m, true)
	if len(whole)-len(dst) <= s.o.MessageBytes {
		return whole
	}
	return s.appendMessage(dst, m, false)
}

// appendMessage appends a SYSLOG-MSG of RFC 5424. With whole, the structured data
// has the place of a row in full; without, its seq and row hash alone.
func (s *Sink) appendMessage(dst []byte, m *sink.Message, whole bool) []byte {
	ev := m.Event
	dst = append(dst, '<')
	dst = strconv.AppendInt(dst, int64(s.o.Facility)*8+int64(severities[ev.Severity()]), 10)
	dst = append(dst, ">1 "...)
	if year := ev.Time.Year(); year < 0 || year > 9999 {
		dst = append(dst, '-')
	} else {
		dst = ev.Time.UTC().AppendFormat(dst, timeLayout)
	}
	dst = append(dst, s.names...)
	dst = append(appendName(dst, kind(ev), maxMessageID), ' ')
	dst = s.appendData(dst, ev, whole)
	dst = append(dst, ' ')
	if s.o.BOM {
		dst = append(dst, "\ufeff"...)
	}
	return appendText(dst, m.Body)
}

// kind is that of a row, else that of the event.
func kind(ev *event.Event) string {
	if ev.IsRow() {
		return ev.Row.Kind.S
	}
	return string(ev.Kind)
}

// appendData appends the STRUCTURED-DATA: one element of our own. Its names are
// those of the format json.
func (s *Sink) appendData(dst []byte, ev *event.Event, whole bool) []byte {
	dst = append(append(dst, '['), s.element...)
	param := func(name, value string) {
		dst = append(append(append(dst, ' '), name...), `="`...)
		dst = append(appendValue(dst, value), '"')
	}
	if whole {
		param("event", string(ev.Kind))
		if ev.Tenant != "" {
			param("tenant", ev.Tenant)
			param("topic", ev.Line.Topic)
			param("topicId", ev.Line.TopicID)
			param("partition", strconv.Itoa(int(ev.Line.Partition)))
		}
	}
	if !ev.IsRow() {
		param("id", ev.ID)
		return append(dst, ']')
	}
	param("seq", strconv.FormatInt(ev.Seq, 10))
	if whole {
		param("prevHash", ev.Row.PrevHash.String())
		param("verified", strconv.FormatBool(ev.Verified))
	}
	param("rowHash", ev.ID)
	return append(dst, ']')
}

// appendValue appends a PARAM-VALUE: UTF-8, with " \ and ] escaped. A control
// character is what some receiver ends a line or a text at, and becomes U+FFFD;
// the message has it as it was.
func appendValue(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r == ']':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || r >= 0x7f && r < 0xa0:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// appendText appends what an encoder wrote: UTF-8, without a NUL.
func appendText(dst, body []byte) []byte {
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 {
		return append(dst, body...)
	}
	text := bytes.ToValidUTF8(body, []byte("\ufffd"))
	return append(dst, bytes.ReplaceAll(text, []byte{0}, []byte("\ufffd"))...)
}

// How long names may be: RFC 5424, section 6.
const (
	maxHostname  = 255
	maxAppName   = 48
	maxMessageID = 32
	maxElement   = 32
)

// appendName appends a field of printable ASCII: all else of s becomes _, and
// what is too long is left out. An empty field is "-".
func appendName(dst []byte, s string, most int) []byte {
	if s == "" {
		return append(dst, '-')
	}
	for i := range min(len(s), most) {
		if c := s[i]; c > ' ' && c < 0x7f {
			dst = append(dst, c)
		} else {
			dst = append(dst, '_')
		}
	}
	return dst
}

// ValidEnterprise reports whether s may be an enterprise number.
func ValidEnterprise(s string) bool { return isElement(element(s)) }

// isElement reports whether s may be an SD-ID: a name, @, and an enterprise
// number.
func isElement(s string) bool {
	name, number, ok := strings.Cut(s, "@")
	if !ok || name == "" || len(s) > maxElement || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`=]"`, r) }) {
		return false
	}
	for part := range strings.SplitSeq(number, ".") {
		if _, err := strconv.ParseUint(part, 10, 32); err != nil {
			return false
		}
	}
	return true
}

// Length returns how many bytes the message of an event has.
func (s *Sink) Length(m *sink.Message) int { return len(s.message(nil, m)) }
